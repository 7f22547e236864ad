//! Browser pages: the overview and the targets of links in messages. A signed link requires no key.

use std::borrow::Cow;

use bellwether_process::listen::Permit;
use bellwether_proto::{
    cloud::Status as EventStatus,
    json::write,
    v1::{
        AcknowledgeRequest, EventQuery, ExplainEventRequest, GetEventRequest, GetGroupRequest,
        GetOverviewRequest, OpenFeedRequest, OpenLinkRequest, PageInput, SearchEventsRequest,
        SetGroupStatusRequest, SetStatusRequest, SetStatusResponse, SortBy, SortByField, SortOrder,
        StatusItem, sort_by::Sort,
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use prost::Message;
use serde_json::{Value, json};
use tokio::time::Instant;
use tonic::{Code, Status, metadata::MetadataMap};

use super::{Exchange, Handler, Owner, Reply, body, headers, session};
use crate::{
    feed::{self, FeedKind},
    limits,
    linked::{self, Entry, Notice},
    problem::Problem,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkedPage {
    Service,
    Event,
    Group,
    Acknowledgement,
    Feed(FeedKind),
}

#[derive(Debug, Default)]
struct Form {
    key: String,
    what: String,
}

type PageData = (Value, Option<Notice>);

impl LinkedPage {
    pub(super) fn find(path: &str) -> Option<(Self, &str)> {
        if path == "/" {
            return Some((Self::Service, ""));
        }
        let events = path.strip_prefix("/events/").map(|id| (Self::Event, id));
        let groups = || path.strip_prefix("/groups/").map(|id| (Self::Group, id));
        let acknowledgement = || {
            let id = path.strip_prefix("/acknowledge/")?;
            Some((Self::Acknowledgement, id))
        };
        let feed = || {
            let (of, name) = match path.strip_prefix("/schedules/") {
                Some(name) => (FeedKind::Schedule, name),
                None => (FeedKind::Contact, path.strip_prefix("/contacts/")?),
            };
            Some((Self::Feed(of), name.strip_suffix(".ics")?))
        };
        let found = events.or_else(groups).or_else(acknowledgement);
        let found = found.or_else(feed);
        found.filter(|(_, id)| !id.is_empty() && !id.contains('/'))
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Service => "/",
            Self::Event => "/events/{id}",
            Self::Group => "/groups/{id}",
            Self::Acknowledgement => "/acknowledge/{id}",
            Self::Feed(FeedKind::Schedule) => "/schedules/{name}.ics",
            Self::Feed(FeedKind::Contact) => "/contacts/{name}.ics",
        }
    }
}

impl Handler {
    pub(super) async fn handle_linked_page(
        &self,
        what: LinkedPage,
        id: &str,
        request: Request<Incoming>,
        exchange: Exchange<'_>,
        permit: &mut Option<Permit<Owner>>,
    ) -> Reply {
        let Ok(id) = percent_decode_str(id).decode_utf8() else {
            return self.problem(&Problem::invalid("the path is not valid percent-encoding"));
        };
        if what == LinkedPage::Acknowledgement {
            return self.acknowledge_link(&id, request, exchange, permit).await;
        }
        if let LinkedPage::Feed(of) = what {
            return self
                .handle_feed((of, &id), &request, exchange, permit)
                .await;
        }
        let path = request.uri().path().to_owned();
        let sign_in_page = self.sign_in_page(exchange).await;
        let session = session::session_token(&sign_in_page, request.headers()).map(str::to_owned);
        let has_session = session.is_some();
        let is_signed = form_pairs(request.uri().query().unwrap_or_default().as_bytes())
            .any(|(name, value)| name == "sign" && !value.is_empty());
        let showing = async {
            match (request.method(), what, session) {
                (&Method::POST, _, session) => {
                    let form = self.read_form(request, session, exchange).await?;
                    self.load_with_key(what, &id, form, exchange, permit).await
                }
                (_, _, Some(token)) if !is_signed => {
                    let call_request = Form {
                        key: token,
                        ..Form::default()
                    };
                    self.load_with_key(what, &id, call_request, exchange, permit)
                        .await
                }
                (_, LinkedPage::Service, _) => Ok((Value::Null, None)),
                _ => self.open_signed(&id, request, exchange, permit).await,
            }
        };
        let shown = tokio::time::timeout_at(exchange.deadline, showing).await;
        let unauthenticated = if sign_in_page.is_empty() {
            Entry::Key
        } else {
            Entry::SignIn(path)
        };
        let entry = if has_session {
            Entry::SignedIn
        } else {
            unauthenticated.clone()
        };
        match shown.unwrap_or_else(|_elapsed| Err(Problem::deadline_exceeded())) {
            Ok((Value::Null, _)) => page_reply(StatusCode::OK, linked::welcome_page(entry)),
            Ok((found, notice)) => page_reply(
                StatusCode::OK,
                linked::render_page(&found, notice.as_ref(), entry),
            ),
            Err(problem) => error_page(&problem, unauthenticated),
        }
    }

    /// Handles a contact's acknowledgement link. GET has no effect, since mail scanners follow
    /// links.
    async fn acknowledge_link(
        &self,
        id: &str,
        request: Request<Incoming>,
        exchange: Exchange<'_>,
        permit: &mut Option<Permit<Owner>>,
    ) -> Reply {
        let mut call_request = AcknowledgeRequest {
            id: id.to_owned(),
            confirm: request.method() == Method::POST,
            ..AcknowledgeRequest::default()
        };
        for (name, value) in form_pairs(request.uri().query().unwrap_or_default().as_bytes()) {
            match name.as_str() {
                "response" => call_request.response = value,
                "contact" => call_request.contact = value,
                "sign" => call_request.sign = value,
                _ => {}
            }
        }
        let asking = async {
            *permit = Some(self.admit_request(Owner::anonymous(exchange.peer))?);
            let metadata = headers::request_metadata(&HeaderMap::new(), &exchange);
            self.call_json("LinkService/Acknowledge", &call_request, metadata, exchange)
                .await
        };
        let found = tokio::time::timeout_at(exchange.deadline, asking).await;
        match found.unwrap_or_else(|_elapsed| Err(Problem::deadline_exceeded())) {
            Ok(found) => page_reply(
                StatusCode::OK,
                linked::acknowledgement_page(&found, call_request.confirm),
            ),
            Err(problem) => {
                let mut reply =
                    page_reply(problem.status, linked::error_page(&problem.message, None));
                reply.code = problem.code;
                reply
            }
        }
    }

    async fn handle_feed(
        &self,
        (of, name): (FeedKind, &str),
        request: &Request<Incoming>,
        exchange: Exchange<'_>,
        permit: &mut Option<Permit<Owner>>,
    ) -> Reply {
        let mut query = form_pairs(request.uri().query().unwrap_or_default().as_bytes());
        let sign = query.find(|(name, _)| name == "sign");
        let mut call_request = OpenFeedRequest {
            sign: sign.map(|(_, sign)| sign).unwrap_or_default(),
            ..OpenFeedRequest::default()
        };
        match of {
            FeedKind::Schedule => name.clone_into(&mut call_request.name),
            FeedKind::Contact => name.clone_into(&mut call_request.contact_name),
        }
        let asking = async {
            *permit = Some(self.admit_request(Owner::anonymous(exchange.peer))?);
            let metadata = headers::request_metadata(&HeaderMap::new(), &exchange);
            self.call_json("LinkService/OpenFeed", &call_request, metadata, exchange)
                .await
        };
        let found = tokio::time::timeout_at(exchange.deadline, asking).await;
        match found.unwrap_or_else(|_elapsed| Err(Problem::deadline_exceeded())) {
            Ok(found) => {
                let calendar = feed::write_calendar(of, name, &found);
                let mut reply = Reply::ok("text/calendar; charset=utf-8", calendar);
                let fixed = HeaderValue::from_static("no-store");
                reply.headers.insert(header::CACHE_CONTROL, fixed);
                reply
            }
            Err(problem) => self.problem(&problem),
        }
    }

    async fn open_signed(
        &self,
        id: &str,
        request: Request<Incoming>,
        exchange: Exchange<'_>,
        permit: &mut Option<Permit<Owner>>,
    ) -> Result<PageData, Problem> {
        let query = request.uri().query().unwrap_or_default();
        let (mut until, mut sign) = (0, String::new());
        for (name, value) in form_pairs(query.as_bytes()) {
            match name.as_str() {
                "until" => until = value.parse().unwrap_or_default(),
                "sign" => sign = value,
                _ => {}
            }
        }
        if sign.is_empty() {
            let why = "this link requires a key";
            return Err(Problem::new(Code::Unauthenticated, why));
        }
        *permit = Some(self.admit_request(Owner::anonymous(exchange.peer))?);
        let id = id.to_owned();
        let call_request = OpenLinkRequest { id, until, sign };
        let metadata = headers::request_metadata(&HeaderMap::new(), &exchange);
        let asking = self.call_json("LinkService/OpenLink", &call_request, metadata, exchange);
        Ok((asking.await?, None))
    }

    /// Reads a form, with a key or from a signed-in user.
    async fn read_form(
        &self,
        request: Request<Incoming>,
        session: Option<String>,
        exchange: Exchange<'_>,
    ) -> Result<Form, Problem> {
        let is_own = session::is_same_origin(request.headers());
        let mut memory =
            body::BodyMemory::new(&self.pre_auth_body_memory, Owner::anonymous(exchange.peer));
        let body = request.into_body();
        let body = self.read(body, limits::FORM_BYTES, &mut memory, exchange);
        let mut form = Form::read(&body.await?);
        if let (true, Some(token)) = (form.key.is_empty(), session) {
            if !is_own {
                let why = "the form was submitted from another page";
                return Err(Problem::new(Code::PermissionDenied, why));
            }
            form.key = token;
        }
        Ok(form)
    }

    /// Returns the page for the key in the form, after performing the action in the form.
    async fn load_with_key(
        &self,
        what: LinkedPage,
        id: &str,
        form: Form,
        exchange: Exchange<'_>,
        permit: &mut Option<Permit<Owner>>,
    ) -> Result<PageData, Problem> {
        let mut own = HeaderMap::new();
        let mut key = HeaderValue::try_from(format!("Bearer {}", form.key))
            .map_err(|_unfit| Problem::new(Code::Unauthenticated, "invalid key"))?;
        key.set_sensitive(true);
        own.insert(header::AUTHORIZATION, key);
        let metadata = || headers::request_metadata(&own, &exchange);
        let owner = self.identify_client(&metadata(), exchange).await;
        *permit =
            Some(self.admit_request(owner.map_err(|status| self.problem_from_status(&status))?)?);
        let notice = match form.what.as_str() {
            "acknowledge" => Some(true),
            "unacknowledge" => Some(false),
            _ => None,
        };
        let notice = match notice {
            None => None,
            Some(flag) => {
                let done = self.acknowledge_event(what, id, flag, metadata(), exchange);
                Some(match done.await {
                    Ok(()) => Notice::for_acknowledgement(flag),
                    Err(problem) => Notice::for_failure(&problem.message),
                })
            }
        };
        let found = match what {
            LinkedPage::Service => self.service(metadata, exchange).await?,
            LinkedPage::Event | LinkedPage::Acknowledgement | LinkedPage::Feed(_) => {
                self.event(id, metadata, exchange).await?
            }
            LinkedPage::Group => {
                let request = GetGroupRequest {
                    id: id.to_owned(),
                    page_size: limits::LINKED_MEMBERS,
                    ..GetGroupRequest::default()
                };
                let asking =
                    self.call_json("GroupService/GetGroup", &request, metadata(), exchange);
                asking.await?
            }
        };
        Ok((found, notice))
    }

    async fn event(
        &self,
        id: &str,
        metadata: impl Fn() -> MetadataMap,
        exchange: Exchange<'_>,
    ) -> Result<Value, Problem> {
        let event = event_id_from_occurrence(id);
        let request = GetEventRequest {
            id: event.to_owned(),
            occurrence_ids: vec![id.to_owned()],
        };
        let asking = self.call_json("EventQueryService/GetEvent", &request, metadata(), exchange);
        let mut found = asking.await?;
        let request = ExplainEventRequest {
            id: event.to_owned(),
            occurrence_id: id.to_owned(),
        };
        let asking = self.call_json(
            "EventQueryService/ExplainEvent",
            &request,
            metadata(),
            exchange,
        );
        let mut explained = asking.await?;
        Ok(json!({"event": found["result"].take(), "timeline": explained["timeline"].take()}))
    }

    async fn service(
        &self,
        metadata: impl Fn() -> MetadataMap,
        exchange: Exchange<'_>,
    ) -> Result<Value, Problem> {
        let request = GetOverviewRequest {};
        let asking = self.call_json(
            "OverviewService/GetOverview",
            &request,
            metadata(),
            exchange,
        );
        let overview = asking.await?;
        let by_severity = SortByField {
            field: "severity".to_owned(),
            order: SortOrder::Desc as i32,
        };
        let query = EventQuery {
            statuses: vec![EventStatus::Open as i32],
            sort_by: vec![SortBy {
                sort: Some(Sort::ByField(by_severity)),
            }],
            page_input: Some(PageInput {
                limit: limits::LISTED_EVENTS,
                ..PageInput::default()
            }),
            ..EventQuery::default()
        };
        let request = SearchEventsRequest { query: Some(query) };
        let asking = self.call_json(
            "EventQueryService/SearchEvents",
            &request,
            metadata(),
            exchange,
        );
        let mut found = asking.await?;
        let more = found["pageInfo"]["hasNext"].take();
        Ok(json!({"overview": overview, "open": found["results"].take(), "more": more}))
    }

    async fn acknowledge_event(
        &self,
        what: LinkedPage,
        id: &str,
        flag: bool,
        metadata: MetadataMap,
        exchange: Exchange<'_>,
    ) -> Result<(), Problem> {
        if what == LinkedPage::Service {
            return Err(Problem::invalid("this page has no event to acknowledge"));
        }
        if what == LinkedPage::Group {
            let request = SetGroupStatusRequest {
                id: id.to_owned(),
                acknowledged: Some(flag),
                ..SetGroupStatusRequest::default()
            };
            let set =
                self.call_service("GroupService/SetGroupStatus", &request, metadata, exchange);
            return set.await.map(drop);
        }
        let item = StatusItem {
            event_id: event_id_from_occurrence(id).to_owned(),
            occurrence_id: id.to_owned(),
            acknowledged: Some(flag),
            ..StatusItem::default()
        };
        let request = SetStatusRequest {
            statuses: vec![item],
            without_updates: false,
        };
        let set = self.call_service(
            "EventManagementService/SetStatus",
            &request,
            metadata,
            exchange,
        );
        let (_, answer) = set.await?;
        let answer =
            SetStatusResponse::decode(answer).map_err(|_unreadable| Problem::internal())?;
        let mut refused = answer.status_responses.into_iter().map(|it| it.error);
        match refused.find(|error| !error.is_empty()) {
            Some(error) => Err(Problem::new(Code::FailedPrecondition, error)),
            None => Ok(()),
        }
    }

    /// Calls a method of this product's API. Returns its name and the encoded response.
    pub(super) async fn call_service(
        &self,
        method: &str,
        request: &impl Message,
        metadata: MetadataMap,
        exchange: Exchange<'_>,
    ) -> Result<(String, Bytes), Problem> {
        let path = format!("/bellwether.v1.{method}");
        let path = path.parse().map_err(|_unfit| Problem::internal())?;
        let left = exchange.deadline.saturating_duration_since(Instant::now());
        let message = request.encode_to_vec().into();
        let called = self.upstream.call(path, metadata, message, left).await;
        let name = method.rsplit('/').next().unwrap_or(method);
        match called {
            Ok((_, answer)) => Ok((format!("bellwether.v1.{name}Response"), answer)),
            Err(status) => Err(self.problem_from_status(&status)),
        }
    }

    async fn call_json(
        &self,
        method: &str,
        request: &impl Message,
        metadata: MetadataMap,
        exchange: Exchange<'_>,
    ) -> Result<Value, Problem> {
        let (name, answer) = self
            .call_service(method, request, metadata, exchange)
            .await?;
        let mut text = Vec::new();
        let id = self.plan.by_name.get(name.as_str());
        let id = *id.ok_or_else(Problem::internal)?;
        write::write(&self.plan, id, &answer, &mut text)
            .ok()
            .and_then(|()| serde_json::from_slice(&text).ok())
            .ok_or_else(Problem::internal)
    }

    pub(super) fn problem_from_status(&self, status: &Status) -> Problem {
        Problem::from_status(status, self.config.body_limit_bytes)
    }
}

fn event_id_from_occurrence(occurrence: &str) -> &str {
    occurrence.split(':').next().unwrap_or(occurrence)
}

impl Form {
    fn read(body: &[u8]) -> Self {
        let mut form = Self::default();
        for (name, value) in form_pairs(body) {
            match name.as_str() {
                "key" => value.trim().clone_into(&mut form.key),
                "do" => form.what = value,
                _ => {}
            }
        }
        form
    }
}

pub(super) fn form_pairs(text: &[u8]) -> impl Iterator<Item = (String, String)> {
    let decode = |part: &[u8]| {
        let spaced: Vec<u8> = part
            .iter()
            .map(|byte| if *byte == b'+' { b' ' } else { *byte })
            .collect();
        let bytes = percent_encoding::percent_decode(&spaced);
        bytes.decode_utf8().ok().map(Cow::into_owned)
    };
    let pairs = text.split(|byte| *byte == b'&').take(limits::QUERY_PAIRS);
    pairs.filter_map(move |pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        Some((decode(&pair[..at])?, decode(&pair[at + 1..])?))
    })
}

pub(super) fn error_page(problem: &Problem, entry: Entry) -> Reply {
    let entry = (problem.code == Code::Unauthenticated).then_some(entry);
    let mut reply = page_reply(problem.status, linked::error_page(&problem.message, entry));
    reply.code = problem.code;
    let named = problem.headers();
    for name in [header::ALLOW, header::RETRY_AFTER] {
        if let Some(value) = named.get(&name) {
            reply.headers.insert(name, value.clone());
        }
    }
    reply
}

fn page_reply(status: StatusCode, html: String) -> Reply {
    let mut reply = Reply::html(html);
    reply.status = status;
    let fixed = [
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, linked::POLICY),
        // The URL is a credential.
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("x-robots-tag"), "noindex"),
    ];
    for (name, value) in fixed {
        reply.headers.insert(name, HeaderValue::from_static(value));
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_identifies_an_event_or_group() {
        let found = [
            ("/events/abc=:1", Some((LinkedPage::Event, "abc=:1"))),
            ("/groups/group-1", Some((LinkedPage::Group, "group-1"))),
            ("/", Some((LinkedPage::Service, ""))),
            ("/events/", None),
            ("/events/a/b", None),
            ("/v1/events/a", None),
        ];
        for (path, expected) in found {
            assert_eq!(LinkedPage::find(path), expected, "{path}");
        }
    }

    #[test]
    fn url_encoded_form_is_parsed() {
        let form = Form::read(b"key=+a%2Bb%20&do=acknowledge&other=%ff&key2");
        assert_eq!(
            (form.key.as_str(), form.what.as_str()),
            ("a+b", "acknowledge")
        );
        assert_eq!(Form::read(b"").key, "");
    }
}
