//! The steps of setting up a new service until its first message is delivered.

use bellwether_proto::v1::GetOverviewResponse;

use super::Model;
use crate::data::{Kind, Object, to_millis};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetupStep {
    Destination,
    Event,
    Trigger,
    Rule,
    Enable,
    Delivered,
}

/// Age below which a service counts as new. On an older service, the setup is complete once a rule
/// is enabled.
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
            Self::Enable => "next: enable the rule (‹go_rules›, ‹toggle›)",
            Self::Delivered => {
                "next: send an event that the rule matches (‹go_deliveries› shows the message)"
            }
        }
    }

    fn from_kind(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Destination => Some(Self::Destination),
            Kind::Trigger => Some(Self::Trigger),
            Kind::Rule => Some(Self::Rule),
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
    /// Returns the steps, and whether each is done; `None` if the setup is complete or its state is
    /// unknown.
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
        // The setup does not restart after a day without messages if a rule is enabled.
        let [.., (_, is_enabled), (_, is_delivered)] = steps;
        let since = to_millis(overview.counted_since_time.as_ref());
        let is_new = since.is_some_and(|ms| self.now_ms.saturating_sub(ms) < NEW_MS);
        let is_at_work = is_enabled && (is_delivered || !is_new);
        (!is_at_work).then_some(steps)
    }

    /// Adds the next step to the notice about a stored draft. The next step depends on the content
    /// of the draft, because the rows read before do not contain it.
    pub(crate) fn show_next_step(&mut self, stored: &Object) {
        let Some(own) = SetupStep::from_kind(stored.kind) else {
            return;
        };
        let is_rule = own == SetupStep::Rule;
        let is_open = |(step, is_done): &(SetupStep, bool)| match step {
            step if *step == own => false,
            SetupStep::Enable if is_rule => !stored.flag("enabled"),
            _ => !is_done,
        };
        let next = self.first_steps().into_iter().flatten().find(is_open);
        if let (Some((next, _)), Some(notice)) = (next, &self.notice) {
            let words = match next {
                SetupStep::Enable if is_rule => "next: ‹toggle› enables it",
                next => next.next(),
            };
            let message = format!("{}; {}", notice.text, self.expand_keys(words));
            self.show_notice(notice.token, message);
        }
    }
}
