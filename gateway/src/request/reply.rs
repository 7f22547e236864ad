//! A reply, before it is converted to a response.

use std::sync::Arc;

use bellwether_process::{listen::REQUEST_ID, metrics};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use tonic::{Code, Status};

use super::{Documents, Handler, Page};
use crate::{dialect::DialectResponse, docs, openapi, problem::Problem};

const TEXT: &str = "text/plain; charset=utf-8";
const CSV: &str = "text/csv; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";
const SVG: &str = "image/svg+xml";

pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) code: Code,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Empty without a body.
    pub(super) content_type: &'static str,
}

impl Reply {
    pub(super) fn json(body: impl Into<Bytes>) -> Self {
        Self::ok("application/json", body)
    }

    pub(super) fn without_body(status: StatusCode, headers: HeaderMap) -> Self {
        Self {
            status,
            headers,
            content_type: "",
            ..Self::json(Bytes::new())
        }
    }

    pub(super) fn html(body: impl Into<Bytes>) -> Self {
        Self::ok(HTML, body)
    }

    pub(super) fn csv(body: impl Into<Bytes>) -> Self {
        Self::ok(CSV, body)
    }

    pub(super) fn ok(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let (status, headers) = (StatusCode::OK, HeaderMap::new());
        Self {
            status,
            code: Code::Ok,
            headers,
            body: body.into(),
            content_type,
        }
    }

    pub(super) fn to_sender(answer: DialectResponse, code: Code, mut headers: HeaderMap) -> Self {
        headers.extend(answer.headers);
        Self {
            status: answer.status,
            code,
            headers,
            body: answer.body,
            content_type: answer.content_type.unwrap_or_default(),
        }
    }

    pub(super) fn into_response(self, request_id: HeaderValue) -> Response<Bytes> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        *headers = self.headers;
        if !self.content_type.is_empty() {
            let content_type = HeaderValue::from_static(self.content_type);
            headers.insert(header::CONTENT_TYPE, content_type);
        }
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        headers.insert(REQUEST_ID, request_id);
        response
    }
}

impl Handler {
    pub(super) fn problem(&self, problem: &Problem) -> Reply {
        Reply {
            status: problem.status,
            code: problem.code,
            headers: problem.headers(),
            ..Reply::json(problem.body(&self.plan))
        }
    }

    /// Returns a page of the reference, which is built outside of the async runtime.
    async fn document_page(&self, page: impl FnOnce(&Documents) -> Reply) -> Reply {
        let build = || {
            let (plan, operations) = (Arc::clone(&self.plan), Arc::clone(&self.operations));
            tokio::task::spawn_blocking(move || {
                let document = openapi::build_document(&plan, &operations);
                Documents {
                    openapi: document.to_string().into(),
                    page: docs::render_page(&document).into(),
                }
            })
        };
        match self.documents.get_or_try_init(build).await {
            Ok(documents) => page(documents),
            Err(_) => self.problem(&Problem::unavailable("the reference is not available now")),
        }
    }

    pub(super) async fn page(&self, page: Page, request_headers: &HeaderMap) -> Reply {
        match page {
            Page::Healthz | Page::Healthy => Reply::ok(TEXT, "ok\n"),
            Page::Readyz | Page::Ready => match self.upstream.not_ready_reason().await {
                None => Reply::ok(TEXT, "ok\n"),
                Some(why) => self.problem(&Problem::unavailable(why)),
            },
            Page::Metrics => match &self.metrics_page {
                None => self.problem(&Problem::unknown_path()),
                Some(page) if page.is_authorized(request_headers) => {
                    Reply::ok(metrics::CONTENT_TYPE, page.cached_text().await)
                }
                Some(_) => self.problem(&Problem::from_status(
                    &Status::unauthenticated(
                        "a key is required for the metrics: `authorization: Bearer KEY`",
                    ),
                    self.config.body_limit_bytes,
                )),
            },
            Page::Openapi => {
                self.document_page(|it| Reply::json(it.openapi.clone()))
                    .await
            }
            Page::Docs => self.document_page(|it| Reply::html(it.page.clone())).await,
            Page::Icon => Reply::ok(SVG, docs::ICON),
            Page::Topic(topic) => Reply::html(docs::topic::render_topic(topic)),
            Page::TopicText(topic) => Reply::ok(MARKDOWN, topic.markdown),
            Page::Llms => Reply::ok(MARKDOWN, docs::topic::list_for_models()),
        }
    }
}
