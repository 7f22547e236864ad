//! Which pages of other origins may call, as browsers ask.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

/// How long a browser may remember that it may call, in seconds.
const REMEMBERED_SECONDS: &str = "3600";

/// The origins whose pages may call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origins {
    /// None but the service's own.
    #[default]
    None,
    /// All: a key travels in a header and never in a cookie, so a page has to bring one.
    All,
    /// These, such as `https://console.example.net`.
    These(Vec<String>),
}

/// What pages of other origins may ask for. Nothing is reported to who names no origin.
#[derive(Debug, Clone)]
pub struct Cors {
    origins: Origins,
    methods: HeaderValue,
    taken: HeaderValue,
    shown: HeaderValue,
}

impl Cors {
    /// Pages of these origins may call with these methods, send the headers `taken`, and read the
    /// headers `shown`; each a list separated by commas.
    pub fn new(
        origins: Origins,
        methods: &'static str,
        taken: &'static str,
        shown: &'static str,
    ) -> Self {
        Self {
            origins,
            methods: HeaderValue::from_static(methods),
            taken: HeaderValue::from_static(taken),
            shown: HeaderValue::from_static(shown),
        }
    }

    /// The answer to a browser that asks whether a page may call; none when that is not what is
    /// asked, or nothing is exposed to other origins.
    pub fn preflight(&self, method: &Method, asked: &HeaderMap) -> Option<(StatusCode, HeaderMap)> {
        let is_preflight = *method == Method::OPTIONS
            && asked.contains_key(header::ORIGIN)
            && asked.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !is_preflight || self.origins == Origins::None {
            return None;
        }
        let mut headers = HeaderMap::new();
        if self.allow(asked, &mut headers) {
            headers.remove(header::ACCESS_CONTROL_EXPOSE_HEADERS);
            let remembered = HeaderValue::from_static(REMEMBERED_SECONDS);
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, self.methods.clone());
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, self.taken.clone());
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, remembered);
        }
        Some((StatusCode::NO_CONTENT, headers))
    }

    /// Says in an answer that the page which asked may read it; whether it may.
    pub fn allow(&self, asked: &HeaderMap, answer: &mut HeaderMap) -> bool {
        let Some(origin) = asked.get(header::ORIGIN) else {
            return false;
        };
        let allowed = match &self.origins {
            Origins::None => return false,
            Origins::All => HeaderValue::from_static("*"),
            Origins::These(origins) => {
                // What is answered depends on who asked.
                answer.append(header::VARY, HeaderValue::from_static("origin"));
                let is_same = |one: &String| one.as_bytes().eq_ignore_ascii_case(origin.as_bytes());
                if !origins.iter().any(is_same) {
                    return false;
                }
                origin.clone()
            }
        };
        answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        answer.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, self.shown.clone());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(origin: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ORIGIN, origin.parse().unwrap());
        headers.insert(
            header::ACCESS_CONTROL_REQUEST_METHOD,
            "POST".parse().unwrap(),
        );
        headers
    }

    fn cors(origins: Origins) -> Cors {
        Cors::new(origins, "GET, POST", "authorization", "etag")
    }

    #[test]
    fn only_pages_of_the_origins_that_are_named_may_call() {
        let these = cors(Origins::These(vec!["https://a.example".into()]));
        let (status, answer) = these
            .preflight(&Method::OPTIONS, &asked("https://a.example"))
            .unwrap();
        assert_eq!(status, 204);
        assert_eq!(answer["access-control-allow-origin"], "https://a.example");
        assert_eq!(answer["access-control-allow-headers"], "authorization");
        assert_eq!(answer["vary"], "origin");
        let (_, other) = these
            .preflight(&Method::OPTIONS, &asked("https://b.example"))
            .unwrap();
        assert!(
            !other.contains_key("access-control-allow-origin"),
            "{other:?}"
        );
        assert!(
            these
                .preflight(&Method::POST, &asked("https://a.example"))
                .is_none()
        );
        let mut answer = HeaderMap::new();
        assert!(!these.allow(&HeaderMap::new(), &mut answer));
        assert!(answer.is_empty());
        assert!(
            cors(Origins::None)
                .preflight(&Method::OPTIONS, &asked("https://a.example"))
                .is_none()
        );
        assert!(cors(Origins::All).allow(&asked("null"), &mut answer));
        assert_eq!(answer["access-control-expose-headers"], "etag");
    }
}
