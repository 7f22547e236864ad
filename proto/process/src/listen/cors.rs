//! Cross-origin requests from browsers (CORS).

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

const REMEMBERED_SECONDS: &str = "3600";

/// Origins whose pages may send requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origins {
    #[default]
    None,
    /// All origins. Keys are sent in a header and never in a cookie, so a page must supply one.
    All,
    /// The listed origins, such as `https://console.example.net`.
    These(Vec<String>),
}

/// The CORS policy. Requests without an origin get no CORS headers.
#[derive(Debug, Clone)]
pub struct Cors {
    origins: Origins,
    methods: HeaderValue,
    accepted: HeaderValue,
    shown: HeaderValue,
}

impl Cors {
    /// Allows pages of these origins to use `methods`, send the headers `accepted`, and read the
    /// headers `shown`, each a comma-separated list.
    pub fn new(
        origins: Origins,
        methods: &'static str,
        accepted: &'static str,
        shown: &'static str,
    ) -> Self {
        Self {
            origins,
            methods: HeaderValue::from_static(methods),
            accepted: HeaderValue::from_static(accepted),
            shown: HeaderValue::from_static(shown),
        }
    }

    /// Returns the response to a preflight request; `None` if the request is not a preflight
    /// request, or no other origin is allowed.
    pub fn preflight(
        &self,
        method: &Method,
        request_headers: &HeaderMap,
    ) -> Option<(StatusCode, HeaderMap)> {
        let is_preflight = *method == Method::OPTIONS
            && request_headers.contains_key(header::ORIGIN)
            && request_headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !is_preflight || self.origins == Origins::None {
            return None;
        }
        let mut headers = HeaderMap::new();
        if self.allow_origin(request_headers, &mut headers) {
            headers.remove(header::ACCESS_CONTROL_EXPOSE_HEADERS);
            let remembered = HeaderValue::from_static(REMEMBERED_SECONDS);
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, self.methods.clone());
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, self.accepted.clone());
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, remembered);
        }
        Some((StatusCode::NO_CONTENT, headers))
    }

    /// Adds the headers that allow the requesting page to read a response. Returns whether the page
    /// may read the response.
    pub fn allow_origin(&self, request_headers: &HeaderMap, answer: &mut HeaderMap) -> bool {
        let Some(origin) = request_headers.get(header::ORIGIN) else {
            return false;
        };
        let allowed = match &self.origins {
            Origins::None => return false,
            Origins::All => HeaderValue::from_static("*"),
            Origins::These(origins) => {
                // Caches must not return this response to pages of other origins.
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

    fn request_headers(origin: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ORIGIN, origin.parse().unwrap());
        headers.insert(
            header::ACCESS_CONTROL_REQUEST_METHOD,
            "POST".parse().unwrap(),
        );
        headers
    }

    fn sample_cors(origins: Origins) -> Cors {
        Cors::new(origins, "GET, POST", "authorization", "etag")
    }

    #[test]
    fn only_configured_origins_are_allowed() {
        let these = sample_cors(Origins::These(vec!["https://a.example".into()]));
        let (status, answer) = these
            .preflight(&Method::OPTIONS, &request_headers("https://a.example"))
            .unwrap();
        assert_eq!(status, 204);
        assert_eq!(answer["access-control-allow-origin"], "https://a.example");
        assert_eq!(answer["access-control-allow-headers"], "authorization");
        assert_eq!(answer["vary"], "origin");
        let (_, other) = these
            .preflight(&Method::OPTIONS, &request_headers("https://b.example"))
            .unwrap();
        assert!(
            !other.contains_key("access-control-allow-origin"),
            "{other:?}"
        );
        assert!(
            these
                .preflight(&Method::POST, &request_headers("https://a.example"))
                .is_none()
        );
        let mut answer = HeaderMap::new();
        assert!(!these.allow_origin(&HeaderMap::new(), &mut answer));
        assert!(answer.is_empty());
        assert!(
            sample_cors(Origins::None)
                .preflight(&Method::OPTIONS, &request_headers("https://a.example"))
                .is_none()
        );
        assert!(sample_cors(Origins::All).allow_origin(&request_headers("null"), &mut answer));
        assert_eq!(answer["access-control-expose-headers"], "etag");
    }
}
