//! Who is to be told of what, in as few words as the contract needs: an independent model.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{Severity, Status};

/// A condition: the place of the event, and the least severity.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trigger {
    pub(super) site: usize,
    pub(super) level: Severity,
}

/// A rule; triggers and destinations by number.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) enabled: bool,
    pub(super) triggers: Vec<usize>,
    pub(super) destinations: BTreeSet<usize>,
    /// Milliseconds between repeats.
    pub(super) repeat_ms: Option<i64>,
    pub(super) updates: bool,
}

/// An event about a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) host: usize,
    pub(super) severity: Option<Severity>,
    pub(super) status: Option<Status>,
    pub(super) acknowledged: Option<bool>,
    pub(super) timestamp_ms: i64,
}

/// An occurrence.
#[derive(Debug, Clone)]
pub(super) struct Occurrence {
    pub(super) severity: Severity,
    pub(super) status: Status,
    pub(super) acknowledged: bool,
    pub(super) last_seen_ms: i64,
    pub(super) count: u64,
    /// Who was told, by rule.
    notes: BTreeMap<usize, Note>,
}

#[derive(Debug, Clone)]
struct Note {
    last_ms: i64,
    updates: bool,
    cleared: bool,
    destinations: BTreeSet<usize>,
}

/// A message: rule, destination, host, number of the occurrence, and whether it is an update.
pub(super) type Told = (usize, usize, usize, usize, bool);

/// Everything that matters.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) triggers: Vec<Trigger>,
    pub(super) rules: BTreeMap<usize, Rule>,
    /// Occurrences by host, oldest first.
    pub(super) lines: BTreeMap<usize, Vec<Occurrence>>,
    /// The messages, and how many of each.
    pub(super) told: BTreeMap<Told, usize>,
    pub(super) gone: BTreeSet<usize>,
}

/// What a step changed.
#[derive(Default)]
struct Changed {
    is_event: bool,
    from: Option<Status>,
    news: bool,
    closed: bool,
}

/// The place that a host is in.
pub(super) fn site_of(host: usize) -> usize {
    host % super::SITES
}

impl Model {
    pub(super) fn event(&mut self, event: Event, now_ms: i64) {
        let line = self.lines.entry(event.host).or_default();
        let mut changed = Changed::default();
        let late = |last: &Occurrence| event.timestamp_ms < last.last_seen_ms;
        match line.last_mut() {
            Some(last) if late(last) => {
                last.count += 1;
                changed.from = Some(last.status);
            }
            Some(last) if last.status != Status::Closed || event.status == Some(Status::Closed) => {
                last.count += 1;
                last.last_seen_ms = event.timestamp_ms;
                changed = alter(last, event.severity, event.status, event.acknowledged);
            }
            _ => line.push(Occurrence {
                severity: event.severity.unwrap_or(Severity::Info),
                status: event.status.unwrap_or(Status::Open),
                acknowledged: event.acknowledged.unwrap_or(false),
                last_seen_ms: event.timestamp_ms,
                count: 1,
                notes: BTreeMap::new(),
            }),
        }
        changed.is_event = true;
        self.tell(event.host, &changed, now_ms);
    }

    /// What an operator sets on the newest occurrence of a host.
    pub(super) fn set(
        &mut self,
        host: usize,
        status: Option<Status>,
        acknowledged: Option<bool>,
        now_ms: i64,
    ) {
        let line = self.lines.get_mut(&host).expect("the host is known");
        let last = line.last_mut().expect("it has an occurrence");
        let changed = alter(last, None, status, acknowledged);
        self.tell(host, &changed, now_ms);
    }

    fn tell(&mut self, host: usize, changed: &Changed, now_ms: i64) {
        let line = self.lines.get_mut(&host).expect("the host is known");
        let number = line.len();
        let occurrence = line.last_mut().expect("it has an occurrence");
        if occurrence.status == Status::Suppressed {
            return;
        }
        let lifted = changed.from == Some(Status::Suppressed);
        let mut say = |rule, destination, clear| {
            let told = (rule, destination, host, number, clear);
            *self.told.entry(told).or_default() += 1;
        };
        let mut updated = BTreeSet::new();
        for (number, note) in &mut occurrence.notes {
            let follows = self.rules.get(number);
            let follows = follows.is_some_and(|rule| rule.enabled && rule.updates);
            let owed = match occurrence.status {
                Status::Closed => changed.closed && !note.cleared,
                _ => changed.news && follows,
            };
            if note.updates && owed {
                note.cleared = changed.closed;
                updated.insert(*number);
                let there = note.destinations.difference(&self.gone);
                there.for_each(|destination| say(*number, *destination, true));
            }
        }
        // An operator's change is a match only where nothing matched before: after a suppression.
        if (changed.closed && lifted) || !(changed.is_event || lifted) {
            return;
        }
        for (number, rule) in &self.rules {
            let mut triggers = rule.triggers.iter().map(|trigger| self.triggers[*trigger]);
            let matches = triggers.any(|trigger| {
                trigger.site == site_of(host) && occurrence.severity >= trigger.level
            });
            if !(rule.enabled && matches) {
                continue;
            }
            let known = occurrence.notes.get_mut(number);
            if let Some(note) = &known {
                let due = rule.repeat_ms.is_some_and(|it| now_ms - note.last_ms >= it);
                if !(changed.is_event && due) {
                    continue;
                }
            }
            match known {
                Some(note) if updated.contains(number) => note.last_ms = now_ms,
                _ if rule.destinations.is_empty() => {}
                known => {
                    let old = known.cloned();
                    let mut destinations = rule.destinations.clone();
                    for destination in &destinations {
                        say(*number, *destination, false);
                    }
                    let had_updates = old.as_ref().is_some_and(|note| note.updates);
                    destinations.extend(old.into_iter().flat_map(|note| note.destinations));
                    let note = Note {
                        last_ms: now_ms,
                        updates: rule.updates || had_updates,
                        cleared: false,
                        destinations,
                    };
                    occurrence.notes.insert(*number, note);
                }
            }
        }
    }
}

fn alter(
    occurrence: &mut Occurrence,
    severity: Option<Severity>,
    status: Option<Status>,
    acknowledged: Option<bool>,
) -> Changed {
    let old = occurrence.clone();
    occurrence.severity = severity.unwrap_or(old.severity);
    occurrence.status = status.unwrap_or(old.status);
    occurrence.acknowledged = acknowledged.unwrap_or(old.acknowledged);
    let is_acknowledged = occurrence.acknowledged && !old.acknowledged;
    Changed {
        is_event: false,
        from: Some(old.status),
        news: is_acknowledged || occurrence.severity != old.severity,
        closed: occurrence.status == Status::Closed && old.status != Status::Closed,
    }
}
