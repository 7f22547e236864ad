//! Handles Alertmanager's API: alerts, receivers and silences.

use bellwether_process::listen::Permit;
use bellwether_proto::{
    cloud::Status as EventStatus,
    v1::{
        CreateSilenceRequest, CreateSilenceResponse, EventQuery, ExpireSilenceRequest,
        ExpireSilenceResponse, GetSilenceRequest, GetSilenceResponse, ListDestinationsRequest,
        ListDestinationsResponse, ListSilencesRequest, ListSilencesResponse, PageInput,
        RouteEventsRequest, RouteEventsResponse, SearchEventsRequest, SearchEventsResponse,
        Silence, SortBy, SortByField, SortOrder, UpdateSilenceRequest, UpdateSilenceResponse,
        silence::State, sort_by::Sort,
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, header, request};
use hyper::body::Incoming;
use prost::Message;
use serde_json::{Value, json};
use tonic::{Code, metadata::MetadataMap};

use super::{Exchange, Handler, Owner, Reply, body, headers, linked};
use crate::{
    alertmanager::{
        ENDPOINTS, Operation,
        alert::{self, Alert, AlertQuery, Receiver},
        read_matchers,
        silence::{self, SilenceQuery, SilenceRequest, SilenceView},
    },
    dialect, limits,
    problem::Problem,
};

struct AdmittedRequest<'a> {
    pairs: Vec<(String, String)>,
    id: String,
    body: Bytes,
    metadata: MetadataMap,
    exchange: Exchange<'a>,
    now_ms: i64,
}

type AlertmanagerResult = Result<(Value, Option<&'static str>), Problem>;

const CUT: &str = "199 - \"more alerts exist; these are the most severe\"";
const COVERS_NOTHING: &str = "199 - \"the silence matches no open alert\"";

impl Handler {
    pub(super) async fn serve_alertmanager(
        &self,
        at: usize,
        captures: &[&str],
        request: Request<Incoming>,
        exchange: Exchange<'_>,
        permit: &mut Option<Permit<Owner>>,
    ) -> Reply {
        let (head, stream) = request.into_parts();
        let query = head.uri.query().unwrap_or_default();
        let pairs: Vec<_> = linked::form_pairs(query.as_bytes()).collect();
        let unknown = ENDPOINTS[at].unknown_parameters(&pairs);
        let answering = self.respond_to_alertmanager(at, captures, head, stream, exchange, permit);
        let answered = tokio::time::timeout_at(exchange.deadline, answering).await;
        match answered.unwrap_or_else(|_elapsed| Err(Problem::deadline_exceeded())) {
            Ok((answer, warning)) => {
                let mut reply = match answer {
                    Value::Null => Reply::without_body(http::StatusCode::OK, HeaderMap::new()),
                    answer => Reply::json(answer.to_string()),
                };
                for warning in warning.map(str::to_owned).into_iter().chain(unknown) {
                    let warning = HeaderValue::try_from(warning).ok();
                    reply
                        .headers
                        .extend(warning.map(|it| (header::WARNING, it)));
                }
                reply
            }
            // Alertmanager's clients print the body, which is a JSON string.
            Err(problem) => Reply {
                status: problem.status,
                code: problem.code,
                headers: problem.headers(),
                ..Reply::json(json!(problem.message).to_string())
            },
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the result of classifying a request"
    )]
    async fn respond_to_alertmanager(
        &self,
        at: usize,
        captures: &[&str],
        head: request::Parts,
        stream: Incoming,
        exchange: Exchange<'_>,
        permit: &mut Option<Permit<Owner>>,
    ) -> AlertmanagerResult {
        let operation = ENDPOINTS[at].operation;
        let captures = dialect::decode_captures(captures)
            .ok_or_else(|| Problem::invalid("the path is not valid percent-encoding"))?;
        let key = dialect::key_in_headers(&head.headers);
        let mut own = head.headers.clone();
        own.remove(header::AUTHORIZATION);
        if let Some(Ok(mut value)) = key.map(|key| HeaderValue::try_from(format!("Bearer {key}"))) {
            value.set_sensitive(true);
            own.insert(header::AUTHORIZATION, value);
        }
        let metadata = headers::request_metadata(&own, &exchange);
        let owner = match self.identify_client(&metadata, exchange).await {
            Ok(owner) => owner,
            Err(status) => {
                body::drain_body(stream, limits::PRE_AUTH_BODY_BYTES).await;
                return Err(self.problem_from_status(&status));
            }
        };
        let mut memory = body::BodyMemory::new(&self.memory, owner);
        let body = if operation == Operation::PostSilences {
            self.body(stream, &head.headers, &mut memory, exchange)
                .await?
        } else {
            Bytes::new()
        };
        *permit = Some(self.admit_request(owner)?);
        let query = head.uri.query().unwrap_or_default();
        let admitted = AdmittedRequest {
            pairs: linked::form_pairs(query.as_bytes()).collect(),
            id: captures.into_iter().next().unwrap_or_default(),
            body,
            metadata,
            exchange,
            now_ms: jiff::Timestamp::now().as_millisecond(),
        };
        match operation {
            Operation::GetAlerts => {
                let (_, alerts, is_cut) = self.list_alerts(&admitted).await?;
                let alerts = alerts.iter().map(Alert::to_json).collect();
                Ok((alerts, is_cut.then_some(CUT)))
            }
            Operation::GetAlertGroups => {
                let (query, alerts, is_cut) = self.list_alerts(&admitted).await?;
                Ok((alert::groups_json(&query, &alerts), is_cut.then_some(CUT)))
            }
            Operation::GetReceivers => {
                let matchers = read_matchers(&admitted.pairs, "receiver_matchers");
                let matchers = matchers.map_err(Problem::invalid)?;
                let receivers = self.list_receivers(&admitted).await?;
                let receivers = receivers.iter().filter(|it| it.matches(&matchers));
                Ok((receivers.map(Receiver::to_json).collect(), None))
            }
            Operation::GetSilences => self.list_silences(&admitted).await,
            Operation::PostSilences => self.post_silence(&admitted).await,
            Operation::GetSilence => {
                let found = self.get_silence(&admitted, &admitted.id).await?;
                Ok((SilenceView::from_silence(found).to_json(), None))
            }
            Operation::DeleteSilence => self.expire(&admitted).await,
        }
    }

    async fn request<M: Message + Default>(
        &self,
        method: &str,
        request: &impl Message,
        admitted: &AdmittedRequest<'_>,
    ) -> Result<M, Problem> {
        let metadata = admitted.metadata.clone();
        let asking = self.call_service(method, request, metadata, admitted.exchange);
        let (_, answer) = asking.await?;
        M::decode(answer).map_err(|_unreadable| Problem::internal())
    }

    /// Returns the query, the requested alerts, the most severe first, and whether there are more.
    async fn list_alerts(
        &self,
        admitted: &AdmittedRequest<'_>,
    ) -> Result<(AlertQuery, Vec<Alert>, bool), Problem> {
        let mut alert_query = AlertQuery::read(&admitted.pairs).map_err(Problem::invalid)?;
        if alert_query.has_receiver_matchers() {
            alert_query = alert_query.with_receivers(&self.list_receivers(admitted).await?);
        }
        let by_severity = SortByField {
            field: "severity".to_owned(),
            order: SortOrder::Desc as i32,
        };
        let mut query = EventQuery {
            clause: alert_query.to_clause(),
            statuses: vec![EventStatus::Open as i32, EventStatus::Suppressed as i32],
            sort_by: vec![SortBy {
                sort: Some(Sort::ByField(by_severity)),
            }],
            page_input: Some(PageInput {
                limit: limits::ALERTS_PER_PAGE,
                ..PageInput::default()
            }),
            ..EventQuery::default()
        };
        let (mut alerts, mut seen, mut size_bytes) = (Vec::new(), 0, 0);
        loop {
            let request = SearchEventsRequest {
                query: Some(query.clone()),
            };
            let found: SearchEventsResponse = self
                .request("EventQueryService/SearchEvents", &request, admitted)
                .await?;
            let ids = found.results.iter().flat_map(|it| &it.occurrences);
            let request = RouteEventsRequest {
                occurrence_ids: ids.map(|it| it.id.clone()).collect(),
            };
            let routes: RouteEventsResponse = self
                .request("EventQueryService/RouteEvents", &request, admitted)
                .await?;
            seen += found.results.len();
            let page = Alert::select_page(
                &alert_query,
                found.results,
                routes.routes,
                silence::parse_id,
                admitted.now_ms,
            );
            size_bytes += page.iter().map(Alert::size_bytes).sum::<usize>();
            alerts.extend(page);
            let info = found.page_info.unwrap_or_default();
            if info.has_next != Some(true) || info.end_cursor.is_empty() {
                return Ok((alert_query, alerts, false));
            }
            if seen >= limits::ALERTS || size_bytes >= limits::ALERTS_BYTES {
                return Ok((alert_query, alerts, true));
            }
            query.page_input = Some(PageInput {
                limit: limits::ALERTS_PER_PAGE,
                cursor: info.end_cursor,
                ..PageInput::default()
            });
        }
    }

    async fn list_receivers(
        &self,
        admitted: &AdmittedRequest<'_>,
    ) -> Result<Vec<Receiver>, Problem> {
        let mut request = ListDestinationsRequest {
            page_size: limits::SILENCES_PER_PAGE,
            ..ListDestinationsRequest::default()
        };
        let mut receivers = Vec::new();
        while receivers.len() < limits::SILENCES {
            let page: ListDestinationsResponse = self
                .request("DestinationService/ListDestinations", &request, admitted)
                .await?;
            let found = page.destinations.into_iter();
            receivers.extend(found.map(Receiver::from_destination));
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = page.next_page_token;
        }
        Ok(receivers)
    }

    async fn list_silences(&self, admitted: &AdmittedRequest<'_>) -> AlertmanagerResult {
        let query = SilenceQuery::read(&admitted.pairs).map_err(Problem::invalid)?;
        let mut found = Vec::new();
        self.find_map_silence(admitted, |silence| {
            let shown = SilenceView::from_silence(silence);
            if query.matches(&shown) {
                found.push(shown);
            }
            None::<()>
        })
        .await?;
        found.sort_by_key(SilenceView::sort_key);
        Ok((found.iter().map(SilenceView::to_json).collect(), None))
    }

    async fn find_map_silence<T>(
        &self,
        admitted: &AdmittedRequest<'_>,
        mut select: impl FnMut(Silence) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let mut request = ListSilencesRequest {
            page_size: limits::SILENCES_PER_PAGE,
            ..ListSilencesRequest::default()
        };
        for _ in 0..limits::SILENCES.div_ceil(limits::SILENCES_PER_PAGE as usize) {
            let page: ListSilencesResponse = self
                .request("SilenceService/ListSilences", &request, admitted)
                .await?;
            if let Some(found) = page.silences.into_iter().find_map(&mut select) {
                return Ok(Some(found));
            }
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = page.next_page_token;
        }
        Ok(None)
    }

    async fn get_silence(
        &self,
        admitted: &AdmittedRequest<'_>,
        id: &str,
    ) -> Result<Silence, Problem> {
        let request = GetSilenceRequest {
            name: id.to_owned(),
        };
        let named: Result<GetSilenceResponse, _> = self
            .request("SilenceService/GetSilence", &request, admitted)
            .await;
        match named {
            Ok(named) => return named.silence.ok_or_else(Problem::internal),
            Err(problem) if matches!(problem.code, Code::NotFound | Code::InvalidArgument) => {}
            Err(problem) => return Err(problem),
        }
        let find = |silence: Silence| (silence::parse_id(&silence.name) == id).then_some(silence);
        let found = self.find_map_silence(admitted, find).await?;
        found.ok_or_else(|| Problem::new(Code::NotFound, format!("silence {id} not found")))
    }

    async fn post_silence(&self, admitted: &AdmittedRequest<'_>) -> AlertmanagerResult {
        let posted = match SilenceRequest::read(&admitted.body) {
            Ok(posted) => posted,
            Err(why) => return Err(self.invalid_silence(admitted, why).await),
        };
        let mut pairs = admitted.pairs.iter();
        let allow_broad = match pairs.find(|(name, _)| name == "allowBroad") {
            None => false,
            Some((_, value)) => value.parse().map_err(|_not_a_flag| {
                Problem::invalid(format!(
                    "allowBroad: unknown value `{value}`; expected true or false"
                ))
            })?,
        };
        let id = posted.id.as_deref().filter(|id| !id.is_empty());
        let known = match id {
            None => None,
            Some(id) => Some(self.get_silence(admitted, id).await?),
        };
        // Posting an expired silence creates another silence and leaves the expired one unchanged.
        let known = known.filter(|it| it.state() != State::Expired);
        let mut warnings;
        let stored = if let Some(known) = known {
            let silence = posted.to_updated_silence(known, admitted.now_ms);
            let request = UpdateSilenceRequest {
                silence: Some(silence.map_err(Problem::invalid)?),
                allow_broad,
                ..UpdateSilenceRequest::default()
            };
            let answer: UpdateSilenceResponse = self
                .request("SilenceService/UpdateSilence", &request, admitted)
                .await?;
            warnings = answer.warnings;
            answer.silence
        } else {
            let silence = posted.to_new_silence(silence::generate_name(), admitted.now_ms);
            let request = CreateSilenceRequest {
                silence: Some(silence.map_err(Problem::invalid)?),
                allow_broad,
                ..CreateSilenceRequest::default()
            };
            let answer: CreateSilenceResponse = self
                .request("SilenceService/CreateSilence", &request, admitted)
                .await?;
            warnings = answer.warnings;
            answer.silence
        };
        let stored = stored.ok_or_else(Problem::internal)?;
        let mut answer = json!({"silenceID": silence::parse_id(&stored.name)});
        let covers_nothing = stored.covered_count == Some(0);
        if covers_nothing {
            warnings.push("the silence matches no open alert".to_owned());
        }
        if !warnings.is_empty() {
            answer["warnings"] = json!(warnings);
        }
        Ok((answer, covers_nothing.then_some(COVERS_NOTHING)))
    }

    /// Returns the error for an invalid silence, but only to clients that are allowed to store a
    /// silence.
    async fn invalid_silence(&self, admitted: &AdmittedRequest<'_>, why: String) -> Problem {
        let request = CreateSilenceRequest {
            validate_only: true,
            ..CreateSilenceRequest::default()
        };
        let created: Result<CreateSilenceResponse, _> = self
            .request("SilenceService/CreateSilence", &request, admitted)
            .await;
        match created {
            Err(problem)
                if matches!(problem.code, Code::PermissionDenied | Code::Unauthenticated) =>
            {
                problem
            }
            _ => Problem::invalid(why),
        }
    }

    async fn expire(&self, admitted: &AdmittedRequest<'_>) -> AlertmanagerResult {
        match self.expire_silence(admitted, admitted.id.clone()).await {
            Err(problem) if matches!(problem.code, Code::NotFound | Code::InvalidArgument) => {
                let found = self.get_silence(admitted, &admitted.id).await?;
                self.expire_silence(admitted, found.name).await
            }
            done => done,
        }
    }

    /// Expires a silence; no error if it has already expired.
    async fn expire_silence(
        &self,
        admitted: &AdmittedRequest<'_>,
        name: String,
    ) -> AlertmanagerResult {
        let request = ExpireSilenceRequest { name };
        let expired: Result<ExpireSilenceResponse, _> = self
            .request("SilenceService/ExpireSilence", &request, admitted)
            .await;
        match expired {
            Err(problem) if problem.code == Code::FailedPrecondition => Ok((Value::Null, None)),
            Err(problem) => Err(problem),
            Ok(_) => Ok((Value::Null, None)),
        }
    }
}
