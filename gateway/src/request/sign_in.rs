//! Browser sign-in. The browser is redirected to the provider, returns with a code, and stores the
//! resulting token in a cookie, which is valid for the pages but not for REST.

use std::sync::PoisonError;

use bellwether_process::listen::Permit;
use bellwether_proto::v1::{
    FinishSignInRequest, FinishSignInResponse, GetSignInRequest, GetSignInResponse,
    StartSignInRequest, StartSignInResponse,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use hyper::body::Incoming;
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use prost::Message;
use tokio::time::Instant;
use tonic::Code;

use super::{
    Exchange, Handler, Owner, Reply, headers,
    linked::{LinkedPage, error_page, form_pairs},
    session::{Cookie, is_same_origin},
};
use crate::{limits, linked::Entry, problem::Problem};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignInStep {
    Start,
    Finish,
    End,
}

#[derive(Debug, PartialEq, Eq)]
struct SignInState {
    state: String,
    verifier: String,
    to: String,
}

impl SignInStep {
    pub(super) fn find(path: &str) -> Option<Self> {
        let steps = [Self::Start, Self::Finish, Self::End];
        steps.into_iter().find(|step| step.path() == path)
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Start => "/sign-in",
            Self::Finish => "/signed-in",
            Self::End => "/sign-out",
        }
    }

    pub(super) fn method(self) -> Method {
        match self {
            Self::Start | Self::Finish => Method::GET,
            Self::End => Method::POST,
        }
    }
}

impl SignInState {
    fn encode(&self) -> String {
        let to = utf8_percent_encode(&self.to, NON_ALPHANUMERIC);
        format!("{}.{}.{to}", self.state, self.verifier)
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let mut part = || parts.next().map(str::to_owned);
        let (state, verifier, to) = (part()?, part()?, part()?);
        let to = percent_decode_str(&to).decode_utf8().ok()?;
        Some(Self {
            state,
            verifier,
            to: safe_redirect_path(&to),
        })
    }
}

impl Handler {
    /// Returns the URL of the sign-in page; empty if sign-in is not configured or the backend is
    /// unreachable.
    pub(super) async fn sign_in_page(&self, exchange: Exchange<'_>) -> String {
        let known = || {
            self.sign_in_page
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some((at, page)) = known().as_ref()
            && at.elapsed() < limits::SIGN_IN_CACHE_TIME
        {
            return page.clone();
        }
        let response = self.call_sign_in_service("GetSignIn", &GetSignInRequest {}, exchange);
        let Ok(GetSignInResponse { page, .. }) = response.await else {
            return String::new();
        };
        *known() = Some((Instant::now(), page.clone()));
        page
    }

    pub(super) async fn handle_sign_in(
        &self,
        step: SignInStep,
        request: &Request<Incoming>,
        exchange: Exchange<'_>,
        permit: &mut Option<Permit<Owner>>,
    ) -> Reply {
        let page = self.sign_in_page(exchange).await;
        if page.is_empty() {
            return self.problem(&Problem::unknown_path());
        }
        let acquired = match step {
            SignInStep::End => return sign_out_reply(&page, request.headers()),
            SignInStep::Start | SignInStep::Finish => {
                self.admit_request(Owner::anonymous(exchange.peer))
            }
        };
        let query = request.uri().query().unwrap_or_default();
        let stepping = async {
            *permit = Some(acquired?);
            if step == SignInStep::Start {
                self.start_sign_in(&page, query, exchange).await
            } else {
                self.finish_sign_in(&page, query, request.headers(), exchange)
                    .await
            }
        };
        let stepped = tokio::time::timeout_at(exchange.deadline, stepping).await;
        let stepped = stepped.unwrap_or_else(|_elapsed| Err(Problem::deadline_exceeded()));
        stepped.unwrap_or_else(|problem| error_page(&problem, Entry::SignIn("/".to_owned())))
    }

    async fn start_sign_in(
        &self,
        page: &str,
        query: &str,
        exchange: Exchange<'_>,
    ) -> Result<Reply, Problem> {
        let begun = self.call_sign_in_service("StartSignIn", &StartSignInRequest {}, exchange);
        let begun: StartSignInResponse = begun.await?;
        let state = SignInState {
            state: begun.state,
            verifier: begun.verifier,
            to: safe_redirect_path(&query_parameter(query, "to")),
        };
        let cookie =
            Cookie::SignInState.set_cookie(page, &state.encode(), limits::SIGN_IN_SECONDS.into());
        redirect_reply(&begun.address, [cookie])
    }

    async fn finish_sign_in(
        &self,
        page: &str,
        query: &str,
        headers: &HeaderMap,
        exchange: Exchange<'_>,
    ) -> Result<Reply, Problem> {
        let state = Cookie::SignInState
            .read(page, headers)
            .and_then(SignInState::read);
        let state = state.filter(|state| state.state == query_parameter(query, "state"));
        let Some(state) = state else {
            let why = "this sign-in started in another browser, or took more than ten minutes";
            return Err(Problem::new(Code::Unauthenticated, why));
        };
        let error = query_parameter(query, "error");
        if !error.is_empty() {
            let why = match error.as_str() {
                "access_denied" => "the provider declined the sign-in".to_owned(),
                _ => format!("the provider refused: {error}"),
            };
            return Err(Problem::new(Code::Unauthenticated, why));
        }
        let request = FinishSignInRequest {
            code: query_parameter(query, "code"),
            verifier: state.verifier,
            state: state.state,
        };
        let ended = self.call_sign_in_service("FinishSignIn", &request, exchange);
        let FinishSignInResponse { token, end_time } = ended.await?;
        if token.len() > limits::SESSION_BYTES {
            let why = format!(
                "the provider's token is {} bytes, but a browser stores at most {}; reduce its \
                 claims",
                token.len(),
                limits::SESSION_BYTES
            );
            return Err(Problem::new(Code::FailedPrecondition, why));
        }
        let left_ms = end_time.saturating_sub(Timestamp::now().as_millisecond());
        let cookies = [
            Cookie::Session.set_cookie(page, &token, left_ms / 1000),
            Cookie::SignInState.set_cookie(page, "", 0),
        ];
        redirect_reply(&state.to, cookies)
    }

    async fn call_sign_in_service<T: Message + Default>(
        &self,
        method: &str,
        request: &impl Message,
        exchange: Exchange<'_>,
    ) -> Result<T, Problem> {
        let metadata = headers::request_metadata(&HeaderMap::new(), &exchange);
        let method = format!("SignInService/{method}");
        let (_, answer) = self
            .call_service(&method, request, metadata, exchange)
            .await?;
        T::decode(answer).map_err(|_unreadable| Problem::internal())
    }
}

/// Returns the path if it is the path of a page, otherwise `/`, to prevent open redirects.
fn safe_redirect_path(path: &str) -> String {
    let is_page =
        LinkedPage::find(path).is_some() && path.bytes().all(|byte| byte.is_ascii_graphic());
    let path = if is_page { path } else { "/" };
    path.to_owned()
}

fn query_parameter(query: &str, name: &str) -> String {
    let found = form_pairs(query.as_bytes()).find(|(found, _)| found == name);
    found.map(|(_, value)| value).unwrap_or_default()
}

/// Signs out; only from a page of the same origin.
fn sign_out_reply(page: &str, headers: &HeaderMap) -> Reply {
    let left = if is_same_origin(headers) {
        redirect_reply("/", [Cookie::Session.set_cookie(page, "", 0)])
    } else {
        let why = "the form was submitted from another page";
        Err(Problem::new(Code::PermissionDenied, why))
    };
    left.unwrap_or_else(|problem| error_page(&problem, Entry::Key))
}

fn redirect_reply(
    address: &str,
    cookies: impl IntoIterator<Item = String>,
) -> Result<Reply, Problem> {
    let value = |text: &str| HeaderValue::try_from(text).map_err(|_unfit| Problem::internal());
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, value(address)?);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let no_referrer = HeaderValue::from_static("no-referrer");
    headers.insert(header::REFERRER_POLICY, no_referrer);
    for cookie in cookies {
        let mut cookie = value(&cookie)?;
        cookie.set_sensitive(true);
        headers.append(header::SET_COOKIE, cookie);
    }
    Ok(Reply::without_body(StatusCode::SEE_OTHER, headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_target_is_limited_to_own_pages() {
        for (path, expected) in [
            ("/events/abc=:1", "/events/abc=:1"),
            ("/", "/"),
            ("", "/"),
            ("//evil.example.net", "/"),
            ("https://evil.example.net", "/"),
            ("/events/a\r\nset-cookie: x=y", "/"),
            ("/docs", "/"),
        ] {
            assert_eq!(safe_redirect_path(path), expected, "{path}");
        }
    }

    #[test]
    fn sign_in_cookie_round_trips() {
        let state = SignInState {
            state: "s-_".to_owned(),
            verifier: "v".to_owned(),
            to: "/events/a;b=:1".to_owned(),
        };
        let cookie = Cookie::SignInState.set_cookie("https://a.example.net", &state.encode(), 600);
        let pair = cookie.split(';').next().unwrap();
        assert_eq!(
            pair,
            "__Host-bellwether-sign-in=s-_.v.%2Fevents%2Fa%3Bb%3D%3A1"
        );
        assert!(
            cookie.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"),
            "{cookie}"
        );
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, format!("x=y; {pair}").parse().unwrap());
        let read = |page: &str| {
            Cookie::SignInState
                .read(page, &headers)
                .and_then(SignInState::read)
        };
        assert_eq!(read("https://a.example.net"), Some(state));
        assert_eq!(read("http://127.0.0.1:8480"), None);
    }
}
