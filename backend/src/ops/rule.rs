//! Rules: stored, edited and deleted, and never pointing at what is not there.

mod preview;

use std::collections::HashSet;

use crate::{
    domain::{Destination, Name, Rule, Trigger, rule::REPEAT_INTERVAL_SECONDS_DEFAULT},
    error::Error,
    limits::{REPEAT_INTERVAL_SECONDS_MAX, RULE_NAMES_MAX},
    message,
    ops::{
        resource::{Drafted, Origin, Resource, Resources},
        validate::Faults,
    },
    store::{Changes, Stored},
};

pub use preview::{Installation, Preview, Previews};

/// A rule as its author describes it, not checked yet.
#[derive(Debug, Clone, Default)]
pub struct RuleDraft {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Labels.
    pub tags: Vec<String>,
    /// Whether it notifies.
    pub enabled: bool,
    /// The triggers.
    pub trigger_names: Vec<String>,
    /// The destinations.
    pub destination_names: Vec<String>,
    /// The message's template.
    pub message: String,
    /// Whether later matches notify again.
    pub repeat: bool,
    /// Seconds between repeats; none means the default.
    pub repeat_interval: Option<i64>,
    /// Whether changes notify again.
    pub send_updates: bool,
    /// For an update: the etag that must be current; empty asks for no check.
    pub etag: String,
}

/// A rule, and what is known about its use.
#[derive(Debug, Clone)]
pub struct RuleView {
    /// The rule.
    pub rule: Rule,
    /// Its notifications in the last 24 hours.
    pub recent_notifications: usize,
    /// When it notified last, in milliseconds since 1970.
    pub last_notification_ms: Option<i64>,
}

/// Manages rules.
pub type Rules = Resources<Rule>;

impl Drafted for Rule {
    type Draft = RuleDraft;
    type View = RuleView;

    fn named(draft: &RuleDraft) -> (&str, &str) {
        (&draft.name, &draft.etag)
    }

    async fn checked(
        all: &Rules,
        draft: &RuleDraft,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut changes = all.store.changes();
        let mut faults = Faults::default();
        let name = faults.named(&draft.name, stored.is_none());
        faults.texts(&draft.description, &draft.tags);
        faults.extend(message::check_message(&draft.message));
        let repeat_interval_seconds = repeat_interval(draft, &mut faults);
        let triggers = all
            .referred::<Trigger>("triggerNames", &draft.trigger_names, &mut faults)
            .await?;
        let destinations = all
            .referred::<Destination>("destinationNames", &draft.destination_names, &mut faults)
            .await?;
        for trigger in &triggers {
            changes.touch(trigger);
        }
        for destination in &destinations {
            changes.touch(destination);
        }
        let rule = name.map(|name| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            enabled: draft.enabled,
            trigger_names: names(&triggers),
            destination_names: names(&destinations),
            message: draft.message.clone(),
            repeat: draft.repeat,
            repeat_interval_seconds,
            send_updates: draft.send_updates,
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((faults.or(rule)?, changes))
    }

    async fn released(all: &Rules, _rule: &Self, _force: bool) -> Result<Changes, Error> {
        Ok(all.store.changes())
    }

    async fn view(all: &Rules, rule: Self) -> Result<(RuleView, usize), Error> {
        let view = RuleView {
            recent_notifications: all.recent.of_rule(rule.id).await?,
            last_notification_ms: all.recent.last_of_rule(rule.id).await?,
            rule,
        };
        Ok((view, 0))
    }
}

impl Rules {
    /// The resources of those names, without repeats; each name of nothing is a fault.
    async fn referred<T: Resource>(
        &self,
        field: &str,
        texts: &[String],
        faults: &mut Faults,
    ) -> Result<Vec<Stored<T>>, Error> {
        if texts.len() > RULE_NAMES_MAX {
            let count = texts.len();
            faults.add(
                field,
                format!("holds {count} names; at most {RULE_NAMES_MAX} are kept"),
            );
            return Ok(Vec::new());
        }
        let keys = texts.iter().map(|text| text.clone().into_bytes()).collect();
        let stored = self.store.get_many::<T>(keys).await?;
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        for (at, (text, stored)) in texts.iter().zip(stored).enumerate() {
            match stored {
                Some(stored) if seen.insert(text) => found.push(stored),
                Some(_) => {}
                None => faults.add(
                    format!("{field}[{at}]"),
                    match Name::parse(text) {
                        Ok(name) => format!("there is no {} `{name}`", T::WORD),
                        Err(fault) => fault,
                    },
                ),
            }
        }
        Ok(found)
    }
}

fn names<T: Resource>(resources: &[Stored<T>]) -> Vec<Name> {
    let name = |stored: &Stored<T>| stored.value.name().clone();
    resources.iter().map(name).collect()
}

fn repeat_interval(draft: &RuleDraft, faults: &mut Faults) -> u32 {
    let Some(seconds) = draft.repeat_interval else {
        return REPEAT_INTERVAL_SECONDS_DEFAULT;
    };
    let taken = u32::try_from(seconds).ok();
    taken
        .filter(|seconds| *seconds <= REPEAT_INTERVAL_SECONDS_MAX)
        .unwrap_or_else(|| {
            faults.add(
                "repeatInterval",
                format!("is {seconds}; give 0 to {REPEAT_INTERVAL_SECONDS_MAX} seconds"),
            );
            REPEAT_INTERVAL_SECONDS_DEFAULT
        })
}
