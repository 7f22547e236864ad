//! The test bench of a destination form: recent tests with their results and advice, and the state
//! of its display.

mod comparison;

use std::collections::VecDeque;

use bellwether_proto::v1::{Outcome, RequestTranscript, TestDestinationResponse};
use serde_json::Value;

pub(crate) use self::comparison::Comparison;
use super::{Form, Input, LivePreview};
use crate::{
    client::Ticket,
    data::{Failure, Kind, Label, Object, span_ms},
    document::format_duration,
    kind::destination,
    limits,
    model::inquiry::LastingEffect,
};

#[derive(Clone, Debug, Default)]
pub(crate) struct Bench {
    /// Newest first.
    tests: VecDeque<FormTest>,
    /// Number of tests, including those no longer retained.
    pub(crate) total: usize,
    /// Index of the selected test, counted from the newest.
    pub(crate) shown: usize,
    pub(crate) waiting: Option<(Ticket, u64)>,
    /// Id of the stored event to use; empty for the sample.
    pub(crate) event_id: String,
    /// Whether the test bench is shown instead of the form when there is no room for both.
    pub(crate) is_open: bool,
    /// The pane that keys scroll; if there is no room for both panes, the only one shown.
    pub(crate) pane: Pane,
    pub(crate) tab: RequestTab,
    /// Whether the differences from the previous test are shown in full.
    pub(crate) is_unfolded: bool,
    /// First shown line of each pane.
    tops: [usize; 2],
    /// The lasting effect of a test that the operator confirmed.
    pub(crate) confirmed: Option<LastingEffect>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    Response,
    #[default]
    Request,
}

impl Pane {
    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::Response => Self::Request,
            Self::Request => Self::Response,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestTab {
    #[default]
    Body,
    Headers,
    Curl,
}

impl RequestTab {
    pub(crate) const ALL: [Self; 3] = [Self::Body, Self::Headers, Self::Curl];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Headers => "headers",
            Self::Curl => "curl",
        }
    }

    pub(crate) fn next(self) -> Self {
        match self {
            Self::Body => Self::Headers,
            Self::Headers => Self::Curl,
            Self::Curl => Self::Body,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FormTest {
    pub(crate) at_ms: i64,
    version: u64,
    pub(crate) result: Result<TestDestinationResponse, Failure>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LikelyCause {
    /// The field that is probably wrong; empty if unknown.
    path: &'static str,
    pub(crate) words: String,
}

impl FormTest {
    pub(crate) fn was_delivered(&self) -> bool {
        let test = self.result.as_ref();
        test.is_ok_and(|test| test.outcome() == Outcome::Delivered)
    }

    /// Formats the outcome, such as `✓ 200 in 12 ms`.
    pub(crate) fn verdict(&self) -> String {
        let mark = if self.was_delivered() { "✓" } else { "✗" };
        let took = self.result.as_ref().ok();
        let took = took.and_then(|test| test.duration.as_ref()).map(span_ms);
        let took = took.map_or_else(String::new, |ms| format!(" in {}", format_duration(ms)));
        format!("{mark} {}{took}", self.status())
    }

    /// Formats the outcome together with that of the previous test, such as `✓ 401 → 200 in 12 ms`.
    pub(crate) fn verdict_compared_to(&self, before: Option<&Self>) -> String {
        let verdict = self.verdict();
        match before.map(Self::status) {
            Some(was) if was != self.status() => verdict.replacen(' ', &format!(" {was} → "), 1),
            _ => verdict,
        }
    }

    fn status(&self) -> String {
        match &self.result {
            Err(failure) => failure.sentence(),
            Ok(test) => match &test.response {
                Some(response) => response.status.to_string(),
                None => test.outcome().label().to_owned(),
            },
        }
    }

    pub(crate) fn likely_cause(&self, kind: &str) -> Option<LikelyCause> {
        let test = self.result.as_ref().ok()?;
        let said = &test.explanation;
        let status = test.response.as_ref().map(|response| response.status);
        let lead = |path, words: String| Some(LikelyCause { path, words });
        match (test.outcome(), status) {
            (Outcome::Delivered, _) => None,
            (Outcome::Blocked, _) => lead(
                destination::address_field(kind),
                blocked_address_advice(said),
            ),
            (_, Some(401 | 403)) => {
                let words = "the receiver rejected the credentials: check the authentication";
                lead(destination::credential_field(kind), words.to_owned())
            }
            (_, Some(404 | 405 | 410)) => {
                let words = "not found at the receiver: check the URL";
                lead(destination::address_field(kind), words.to_owned())
            }
            (Outcome::Unreachable, None) if said.contains("smtp.host") => {
                let words = "the service has no mail server: ask its operator to set smtp.host; see the topic «smtp»";
                lead("", words.to_owned())
            }
            (Outcome::Unreachable, None) => {
                let words = "cannot reach the receiver: check the address";
                lead(destination::address_field(kind), words.to_owned())
            }
            _ => None,
        }
    }
}

fn blocked_address_advice(said: &str) -> String {
    if said.contains("this service itself listens") {
        return "this is the service's own address: enter a receiver's".to_owned();
    }
    let (_, network) = said.split_once("it is in ").unwrap_or_default();
    let network = network.split_whitespace().next().unwrap_or_default();
    if network.is_empty() {
        return "the service is not allowed to send there; allow it with `egress.allow_names` or `egress.allow` in its settings".to_owned();
    }
    format!(
        "the service is not allowed to send there; in its settings: [egress] allow = [\"{network}\"]"
    )
}

impl Bench {
    pub(crate) fn tests(&self) -> (Option<&FormTest>, Option<&FormTest>) {
        (self.tests.get(self.shown), self.tests.get(self.shown + 1))
    }

    pub(crate) fn count(&self) -> usize {
        self.tests.len()
    }

    /// Returns the number of the selected test, from 1 for the first.
    pub(crate) fn current_number(&self) -> usize {
        self.total.saturating_sub(self.shown)
    }

    /// Selects the next older test; the newest after the oldest.
    pub(crate) fn select_older(&mut self) {
        self.shown = (self.shown + 1) % self.tests.len().max(1);
        self.pane = Pane::Response;
        self.tops = [0; 2];
    }

    pub(crate) fn show_next_tab(&mut self) {
        self.tab = self.tab.next();
        self.tops[Pane::Request as usize] = 0;
    }

    pub(crate) fn has_differences(&self) -> bool {
        match self.tests() {
            (Some(test), Some(before)) => !test.compare(before).request.is_empty(),
            _ => false,
        }
    }

    pub(crate) fn scroll_top(&self, pane: Pane) -> usize {
        self.tops[pane as usize]
    }

    pub(crate) fn set_scroll(&mut self, pane: Pane, top: usize) {
        self.tops[pane as usize] = top;
    }

    /// Returns the time at which the displayed age of the newest test changes.
    pub(crate) fn wake_at_ms(&self, now_ms: i64) -> Option<i64> {
        let age_ms = (now_ms - self.tests.front()?.at_ms).max(0);
        let step = if age_ms < 60_000 { 10_000 } else { 60_000 };
        Some(now_ms + step - age_ms.rem_euclid(step))
    }
}

impl Form {
    pub(crate) fn begin_test(&mut self, ticket: Ticket) {
        self.bench.waiting = Some((ticket, self.version));
        self.bench.pane = Pane::Response;
    }

    /// Records the result of a test, and returns whether the form was waiting for it. On failure,
    /// focuses the field concerned, unless the form has been edited since.
    pub(crate) fn record_test(
        &mut self,
        ticket: Ticket,
        result: Result<TestDestinationResponse, Failure>,
        now_ms: i64,
    ) -> bool {
        let waiting = self.bench.waiting.take_if(|(it, _)| *it == ticket);
        let Some((_, version)) = waiting else {
            return false;
        };
        let test = FormTest {
            at_ms: now_ms,
            version,
            result,
        };
        let lead = test.likely_cause(self.chosen_type());
        self.bench.tests.push_front(test);
        self.bench.tests.truncate(limits::BENCH_TESTS);
        self.bench.total += 1;
        self.bench.shown = 0;
        self.bench.tops = [0; 2];
        if let Some(lead) = lead.filter(|_| self.version == version) {
            self.focus_path(lead.path);
        }
        true
    }

    fn focus_path(&mut self, path: &str) {
        let meant = |at: &usize| self.specs[*at].path == path && self.is_applicable(*at);
        // The address may be in the field for a secret address instead.
        let path_is_empty = |at: usize| self.inputs[at].is_blank();
        let Some(mut at) = (0..self.specs.len()).find(meant) else {
            return;
        };
        if path == "type.webhook.url" && path_is_empty(at) {
            at = (0..self.specs.len())
                .find(|at| self.specs[*at].path == "type.webhook.secretUrl")
                .unwrap_or(at);
        }
        self.expand_section(at);
        if let Input::Section(is_open) = &mut self.inputs[at] {
            *is_open = true;
            // The credential that is filled in, or the most common one.
            let mut filled = self
                .section_fields(at)
                .filter(|it| !self.inputs[*it].is_blank());
            let bearer = |it: &usize| self.specs[*it].path == "type.webhook.auth.bearer.token";
            let usual = || self.section_fields(at).find(bearer);
            at = filled.next().or_else(usual).unwrap_or(at);
        }
        self.focus = at;
    }

    pub(crate) fn has_bench(&self) -> bool {
        self.kind == Kind::Destination
    }

    pub(crate) fn likely_cause(&self) -> Option<LikelyCause> {
        self.bench.tests().0?.likely_cause(self.chosen_type())
    }

    pub(crate) fn is_test_current(&self) -> bool {
        let newest = self.bench.tests.front();
        newest.is_some_and(|test| test.version == self.version)
    }

    /// Formats the age and outcome of the newest test; with `is_short`, the outcome is only a mark.
    pub(crate) fn test_summary(&self, now_ms: i64, is_short: bool) -> Option<String> {
        let newest = self.bench.tests.front()?;
        let verdict = newest.verdict();
        let verdict = match verdict.split_once(' ') {
            Some((mark, _)) if is_short => mark.to_owned(),
            _ => verdict,
        };
        let age_ms = (now_ms - newest.at_ms).max(0);
        let age = match age_ms / 1_000 {
            ..10 => "just now".to_owned(),
            seconds @ 10..60 => format!("{} s ago", seconds / 10 * 10),
            seconds => format!("{} ago", format_duration(seconds / 60 * 60_000)),
        };
        Some(if self.is_test_current() {
            format!("tested {age} {verdict}")
        } else {
            format!("changed since the test ({verdict})")
        })
    }

    /// Returns the request of an earlier test if one is selected; otherwise the one of the newest
    /// test, or the rendered one if the form has been edited since.
    pub(crate) fn request(&self) -> Option<&RequestTranscript> {
        let is_tested = self.bench.shown > 0 || self.is_test_current();
        let tested = self.bench.tests().0.filter(|_| is_tested);
        let tested = tested.and_then(|test| test.result.as_ref().ok()?.request.as_ref());
        match &self.live.made {
            Some(Ok(LivePreview::Request(rendered))) => tested.or(rendered.request.as_ref()),
            _ => tested,
        }
    }

    pub(crate) fn test_fields(&self) -> Value {
        let draft = Object {
            kind: self.kind,
            json: self.to_json(),
        };
        draft.with_only_fields(&["name", "type", "delivery", "templateLanguage"])
    }
}

/// Returns the request as a `curl` command; `None` if it is not HTTP.
pub(crate) fn curl_command(request: &RequestTranscript) -> Option<String> {
    if !request.url.starts_with("http") {
        return None;
    }
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let mut parts = vec![format!(
        "curl -X {} {}",
        request.method,
        quoted(&request.url)
    )];
    let headers = request.headers.iter();
    parts
        .extend(headers.map(|(name, value)| format!("-H {}", quoted(&format!("{name}: {value}")))));
    if !request.body.is_empty() {
        parts.push(format!("--data-raw {}", quoted(&request.body)));
    }
    Some(parts.join(" \\\n  "))
}

#[cfg(test)]
mod tests {
    use bellwether_proto::v1;

    use super::*;

    fn sample_test(outcome: Outcome, status: Option<i32>, said: &str) -> FormTest {
        let response = status.map(|status| v1::ResponseTranscript {
            status,
            ..v1::ResponseTranscript::default()
        });
        FormTest {
            at_ms: 0,
            version: 0,
            result: Ok(TestDestinationResponse {
                outcome: outcome.into(),
                explanation: said.to_owned(),
                response,
                ..TestDestinationResponse::default()
            }),
        }
    }

    #[test]
    fn failure_points_to_the_likely_wrong_field() {
        let rejected = Outcome::Rejected;
        for (found, kind, path, words) in [
            (
                sample_test(rejected, Some(401), ""),
                "webhook",
                "#sign",
                "authentication",
            ),
            (
                sample_test(rejected, Some(403), ""),
                "slack",
                "type.slack.token",
                "credentials",
            ),
            (
                sample_test(rejected, Some(404), ""),
                "webhook",
                "type.webhook.url",
                "URL",
            ),
            (
                sample_test(
                    Outcome::Unreachable,
                    None,
                    "the host name `x` cannot be resolved",
                ),
                "servicenow",
                "type.servicenow.instanceUrl",
                "address",
            ),
            (
                sample_test(
                    Outcome::Unreachable,
                    None,
                    "no mail server is configured: set `smtp.host`",
                ),
                "email",
                "",
                "smtp.host",
            ),
            (
                sample_test(
                    Outcome::Blocked,
                    None,
                    "refuses 10.0.0.9: it is in 10.0.0.0/8 (private network)",
                ),
                "webhook",
                "type.webhook.url",
                "allow = [\"10.0.0.0/8\"]",
            ),
        ] {
            let lead = found.likely_cause(kind).unwrap();
            assert_eq!(lead.path, path);
            assert!(lead.words.contains(words), "{}", lead.words);
        }
        assert_eq!(
            sample_test(Outcome::Delivered, Some(200), "").likely_cause("webhook"),
            None
        );
    }

    #[test]
    fn request_is_copied_as_a_curl_command() {
        let request = RequestTranscript {
            method: "PUT".to_owned(),
            url: "https://x.example/a?b=c".to_owned(),
            headers: [("x-a".to_owned(), "it's".to_owned())].into(),
            body: "{\"a\": 1}".to_owned(),
        };
        let command = curl_command(&request).unwrap();
        let wanted = "curl -X PUT 'https://x.example/a?b=c' \\\n  -H 'x-a: it'\\''s' \\\n  --data-raw '{\"a\": 1}'";
        assert_eq!(command, wanted);
        let mail = RequestTranscript {
            url: "smtp://mail:25".to_owned(),
            ..request
        };
        assert_eq!(curl_command(&mail), None);
    }
}
