//! Calls the backend for one request.

use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;
use tokio::time::Instant;
use tonic::Status;

use super::{Exchange, Handler, Reply, body, headers};
use crate::{
    binding::{self, Parts},
    json_out,
    plan::{BodyRule, Operation},
    problem::Problem,
};

impl Handler {
    /// Reads the request, calls the backend and writes its answer.
    pub(super) async fn call(
        &self,
        operation: &Operation,
        captures: &[&str],
        request: Request<Incoming>,
        exchange: Exchange<'_>,
    ) -> Reply {
        let (head, incoming) = request.into_parts();
        let message = if operation.body == BodyRule::None {
            Ok(Bytes::new())
        } else if let Err(problem) = body::check_encoding(&head.headers) {
            Err(problem)
        } else {
            let limit_bytes = self.config.body_limit_bytes;
            body::read(incoming, limit_bytes, &self.metrics, exchange.activity).await
        };
        let message = message.and_then(|body| {
            let query = head.uri.query().unwrap_or_default();
            let parts = Parts {
                captures,
                query,
                headers: &head.headers,
                body: &body,
            };
            binding::request(&self.plan, operation, parts)
        });
        let message = match message {
            Ok(message) => message.into(),
            Err(problem) => return self.problem(&problem),
        };
        let metadata = headers::metadata(&head.headers, exchange.request_id);
        let left = exchange.deadline.saturating_duration_since(Instant::now());
        let path = operation.grpc_path.clone();
        match self.upstream.call(path, metadata, message, left).await {
            Ok((metadata, answer)) => {
                let mut reply = self.answered(operation, &answer);
                headers::pass_back(&metadata, &mut reply.headers);
                reply
            }
            Err(status) => self.failed(&status),
        }
    }

    fn answered(&self, operation: &Operation, answer: &[u8]) -> Reply {
        let mut json = Vec::with_capacity(answer.len() * 2 + 16);
        match json_out::write(&self.plan, operation.output, answer, &mut json) {
            Ok(()) => Reply::json(json),
            Err(error) => {
                tracing::error!(operation = &*operation.name, %error, "cannot write the answer");
                self.problem(&Problem::internal())
            }
        }
    }

    fn failed(&self, status: &Status) -> Reply {
        let problem = Problem::from_status(status, self.config.body_limit_bytes);
        if problem.status.is_server_error() {
            tracing::warn!(
                code = i32::from(status.code()),
                "the backend did not answer"
            );
        }
        let mut reply = self.problem(&problem);
        headers::pass_back(status.metadata(), &mut reply.headers);
        reply
    }
}
