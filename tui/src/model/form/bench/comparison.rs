//! Comparison of two tests, apart from ids and times.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::v1::RequestTranscript;
use jiff::Timestamp;
use serde_json::Value;

use super::FormTest;

/// Headers that differ for each request.
const VOLATILE_HEADERS: [&str; 5] = [
    "idempotency-key",
    "traceparent",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];
const DAY_MS: i64 = 86_400_000;
/// Maximum number of differing values of a body that are named individually.
const NAMED_VALUES: usize = 3;
const PLACEHOLDER: &str = "…";

/// The differences between a test and the previous one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) request: Vec<Difference>,
    pub(crate) has_same_response: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The part that differs, such as `URL` or `header x-env`.
    pub(crate) part: String,
    pub(crate) was: String,
    pub(crate) is: String,
}

impl FormTest {
    pub(crate) fn compare(&self, before: &Self) -> Comparison {
        let [was, is] = [before, self].map(SentRequest::from_test);
        let mut request = Vec::new();
        let mut add = |part: &str, was: &str, is: &str| {
            if mask_volatile(was, before.at_ms) != mask_volatile(is, self.at_ms) {
                request.push(Difference {
                    part: part.to_owned(),
                    was: was.to_owned(),
                    is: is.to_owned(),
                });
            }
        };
        add("method", &was.request.method, &is.request.method);
        add("URL", &was.request.url, &is.request.url);
        for (part, [was, is]) in pair_values(headers(&was.request), headers(&is.request)) {
            add(&part, &was, &is);
        }
        for (part, [was, is]) in pair_values(values(&was.request.body), values(&is.request.body)) {
            add(&part, &was, &is);
        }
        let has_same_response = before.status() == self.status()
            && mask_volatile(&was.response, before.at_ms)
                == mask_volatile(&is.response, self.at_ms);
        Comparison {
            request,
            has_same_response,
        }
    }
}

impl Comparison {
    /// Formats the differences in one line, compared with the test of this number.
    pub(crate) fn summary(&self, before: usize) -> String {
        let response = if self.has_same_response {
            "same response"
        } else {
            "different response"
        };
        if self.request.is_empty() {
            return if self.has_same_response {
                format!("same request and response as test {before}")
            } else {
                format!("same request as test {before}, {response}")
            };
        }
        let (body, other): (Vec<_>, Vec<_>) = { self.request.iter() }
            .map(|it| it.part.as_str())
            .partition(|part| part.starts_with("body"));
        let mut parts: Vec<String> = other.into_iter().map(str::to_owned).collect();
        if body.len() > NAMED_VALUES {
            parts.push(format!("{} body values", body.len()));
        } else {
            parts.extend(body.into_iter().map(str::to_owned));
        }
        format!(
            "differs from test {before}: {}; {response}",
            parts.join(", ")
        )
    }
}

#[derive(Default)]
struct SentRequest {
    request: RequestTranscript,
    response: String,
}

impl SentRequest {
    fn from_test(test: &FormTest) -> Self {
        let Ok(test) = &test.result else {
            return Self::default();
        };
        Self {
            request: test.request.clone().unwrap_or_default(),
            response: test.response.clone().unwrap_or_default().body,
        }
    }
}

fn pair_values(
    mut was: BTreeMap<String, String>,
    mut is: BTreeMap<String, String>,
) -> impl Iterator<Item = (String, [String; 2])> {
    let parts: BTreeSet<String> = was.keys().chain(is.keys()).cloned().collect();
    parts.into_iter().map(move |part| {
        let pair = [&mut was, &mut is].map(|it| it.remove(&part).unwrap_or_default());
        (part, pair)
    })
}

fn headers(request: &RequestTranscript) -> BTreeMap<String, String> {
    let headers = request.headers.iter();
    let headers = headers.filter(|(name, _)| !VOLATILE_HEADERS.contains(&name.as_str()));
    headers
        .map(|(name, value)| (format!("header {name}"), value.clone()))
        .collect()
}

/// Returns the values of a JSON body by their paths; the whole text of any other body.
fn values(body: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    match serde_json::from_str::<Value>(body) {
        Ok(json) => collect_values("body", &json, &mut found),
        Err(_) => drop(found.insert("body".to_owned(), body.to_owned())),
    }
    found
}

fn collect_values(path: &str, json: &Value, into: &mut BTreeMap<String, String>) {
    let step = |key: &str| match path {
        "body" => format!("body {key}"),
        path => format!("{path}.{key}"),
    };
    match json {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                collect_values(&step(key), value, into);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, value) in items.iter().enumerate() {
                collect_values(&step(&at.to_string()), value, into);
            }
        }
        value => drop(into.insert(path.to_owned(), value.to_string())),
    }
}

/// Replaces generated ids, and times within a day of the test.
fn mask_volatile(text: &str, at_ms: i64) -> String {
    let is_in_word = |char: char| char.is_ascii_alphanumeric() || "-:.+".contains(char);
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let inside = is_in_word(first);
        let end = rest.find(|char| is_in_word(char) != inside);
        let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
        let is_volatile = inside && (is_ulid(run) || is_uuid(run) || is_time(run, at_ms));
        masked.push_str(if is_volatile { PLACEHOLDER } else { run });
        rest = after;
    }
    masked
}

fn is_ulid(word: &str) -> bool {
    let is_digit =
        |char: char| char.is_ascii_digit() || char.is_ascii_uppercase() && !"ILOU".contains(char);
    word.len() == 26
        && word.starts_with(|char| ('0'..='7').contains(&char))
        && word.chars().all(is_digit)
}

fn is_uuid(word: &str) -> bool {
    let lengths = word.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12])
        && word
            .chars()
            .all(|char| char == '-' || char.is_ascii_hexdigit())
}

fn is_time(word: &str, at_ms: i64) -> bool {
    if let Ok(number) = word.parse::<i64>() {
        let is_near = |ms: i64| (ms - at_ms).abs() < DAY_MS;
        return is_near(number) || number.checked_mul(1_000).is_some_and(is_near);
    }
    word.parse::<Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use bellwether_proto::v1::{ResponseTranscript, TestDestinationResponse};

    use super::*;

    const AT_MS: i64 = 1_795_827_424_000;

    fn test(url: &str, body: &str, response: &str) -> FormTest {
        let request = RequestTranscript {
            method: "POST".to_owned(),
            url: url.to_owned(),
            headers: [
                ("webhook-id".to_owned(), body.len().to_string()),
                ("x-env".to_owned(), "prod".to_owned()),
            ]
            .into(),
            body: body.to_owned(),
        };
        let response = ResponseTranscript {
            status: 200,
            body: response.to_owned(),
            ..ResponseTranscript::default()
        };
        FormTest {
            at_ms: AT_MS,
            version: 0,
            result: Ok(TestDestinationResponse {
                request: Some(request),
                response: Some(response),
                ..TestDestinationResponse::default()
            }),
        }
    }

    #[test]
    fn ids_and_times_do_not_count_as_differences() {
        let one = r#"{"id":"01M8FTFPRCX24MNRXX3EBT5Y7H","timestamp":"2026-11-28T00:56:21.304Z","at":1795827424}"#;
        let two = r#"{"id":"01M8FTED1RGJ2W1DZ12AJM8BTM","timestamp":"2026-11-28T00:57:12.004Z","at":1795827475}"#;
        let compared = test("http://x/a", two, "ok at 1795827475123").compare(&test(
            "http://x/a",
            one,
            "ok at 1795827424123",
        ));
        assert_eq!(compared.summary(1), "same request and response as test 1");
    }

    #[test]
    fn differing_parts_are_named() {
        let summary = |one: FormTest, two: FormTest| two.compare(&one).summary(2);
        assert_eq!(
            summary(
                test("http://x/401", "{}", "no"),
                test("http://x/200", "{}", "ok")
            ),
            "differs from test 2: URL; different response"
        );
        let (one, two) = (
            r#"{"event":{"count":1,"list":[1]}}"#,
            r#"{"event":{"count":2,"list":[1]}}"#,
        );
        assert_eq!(
            summary(test("x", one, ""), test("x", two, "")),
            "differs from test 2: body event.count; same response"
        );
        let two = r#"{"a":1,"b":2,"c":3}"#;
        assert_eq!(
            summary(test("x", one, ""), test("x", two, "")),
            "differs from test 2: 5 body values; same response"
        );
        assert_eq!(
            summary(test("x", "plain", ""), test("x", "other", "changed")),
            "differs from test 2: body; different response"
        );
    }
}
