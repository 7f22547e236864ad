//! On-call state and unanswered responses, derived from the schedules and responses read.

use super::Model;
use crate::{
    data::{Kind, Object, Screen},
    document::{Link, format_duration},
    kind::response::{self, NotifiedReceiver, Progress},
    route::Route,
    text,
    theme::Token,
};

impl Model {
    pub(crate) fn unanswered_responses(&self) -> impl Iterator<Item = &Object> {
        let all = self.store.responses_by_urgency();
        all.take(self.store.unanswered)
    }

    pub(crate) fn response_for_event(&self, occurrence: &str) -> Option<&Object> {
        let at = self.store.responses.get(occurrence)?;
        self.store.resources(Kind::Response).rows().get(*at)
    }

    /// Formats who is notified now and what happens next: `ben ✓ · ana in 3 min`.
    pub(crate) fn response_status(&self, response: &Object) -> (Token, String) {
        let (token, now) = self.describe_current_step(response);
        match self.describe_next_step(response) {
            next if next.is_empty() => (token, now),
            next => (token, format!("{now} · {next}")),
        }
    }

    /// Formats the receivers notified now, with the state of each message, or the contact that
    /// responds.
    pub(crate) fn describe_current_step(&self, response: &Object) -> (Token, String) {
        let (token, word) = response::state(response);
        let who = response::responder(response);
        match word {
            "responded" => (token, format!("{who} responds")),
            "ended" => (token, "ended".to_owned()),
            _ if who.is_empty() => (token, "no one notified".to_owned()),
            _ => {
                let reached = response::notified_in_latest_step(response);
                let is_failed = |it: &NotifiedReceiver| it.progress == Progress::Failed;
                let is_lost = reached.iter().all(is_failed);
                let token = if is_lost { Token::Bad } else { token };
                let each = reached.iter().map(|it| self.describe_reached(it));
                (token, each.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Formats a receiver: `ana ✓`, `ben ✗ refused` or `cleo ◐ retries 12:30:00`.
    fn describe_reached(&self, reached: &NotifiedReceiver) -> String {
        let next = reached.next_attempt_ms.filter(|ms| *ms > self.now_ms);
        let retry = next.map(|ms| self.format_time(ms));
        let why = match (reached.progress, retry) {
            (Progress::Failed, _) => text::shorten_error(&reached.cause),
            (Progress::Waiting, Some(at)) if reached.cause.is_empty() => {
                format!("waits until {at}")
            }
            (Progress::Waiting, Some(at)) => {
                format!("{}, retries {at}", text::shorten_error(&reached.cause))
            }
            _ => String::new(),
        };
        let words = [reached.name.as_str(), reached.progress.symbol(), &why];
        let words = words.into_iter().filter(|it| !it.is_empty());
        words.collect::<Vec<_>>().join(" ")
    }

    /// Formats the next step and its time: `ben in 3 min`, or `given up in 4 min → no one`.
    pub(crate) fn describe_next_step(&self, response: &Object) -> String {
        if let Some(ms) = response.timestamp_ms("acknowledgedUntilTime") {
            return format!("pages again {}", self.format_time(ms));
        }
        match response::state(response).1 {
            "held" => return "held".to_owned(),
            "unanswered" => return "no one responded".to_owned(),
            _ => {}
        }
        let Some(due) = response.timestamp_ms("nextStepTime") else {
            return String::new();
        };
        let when = match due - self.now_ms {
            ..=0 => "now".to_owned(),
            // Rounds up to whole seconds, so that the countdown does not end too early.
            left => format!("in {}", format_duration((left + 999) / 1_000 * 1_000)),
        };
        let number = |field| response.number(field).unwrap_or_default();
        let names = response::next_names(response).join(", ");
        let follows = number("step") < number("stepCount");
        match (follows, number("roundsLeft")) {
            (false, ..=0) => {
                let policy = self.store.object(Kind::Policy, response.text("policyName"));
                let stated = policy.map(|it| it.text("fallbackDestinationName"));
                let fallback = match (names.as_str(), stated) {
                    ("", None) => String::new(),
                    ("", Some("")) => " → no one".to_owned(),
                    ("", Some(name)) | (name, _) => format!(" → fallback: {name}"),
                };
                format!("given up {when}{fallback}")
            }
            _ if !names.is_empty() => format!("{names} {when}"),
            (true, _) => format!("step {} {when}", number("step") + 1),
            (false, _) => {
                let (round, count) = response::current_round(response);
                format!("round {} of {count} {when}", round + 1)
            }
        }
    }

    pub(crate) fn has_countdown(&self) -> bool {
        match &self.page.route {
            Route::Screen(Screen::OnCall | Screen::Overview)
            | Route::List(Kind::Response)
            | Route::Object(Kind::Response, _) => self.store.unanswered > 0,
            Route::Event(_) => {
                let shown = self.shown_occurrence();
                let response = shown.and_then(|it| self.response_for_event(&it.id));
                response.is_some_and(|it| it.text("state") == "ACTIVE")
            }
            _ => false,
        }
    }

    pub(crate) fn target_name(&self, kind: Kind) -> Option<String> {
        match (&self.page.route, self.link_at_cursor()) {
            (Route::Screen(Screen::OnCall), Some(Link::Go(Route::Object(linked, name))))
                if linked == kind =>
            {
                Some(name)
            }
            (route, _) if route.kind() == Some(kind) => self.resource_name(),
            _ => None,
        }
    }
}
