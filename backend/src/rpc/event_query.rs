//! `EventQueryService`: reads, searches and watches events.

use std::{pin::Pin, sync::Arc};

use bellwether_proto::v1::{
    CountEventsRequest, CountEventsResponse, EventFrequencyRequest, EventFrequencyResponse,
    EventQuery, ExplainEventRequest, ExplainEventResponse, GetEventRequest, GetEventResponse,
    GroupEventsRequest, GroupEventsResponse, RouteEventsRequest, RouteEventsResponse,
    SearchEventsRequest, SearchEventsResponse, WatchEventsRequest, WatchEventsResponse,
    event_query_service_server::EventQueryService,
};
use futures_util::{Stream, StreamExt as _, stream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, async_trait};

use super::convert::{
    event,
    explain::explanation,
    search::{self as input, ReadQuery},
    search_results, to_i32,
};
use crate::{
    clock::{Clock, DAY_MS},
    domain::{EventId, NO_EVENT_ID, Occurrence, OccurrenceId},
    error::Error,
    limits::{OCCURRENCES_PER_REQUEST_MAX, ROUTES_PER_REQUEST_MAX},
    ops::{
        delivery::Deliveries, explain, fields::FieldCache, find, response::responses_to_wire,
        route, ruleset::Ruleset, search, watch::Watch,
    },
    scan,
    store::Store,
};

#[derive(Debug)]
pub struct EventQueryApi {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ruleset: Arc<Ruleset>,
    pub(crate) fields: FieldCache,
    pub(crate) deliveries: Deliveries,
    /// Ends the streams when it is cancelled.
    pub(crate) shutdown: CancellationToken,
}

impl EventQueryApi {
    async fn with_warnings<T>(
        &self,
        parsed: Result<ReadQuery<T>, Error>,
    ) -> Result<(T, Vec<String>), Error> {
        let ReadQuery { what, named } = parsed?;
        let named: Vec<_> = named.iter().map(|(name, at)| (&**name, *at)).collect();
        Ok((what, self.fields.field_hints(&named, &[]).await?))
    }

    async fn filter(
        &self,
        query: Option<EventQuery>,
    ) -> Result<(search::Filter, Vec<String>), Error> {
        self.with_warnings(input::filter(query, self.clock.now_ms()))
            .await
    }

    async fn newest_occurrence(&self, id: &str) -> Result<Occurrence, Error> {
        let event = EventId::parse(id).ok_or_else(|| Error::invalid("id", NO_EVENT_ID))?;
        let newest = find::newest_occurrence(&self.store, event).await?;
        newest.ok_or_else(|| Error::NotFound(format!("event `{event}` not found")))
    }

    /// Returns the occurrences of an event by id. A missing occurrence is an error.
    async fn occurrences(
        &self,
        newest: &Occurrence,
        ids: &[String],
    ) -> Result<Vec<Occurrence>, Error> {
        if ids.is_empty() {
            return Ok(vec![newest.clone()]);
        }
        if ids.len() > OCCURRENCES_PER_REQUEST_MAX {
            let message = format!(
                "has {} entries; the limit is {OCCURRENCES_PER_REQUEST_MAX}",
                ids.len()
            );
            return Err(Error::invalid("occurrenceIds", message));
        }
        let mut found = Vec::with_capacity(ids.len());
        for (at, id) in ids.iter().enumerate() {
            let field = || format!("occurrenceIds[{at}]");
            let id = OccurrenceId::parse(id)
                .filter(|id| id.event == newest.event)
                .ok_or_else(|| Error::invalid(field(), "is not an occurrence id of this event"))?;
            let occurrence = find::find_occurrence(&self.store, id).await?;
            found.push(
                occurrence
                    .ok_or_else(|| Error::NotFound(format!("occurrence `{id}` not found")))?,
            );
        }
        found.sort_by_key(|occurrence| std::cmp::Reverse(occurrence.number));
        Ok(found)
    }
}

type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchEventsResponse, Status>> + Send>>;

#[async_trait]
impl EventQueryService for EventQueryApi {
    async fn get_event(
        &self,
        request: Request<GetEventRequest>,
    ) -> Result<Response<GetEventResponse>, Status> {
        let request = request.into_inner();
        let newest = self.newest_occurrence(&request.id).await?;
        let occurrences = self.occurrences(&newest, &request.occurrence_ids).await?;
        let result = Some(event::event(&newest, occurrences));
        Ok(Response::new(GetEventResponse { result }))
    }

    async fn search_events(
        &self,
        request: Request<SearchEventsRequest>,
    ) -> Result<Response<SearchEventsResponse>, Status> {
        let query = request.into_inner().query;
        let parsed = input::search(query, self.clock.now_ms());
        let (request, warnings) = self.with_warnings(parsed).await?;
        let found = search::search_occurrences(&self.store, &*self.clock, &request).await?;
        Ok(Response::new(SearchEventsResponse {
            warnings,
            ..search_results::page(found)
        }))
    }

    async fn count_events(
        &self,
        request: Request<CountEventsRequest>,
    ) -> Result<Response<CountEventsResponse>, Status> {
        let (filter, warnings) = self.filter(request.into_inner().query).await?;
        let count = search::count_matches(&self.store, &filter).await?;
        Ok(Response::new(CountEventsResponse {
            count: Some(to_i32(count)),
            warnings,
        }))
    }

    async fn event_frequency(
        &self,
        request: Request<EventFrequencyRequest>,
    ) -> Result<Response<EventFrequencyResponse>, Status> {
        let request = request.into_inner();
        let (filter, warnings) = self.filter(request.query).await?;
        let bucket_count = input::bucket_count(request.bucket_count)?;
        let end_ms = filter
            .end_ms
            .unwrap_or_else(|| self.clock.now_ms().saturating_add(1));
        let start_ms = filter
            .start_ms
            .unwrap_or_else(|| end_ms.saturating_sub(DAY_MS));
        let span = (start_ms, end_ms);
        let buckets = search::count_by_bucket(&self.store, &filter, span, bucket_count).await?;
        let buckets = buckets.into_iter().map(search_results::bucket).collect();
        Ok(Response::new(EventFrequencyResponse { buckets, warnings }))
    }

    async fn group_events(
        &self,
        request: Request<GroupEventsRequest>,
    ) -> Result<Response<GroupEventsResponse>, Status> {
        let request = request.into_inner();
        let by = input::group_field(&request.field)?;
        let limit = input::group_limit(request.limit)?;
        let (filter, warnings) = self.filter(request.query).await?;
        let groups = search::group_occurrences(&self.store, &*self.clock, &filter, &by).await?;
        Ok(Response::new(GroupEventsResponse {
            warnings,
            ..search_results::groups(groups, limit)
        }))
    }

    async fn route_events(
        &self,
        request: Request<RouteEventsRequest>,
    ) -> Result<Response<RouteEventsResponse>, Status> {
        let ids = request.into_inner().occurrence_ids;
        if ids.len() > ROUTES_PER_REQUEST_MAX {
            let message = format!(
                "has {} entries; the limit is {ROUTES_PER_REQUEST_MAX}",
                ids.len()
            );
            return Err(Error::invalid("occurrenceIds", message).into());
        }
        let snapshot = self.ruleset.refresh().await.map_err(Error::from)?;
        let now_ms = self.clock.now_ms();
        let mut routes = Vec::with_capacity(ids.len());
        for (at, id) in ids.iter().enumerate() {
            let id = OccurrenceId::parse(id).ok_or_else(|| {
                Error::invalid(format!("occurrenceIds[{at}]"), "is not an occurrence id")
            })?;
            let found = find::find_occurrence(&self.store, id).await;
            if let Some(occurrence) = found.map_err(Error::from)? {
                routes.push(route::route_event(&snapshot, &occurrence, now_ms));
            }
            scan::yield_if_needed().await;
        }
        Ok(Response::new(RouteEventsResponse { routes }))
    }

    async fn watch_events(
        &self,
        request: Request<WatchEventsRequest>,
    ) -> Result<Response<WatchStream>, Status> {
        let request = request.into_inner();
        let (mut filter, mut warnings) = self.filter(request.query).await?;
        (filter.start_ms, filter.end_ms) = (None, None);
        let watch = Watch::start(self.store.clone(), filter, &request.resume_token).await?;
        let news = stream::unfold(Some((watch, self.shutdown.clone())), |state| async {
            let (mut watch, shutdown) = state?;
            tokio::select! {
                news = watch.next() => match news {
                    Ok(update) => Some((Ok(search_results::watch_response(update)), Some((watch, shutdown)))),
                    Err(error) => Some((Err(error.into()), None)),
                },
                () = shutdown.cancelled() => {
                    let stops = Error::Unavailable("the service is stopping".into());
                    Some((Err(stops.into()), None))
                }
            }
        });
        let news = news.map(move |news| {
            news.map(|news| WatchEventsResponse {
                warnings: std::mem::take(&mut warnings),
                ..news
            })
        });
        Ok(Response::new(Box::pin(news)))
    }

    async fn explain_event(
        &self,
        request: Request<ExplainEventRequest>,
    ) -> Result<Response<ExplainEventResponse>, Status> {
        let request = request.into_inner();
        let newest = self.newest_occurrence(&request.id).await?;
        let ids: Vec<_> = Some(request.occurrence_id)
            .into_iter()
            .filter(|id| !id.is_empty())
            .collect();
        let occurrence = self
            .occurrences(&newest, &ids)
            .await
            .map_err(|error| match error {
                Error::Invalid(_) => {
                    Error::invalid("occurrenceId", "is not an occurrence id of this event")
                }
                other => other,
            })?
            .pop()
            .unwrap_or(newest);
        let snapshot = self.ruleset.refresh().await.map_err(Error::from)?;
        let now_ms = self.clock.now_ms();
        let mut rules = explain::explain(&self.store, &snapshot, &occurrence, now_ms).await?;
        explain::add_waits(&self.deliveries, &mut rules).await?;
        Ok(Response::new(ExplainEventResponse {
            event_id: occurrence.event.to_string(),
            occurrence_id: occurrence.id().to_string(),
            timeline: explain::build_timeline(&occurrence, &rules),
            rules: rules.into_iter().map(explanation).collect(),
            time: now_ms,
            last_decision_time: occurrence.evaluation.map(|evaluation| evaluation.at_ms),
            responses: responses_to_wire(&occurrence, &snapshot),
        }))
    }
}
