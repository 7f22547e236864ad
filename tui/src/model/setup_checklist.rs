//! The steps of setting up a new service until its first message is delivered.

use bellwether_proto::v1::GetOverviewResponse;

use super::Model;
use crate::{
    data::{Kind, millis},
    route::Route,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetupStep {
    Destination,
    Event,
    Trigger,
    Rule,
    Enable,
    Delivered,
}

/// Age up to which a service counts as new; afterwards, an enabled rule is enough.
const NEW_MS: i64 = 24 * 3_600_000;

impl SetupStep {
    const ALL: [Self; 6] = [
        Self::Destination,
        Self::Event,
        Self::Trigger,
        Self::Rule,
        Self::Enable,
        Self::Delivered,
    ];

    /// Returns the description, with actions for [`Model::expand_keys`].
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Destination => "Add a destination for messages (‹form_test› tests it)",
            Self::Event => "Send an event (‹go_events› shows how)",
            Self::Trigger => {
                "Add a trigger for events that matter (‹trigger_from_event› on an event)"
            }
            Self::Rule => "Add a rule to notify people (‹form_test› previews it)",
            Self::Enable => "Enable the rule (‹toggle› in Rules)",
            Self::Delivered => {
                "Send an event that the rule matches, until a message is delivered (‹go_deliveries›)"
            }
        }
    }

    fn next(self) -> &'static str {
        match self {
            Self::Destination => "next: a destination (‹go_destinations›, ‹new›)",
            Self::Event => "next: send an event (‹go_events› shows how)",
            Self::Trigger => "next: a trigger (‹trigger_from_event› on an event, ‹go_events›)",
            Self::Rule => "next: a rule (‹go_rules›, ‹new›)",
            Self::Enable => "next: ‹toggle› enables it",
            Self::Delivered => {
                "next: send an event that it matches (‹go_deliveries› shows the message)"
            }
        }
    }

    fn from_route(route: &Route) -> Option<Self> {
        match route {
            Route::Object(Kind::Destination, _) => Some(Self::Destination),
            Route::Object(Kind::Trigger, _) => Some(Self::Trigger),
            Route::Object(Kind::Rule, _) => Some(Self::Rule),
            _ => None,
        }
    }
}

/// Whether any event was received: one is open, or arrived in the last hour.
fn has_seen_events(overview: &GetOverviewResponse) -> bool {
    let open = overview.open_by_severity.values();
    open.chain(&overview.events_per_minute)
        .any(|count| *count > 0)
}

/// Whether a message other than a test was delivered recently.
fn has_delivered(overview: &GetOverviewResponse) -> bool {
    let mut all = overview.destinations.iter();
    all.any(|one| one.delivered_count > Some(0))
}

impl Model {
    /// Returns the steps, and whether each is done; `None` if all steps are done, or if the state
    /// is unknown.
    pub(crate) fn first_steps(&self) -> Option<[(SetupStep, bool); 6]> {
        let overview = self.store.overview.value.as_ref()?;
        let store = &self.store;
        let has =
            |count: Option<i32>, kind| count > Some(0) || !store.resources(kind).rows().is_empty();
        let steps = SetupStep::ALL.map(|step| {
            let done = match step {
                SetupStep::Destination => has(overview.destination_count, Kind::Destination),
                SetupStep::Event => has_seen_events(overview) || store.events.len() > 0,
                SetupStep::Trigger => has(overview.trigger_count, Kind::Trigger),
                SetupStep::Rule => has(overview.rule_count, Kind::Rule),
                SetupStep::Enable => {
                    let mut rules = store.resources(Kind::Rule).rows().iter();
                    overview.enabled_rule_count > Some(0) || rules.any(|it| it.flag("enabled"))
                }
                SetupStep::Delivered => has_delivered(overview),
            };
            (step, done)
        });
        // If a rule is enabled, a day without messages does not restart the setup.
        let [.., (_, is_enabled), (_, is_delivered)] = steps;
        let since = millis(overview.counted_since_time.as_ref());
        let is_new = since.is_some_and(|ms| self.now_ms.saturating_sub(ms) < NEW_MS);
        let is_at_work = is_enabled && (is_delivered || !is_new);
        (!is_at_work).then_some(steps)
    }

    pub(crate) fn show_next_step(&mut self, stored: Option<&Route>) {
        let Some(done) = stored.and_then(SetupStep::from_route) else {
            return;
        };
        let steps = self.first_steps().into_iter().flatten();
        let mut open = steps.filter(|(step, is_done)| !is_done && *step != done);
        if let (Some((next, _)), Some(notice)) = (open.next(), &self.notice) {
            let message = format!("{}; {}", notice.text, self.expand_keys(next.next()));
            self.show_notice(notice.token, message);
        }
    }
}
