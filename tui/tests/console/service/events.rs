//! Reading, following and changing events.

use std::{collections::BTreeMap, pin::Pin};

use bellwether_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status};

use super::{Answer, Shared, tell};

#[tonic::async_trait]
impl v1::event_management_service_server::EventManagementService for Shared {
    async fn annotate(
        &self,
        request: Request<v1::AnnotateRequest>,
    ) -> Answer<v1::AnnotateResponse> {
        let items = request.into_inner().annotations;
        let result = |_: &v1::AnnotationItem| v1::AnnotationResult {
            success: Some(true),
            ..Default::default()
        };
        let annotation_responses = items.iter().map(result).collect();
        self.lock().notes.extend(items);
        Ok(Response::new(v1::AnnotateResponse {
            annotation_responses,
        }))
    }

    async fn set_status(
        &self,
        request: Request<v1::SetStatusRequest>,
    ) -> Answer<v1::SetStatusResponse> {
        let items = request.into_inner().statuses;
        let mut state = self.lock();
        let mut changed = Vec::new();
        for item in &items {
            for event in state
                .events
                .iter_mut()
                .filter(|event| event.id == item.event_id)
            {
                let occurrence = &mut event.occurrences[0];
                if item.status != 0 {
                    occurrence.status = item.status;
                }
                occurrence.acknowledged = item.acknowledged.or(occurrence.acknowledged);
                if let Some(assignee) = &item.assignee {
                    occurrence.assignee.clone_from(assignee);
                }
                changed.push(event.clone());
            }
        }
        tell(&mut state, changed);
        let is_refused = |item: &v1::StatusItem| state.refused.contains(&item.event_id);
        let result = |item: &v1::StatusItem| v1::StatusResult {
            success: Some(!is_refused(item)),
            error: if is_refused(item) { "it is gone" } else { "" }.to_owned(),
            ..Default::default()
        };
        let status_responses = items.iter().map(result).collect();
        state.statuses.extend(items);
        Ok(Response::new(v1::SetStatusResponse { status_responses }))
    }
}

#[tonic::async_trait]
impl v1::event_query_service_server::EventQueryService for Shared {
    type WatchEventsStream =
        Pin<Box<dyn Stream<Item = Result<v1::WatchEventsResponse, Status>> + Send>>;

    async fn get_event(
        &self,
        request: Request<v1::GetEventRequest>,
    ) -> Answer<v1::GetEventResponse> {
        let id = request.into_inner().id;
        let event = self
            .lock()
            .events
            .iter()
            .find(|event| event.id == id)
            .cloned();
        let event = event.ok_or_else(|| Status::not_found("no such event"))?;
        Ok(Response::new(v1::GetEventResponse {
            result: Some(event),
        }))
    }

    async fn search_events(
        &self,
        request: Request<v1::SearchEventsRequest>,
    ) -> Answer<v1::SearchEventsResponse> {
        let mut state = self.lock();
        let query = request.into_inner().query.unwrap_or_default();
        state.searches.push(query.clause);
        let page = query.page_input.unwrap_or_default();
        let start: usize = page.cursor.parse().unwrap_or(0);
        let end = state
            .events
            .len()
            .min(start + usize::try_from(page.limit).unwrap());
        let results = state.events[start..end].to_vec();
        let page_info = v1::PageInfo {
            has_next: Some(end < state.events.len()),
            end_cursor: end.to_string(),
            total_count: i32::try_from(state.events.len()).ok(),
            ..v1::PageInfo::default()
        };
        Ok(Response::new(v1::SearchEventsResponse {
            warnings: Vec::new(),
            results,
            page_info: Some(page_info),
        }))
    }

    async fn count_events(
        &self,
        _: Request<v1::CountEventsRequest>,
    ) -> Answer<v1::CountEventsResponse> {
        let count = i32::try_from(self.lock().events.len()).ok();
        Ok(Response::new(v1::CountEventsResponse {
            count,
            warnings: Vec::new(),
        }))
    }

    async fn group_events(
        &self,
        request: Request<v1::GroupEventsRequest>,
    ) -> Answer<v1::GroupEventsResponse> {
        let field = request.into_inner().field;
        let mut counts: BTreeMap<Option<String>, i32> = BTreeMap::new();
        let state = self.lock();
        for event in &state.events {
            let value = match &field[..] {
                "name" => Some(event.name.clone()),
                key => event.dimensions.get(key).cloned(),
            };
            *counts.entry(value).or_default() += 1;
        }
        let groups = counts.into_iter().map(|(value, count)| v1::EventGroup {
            value,
            count: Some(count),
            count_by_severity: [("SEVERITY_ERROR".to_owned(), count)].into(),
            last_seen: None,
        });
        let mut groups: Vec<_> = groups.collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        Ok(Response::new(v1::GroupEventsResponse {
            warnings: Vec::new(),
            group_count: i32::try_from(groups.len()).ok(),
            occurrence_count: i32::try_from(state.events.len()).ok(),
            complete: Some(true),
            groups,
        }))
    }

    async fn event_frequency(
        &self,
        _: Request<v1::EventFrequencyRequest>,
    ) -> Answer<v1::EventFrequencyResponse> {
        Err(Status::unimplemented("not needed by the console"))
    }

    async fn watch_events(
        &self,
        _: Request<v1::WatchEventsRequest>,
    ) -> Answer<Self::WatchEventsStream> {
        let (sender, receiver) = mpsc::channel(64);
        let first = v1::WatchEventsResponse {
            resume_token: "token".to_owned(),
            ..v1::WatchEventsResponse::default()
        };
        sender.try_send(Ok(first)).unwrap();
        self.lock().watchers.push(sender);
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn route_events(
        &self,
        _: Request<v1::RouteEventsRequest>,
    ) -> Answer<v1::RouteEventsResponse> {
        Err(Status::unimplemented("routes are not served yet"))
    }

    /// What each rule made of the event, in the texts of the rule itself.
    async fn explain_event(
        &self,
        _: Request<v1::ExplainEventRequest>,
    ) -> Answer<v1::ExplainEventResponse> {
        let state = self.lock();
        let rules = state.rules.values().map(|rule| v1::RuleExplanation {
            rule_name: rule.name.clone(),
            notified: Some(false),
            reason: rule.description.clone(),
            ..v1::RuleExplanation::default()
        });
        let rules = rules.collect();
        Ok(Response::new(v1::ExplainEventResponse {
            rules,
            ..v1::ExplainEventResponse::default()
        }))
    }
}
