//! What a browser keeps for the pages: a token in permit of a key.

use http::{HeaderMap, header};

/// The token of who signed in at that page, if a user did.
pub(super) fn token<'h>(page: &str, headers: &'h HeaderMap) -> Option<&'h str> {
    Cookie::Session.read(page, headers)
}

/// Whether a browser says that the request comes from one of these pages. All do, where pages are
/// fetched by TLS or from this machine; the origin is hidden, since addresses stand for keys.
pub(super) fn is_of_this_page(headers: &HeaderMap) -> bool {
    headers
        .get("sec-fetch-site")
        .is_some_and(|site| site == "same-origin")
}

/// What a browser keeps for the pages.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cookie {
    /// Who signed in.
    Session,
    /// A sign-in under way.
    Away,
}

impl Cookie {
    /// Its name. Browsers take one with that prefix by TLS alone, and from no other host.
    fn name(self, page: &str) -> &'static str {
        match (self, page.starts_with("https:")) {
            (Self::Session, true) => "__Host-bellwether",
            (Self::Session, false) => "bellwether",
            (Self::Away, true) => "__Host-bellwether-sign-in",
            (Self::Away, false) => "bellwether-sign-in",
        }
    }

    /// What it holds; none without one.
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

    /// The header that has a browser keep it for so long, or forget it.
    pub(super) fn kept(self, page: &str, value: &str, seconds: i64) -> String {
        let secure = if page.starts_with("https:") {
            "; Secure"
        } else {
            ""
        };
        // It has to come along when the provider sends the browser back.
        format!(
            "{}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}",
            self.name(page),
            seconds.max(0)
        )
    }
}
