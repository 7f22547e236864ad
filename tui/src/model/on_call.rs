//! On-call state and unanswered responses, derived from the schedules and responses read.

use super::Model;
use crate::{
    data::{Kind, Object},
    document::{Link, duration},
    kind::response,
    route::Route,
    theme::Token,
};

impl Model {
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &Object> {
        let all = self.store.responses_by_urgency();
        all.take(self.store.unanswered)
    }

    pub(crate) fn response_to(&self, occurrence: &str) -> Option<&Object> {
        let at = self.store.responses.get(occurrence)?;
        self.store.resources(Kind::Response).rows().get(*at)
    }

    /// Formats the responsible contact and the next step: `ben until 08:00:00 · step 2 in 3 min`.
    pub(crate) fn response_status(&self, response: &Object) -> (Token, String) {
        let (token, word) = response::state(response);
        let who = response::responder(response);
        let words = match word {
            "responded" => match response.timestamp_ms("acknowledgedUntilTime") {
                Some(ms) => format!("{who} responds until {}", self.format_time(ms)),
                None => format!("{who} responds"),
            },
            "unanswered" if who.is_empty() => "no one responded".to_owned(),
            "unanswered" => format!("no one responded · last notified: {who}"),
            "held" if who.is_empty() => "held".to_owned(),
            "held" => format!("{who} · held"),
            _ => {
                let who = match (who.as_str(), self.shift_end(response)) {
                    ("", _) => "no one notified".to_owned(),
                    (who, Some(ms)) => format!("{who} until {}", self.format_time(ms)),
                    (who, None) => who.to_owned(),
                };
                match self.next_step(response) {
                    Some(next) => format!("{who} · {next}"),
                    None => who,
                }
            }
        };
        (token, words)
    }

    fn next_step(&self, response: &Object) -> Option<String> {
        let due = response.timestamp_ms("nextStepTime")?;
        let number = |field| response.number(field).unwrap_or_default();
        let what = if number("step") < number("stepCount") {
            format!("step {}", number("step") + 1)
        } else if number("roundsLeft") > 0 {
            let (round, count) = response::round(response);
            format!("round {} of {count}", round + 1)
        } else {
            "the end of the last round".to_owned()
        };
        Some(match due - self.now_ms {
            ..=0 => format!("{what} is due"),
            // Rounded up to whole seconds, so that the countdown does not end too early.
            left => format!("{what} in {}", duration((left + 999) / 1_000 * 1_000)),
        })
    }

    fn shift_end(&self, response: &Object) -> Option<i64> {
        let last = response::notified_receivers(response).last()?;
        let schedule = last["scheduleName"].as_str()?;
        let contact = last["contactName"].as_str()?;
        let schedule = self.store.object(Kind::Schedule, schedule)?;
        let is_on_call = schedule.texts("onCallNames").any(|it| it == contact);
        schedule
            .timestamp_ms("nextChangeTime")
            .filter(|end| is_on_call && *end > self.now_ms)
    }

    pub(crate) fn has_countdown(&self) -> bool {
        match &self.page.route {
            Route::OnCall | Route::Overview => self.store.unanswered > 0,
            Route::Event(_) => {
                let shown = self.shown_occurrence();
                let response = shown.and_then(|it| self.response_to(&it.id));
                response.is_some_and(|it| it.text("state") == "ACTIVE")
            }
            _ => false,
        }
    }

    pub(crate) fn target_name(&self, kind: Kind) -> Option<String> {
        match (&self.page.route, self.link_at_cursor()) {
            (Route::OnCall, Some(Link::Go(Route::Object(linked, name)))) if linked == kind => {
                Some(name)
            }
            (route, _) if route.kind() == Some(kind) => self.resource_name(),
            _ => None,
        }
    }
}
