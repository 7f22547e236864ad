//! Handles one HTTP request: finds the operation, calls the backend and builds the response.

mod alertmanager;
mod body;
mod call;
mod compression;
mod conditional;
mod headers;
mod linked;
mod page;
mod recognition;
mod reply;
mod sender;
mod session;
mod sign_in;

use std::{
    net::IpAddr,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};

use bellwether_process::{
    listen::{Activity, Cors, Peer, Permit, Pool, host_error, request_id},
    metrics::{MetricsPage, MetricsSource, ProcessMetrics},
};
use bellwether_proto::json::{descriptor, plan::Plan};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use tokio::{sync::OnceCell, time::Instant};

use crate::{
    alertmanager::{self as am, Paths},
    config::Config,
    dialect::Senders,
    limits,
    metrics::{Metrics, UNMATCHED},
    operation::{self, Operation},
    owner::Owner,
    problem::Problem,
    response_body::ResponseBody,
    route::{RouteMatch, Router},
    upstream::Upstream,
};
use linked::LinkedPage;
use page::Page;
use recognition::RecentKeys;
use reply::Reply;
use sign_in::SignInStep;

const INTAKE: &str = "/v1/data-receiver/";
/// Paths of the published interface that this service does not support.
const NOT_SERVED: [&str; 2] = ["/v1/data-receiver/metrics", "/v1/data-receiver/models"];

/// CORS: methods and headers available to pages of other origins.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
const ACCEPTED_HEADERS: &str = "authorization, zenoss-api-key, content-type, content-encoding, accept, \
                     if-match, if-none-match, idempotency-key, x-request-id, traceparent, tracestate";
const SHOWN: &str = "etag, retry-after, x-request-id, ratelimit, ratelimit-policy, \
                     idempotent-replayed, deprecation, sunset, www-authenticate";

#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) config: Config,
    pub(crate) metrics: Arc<Metrics>,
    /// The metrics page; `None` if it is not served here.
    pub(crate) metrics_page: Option<Arc<MetricsPage>>,
    plan: Arc<Plan>,
    operations: Arc<[Operation]>,
    router: Router,
    senders: Senders,
    alertmanager: Paths,
    started_ms: i64,
    upstream: Upstream,
    cors: Cors,
    recognised: RecentKeys,
    in_flight: Arc<Pool<Owner>>,
    /// Memory for bodies, in KiB.
    memory: Arc<Pool<Owner>>,
    /// Memory for bodies that must be read before the key is known, in KiB.
    pre_auth_body_memory: Arc<Pool<Owner>>,
    documents: OnceCell<Documents>,
    sign_in_page: Mutex<Option<(Instant, String)>>,
}

/// The reference, built for its first reader: it takes longer than the rest of the start.
#[derive(Debug)]
struct Documents {
    openapi: Bytes,
    page: Bytes,
}

enum RequestTarget<'p> {
    Operation(usize, Vec<&'p str>),
    Sender(usize, Vec<&'p str>),
    Alertmanager(usize, Vec<&'p str>),
    Page(Page),
    LinkedPage(LinkedPage, &'p str),
    SignIn(SignInStep),
    Problem(Problem),
}

struct AcceptHeaders(HeaderMap);

impl AcceptHeaders {
    fn from_headers(headers: &HeaderMap) -> Self {
        let mut accepted = HeaderMap::new();
        for name in ["accept-encoding", "origin"] {
            for value in headers.get_all(name) {
                accepted.append(HeaderName::from_static(name), value.clone());
            }
        }
        Self(accepted)
    }
}

#[derive(Clone, Copy)]
struct Exchange<'a> {
    request_id: &'a HeaderValue,
    peer: IpAddr,
    certificate: &'a [String],
    deadline: Instant,
    activity: &'a Activity,
}

impl Handler {
    /// Compiles the tables and pages. Returns an error for an unsupported descriptor.
    pub(crate) fn new(config: Config, upstream: Upstream) -> Result<Self, String> {
        let sets = [
            bellwether_proto::FILE_DESCRIPTOR_SET,
            tonic_types::pb::FILE_DESCRIPTOR_SET,
        ];
        let files = descriptor::decode_files(&sets).map_err(|error| error.to_string())?;
        let plan = Plan::from_files(&files).map_err(|error| error.to_string())?;
        let operations = operation::compile(&files, &plan)?;
        let mut router = Router::default();
        for (at, operation) in operations.iter().enumerate() {
            router.add(&operation.method, &operation.template, at)?;
        }
        let name = |operation: &Operation| format!("{}/{}", operation.service, operation.name);
        let senders = Senders::new()?;
        let in_flight = Pool::new(config.max_in_flight);
        let names = operations
            .iter()
            .map(name)
            .chain(senders.names())
            .chain(am::operation_names());
        let metrics = Arc::new(Metrics::new(names, Arc::clone(&in_flight)));
        let counted: [Arc<dyn MetricsSource>; 2] = [
            Arc::new(ProcessMetrics::new(
                env!("CARGO_PKG_VERSION"),
                bellwether_proto::repair::replaced_count,
            )),
            Arc::clone(&metrics) as _,
        ];
        Ok(Self {
            metrics_page: Some(Arc::new(MetricsPage::new(counted.into(), None))),
            metrics,
            cors: Cors::new(config.origins.clone(), METHODS, ACCEPTED_HEADERS, SHOWN),
            recognised: RecentKeys::default(),
            in_flight,
            // One client may use a quarter of this memory, so the quarter must be enough for one
            // body.
            memory: Pool::new(limits::BODIES_KIB.max(4 * config.body_limit_bytes.div_ceil(1024))),
            pre_auth_body_memory: Pool::new(limits::PRE_AUTH_BODIES_KIB),
            documents: OnceCell::new(),
            sign_in_page: Mutex::default(),
            plan: Arc::new(plan),
            operations: operations.into(),
            router,
            senders,
            alertmanager: Paths::new()?,
            started_ms: jiff::Timestamp::now().as_millisecond(),
            upstream,
            config,
        })
    }

    /// # Cancel safety
    /// Dropping the future cancels the call to the backend, which may or may not have had an
    /// effect.
    pub(crate) async fn handle(
        &self,
        request: Request<Incoming>,
        peer: Peer,
        activity: &Activity,
    ) -> Response<ResponseBody> {
        let start = Instant::now();
        let request_id = request_id(request.headers());
        let method = request.method().clone();
        if let Some((status, headers)) = self.cors.preflight(&method, request.headers()) {
            let response = Reply::without_body(status, headers).into_response(request_id);
            return response.map(|body| ResponseBody::new(body, None));
        }
        let requested = AcceptHeaders::from_headers(request.headers());
        let path = request.uri().path().to_owned();
        let target = self.target(&method, &path);
        let (operation, template) = match &target {
            RequestTarget::Operation(at, _) => (Some(*at), &*self.operations[*at].template.text),
            RequestTarget::Sender(at, _) => {
                let (_, endpoint) = self.senders.endpoint(*at);
                (Some(self.operations.len() + at), endpoint.path)
            }
            RequestTarget::Alertmanager(at, _) => {
                let before = self.operations.len() + self.senders.names().count();
                (Some(before + at), am::ENDPOINTS[*at].path)
            }
            RequestTarget::Page(page) => (None, page.path()),
            RequestTarget::LinkedPage(what, _) => (None, what.path()),
            RequestTarget::SignIn(step) => (None, step.path()),
            RequestTarget::Problem(_) => (None, UNMATCHED),
        };
        let deadline = start + self.config.deadline;
        let exchange = Exchange {
            request_id: &request_id,
            peer: self
                .config
                .proxies
                .client_address(peer.address, request.headers()),
            certificate: &peer.certificate,
            deadline,
            activity,
        };
        let mut permit = None;
        let answering = self.reply_to_target(request, target, exchange, &mut permit);
        let reply = AssertUnwindSafe(answering).catch_unwind().await;
        let reply = reply.unwrap_or_else(|_| {
            self.metrics.record_panic();
            self.problem(&Problem::internal())
        });
        let took = start.elapsed();
        self.metrics
            .record_response(operation, reply.status, took, reply.body.len());
        // Failed and slow requests are logged at info level, all other requests at debug level.
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    %method,
                    path = template,
                    status = reply.status.as_u16(),
                    code = i32::from(reply.code),
                    duration_ms = took.as_secs_f64() * 1e3,
                    request_id = request_id.to_str().unwrap_or_default(),
                    "answered"
                )
            };
        }
        if reply.status.as_u16() >= 400 || took > limits::SLOW {
            line!(info);
        } else {
            line!(debug);
        }
        let mut reply = compression::compress(reply, &requested.0).await;
        self.cors.allow_origin(&requested.0, &mut reply.headers);
        let response = reply.into_response(request_id);
        response.map(|body| ResponseBody::new(body, permit))
    }

    fn target<'p>(&self, method: &Method, path: &'p str) -> RequestTarget<'p> {
        let is_shown = |page: &Page| *page != Page::Metrics || self.metrics_page.is_some();
        if let Some(page) = Page::find(path).filter(is_shown) {
            return match *method {
                Method::GET | Method::HEAD => RequestTarget::Page(page),
                _ => RequestTarget::Problem(Problem::wrong_method(vec![Method::GET, Method::HEAD])),
            };
        }
        if let Some((what, id)) = LinkedPage::find(path) {
            return match *method {
                Method::GET | Method::HEAD | Method::POST => RequestTarget::LinkedPage(what, id),
                _ => {
                    let allowed = vec![Method::GET, Method::HEAD, Method::POST];
                    RequestTarget::Problem(Problem::wrong_method(allowed))
                }
            };
        }
        if let Some(step) = SignInStep::find(path) {
            return if *method == step.method() {
                RequestTarget::SignIn(step)
            } else {
                RequestTarget::Problem(Problem::wrong_method(vec![step.method()]))
            };
        }
        // Paths for sending events may have a trailing slash.
        let native = if path.starts_with(INTAKE) {
            path.trim_end_matches('/')
        } else {
            path
        };
        match self.router.find(method, native) {
            RouteMatch::Operation(at, captures) => RequestTarget::Operation(at, captures),
            RouteMatch::WrongMethod(allow) => RequestTarget::Problem(Problem::wrong_method(allow)),
            RouteMatch::Nothing if NOT_SERVED.contains(&native) => {
                RequestTarget::Problem(Problem::events_only_key())
            }
            RouteMatch::Nothing => self.find_sender_target(method, path),
        }
    }

    /// Finds a path of another product. Some paths are in both tables.
    fn find_sender_target<'p>(&self, method: &Method, path: &'p str) -> RequestTarget<'p> {
        let mut allow = match self.senders.find(method, path) {
            RouteMatch::Operation(at, captures) => return RequestTarget::Sender(at, captures),
            RouteMatch::WrongMethod(allow) => allow,
            RouteMatch::Nothing => Vec::new(),
        };
        match self.alertmanager.find(method, path) {
            RouteMatch::Operation(at, captures) => {
                return RequestTarget::Alertmanager(at, captures);
            }
            RouteMatch::WrongMethod(more) => allow.extend(more),
            RouteMatch::Nothing => {}
        }
        RequestTarget::Problem(if allow.is_empty() {
            Problem::unknown_path()
        } else {
            Problem::wrong_method(allow)
        })
    }

    async fn reply_to_target(
        &self,
        request: Request<Incoming>,
        target: RequestTarget<'_>,
        exchange: Exchange<'_>,
        permit: &mut Option<Permit<Owner>>,
    ) -> Reply {
        if let Some(message) = host_error(&request) {
            return self.problem(&Problem::invalid(message));
        }
        if !self.config.hosts.contains_host(&request) {
            return self.problem(&Problem::wrong_host());
        }
        if headers::request_size(&request) > self.config.header_limit_bytes {
            return self.problem(&Problem::headers_too_large(self.config.header_limit_bytes));
        }
        let (at, captures) = match target {
            RequestTarget::Problem(problem) => return self.problem(&problem),
            RequestTarget::Page(page) => {
                let reply = self.page(page, request.headers()).await;
                return if page.is_document() {
                    conditional::with_etag(reply, request.headers(), None)
                } else {
                    reply
                };
            }
            RequestTarget::LinkedPage(what, id) => {
                return self
                    .handle_linked_page(what, id, request, exchange, permit)
                    .await;
            }
            RequestTarget::SignIn(step) => {
                return self.handle_sign_in(step, &request, exchange, permit).await;
            }
            RequestTarget::Sender(at, captures) => {
                return self
                    .serve_sender(at, &captures, request, exchange, permit)
                    .await;
            }
            RequestTarget::Alertmanager(at, captures) => {
                return self
                    .serve_alertmanager(at, &captures, request, exchange, permit)
                    .await;
            }
            RequestTarget::Operation(at, captures) => (at, captures),
        };
        let operation = &self.operations[at];
        let calling = self.call(operation, &captures, request, exchange, permit);
        match tokio::time::timeout_at(exchange.deadline, calling).await {
            Ok(reply) => reply,
            Err(_) => self.problem(&Problem::deadline_exceeded()),
        }
    }
}
