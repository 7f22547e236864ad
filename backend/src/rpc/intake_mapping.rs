//! `IntakeMappingService`.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use bellwether_proto::{
    cloud::{EventStatusResult, Events},
    v1::{self, intake_mapping_service_server::IntakeMappingService},
};
use bytes::Bytes;
use tonic::{Request, Response, Status, async_trait, metadata::MetadataMap};

use super::{
    access,
    convert::{
        incoming::{join_violations, truncated_event_from_wire},
        to_i32,
    },
    data_receiver::DataReceiver,
    methods::{Permission, RECEIVE_WEBHOOK},
};
use crate::{
    clock::Clock,
    domain::{IntakeMapping, Name},
    error::Error,
    limits::{MAPPING_HEADERS_MAX, MAPPING_TEST_BYTES_MAX},
    ops::{
        client::Caller,
        intake_mapping::{
            Evaluator, Handshakes, MappingResult, Mappings, RejectedDocument, RejectedDocuments,
            ThreadAction, ThreadActions, find_merges, reject_body, try_draft, verify,
        },
        serve::serve,
    },
    store::audit::{self, Actor},
};

const REFUSED_SHOWN: usize = 10;

#[derive(Debug)]
pub struct IntakeMappingApi {
    pub(crate) mappings: Mappings,
    pub(crate) receiver: DataReceiver,
    pub(crate) evaluator: Evaluator,
    pub(crate) handshakes: Handshakes,
    pub(crate) actions: ThreadActions,
    pub(crate) rejected: RejectedDocuments,
    pub(crate) clock: Arc<dyn Clock>,
}

#[async_trait]
impl IntakeMappingService for IntakeMappingApi {
    serve! {
        mappings of mapping;
        create_intake_mapping(CreateIntakeMappingRequest) -> CreateIntakeMappingResponse;
        list_intake_mappings(ListIntakeMappingsRequest) -> ListIntakeMappingsResponse { mappings };
        get_intake_mapping(GetIntakeMappingRequest) -> GetIntakeMappingResponse, detailed by rejected;
        update_intake_mapping(UpdateIntakeMappingRequest) -> UpdateIntakeMappingResponse;
        delete_intake_mapping(DeleteIntakeMappingRequest) -> DeleteIntakeMappingResponse, |it| it.force;
    }

    async fn test_intake_mapping(
        &self,
        request: Request<v1::TestIntakeMappingRequest>,
    ) -> Result<Response<v1::TestIntakeMappingResponse>, Status> {
        let request = request.into_inner();
        if request.body.len() > MAPPING_TEST_BYTES_MAX {
            let bytes = request.body.len();
            let message = format!("is {bytes} bytes; the limit is {MAPPING_TEST_BYTES_MAX}");
            return Err(Error::invalid("body", message).into());
        }
        let mapping = match request.mapping {
            Some(draft) => {
                let under = |error| match error {
                    Error::Invalid(violations) => Error::Invalid(
                        violations
                            .into_iter()
                            .map(|mut violation| {
                                violation.field.insert_str(0, "mapping.");
                                violation
                            })
                            .collect(),
                    ),
                    other => other,
                };
                try_draft(&draft).map_err(under)?
            }
            None => self.mappings.find(&request.name).await?,
        };
        let headers = headers(request.headers)?;
        let root = if mapping.each.is_empty() { "" } else { "item" };
        let mapped = self
            .evaluator
            .run(None, mapping, request.body, headers)
            .await?;
        let now_ms = self.clock.now_ms();
        let violations = mapped.events.iter().enumerate().filter_map(|(at, event)| {
            let violations = truncated_event_from_wire(event.clone(), now_ms).err()?;
            Some(format!("events[{at}]: {}", join_violations(&violations)))
        });
        Ok(Response::new(v1::TestIntakeMappingResponse {
            faults: violations
                .chain(mapped.refused.iter().map(entry_message))
                .collect(),
            merges: find_merges(&mapped.events, root),
            empty_templates: mapped.empty_templates,
            actions: mapped.actions.iter().map(ThreadAction::to_wire).collect(),
            events: mapped.events,
            reply: mapped.reply,
            dropped_count: Some(to_i32(mapped.dropped)),
        }))
    }

    async fn receive_webhook(
        &self,
        request: Request<v1::ReceiveWebhookRequest>,
    ) -> Result<Response<v1::ReceiveWebhookResponse>, Status> {
        let (caller, address) = (access::caller(&request)?, access::address(&request));
        let (metadata, _, request) = request.into_parts();
        // The permission to send is checked first, so that other callers learn nothing about
        // mappings.
        DataReceiver::admit(&caller, &metadata)?;
        let mapping = self.mappings.find(&request.mapping).await?;
        let (client, body) = (caller.name.clone(), Bytes::from(request.body));
        let mut mapped = match self.map(&mapping, &caller, &body, request.headers).await {
            Ok(WebhookContent::Events(mapped)) => mapped,
            Ok(WebhookContent::Handshake(code)) => {
                return Ok(Response::new(v1::ReceiveWebhookResponse {
                    succeeded: Some(0),
                    dropped: Some(0),
                    validation_response: code,
                    ..v1::ReceiveWebhookResponse::default()
                }));
            }
            Err(error) => {
                // After any other error, the sender repeats the request.
                if matches!(
                    error,
                    Error::Invalid(_) | Error::PermissionDenied(_) | Error::Unauthenticated(_)
                ) {
                    let rejected = reject_body(&mapping, &body, (&error.to_string(), false));
                    self.retain_rejected(&mapping, &client, vec![rejected]);
                }
                return Err(error.into());
            }
        };
        let rejected = std::mem::take(&mut mapped.rejected);
        self.retain_rejected(&mapping, &client, rejected);
        let (passed, result) = if mapping.response.is_some() {
            let result = self.act(&mapping, (&caller, address), &mut mapped, &body);
            (MetadataMap::new(), result.await?)
        } else {
            let events = Events {
                detailed_response: false,
                events: std::mem::take(&mut mapped.events),
            };
            let received = self.receiver.receive(caller, &metadata, events).await?;
            let (passed, result, _) = received.into_parts();
            (passed, result)
        };
        let mut refused: Vec<_> = mapped
            .refused
            .iter()
            .take(REFUSED_SHOWN)
            .map(entry_message)
            .collect();
        if let Some(more) = mapped
            .refused
            .len()
            .checked_sub(REFUSED_SHOWN)
            .filter(|it| *it > 0)
        {
            refused.push(format!("and {more} more entries"));
        }
        if result.failed > 0 {
            let rejected = reject_body(&mapping, &body, (&result.message, false));
            self.retain_rejected(&mapping, &client, vec![rejected]);
            refused.push(result.message);
        }
        if !refused.is_empty() {
            return Err(Error::invalid("body", refused.join("; ")).into());
        }
        let mut response = Response::new(v1::ReceiveWebhookResponse {
            succeeded: Some(result.succeeded),
            dropped: Some(to_i32(mapped.dropped)),
            validation_response: String::new(),
            reply: mapped.reply,
        });
        *response.metadata_mut() = passed;
        Ok(response)
    }
}

/// The content of a webhook.
enum WebhookContent {
    Events(MappingResult),
    /// The handshake was completed; contains the code for the response.
    Handshake(String),
}

impl IntakeMappingApi {
    /// Verifies a webhook and maps it. Actions require a signature, which an editor of the mapping
    /// has agreed on with the receiver, or the role of an operator.
    async fn map(
        &self,
        mapping: &IntakeMapping,
        caller: &Caller,
        body: &Bytes,
        given: BTreeMap<String, String>,
    ) -> Result<WebhookContent, Error> {
        let headers = headers(given)?;
        if let Some(signature) = &mapping.signature {
            verify(signature, body, &headers, self.clock.now_ms())?;
        } else if mapping.response.is_some() && !Permission::Operator.allows_role(caller.role) {
            return Err(Error::PermissionDenied(format!(
                "the mapping `{}` takes actions: the key of `{}` requires the role `operator`, or \
                 the mapping requires a signature",
                mapping.name, caller.name
            )));
        }
        if let Some(code) = self.handshakes.complete(mapping, body).await? {
            return Ok(WebhookContent::Handshake(code));
        }
        let mapped = self
            .evaluator
            .run(Some(&caller.name), mapping.clone(), body.clone(), headers);
        Ok(WebhookContent::Events(mapped.await?))
    }

    /// Takes the actions of a webhook. Counts those whose thread was not found as dropped. The
    /// message of the result contains the errors of the others.
    async fn act(
        &self,
        mapping: &IntakeMapping,
        (caller, address): (&Caller, Option<IpAddr>),
        mapped: &mut MappingResult,
        body: &[u8],
    ) -> Result<EventStatusResult, Error> {
        let now_ms = self.clock.now_ms();
        let count = mapped.actions.len();
        caller.meter.take_events(&caller.name, count, now_ms)?;
        let by = Actor {
            client: caller.name.to_string(),
            address,
            agent: String::new(),
            method: RECEIVE_WEBHOOK,
            time_ms: now_ms,
            scope: Arc::clone(&caller.scope),
        };
        let mut result = EventStatusResult::default();
        for (at, action) in mapped.actions.iter().enumerate() {
            let acting = self.actions.act(mapping, action, &caller.name);
            let error = match audit::run_as(by.clone(), acting).await {
                Ok(()) => {
                    result.succeeded += 1;
                    continue;
                }
                Err(error) => error,
            };
            let why = match &error {
                Error::Invalid(violations) => {
                    let texts = violations.iter().map(|it| it.description.as_str());
                    texts.collect::<Vec<_>>().join("; ")
                }
                error => error.to_string(),
            };
            let reason = match count {
                1 => why,
                _ => format!("action {at}: {why}"),
            };
            match error {
                Error::NotFound(_) => {
                    mapped.dropped += 1;
                    let dropped = reject_body(mapping, body, (&reason, true));
                    self.retain_rejected(mapping, &caller.name, vec![dropped]);
                }
                Error::Invalid(_) | Error::FailedPrecondition(_) | Error::Refused { .. } => {
                    result.failed += 1;
                    let separator = if result.message.is_empty() { "" } else { "; " };
                    result.message.extend([separator, &*reason]);
                }
                // After other errors, the sender repeats the request.
                error => {
                    if matches!(error, Error::PermissionDenied(_)) {
                        let rejected = reject_body(mapping, body, (&reason, false));
                        self.retain_rejected(mapping, &caller.name, vec![rejected]);
                    }
                    return Err(error);
                }
            }
        }
        Ok(result)
    }

    fn retain_rejected(
        &self,
        mapping: &IntakeMapping,
        client: &Name,
        documents: Vec<RejectedDocument>,
    ) {
        for document in &documents {
            let (mapping, size_bytes) = (&mapping.name, document.size_bytes);
            let reason = &document.reason;
            // Dropped documents are logged at DEBUG, because mappings drop them on purpose.
            if document.dropped {
                tracing::debug!(%mapping, %client, size_bytes, reason, "dropped a webhook document");
            } else {
                tracing::info!(%mapping, %client, size_bytes, reason, "rejected a webhook document");
            }
        }
        self.rejected
            .add(&mapping.name, client, self.clock.now_ms(), documents);
    }
}

fn entry_message((place, why): &(usize, String)) -> String {
    format!("entry {place}: {why}")
}

fn headers(given: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Error> {
    if given.len() > MAPPING_HEADERS_MAX {
        let found = given.len();
        let message = format!("has {found} entries; the limit is {MAPPING_HEADERS_MAX}");
        return Err(Error::invalid("headers", message));
    }
    let lower = |(name, value): (String, String)| (name.to_ascii_lowercase(), value);
    Ok(given.into_iter().map(lower).collect())
}
