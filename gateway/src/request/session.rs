//! Browser sessions: a cookie with a token instead of a key.

use http::{HeaderMap, header};

pub(super) fn session_token<'h>(page: &str, headers: &'h HeaderMap) -> Option<&'h str> {
    Cookie::Session.read(page, headers)
}

/// Whether the browser states that the request is from the same origin. All browsers do so over TLS
/// and on this machine. `Origin` cannot be used: the pages suppress it, because their URLs can be
/// credentials.
pub(super) fn is_same_origin(headers: &HeaderMap) -> bool {
    headers
        .get("sec-fetch-site")
        .is_some_and(|site| site == "same-origin")
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Cookie {
    Session,
    SignInState,
}

impl Cookie {
    /// Returns the cookie's name. Browsers accept the prefix `__Host-` only over TLS, and only from
    /// this host.
    fn name(self, page: &str) -> &'static str {
        match (self, page.starts_with("https:")) {
            (Self::Session, true) => "__Host-bellwether",
            (Self::Session, false) => "bellwether",
            (Self::SignInState, true) => "__Host-bellwether-sign-in",
            (Self::SignInState, false) => "bellwether-sign-in",
        }
    }

    pub(super) fn read<'h>(self, page: &str, headers: &'h HeaderMap) -> Option<&'h str> {
        let name = self.name(page);
        let lines = headers.get_all(header::COOKIE).into_iter();
        let texts = lines.filter_map(|line| line.to_str().ok());
        let mut pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| {
            let (found, value) = pair.trim().split_once('=')?;
            (found == name && !value.is_empty()).then_some(value)
        });
        pairs.next()
    }

    /// Returns the `Set-Cookie` header with a lifetime; 0 deletes the cookie.
    pub(super) fn set_cookie(self, page: &str, value: &str, seconds: i64) -> String {
        let secure = if page.starts_with("https:") {
            "; Secure"
        } else {
            ""
        };
        // `Lax`, so that it is sent when the provider redirects the browser back.
        format!(
            "{}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}",
            self.name(page),
            seconds.max(0)
        )
    }
}
