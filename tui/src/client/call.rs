//! Makes one call: the request outward, the answer inward.

use bellwether_proto::{
    v1,
    v1::{
        client_service_client::ClientServiceClient, delivery_service_client::DeliveryServiceClient,
        destination_service_client::DestinationServiceClient,
        event_management_service_client::EventManagementServiceClient,
        event_query_service_client::EventQueryServiceClient,
        overview_service_client::OverviewServiceClient, rule_service_client::RuleServiceClient,
        trigger_service_client::TriggerServiceClient,
    },
};
use tonic::Status;

use super::{Answer, Page, Request, bulk, carrier::Carrier, convert, convert::failed};
use crate::{
    data::{Draft, Failure, Kind},
    limits,
};

const DONE: Answer = Answer::Done {
    failed: 0,
    first_error: String::new(),
};

/// Makes the call.
pub(super) async fn make(carrier: Carrier, request: Request) -> Result<Answer, Failure> {
    match request {
        Request::Overview => {
            let mut service = OverviewServiceClient::new(carrier);
            let answer = service.get_overview(v1::GetOverviewRequest {}).await;
            answer
                .map(|answer| convert::overview(answer.into_inner()))
                .map_err(failed)
        }
        Request::ListTriggers
        | Request::ListDestinations
        | Request::ListRules
        | Request::ListClients => list(carrier, request).await,
        Request::ListDeliveries { .. }
        | Request::GetDelivery { .. }
        | Request::RetryDelivery { .. }
        | Request::CancelDelivery { .. } => deliveries(carrier, request).await,
        Request::Bulk { .. } | Request::ListObligations { .. } | Request::GatherEvents { .. } => {
            bulk::make(carrier, request).await
        }
        Request::SearchEvents { .. } | Request::GetEvent { .. } | Request::ExplainEvent { .. } => {
            events(carrier, request).await
        }
        Request::SetStatus { .. } | Request::Annotate { .. } => manage(carrier, request).await,
        Request::PreviewRule { .. } | Request::TestDestination { .. } => {
            try_out(carrier, request).await
        }
        // It is a stream, which the link follows.
        Request::TestTrigger { .. } => Err(convert::misplaced()),
        Request::Validate { draft, update } => store(carrier, draft, String::new(), update, true)
            .await
            .map(|()| Answer::Valid),
        Request::Create { draft } => store(carrier, draft, String::new(), false, false)
            .await
            .map(|()| DONE),
        Request::Update { draft, etag } => store(carrier, draft, etag, true, false)
            .await
            .map(|()| DONE),
        Request::Delete {
            kind,
            name,
            etag,
            force,
        } => delete(carrier, kind, name, etag, force)
            .await
            .map(|()| DONE),
        Request::CreateClient(new) => {
            let request = v1::CreateClientRequest {
                name: new.name,
                role: convert::role(new.role).into(),
                requests_per_second: new.requests_per_second,
                events_per_second: new.events_per_second,
            };
            let answer = ClientServiceClient::new(carrier)
                .create_client(request)
                .await;
            answer
                .map(|answer| convert::new_client(answer.into_inner()))
                .map_err(failed)
        }
        Request::RevokeClient { name } => {
            let request = v1::RevokeClientRequest { name };
            let answer = ClientServiceClient::new(carrier)
                .revoke_client(request)
                .await;
            answer.map(|_| DONE).map_err(failed)
        }
    }
}

/// Reads every page of a list, up to the limit.
macro_rules! all_pages {
    ($service:expr, $method:ident, $request:ident, $rows:ident, $read:path) => {{
        let mut service = $service.max_decoding_message_size(limits::MESSAGE_BYTES);
        let mut rows = Vec::new();
        let mut page_token = String::new();
        loop {
            let mut request = v1::$request::default();
            request.page_size = limits::RESOURCE_PAGE;
            request.page_token = page_token;
            let answer = service.$method(request).await.map_err(failed)?.into_inner();
            rows.extend(answer.$rows.into_iter().map($read));
            page_token = answer.next_page_token;
            if page_token.is_empty() || rows.len() >= limits::HELD_RESOURCES {
                break rows;
            }
        }
    }};
}

async fn list(carrier: Carrier, request: Request) -> Result<Answer, Failure> {
    Ok(match request {
        Request::ListTriggers => Answer::Triggers(all_pages!(
            TriggerServiceClient::new(carrier),
            list_triggers,
            ListTriggersRequest,
            triggers,
            convert::trigger
        )),
        Request::ListDestinations => Answer::Destinations(all_pages!(
            DestinationServiceClient::new(carrier),
            list_destinations,
            ListDestinationsRequest,
            destinations,
            convert::destination
        )),
        Request::ListRules => Answer::Rules(all_pages!(
            RuleServiceClient::new(carrier),
            list_rules,
            ListRulesRequest,
            rules,
            convert::rule
        )),
        _ => Answer::Clients(all_pages!(
            ClientServiceClient::new(carrier),
            list_clients,
            ListClientsRequest,
            clients,
            convert::client
        )),
    })
}

async fn deliveries(carrier: Carrier, request: Request) -> Result<Answer, Failure> {
    let mut service =
        DeliveryServiceClient::new(carrier).max_decoding_message_size(limits::MESSAGE_BYTES);
    match request {
        Request::ListDeliveries { filter, page_token } => {
            let request = convert::list_deliveries(filter, page_token);
            let answer = service
                .list_deliveries(request)
                .await
                .map_err(failed)?
                .into_inner();
            Ok(Answer::Deliveries(Page {
                rows: answer
                    .deliveries
                    .into_iter()
                    .map(convert::delivery)
                    .collect(),
                next: answer.next_page_token,
                total: None,
            }))
        }
        Request::RetryDelivery { id } => {
            let answer = service
                .retry_delivery(v1::RetryDeliveryRequest { id })
                .await;
            answer.map(|_| DONE).map_err(failed)
        }
        Request::CancelDelivery { id } => {
            let answer = service
                .cancel_delivery(v1::CancelDeliveryRequest { id })
                .await;
            answer.map(|_| DONE).map_err(failed)
        }
        Request::GetDelivery { id } => {
            let answer = service.get_delivery(v1::GetDeliveryRequest { id }).await;
            let delivery = answer
                .map_err(failed)?
                .into_inner()
                .delivery
                .unwrap_or_default();
            Ok(Answer::Delivery(Box::new(convert::delivery(delivery))))
        }
        _ => Err(convert::misplaced()),
    }
}

async fn events(carrier: Carrier, request: Request) -> Result<Answer, Failure> {
    let mut service =
        EventQueryServiceClient::new(carrier).max_decoding_message_size(limits::MESSAGE_BYTES);
    match request {
        Request::SearchEvents { filter, cursor } => {
            let query = Some(convert::event_query(filter, Some(cursor)));
            let answer = service
                .search_events(v1::SearchEventsRequest { query })
                .await;
            Ok(Answer::Events(convert::event_page(
                answer.map_err(failed)?.into_inner(),
            )))
        }
        Request::ExplainEvent { id, occurrence_id } => {
            let request = v1::ExplainEventRequest { id, occurrence_id };
            let answer = service
                .explain_event(request)
                .await
                .map_err(failed)?
                .into_inner();
            Ok(Answer::Explanation(Box::new(convert::explanation(answer))))
        }
        Request::GetEvent { id, occurrence_id } => {
            let occurrence_ids = if occurrence_id.is_empty() {
                vec![]
            } else {
                vec![occurrence_id]
            };
            let answer = service
                .get_event(v1::GetEventRequest { id, occurrence_ids })
                .await;
            let event = answer
                .map_err(failed)?
                .into_inner()
                .result
                .unwrap_or_default();
            Ok(Answer::Event(Box::new(convert::event_detail(event))))
        }
        _ => Err(convert::misplaced()),
    }
}

async fn manage(carrier: Carrier, request: Request) -> Result<Answer, Failure> {
    let mut service = EventManagementServiceClient::new(carrier);
    match request {
        Request::SetStatus {
            occurrence_ids,
            change,
        } => {
            let request = convert::set_status(occurrence_ids, change);
            let answer = service
                .set_status(request)
                .await
                .map_err(failed)?
                .into_inner();
            let results = answer.status_responses.into_iter();
            Ok(convert::item_results(
                results.map(|item| (item.success, item.error)),
            ))
        }
        Request::Annotate {
            occurrence_ids,
            text,
        } => {
            let request = convert::annotate(occurrence_ids, &text);
            let answer = service
                .annotate(request)
                .await
                .map_err(failed)?
                .into_inner();
            let results = answer.annotation_responses.into_iter();
            Ok(convert::item_results(
                results.map(|item| (item.success, item.error)),
            ))
        }
        _ => Err(convert::misplaced()),
    }
}

async fn try_out(carrier: Carrier, request: Request) -> Result<Answer, Failure> {
    match request {
        Request::PreviewRule { spec, event_id } => {
            let request = convert::preview_rule(spec, event_id);
            let answer = RuleServiceClient::new(carrier).preview_rule(request).await;
            Ok(convert::rule_preview(answer.map_err(failed)?.into_inner()))
        }
        Request::TestDestination {
            name,
            spec,
            event_id,
        } => {
            let request = convert::test_destination(name, spec, event_id)?;
            let answer = DestinationServiceClient::new(carrier)
                .test_destination(request)
                .await;
            Ok(convert::test_report(answer.map_err(failed)?.into_inner()))
        }
        _ => Err(convert::misplaced()),
    }
}

/// Creates or updates, or only checks.
async fn store(
    carrier: Carrier,
    draft: Draft,
    etag: String,
    update: bool,
    validate_only: bool,
) -> Result<(), Failure> {
    let done: Result<(), Status> = match draft {
        Draft::Trigger(spec) => {
            let trigger = Some(v1::Trigger {
                etag,
                ..convert::trigger_spec(spec)
            });
            let mut service = TriggerServiceClient::new(carrier);
            if update {
                let request = v1::UpdateTriggerRequest {
                    trigger,
                    validate_only,
                    ..v1::UpdateTriggerRequest::default()
                };
                service.update_trigger(request).await.map(drop)
            } else {
                let request = v1::CreateTriggerRequest {
                    trigger,
                    validate_only,
                    ..v1::CreateTriggerRequest::default()
                };
                service.create_trigger(request).await.map(drop)
            }
        }
        Draft::Destination(spec) => {
            let destination = Some(v1::Destination {
                etag,
                ..convert::destination_spec(spec)?
            });
            let mut service = DestinationServiceClient::new(carrier);
            if update {
                let request = v1::UpdateDestinationRequest {
                    destination,
                    validate_only,
                };
                service.update_destination(request).await.map(drop)
            } else {
                let request = v1::CreateDestinationRequest {
                    destination,
                    validate_only,
                };
                service.create_destination(request).await.map(drop)
            }
        }
        Draft::Rule(spec) => {
            let rule = Some(v1::Rule {
                etag,
                ..convert::rule_spec(spec)
            });
            let mut service = RuleServiceClient::new(carrier);
            if update {
                let request = v1::UpdateRuleRequest {
                    rule,
                    validate_only,
                    ..v1::UpdateRuleRequest::default()
                };
                service.update_rule(request).await.map(drop)
            } else {
                service
                    .create_rule(v1::CreateRuleRequest {
                        rule,
                        validate_only,
                        ..v1::CreateRuleRequest::default()
                    })
                    .await
                    .map(drop)
            }
        }
    };
    done.map_err(failed)
}

async fn delete(
    carrier: Carrier,
    kind: Kind,
    name: String,
    etag: String,
    force: bool,
) -> Result<(), Failure> {
    let done = match kind {
        Kind::Trigger => {
            let request = v1::DeleteTriggerRequest { name, force, etag };
            TriggerServiceClient::new(carrier)
                .delete_trigger(request)
                .await
                .map(drop)
        }
        Kind::Destination => {
            let request = v1::DeleteDestinationRequest { name, force, etag };
            DestinationServiceClient::new(carrier)
                .delete_destination(request)
                .await
                .map(drop)
        }
        Kind::Rule => {
            let request = v1::DeleteRuleRequest { name, etag, force };
            RuleServiceClient::new(carrier)
                .delete_rule(request)
                .await
                .map(drop)
        }
    };
    done.map_err(failed)
}
