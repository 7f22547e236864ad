//! Who is on call, and what waits for an answer: from schedules and responses as they were read.

use super::Model;
use crate::{
    data::{Kind, Object},
    document::{Link, duration},
    kind::response,
    route::Route,
    theme::Token,
};

impl Model {
    /// The responses that no one answered, the most urgent first.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &Object> {
        let all = self.store.responses_by_urgency();
        all.take(self.store.unanswered)
    }

    /// The response about an occurrence that is under way, the most urgent of several.
    pub(crate) fn response_to(&self, occurrence: &str) -> Option<&Object> {
        let at = self.store.responses.get(occurrence)?;
        self.store.of(Kind::Response).rows().get(*at)
    }

    /// Who has a response, and what comes next: `ben until 08:00:00 · step 2 in 3 min`.
    pub(crate) fn stands(&self, response: &Object) -> (Token, String) {
        let (token, word) = response::state(response);
        let who = response::who(response);
        let words = match word {
            "responded" => match response.moment("acknowledgedUntilTime") {
                Some(ms) => format!("{who} responds until {}", self.moment(ms)),
                None => format!("{who} responds"),
            },
            "unanswered" if who.is_empty() => "no one responded".to_owned(),
            "unanswered" => format!("no one responded · {who} was notified last"),
            "held" if who.is_empty() => "held".to_owned(),
            "held" => format!("{who} · held"),
            _ => {
                let who = match (who.as_str(), self.shift_end(response)) {
                    ("", _) => "no one notified".to_owned(),
                    (who, Some(ms)) => format!("{who} until {}", self.moment(ms)),
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

    /// `step 2 in 3 min`; none where no step follows.
    fn next_step(&self, response: &Object) -> Option<String> {
        let due = response.moment("nextStepTime")?;
        let number = |field| response.number(field).unwrap_or_default();
        let what = if number("step") < number("stepCount") {
            format!("step {}", number("step") + 1)
        } else {
            format!("round {}", number("round") + 1)
        };
        Some(match due - self.now_ms {
            ..=0 => format!("{what} is due"),
            // Whole seconds, up: what is shown is never over before its time.
            left => format!("{what} in {}", duration((left + 999) / 1_000 * 1_000)),
        })
    }

    /// Until when the schedule has the contact that was notified last.
    fn shift_end(&self, response: &Object) -> Option<i64> {
        let last = response::notified(response).last()?;
        let schedule = last["scheduleName"].as_str()?;
        let contact = last["contactName"].as_str()?;
        let schedule = self.store.object(Kind::Schedule, schedule)?;
        let is_on_call = schedule.texts("onCallNames").any(|it| it == contact);
        schedule
            .moment("nextChangeTime")
            .filter(|end| is_on_call && *end > self.now_ms)
    }

    /// Whether what is on the screen counts down to a step.
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

    /// The resource of a kind that is selected, shown or under the cursor.
    pub(crate) fn chosen(&self, kind: Kind) -> Option<String> {
        match (&self.page.route, self.linked()) {
            (Route::OnCall, Some(Link::Go(Route::Object(linked, name)))) if linked == kind => {
                Some(name)
            }
            (route, _) if route.kind() == Some(kind) => self.resource_name(),
            _ => None,
        }
    }
}
