//! Answers one HTTP request: finds the operation, calls the backend, writes the answer.

mod body;
mod call;
mod conditional;
mod headers;
mod page;
mod reply;
mod sender;

use std::{net::IpAddr, panic::AssertUnwindSafe, sync::Arc};

use bellwether_proto::{
    json::{descriptor, plan::Plan},
    listen::Activity,
};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use crate::{
    Config, Upstream,
    answer::Answer,
    dialect::Senders,
    docs, limits,
    metrics::{Metrics, UNMATCHED},
    openapi,
    operation::{self, Operation},
    problem::Problem,
    route::{Found, Router},
};
use page::Page;
use reply::Reply;

/// What senders of the published interface may also send, and this service does not take in.
const NOT_SERVED: [&str; 2] = ["/v1/data-receiver/metrics", "/v1/data-receiver/models"];

/// Everything that answering a request needs.
#[derive(Debug)]
pub(crate) struct Handler {
    /// The settings.
    pub(crate) config: Config,
    /// The counters.
    pub(crate) metrics: Metrics,
    plan: Plan,
    operations: Vec<Operation>,
    router: Router,
    senders: Senders,
    /// In milliseconds since 1970.
    started_ms: i64,
    upstream: Upstream,
    room: Arc<Semaphore>,
    /// Room for bodies, in KiB.
    memory: Arc<Semaphore>,
    openapi: Bytes,
    docs: Bytes,
}

/// What a request asks for.
enum Target<'p> {
    Operation(usize, Vec<&'p str>),
    Sender(usize, Vec<&'p str>),
    Page(Page),
    Problem(Problem),
}

/// What is known about a request from its arrival on.
#[derive(Clone, Copy)]
struct Exchange<'a> {
    request_id: &'a HeaderValue,
    peer: IpAddr,
    deadline: Instant,
    activity: &'a Activity,
}

impl Handler {
    /// Compiles the tables and pages. The error says what cannot be served.
    pub(crate) fn new(config: Config, upstream: Upstream) -> Result<Self, String> {
        let sets = [
            bellwether_proto::FILE_DESCRIPTOR_SET,
            tonic_types::pb::FILE_DESCRIPTOR_SET,
        ];
        let files = descriptor::files(&sets).map_err(|error| error.to_string())?;
        let plan = Plan::of(&files).map_err(|error| error.to_string())?;
        let operations = operation::compile(&files, &plan)?;
        let mut router = Router::default();
        for (at, operation) in operations.iter().enumerate() {
            router.add(&operation.method, &operation.template, at)?;
        }
        let name = |operation: &Operation| format!("{}/{}", operation.service, operation.name);
        let document = openapi::document(&plan, &operations);
        let senders = Senders::new()?;
        Ok(Self {
            metrics: Metrics::new(operations.iter().map(name).chain(senders.names())),
            room: Arc::new(Semaphore::new(config.max_in_flight)),
            memory: Arc::new(Semaphore::new(
                limits::BODIES_KIB.max(config.body_limit_bytes / 1024),
            )),
            openapi: document.to_string().into(),
            docs: docs::page(&document).into(),
            plan,
            operations,
            router,
            senders,
            started_ms: jiff::Timestamp::now().as_millisecond(),
            upstream,
            config,
        })
    }

    /// Answers a request, whatever it is.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call to the backend, which may or may not have had an
    /// effect.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
        activity: &Activity,
    ) -> Response<Answer> {
        let start = Instant::now();
        let request_id = headers::request_id(request.headers());
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let target = self.target(&method, &path);
        let (operation, template) = match &target {
            Target::Operation(at, _) => (Some(*at), &*self.operations[*at].template.text),
            Target::Sender(at, _) => {
                let (_, endpoint) = self.senders.endpoint(*at);
                (Some(self.operations.len() + at), endpoint.path)
            }
            Target::Page(page) => (None, page.path()),
            Target::Problem(_) => (None, UNMATCHED),
        };
        let deadline = start + self.config.deadline;
        let exchange = Exchange {
            request_id: &request_id,
            peer,
            deadline,
            activity,
        };
        let mut permit = None;
        let answering = self.reply(request, target, exchange, &mut permit);
        let caught = AssertUnwindSafe(answering).catch_unwind().await;
        let reply = caught.unwrap_or_else(|_| {
            self.metrics.panicked();
            self.problem(&Problem::internal())
        });
        let took = start.elapsed();
        self.metrics
            .answered(operation, reply.status, took, reply.body.len());
        // A line for what an operator looks for; the rest is counted, and told on request.
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
        let failed = reply.status.is_client_error() || reply.status.is_server_error();
        if failed || took > limits::SLOW {
            line!(info);
        } else {
            line!(debug);
        }
        let response = reply.into_response(request_id);
        response.map(|body| Answer::new(body, permit))
    }

    fn target<'p>(&self, method: &Method, path: &'p str) -> Target<'p> {
        if let Some(page) = Page::find(path) {
            return match *method {
                Method::GET | Method::HEAD => Target::Page(page),
                _ => Target::Problem(Problem::wrong_method(vec![Method::GET, Method::HEAD])),
            };
        }
        match self.router.find(method, path) {
            Found::Operation(at, captures) => Target::Operation(at, captures),
            Found::WrongMethod(allow) => Target::Problem(Problem::wrong_method(allow)),
            Found::Nothing if NOT_SERVED.contains(&path) => Target::Problem(Problem::events_only()),
            Found::Nothing => match self.senders.find(method, path) {
                Found::Operation(at, captures) => Target::Sender(at, captures),
                Found::WrongMethod(allow) => Target::Problem(Problem::wrong_method(allow)),
                Found::Nothing => Target::Problem(Problem::unknown_path()),
            },
        }
    }

    /// Makes the reply to a request. A request that is let in leaves its place in `permit`.
    async fn reply(
        &self,
        request: Request<Incoming>,
        target: Target<'_>,
        exchange: Exchange<'_>,
        permit: &mut Option<OwnedSemaphorePermit>,
    ) -> Reply {
        if headers::size(&request) > self.config.header_limit_bytes {
            return self.problem(&Problem::headers_too_large(self.config.header_limit_bytes));
        }
        let (at, captures) = match target {
            Target::Problem(problem) => return self.problem(&problem),
            Target::Page(page) => {
                let reply = self.page(page).await;
                return if page.is_document() {
                    conditional::tagged(reply, request.headers(), None)
                } else {
                    reply
                };
            }
            Target::Sender(at, captures) => {
                return self.sender(at, &captures, request, exchange, permit).await;
            }
            Target::Operation(at, captures) => (at, captures),
        };
        let operation = &self.operations[at];
        let calling = self.call(operation, &captures, request, exchange, permit);
        match tokio::time::timeout_at(exchange.deadline, calling).await {
            Ok(reply) => reply,
            Err(_) => self.problem(&Problem::deadline()),
        }
    }
}
