//! Calls the backend for one request.

use bellwether_process::listen::{Permit, PermitError};
use bellwether_proto::{csv, json::write};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use hyper::body::Incoming;
use tokio::time::Instant;
use tonic::{Code, Status};

use super::{
    Exchange, Handler, Owner, Reply, body,
    compression::{self, ContentEncoding},
    conditional, headers,
};
use crate::{
    binding::{self, RequestParts},
    intake::OmittedInput,
    limits,
    operation::{BodyRule, Operation},
    problem::Problem,
    refusal,
};

impl Handler {
    /// Reads the request, calls the backend and returns its response. The in-flight permit is
    /// acquired after the body is read, so that slow clients hold none, and stored in `permit`.
    #[expect(
        clippy::too_many_lines,
        reason = "one call, from its key to its response"
    )]
    pub(super) async fn call(
        &self,
        operation: &Operation,
        captures: &[&str],
        request: Request<Incoming>,
        exchange: Exchange<'_>,
        permit: &mut Option<Permit<Owner>>,
    ) -> Reply {
        let (head, incoming) = request.into_parts();
        let metadata = headers::request_metadata(&head.headers, &exchange);
        let is_open = &*operation.role == "none";
        let recognised = if is_open {
            Ok(Owner::anonymous(exchange.peer))
        } else {
            self.identify_client(&metadata, exchange).await
        };
        let owner = match recognised {
            Ok(owner) => owner,
            Err(status) => {
                body::drain_body(incoming, limits::PRE_AUTH_BODY_BYTES).await;
                return self.error_reply(&status);
            }
        };
        let memory = if is_open {
            &self.pre_auth_body_memory
        } else {
            &self.memory
        };
        let mut memory = body::BodyMemory::new(memory, owner);
        let body = if operation.body == BodyRule::None {
            Ok(Bytes::new())
        } else {
            self.body(incoming, &head.headers, &mut memory, exchange)
                .await
        };
        let admitted = body.and_then(|body| Ok((body, self.admit_request(owner)?)));
        let (body, acquired) = match admitted {
            Ok(admitted) => admitted,
            Err(problem) => return self.problem(&problem),
        };
        *permit = Some(acquired);
        let parts = RequestParts {
            captures,
            query: head.uri.query().unwrap_or_default(),
            headers: &head.headers,
            body: &body,
        };
        let (message, left_out) = match binding::bind_request(&self.plan, operation, parts) {
            Ok(read) => OmittedInput::split_read(read),
            Err(problem) => return self.problem(&problem),
        };
        let left = exchange.deadline.saturating_duration_since(Instant::now());
        let path = operation.grpc_path.clone();
        match self
            .upstream
            .call(path, metadata, message.into(), left)
            .await
        {
            Ok((metadata, answer)) => {
                let mut reply = match left_out.add_to_response(answer) {
                    Ok(answer) => {
                        let reply = self.build_reply(operation, &answer, &head.headers);
                        match refusal::all_rejected_message(operation.grpc_path.as_str(), &answer) {
                            Some(message) => Reply {
                                status: StatusCode::BAD_REQUEST,
                                code: Code::InvalidArgument,
                                body: refusal::refusal_body(&reply.body, message).into(),
                                ..reply
                            },
                            None => reply,
                        }
                    }
                    Err(error) => self.unwritable_reply(operation, &error),
                };
                headers::copy_response_headers(&metadata, &mut reply.headers);
                reply
            }
            Err(status) => self.error_reply(&status),
        }
    }

    pub(super) async fn body(
        &self,
        incoming: Incoming,
        headers: &HeaderMap,
        memory: &mut body::BodyMemory,
        exchange: Exchange<'_>,
    ) -> Result<Bytes, Problem> {
        let limit_bytes = self.config.body_limit_bytes;
        let encoding = match compression::content_encoding(headers) {
            Ok(encoding) => encoding,
            Err(problem) => {
                body::drain_body(incoming, limit_bytes).await;
                return Err(problem);
            }
        };
        let body = self.read(incoming, limit_bytes, memory, exchange).await?;
        if encoding == ContentEncoding::Plain {
            return Ok(body);
        }
        let body = compression::decompress(&body, limit_bytes)?;
        memory.reserve(body.len())?;
        Ok(body)
    }

    pub(super) async fn read(
        &self,
        incoming: Incoming,
        limit_bytes: usize,
        memory: &mut body::BodyMemory,
        exchange: Exchange<'_>,
    ) -> Result<Bytes, Problem> {
        let activity = exchange.activity;
        body::read_body(incoming, limit_bytes, memory, &self.metrics, activity).await
    }

    pub(super) fn admit_request(&self, owner: Owner) -> Result<Permit<Owner>, Problem> {
        let mut permit = self.in_flight.new_permit(Some(owner));
        permit.acquire(1).map_err(|full| {
            Problem::unavailable(match full {
                PermitError::All => "too many requests are in progress; try again in a moment",
                PermitError::Share => {
                    "this client has reached its limit, a quarter of the capacity for requests; \
                     try again in a moment"
                }
            })
        })?;
        Ok(permit)
    }

    fn build_reply(
        &self,
        operation: &Operation,
        answer: &[u8],
        request_headers: &HeaderMap,
    ) -> Reply {
        if operation.is_silent {
            return Reply::without_body(StatusCode::OK, HeaderMap::new());
        }
        let mut json = Vec::with_capacity(answer.len() * 2 + 16);
        match write::write(&self.plan, operation.output, answer, &mut json) {
            Ok(()) if operation.method == Method::GET => {
                let stored = conditional::stored_etag(&self.plan, operation.output, answer);
                let table = wants_csv(request_headers).then(|| self.csv_table(operation, &json));
                let mut reply = table
                    .flatten()
                    .map_or_else(|| Reply::json(json), Reply::csv);
                if !operation.csv.is_empty() {
                    let accept = HeaderValue::from_static("accept");
                    reply.headers.insert(header::VARY, accept);
                }
                conditional::with_etag(reply, request_headers, stored)
            }
            Ok(()) => Reply::json(json),
            Err(error) => self.unwritable_reply(operation, &error),
        }
    }

    /// Returns the list of a response as CSV; `None` if the operation has no list for CSV.
    fn csv_table(&self, operation: &Operation, json: &[u8]) -> Option<String> {
        if operation.csv.is_empty() {
            return None;
        }
        let answer = serde_json::from_slice(json).ok()?;
        csv::render_table(&self.plan, operation.output, &operation.csv, &answer)
    }

    fn unwritable_reply(&self, operation: &Operation, error: &dyn std::error::Error) -> Reply {
        tracing::error!(operation = &*operation.name, %error, "failed to write the response");
        self.problem(&Problem::internal())
    }

    fn error_reply(&self, status: &Status) -> Reply {
        let problem = Problem::from_status(status, self.config.body_limit_bytes);
        if problem.status.is_server_error() {
            tracing::warn!(
                code = i32::from(status.code()),
                "call to the backend failed"
            );
        }
        let mut reply = self.problem(&problem);
        headers::copy_response_headers(status.metadata(), &mut reply.headers);
        reply
    }
}

fn wants_csv(request_headers: &HeaderMap) -> bool {
    let accepted = request_headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(|one| one.split(';').next().unwrap_or_default().trim());
    let first = accepted.find(|it| ["text/csv", "application/json"].contains(it));
    first == Some("text/csv")
}
