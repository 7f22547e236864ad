//! Which notifications a step of an occurrence causes; pure.
//!
//! What the contract leaves open is decided here:
//! - An event is a match whatever it does, a close or a late event too. A rule that does not want
//!   closed occurrences says so in a trigger. Only a close that ends a suppression opens nothing:
//!   nobody was to hear of that occurrence.
//! - What an operator or ageing changes is a match only for rules that did not match before. It
//!   opens, and never repeats: a repeat is news from a sender.
//! - A step sends one message about a rule to a destination. When an update goes out, it also
//!   stands for a repeat that is due.
//! - The obligation to close beats everything but a destination that no longer exists: an edited,
//!   disabled or deleted rule and a suppression in between do not stop the closing message. It
//!   names the trigger of the opening message; a deleted rule's text is the one it had then. Other
//!   updates follow the rule as it is now, and none are sent while suppressed or after the close.
//!   Whoever hears of an occurrence again after it was reopened is owed its close again.

use std::collections::BTreeSet;

use crate::{
    domain::{
        Content, Delivery, DeliveryState, Destination, DestinationKind, Judged, Name, Notified,
        Occurrence, Opening, RecordId, RevisionId, Rule, Status, Trigger, delivery::RuleContent,
    },
    limits::CHAIN_MAX,
    ops::{
        occurrence::Transition,
        revision::Past,
        ruleset::{Match, Snapshot},
    },
};

/// What made an occurrence change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// An event came in: every rule that matches counts, and may repeat.
    Event,
    /// An operator or ageing changed it: the matches are only those that were none before.
    Change,
}

/// A step of an occurrence, and the rules that match it afterwards.
#[derive(Debug)]
pub struct Step<'a> {
    /// What made it.
    pub kind: StepKind,
    /// What it changed.
    pub transition: Transition,
    /// The enabled rules that match, each once.
    pub matches: &'a [Match<'a>],
    /// When, in milliseconds since 1970.
    pub now_ms: i64,
    /// What earlier messages about the occurrence rested on and is not in force any more.
    pub past: &'a Past,
}

/// What a step causes.
#[derive(Debug, Default, PartialEq)]
pub struct Notices {
    /// The deliveries to store together with the occurrence.
    pub deliveries: Vec<Delivery>,
    /// Rules whose `event` destinations the loop guard stopped.
    pub stopped: Vec<Name>,
}

/// Decides the notifications of a step, and notes in the occurrence when, and who was told.
///
/// `new_id` makes the identities of the deliveries.
pub fn notify(
    occurrence: &mut Occurrence,
    step: &Step<'_>,
    snapshot: &Snapshot,
    new_id: &mut dyn FnMut() -> RecordId,
) -> Notices {
    occurrence.judged = Some(Judged {
        at_ms: step.now_ms,
        rules_ms: snapshot.newest_edit_ms(),
        by_event: step.kind == StepKind::Event,
    });
    let quiet = step.matches.is_empty() && occurrence.notified.is_empty();
    if quiet || occurrence.status == Status::Suppressed {
        return Notices::default();
    }
    let mut notified = std::mem::take(&mut occurrence.notified);
    let mut writer = Writer {
        step,
        snapshot,
        occurrence,
        told: None,
        new_id,
        notices: Notices::default(),
    };
    let updated = writer.updates(&mut notified);
    let unheard = step.transition.closed && step.transition.from == Some(Status::Suppressed);
    if !unheard {
        writer.openings(&mut notified, &updated);
    }
    let notices = writer.notices;
    occurrence.notified = notified;
    notices
}

struct Writer<'a> {
    step: &'a Step<'a>,
    snapshot: &'a Snapshot,
    occurrence: &'a Occurrence,
    /// The occurrence as deliveries carry it; made for the first one.
    told: Option<Occurrence>,
    new_id: &'a mut dyn FnMut() -> RecordId,
    notices: Notices,
}

impl Writer<'_> {
    /// Tells those who were notified before; answers the rules that did.
    fn updates(&mut self, notified: &mut [Notified]) -> BTreeSet<RecordId> {
        let transition = self.step.transition;
        let changed = transition.severity_changed || transition.acknowledged;
        let mut updated = BTreeSet::new();
        for entry in notified.iter_mut().filter(|entry| entry.send_updates) {
            let rule = self.snapshot.rule(entry.rule);
            let wanted = match self.occurrence.status {
                Status::Closed => transition.closed && !entry.cleared,
                Status::Open => changed && rule.is_some_and(|it| it.enabled && it.send_updates),
                Status::Suppressed => false,
            };
            if !wanted {
                continue;
            }
            entry.cleared = transition.closed;
            updated.insert(entry.rule);
            let content = self.content_of(entry, rule);
            let trigger = self.trigger_of(entry, rule);
            let destinations = entry.destinations.iter();
            for destination in destinations.filter_map(|(id, _)| self.snapshot.destination(*id)) {
                self.send(entry.rule, &content, trigger.as_ref(), destination, true);
            }
        }
        updated
    }

    /// What an update tells of its rule: as it is now, else as it was at the opening message.
    fn content_of(&self, entry: &Notified, rule: Option<&Rule>) -> RuleContent {
        let then = || {
            let id = RevisionId {
                name: entry.rule_name.clone(),
                id: entry.rule,
                revision: entry.opening.as_ref()?.rule_revision,
            };
            self.step.past.rule(&id)
        };
        rule.or_else(then)
            .map_or_else(|| gone(&entry.rule_name), rule_content)
    }

    /// The trigger that an update tells of: that of the opening message. Where that was not noted,
    /// one that matches, else the rule's first.
    fn trigger_of(&self, entry: &Notified, rule: Option<&Rule>) -> Option<Trigger> {
        if let Some(opening) = &entry.opening {
            let current = self.snapshot.trigger(&opening.trigger.name);
            let same = current.filter(|it| RevisionId::from(*it) == opening.trigger);
            let then = same.or_else(|| self.step.past.trigger(&opening.trigger));
            if let Some(trigger) = then {
                return Some(trigger.clone());
            }
        }
        let matched = self.step.matches.iter().find(|it| it.rule.id == entry.rule);
        let first = || {
            rule?
                .trigger_names
                .iter()
                .find_map(|it| self.snapshot.trigger(it))
        };
        matched.map(|it| it.trigger).or_else(first).cloned()
    }

    /// Tells the destinations of rules that match: for the first time, or again when that is due.
    fn openings(&mut self, notified: &mut Vec<Notified>, updated: &BTreeSet<RecordId>) {
        let now_ms = self.step.now_ms;
        for found in self.step.matches {
            let rule = found.rule;
            let known = notified.iter().position(|entry| entry.rule == rule.id);
            if let Some(at) = known {
                if self.step.kind != StepKind::Event || !repeat_is_due(rule, &notified[at], now_ms)
                {
                    continue;
                }
                if updated.contains(&rule.id) {
                    notified[at].last_ms = now_ms;
                    continue;
                }
            }
            let names = rule.destination_names.iter();
            let destinations: Vec<_> = names
                .filter_map(|name| self.snapshot.destination_named(name))
                .collect();
            let content = rule_content(rule);
            let mut told = Vec::with_capacity(destinations.len());
            for destination in destinations {
                if self.send(rule.id, &content, Some(found.trigger), destination, false) {
                    told.push((destination.id, destination.name.clone()));
                }
            }
            if !told.is_empty() {
                let known = known.map(|at| &mut notified[at]);
                if let Some(new) = keep(known, found, told, now_ms) {
                    notified.push(new);
                }
            }
        }
    }

    /// Writes one delivery, unless the loop guard stops it.
    fn send(
        &mut self,
        rule: RecordId,
        content: &RuleContent,
        trigger: Option<&Trigger>,
        destination: &Destination,
        clear: bool,
    ) -> bool {
        let chain = &self.occurrence.chain;
        let passes_again = chain.contains(&rule) || chain.len() >= CHAIN_MAX;
        if passes_again && matches!(destination.kind, DestinationKind::Event(_)) {
            if let Ok(name) = Name::parse(&content.name) {
                self.notices.stopped.push(name);
            }
            return false;
        }
        let told = self.told.get_or_insert_with(|| Occurrence {
            history: Vec::new(),
            notified: Vec::new(),
            ..self.occurrence.clone()
        });
        self.notices.deliveries.push(Delivery {
            id: (self.new_id)(),
            rule: Some(rule),
            destination: destination.id,
            destination_name: destination.name.as_str().into(),
            event: Some(self.occurrence.event),
            state: DeliveryState::Pending {
                due_ms: self.step.now_ms,
            },
            test: false,
            attempts: 0,
            last_error: String::new(),
            create_ms: self.step.now_ms,
            end_ms: None,
            retry_of: None,
            retried_as: None,
            content: Content {
                clear,
                occurrence: told.clone(),
                rule: content.clone(),
                trigger: trigger.cloned(),
                destination_kind: destination.kind.clone(),
            },
        });
        true
    }
}

/// Whether a rule that notified before does so again on a match.
pub fn repeat_is_due(rule: &Rule, entry: &Notified, now_ms: i64) -> bool {
    let interval_ms = i64::from(rule.repeat_interval_seconds) * 1000;
    rule.repeat && now_ms.saturating_sub(entry.last_ms) >= interval_ms
}

/// Notes that a rule told these destinations; answers the note when it is a new one.
fn keep(
    known: Option<&mut Notified>,
    found: &Match<'_>,
    told: Vec<(RecordId, Name)>,
    now_ms: i64,
) -> Option<Notified> {
    let rule = found.rule;
    let opening = || Opening {
        at_ms: now_ms,
        trigger: found.trigger.into(),
        rule_revision: rule.revision,
    };
    let Some(entry) = known else {
        return Some(Notified {
            rule: rule.id,
            rule_name: rule.name.clone(),
            last_ms: now_ms,
            send_updates: rule.send_updates,
            destinations: told,
            cleared: false,
            opening: Some(opening()),
        });
    };
    if entry.cleared || entry.opening.is_none() {
        entry.opening = Some(opening());
    }
    entry.last_ms = now_ms;
    entry.send_updates |= rule.send_updates;
    entry.cleared = false;
    for destination in told {
        if !entry.destinations.iter().any(|it| it.0 == destination.0) {
            entry.destinations.push(destination);
        }
    }
    None
}

/// What messages can tell about a rule.
pub(crate) fn rule_content(rule: &Rule) -> RuleContent {
    RuleContent {
        name: rule.name.as_str().into(),
        description: rule.description.clone(),
        message: rule.message.clone(),
        enabled: rule.enabled,
        repeat_interval_seconds: rule.repeat_interval_seconds,
        trigger_names: rule.trigger_names.clone(),
        destination_names: rule.destination_names.clone(),
    }
}

/// What is left to tell of a rule that was deleted.
fn gone(name: &Name) -> RuleContent {
    RuleContent {
        name: name.as_str().into(),
        description: String::new(),
        message: String::new(),
        enabled: false,
        repeat_interval_seconds: 0,
        trigger_names: Vec::new(),
        destination_names: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
