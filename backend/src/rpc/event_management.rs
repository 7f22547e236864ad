//! `EventManagementService`: operator actions on events.

use bellwether_proto::v1::{
    AnnotateRequest, AnnotateResponse, AnnotationResult, SetStatusRequest, SetStatusResponse,
    StatusResult, event_management_service_server::EventManagementService,
};
use tonic::{Request, Response, Status, async_trait};

use super::{access, convert::operator};
use crate::{
    error::Error,
    limits::ITEMS_PER_REQUEST_MAX,
    ops::{
        annotate::{self, AddedAnnotation},
        decision_context::DecisionContext,
        intake::Intake,
        set_status,
    },
};

const MAY_REOPEN: &str = "the sender has not closed the event: its next report reopens the event \
                          and notifies; to notify no one until the sender closes the event, set \
                          STATUS_SUPPRESSED instead";

#[derive(Debug)]
pub struct EventManagementApi {
    pub(crate) deciding: DecisionContext,
    pub(crate) intake: Intake,
}

#[async_trait]
impl EventManagementService for EventManagementApi {
    async fn annotate(
        &self,
        request: Request<AnnotateRequest>,
    ) -> Result<Response<AnnotateResponse>, Status> {
        let author = access::caller(&request)?.name;
        let items = request.into_inner().annotations;
        check_count("annotations", items.len())?;
        let mut results: Vec<_> = items
            .iter()
            .map(|item| AnnotationResult {
                event_id: item.event_id.clone(),
                occurrence_id: item.occurrence_id.clone(),
                annotation_id: item.annotation_id.clone(),
                ..AnnotationResult::default()
            })
            .collect();
        let mut outcomes = Outcomes::collect(items.into_iter().map(operator::annotation));
        let answers = annotate::annotate(&self.deciding, &outcomes.valid, &author).await?;
        for (result, outcome) in results.iter_mut().zip(outcomes.merge(answers)) {
            result.success = Some(outcome.is_ok());
            match outcome {
                Ok(AddedAnnotation {
                    occurrence,
                    annotation,
                }) => {
                    result.occurrence_id = occurrence.to_string();
                    result.annotation_id = annotation;
                }
                Err(error) => (result.error, result.code) = error_and_code(error),
            }
        }
        Ok(Response::new(AnnotateResponse {
            annotation_responses: results,
        }))
    }

    async fn set_status(
        &self,
        request: Request<SetStatusRequest>,
    ) -> Result<Response<SetStatusResponse>, Status> {
        let author = access::caller(&request)?.name;
        let SetStatusRequest {
            statuses: items,
            without_updates,
        } = request.into_inner();
        check_count("statuses", items.len())?;
        let read = |item| operator::status(item, without_updates);
        let mut outcomes = Outcomes::collect(items.iter().map(read));
        let modules = (&self.deciding, &self.intake);
        let answers = set_status::set_status(modules, &outcomes.valid, &author).await?;
        let results = items.into_iter().zip(outcomes.merge(answers));
        let results = results.map(|(item, outcome)| {
            let mut result = StatusResult {
                event_id: item.event_id,
                occurrence_id: item.occurrence_id,
                success: Some(outcome.is_ok()),
                ..StatusResult::default()
            };
            match outcome {
                Ok(changed) => {
                    result.occurrence_id = changed.id.to_string();
                    if changed.may_reopen {
                        result.warnings.push(MAY_REOPEN.into());
                    }
                }
                Err(error) => (result.error, result.code) = error_and_code(error),
            }
            result
        });
        Ok(Response::new(SetStatusResponse {
            status_responses: results.collect(),
        }))
    }
}

fn error_and_code(error: Error) -> (String, i32) {
    let text = error.to_string();
    (text, Status::from(error).code().into())
}

fn check_count(field: &str, count: usize) -> Result<(), Error> {
    if count > ITEMS_PER_REQUEST_MAX {
        let message = format!("has {count} entries; the limit is {ITEMS_PER_REQUEST_MAX}");
        return Err(Error::invalid(field, message));
    }
    Ok(())
}

/// The valid items, and the errors of the invalid items, in the order of the request.
struct Outcomes<T> {
    valid: Vec<T>,
    /// The error of each item; `None` for a valid item.
    errors: Vec<Option<Error>>,
}

impl<T> Outcomes<T> {
    fn collect(items: impl Iterator<Item = Result<T, Error>>) -> Self {
        let mut outcomes = Self {
            valid: Vec::new(),
            errors: Vec::new(),
        };
        for item in items {
            let error = match item {
                Ok(item) => {
                    outcomes.valid.push(item);
                    None
                }
                Err(error) => Some(error),
            };
            outcomes.errors.push(error);
        }
        outcomes
    }

    fn merge<A>(&mut self, answers: Vec<Result<A, Error>>) -> Vec<Result<A, Error>> {
        let mut answers = answers.into_iter();
        let errors = std::mem::take(&mut self.errors).into_iter();
        errors
            .map(|error| match error {
                Some(error) => Err(error),
                None => answers.next().expect("every valid item has a result"),
            })
            .collect()
    }
}
