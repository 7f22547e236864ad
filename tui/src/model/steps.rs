//! What is still to be done on a new service before a message goes out, in its order.

use super::{Model, page::Route};

/// One step of a new service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Destination,
    Event,
    Trigger,
    Rule,
    Enable,
}

impl Step {
    /// All of them, in order.
    const ALL: [Self; 5] = [
        Self::Destination,
        Self::Event,
        Self::Trigger,
        Self::Rule,
        Self::Enable,
    ];

    /// What it is, with actions for [`Model::tell`].
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Destination => "Add a destination, where messages go (‹form_test› tests it)",
            Self::Event => "Send an event (‹go_events› shows how)",
            Self::Trigger => {
                "Add a trigger, which events matter (‹trigger_from_event› on an event)"
            }
            Self::Rule => "Add a rule, who is told of what (‹form_test› previews it)",
            Self::Enable => "Enable the rule (‹toggle› in Rules), then send it an event",
        }
    }

    /// What to do next, said when the step before is done.
    fn next(self) -> &'static str {
        match self {
            Self::Destination => "next: a destination (‹go_destinations›, ‹new›)",
            Self::Event => "next: send an event (‹go_events› shows how)",
            Self::Trigger => "next: a trigger (‹trigger_from_event› on an event, ‹go_events›)",
            Self::Rule => "next: a rule (‹go_rules›, ‹new›)",
            Self::Enable => "next: ‹toggle› enables it",
        }
    }

    /// The step that storing an object does.
    fn done_by(route: &Route) -> Option<Self> {
        match route {
            Route::Destination(_) => Some(Self::Destination),
            Route::Trigger(_) => Some(Self::Trigger),
            Route::Rule(_) => Some(Self::Rule),
            _ => None,
        }
    }
}

impl Model {
    /// The steps and whether each is done; none when all are, or when that is not known yet.
    pub(crate) fn first_steps(&self) -> Option<[(Step, bool); 5]> {
        let overview = self.store.overview.value.as_ref()?;
        let store = &self.store;
        let steps = Step::ALL.map(|step| {
            let done = match step {
                Step::Destination => {
                    overview.destination_count > 0 || !store.destinations.rows().is_empty()
                }
                Step::Event => overview.has_seen_events() || store.events.len() > 0,
                Step::Trigger => overview.trigger_count > 0 || !store.triggers.rows().is_empty(),
                Step::Rule => overview.rule_count > 0 || !store.rules.rows().is_empty(),
                Step::Enable => {
                    let enabled = store.rules.rows().iter().any(|rule| rule.spec.enabled);
                    overview.enabled_rule_count > 0 || enabled
                }
            };
            (step, done)
        });
        // With a rule at work, an hour without events is no reason to begin anew.
        let [.., (_, is_enabled)] = steps;
        (!is_enabled).then_some(steps)
    }

    /// Says, beside what was just stored, what comes after it on a new service.
    pub(crate) fn say_next_step(&mut self, stored: Option<&Route>) {
        let Some(done) = stored.and_then(Step::done_by) else {
            return;
        };
        let steps = self.first_steps().into_iter().flatten();
        let mut open = steps.filter(|(step, is_done)| !is_done && *step != done);
        if let (Some((next, _)), Some(notice)) = (open.next(), &self.notice) {
            let told = format!("{}; {}", notice.text, self.tell(next.next()));
            self.say(notice.token, told);
        }
    }
}
