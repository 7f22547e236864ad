//! Answers one HTTP request: finds the operation, calls the backend, writes the answer.

mod body;
mod headers;
mod page;

use std::{panic::AssertUnwindSafe, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use tonic::Code;

use crate::{
    Config, Upstream,
    answer::Answer,
    binding::{self, Parts},
    connection::Activity,
    docs, json_out,
    metrics::{Metrics, UNMATCHED},
    openapi,
    plan::{BodyRule, Operation, Plan},
    problem::Problem,
    route::{Found, Router},
};
use page::Page;

/// Everything that answering a request needs.
#[derive(Debug)]
pub(crate) struct Handler {
    /// The settings.
    pub(crate) config: Config,
    /// The counters.
    pub(crate) metrics: Metrics,
    plan: Plan,
    router: Router,
    upstream: Upstream,
    room: Arc<Semaphore>,
    openapi: Bytes,
    docs: Bytes,
}

/// What a request asks for.
enum Target<'p> {
    Operation(usize, Vec<&'p str>),
    Page(Page),
    Problem(Problem),
}

/// What is answered.
struct Reply {
    status: StatusCode,
    code: Code,
    content_type: &'static str,
    headers: HeaderMap,
    body: Bytes,
}

impl Reply {
    fn ok(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let (status, headers) = (StatusCode::OK, HeaderMap::new());
        Self {
            status,
            code: Code::Ok,
            content_type,
            headers,
            body: body.into(),
        }
    }
}

const JSON: &str = "application/json";

impl Handler {
    /// Compiles the tables and pages. The error says what cannot be served.
    pub(crate) fn new(config: Config, upstream: Upstream) -> Result<Self, String> {
        let sets = [
            bellwether_proto::FILE_DESCRIPTOR_SET,
            tonic_types::pb::FILE_DESCRIPTOR_SET,
        ];
        let plan = Plan::compile(&sets).map_err(|error| error.to_string())?;
        let mut router = Router::default();
        for (at, operation) in plan.operations.iter().enumerate() {
            router.add(&operation.method, &operation.template, at)?;
        }
        let name = |operation: &Operation| format!("{}/{}", operation.service, operation.name);
        let document = openapi::document(&plan);
        Ok(Self {
            metrics: Metrics::new(plan.operations.iter().map(name)),
            room: Arc::new(Semaphore::new(config.max_in_flight)),
            openapi: document.to_string().into(),
            docs: docs::page(&document).into(),
            plan,
            router,
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
        activity: Arc<Activity>,
    ) -> Response<Answer> {
        let start = Instant::now();
        let under_way = Answer::default().holding(Arc::clone(&activity), None);
        let request_id = headers::request_id(request.headers());
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let target = self.target(&method, &path);
        let (operation, template) = match &target {
            Target::Operation(at, _) => (Some(*at), &*self.plan.operations[*at].template.text),
            Target::Page(page) => (None, page.path()),
            Target::Problem(_) => (None, UNMATCHED),
        };
        let mut permit = None;
        let answering = self.reply(request, target, &request_id, start, &activity, &mut permit);
        let reply = match AssertUnwindSafe(answering).catch_unwind().await {
            Ok(reply) => reply,
            Err(_) => {
                self.metrics.panicked();
                self.problem(&Problem::internal())
            }
        };
        let took = start.elapsed();
        self.metrics
            .answered(operation, reply.status, took, reply.body.len());
        tracing::info!(
            %method,
            path = template,
            status = reply.status.as_u16(),
            code = i32::from(reply.code),
            duration_ms = took.as_secs_f64() * 1e3,
            request_id = request_id.to_str().unwrap_or_default(),
            "answered"
        );
        let answer = Answer::new(reply.body).holding(activity, permit);
        drop(under_way);
        let mut response = Response::new(answer);
        *response.status_mut() = reply.status;
        *response.headers_mut() = reply.headers;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(reply.content_type),
        );
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        headers.insert(headers::REQUEST_ID, request_id);
        response
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
            Found::Nothing => Target::Problem(Problem::unknown_path()),
        }
    }

    async fn reply(
        &self,
        request: Request<Incoming>,
        target: Target<'_>,
        request_id: &HeaderValue,
        start: Instant,
        activity: &Activity,
        permit: &mut Option<OwnedSemaphorePermit>,
    ) -> Reply {
        if headers::size(&request) > self.config.header_limit_bytes {
            return self.problem(&Problem::headers_too_large(self.config.header_limit_bytes));
        }
        let (at, captures) = match target {
            Target::Problem(problem) => return self.problem(&problem),
            Target::Page(page) => return self.page(page).await,
            Target::Operation(at, captures) => (at, captures),
        };
        match Arc::clone(&self.room).try_acquire_owned() {
            Ok(place) => *permit = Some(place),
            Err(_) => {
                let message = "too many requests are under way; try again in a moment";
                return self.problem(&Problem::unavailable(message));
            }
        }
        let operation = &self.plan.operations[at];
        let deadline = start + self.config.deadline;
        let calling = self.call(
            operation, request, &captures, request_id, deadline, activity,
        );
        match tokio::time::timeout_at(deadline, calling).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(reply)) => *reply,
            Err(_) => self.problem(&Problem::deadline()),
        }
    }

    /// Calls the backend.
    async fn call(
        &self,
        operation: &Operation,
        request: Request<Incoming>,
        captures: &[&str],
        request_id: &HeaderValue,
        deadline: Instant,
        activity: &Activity,
    ) -> Result<Reply, Box<Reply>> {
        let refuse = |problem: Problem| Box::new(self.problem(&problem));
        let (head, incoming) = request.into_parts();
        let body = match operation.body {
            BodyRule::None => Bytes::new(),
            _ => body::read(
                incoming,
                self.config.body_limit_bytes,
                &self.metrics,
                activity,
            )
            .await
            .map_err(refuse)?,
        };
        let query = head.uri.query().unwrap_or_default();
        let parts = Parts {
            captures,
            query,
            headers: &head.headers,
            body: &body,
        };
        let message = binding::request(&self.plan, operation, parts).map_err(refuse)?;
        drop(body);
        let metadata = headers::metadata(&head.headers, request_id);
        let left = deadline.saturating_duration_since(Instant::now());
        let path = operation.grpc_path.clone();
        match self
            .upstream
            .call(path, metadata, message.into(), left)
            .await
        {
            Ok((metadata, answer)) => {
                let mut json = Vec::with_capacity(answer.len() * 2 + 16);
                json_out::write(&self.plan, operation.output, &answer, &mut json).map_err(
                    |_| {
                        tracing::error!(operation = &*operation.name, "the answer is malformed");
                        refuse(Problem::internal())
                    },
                )?;
                let mut reply = Reply::ok(JSON, json);
                headers::pass_back(&metadata, &mut reply.headers);
                Ok(reply)
            }
            Err(status) => {
                tracing::debug!(%status, "the call failed");
                let problem = Problem::from_status(&status, self.config.body_limit_bytes);
                let mut reply = self.problem(&problem);
                headers::pass_back(status.metadata(), &mut reply.headers);
                Err(Box::new(reply))
            }
        }
    }

    fn problem(&self, problem: &Problem) -> Reply {
        Reply {
            status: problem.status,
            code: problem.code,
            content_type: JSON,
            headers: problem.headers(),
            body: problem.body(&self.plan).into(),
        }
    }

    async fn page(&self, page: Page) -> Reply {
        match page {
            Page::Healthz => Reply::ok("text/plain; charset=utf-8", "ok\n"),
            Page::Readyz if self.upstream.is_ready().await => {
                Reply::ok("text/plain; charset=utf-8", "ok\n")
            }
            Page::Readyz => self.problem(&Problem::unavailable("the backend is not ready")),
            Page::Metrics => {
                let in_flight = self
                    .config
                    .max_in_flight
                    .saturating_sub(self.room.available_permits());
                Reply::ok(
                    "text/plain; version=0.0.4; charset=utf-8",
                    self.metrics.text(in_flight),
                )
            }
            Page::Openapi => Reply::ok(JSON, self.openapi.clone()),
            Page::Docs => Reply::ok("text/html; charset=utf-8", self.docs.clone()),
        }
    }
}
