//! `IntakeMappingService`.

use std::{collections::BTreeMap, sync::Arc};

use bellwether_proto::{
    cloud::Events,
    v1::{self, intake_mapping_service_server::IntakeMappingService},
};
use bytes::Bytes;
use tonic::{Request, Response, Status, async_trait};

use super::{
    access,
    convert::{
        incoming::{join_violations, truncated_event_from_wire},
        list::to_i32,
    },
    data_receiver::DataReceiver,
    serve::serve,
};
use crate::{
    clock::Clock,
    domain::{IntakeMapping, Name},
    error::Error,
    limits::{MAPPING_HEADERS_MAX, MAPPING_TEST_BYTES_MAX},
    ops::intake_mapping::{
        Evaluator, Handshakes, MappingResult, Mappings, RejectedDocument, RejectedDocuments,
        find_merges, reject_body, try_draft, verify,
    },
};

const REFUSED_SHOWN: usize = 10;

#[derive(Debug)]
pub struct IntakeMappingApi {
    mappings: Mappings,
    receiver: DataReceiver,
    evaluator: Evaluator,
    handshakes: Handshakes,
    rejected: RejectedDocuments,
    clock: Arc<dyn Clock>,
}

impl IntakeMappingApi {
    pub fn new(
        mappings: Mappings,
        receiver: DataReceiver,
        evaluator: Evaluator,
        handshakes: Handshakes,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            mappings,
            receiver,
            evaluator,
            handshakes,
            rejected: RejectedDocuments::default(),
            clock,
        }
    }
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
            events: mapped.events,
            dropped_count: Some(to_i32(mapped.dropped)),
        }))
    }

    async fn receive_webhook(
        &self,
        request: Request<v1::ReceiveWebhookRequest>,
    ) -> Result<Response<v1::ReceiveWebhookResponse>, Status> {
        let caller = access::caller(&request)?;
        let (metadata, _, request) = request.into_parts();
        // The permission to send is checked first, so that other callers learn nothing about
        // mappings.
        DataReceiver::admit(&caller, &metadata)?;
        let mapping = self.mappings.find(&request.mapping).await?;
        let (client, body) = (caller.name.clone(), Bytes::from(request.body));
        let mapped = match self.map(&mapping, &client, &body, request.headers).await {
            Ok(WebhookContent::Events(mapped)) => mapped,
            Ok(WebhookContent::Handshake(code)) => {
                return Ok(Response::new(v1::ReceiveWebhookResponse {
                    succeeded: Some(0),
                    dropped: Some(0),
                    validation_response: code,
                }));
            }
            Err(error) => {
                // After any other error, the sender repeats the request.
                if matches!(error, Error::Invalid(_) | Error::PermissionDenied(_)) {
                    let rejected = reject_body(&mapping, &body, &error.to_string());
                    self.retain_rejected(&mapping, &client, vec![rejected]);
                }
                return Err(error.into());
            }
        };
        self.retain_rejected(&mapping, &client, mapped.rejected);
        let events = Events {
            detailed_response: false,
            events: mapped.events,
        };
        let received = self.receiver.receive(caller, &metadata, events).await?;
        let (passed, result, _) = received.into_parts();
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
            let rejected = reject_body(&mapping, &body, &result.message);
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
    /// Verifies a webhook and maps it.
    async fn map(
        &self,
        mapping: &IntakeMapping,
        client: &Name,
        body: &Bytes,
        given: BTreeMap<String, String>,
    ) -> Result<WebhookContent, Error> {
        let headers = headers(given)?;
        if let Some(signature) = &mapping.signature {
            verify(signature, body, &headers, self.clock.now_ms())?;
        }
        if let Some(code) = self.handshakes.complete(mapping, body).await? {
            return Ok(WebhookContent::Handshake(code));
        }
        let mapped = self
            .evaluator
            .run(Some(client), mapping.clone(), body.clone(), headers);
        Ok(WebhookContent::Events(mapped.await?))
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
