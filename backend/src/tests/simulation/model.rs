//! An independent, minimal model of the notifications that are sent: their receivers and contents.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{Severity, Status};

/// A condition: the site of the event, and the minimum severity.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trigger {
    pub(super) site: usize,
    pub(super) level: Severity,
    /// Whether the trigger matches closed events, so that the rule notifies about them.
    pub(super) closed: bool,
}

/// A rule, with triggers and destinations by number.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) enabled: bool,
    pub(super) triggers: Vec<usize>,
    pub(super) destinations: BTreeSet<usize>,
    /// Milliseconds between repeats.
    pub(super) repeat_ms: Option<i64>,
    pub(super) updates: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) host: usize,
    pub(super) severity: Option<Severity>,
    pub(super) status: Option<Status>,
    pub(super) acknowledged: Option<bool>,
    pub(super) timestamp_ms: i64,
}

#[derive(Debug, Clone)]
pub(super) struct Occurrence {
    pub(super) severity: Severity,
    pub(super) status: Status,
    pub(super) acknowledged: bool,
    /// The severity at the acknowledgement.
    acknowledged_severity: Option<Severity>,
    pub(super) last_seen_ms: i64,
    pub(super) count: u64,
    /// The timestamp or the time of arrival of the newest event, whichever is earlier.
    order_ms: i64,
    /// Whether the occurrence was suppressed when it began, and has not been open since.
    never_open: bool,
    /// Notifications, by rule.
    notes: BTreeMap<usize, Note>,
    /// Held notifications, by rule.
    waits: BTreeMap<usize, HeldNotification>,
}

/// A notification of a rule held by a silence or an inhibition.
#[derive(Debug, Clone, Copy)]
struct HeldNotification {
    /// Whether a repeat fell due during the hold.
    repeat: bool,
}

#[derive(Debug, Clone)]
struct Note {
    last_ms: i64,
    cleared: bool,
    destinations: BTreeSet<usize>,
    /// The last notified severity and acknowledged flag.
    known: (Severity, bool),
}

/// A message: rule, destination, host, number of the occurrence, and whether it is an update.
pub(super) type Sent = (usize, usize, usize, usize, bool);

#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) triggers: Vec<Trigger>,
    pub(super) rules: BTreeMap<usize, Rule>,
    /// Deleted rules, as of their deletion.
    pub(super) deleted: BTreeMap<usize, Rule>,
    /// Occurrences by host, the oldest first.
    pub(super) lines: BTreeMap<usize, Vec<Occurrence>>,
    /// The number of times each message was decided.
    pub(super) sent: BTreeMap<Sent, usize>,
    pub(super) gone: BTreeSet<usize>,
    pub(super) silenced: BTreeSet<usize>,
    pub(super) silenced_hosts: BTreeSet<usize>,
    /// Sites with an open outage that inhibits all other events of the site.
    pub(super) out: BTreeSet<usize>,
}

#[derive(Default)]
struct Changed {
    is_event: bool,
    /// No change; only held notifications are evaluated.
    is_review: bool,
    closed: bool,
}

struct RuleQuestion<'a> {
    rules: &'a BTreeSet<usize>,
    changed: &'a Changed,
    now_ms: i64,
    /// Rules that have sent updates.
    updated: &'a BTreeSet<usize>,
    /// Notifications held before the change.
    waited: &'a BTreeMap<usize, HeldNotification>,
}

pub(super) fn site_of(host: usize) -> usize {
    host % super::SITES
}

impl Model {
    pub(super) fn event(&mut self, event: Event, now_ms: i64) {
        let line = self.lines.entry(event.host).or_default();
        let order_ms = event.timestamp_ms.min(now_ms);
        let mut changed = Changed::default();
        match line.last_mut() {
            Some(last) if order_ms < last.order_ms => {
                last.count += 1;
                return;
            }
            Some(last) if last.status != Status::Closed || event.status == Some(Status::Closed) => {
                last.count += 1;
                last.last_seen_ms = event.timestamp_ms;
                last.order_ms = order_ms;
                changed = alter(last, event.severity, event.status, event.acknowledged);
            }
            _ => line.push(Occurrence {
                severity: event.severity.unwrap_or(Severity::Info),
                status: event.status.unwrap_or(Status::Open),
                acknowledged: event.acknowledged.unwrap_or(false),
                acknowledged_severity: event
                    .acknowledged
                    .filter(|it| *it)
                    .map(|_| event.severity.unwrap_or(Severity::Info)),
                last_seen_ms: event.timestamp_ms,
                order_ms,
                count: 1,
                never_open: event.status == Some(Status::Suppressed),
                notes: BTreeMap::new(),
                waits: BTreeMap::new(),
            }),
        }
        changed.is_event = true;
        self.notify(event.host, &changed, now_ms);
    }

    /// Sets the status or acknowledged flag of a host's newest occurrence, as an operator does.
    pub(super) fn set(
        &mut self,
        host: usize,
        status: Option<Status>,
        acknowledged: Option<bool>,
        now_ms: i64,
    ) {
        let line = self.lines.get_mut(&host).expect("the host is known");
        let last = line.last_mut().expect("it has an occurrence");
        let state = |it: &Occurrence| (it.status, it.acknowledged, it.acknowledged_severity);
        let before = state(last);
        let changed = alter(last, None, status, acknowledged);
        // An acknowledgement after the closing is not notified, not even after a reopening.
        let is_over = before.0 == Status::Closed && last.status == Status::Closed;
        if is_over {
            let now = (last.severity, last.acknowledged);
            last.notes.values_mut().for_each(|note| note.known = now);
        } else if state(last) != before {
            self.notify(host, &changed, now_ms);
        }
    }

    /// Evaluates open occurrences for a rule that was stored with the option to notify about them.
    pub(super) fn notify_open(&mut self, number: usize, now_ms: i64) {
        let hosts: Vec<_> = self.lines.keys().copied().collect();
        for host in hosts {
            let newest = self.lines[&host].last().expect("it has an occurrence");
            if newest.status == Status::Open && !newest.notes.contains_key(&number) {
                let waited = newest.waits.clone();
                let question = RuleQuestion {
                    rules: &BTreeSet::from([number]),
                    changed: &Changed::default(),
                    now_ms,
                    updated: &BTreeSet::new(),
                    waited: &waited,
                };
                self.open(host, &question);
            }
        }
    }

    /// Evaluates held notifications again, since a hold may have ended or a definition was edited.
    pub(super) fn review(&mut self, now_ms: i64) {
        let changed = Changed {
            is_review: true,
            ..Changed::default()
        };
        let hosts: Vec<_> = self.lines.keys().copied().collect();
        for host in hosts {
            let newest = self.lines[&host].last().expect("it has an occurrence");
            if !newest.waits.is_empty() {
                self.notify(host, &changed, now_ms);
            }
        }
    }

    fn is_held(&self, host: usize) -> bool {
        let site = site_of(host);
        let is_silenced = self.silenced.contains(&site) || self.silenced_hosts.contains(&host);
        is_silenced || self.out.contains(&site)
    }

    fn notify(&mut self, host: usize, changed: &Changed, now_ms: i64) {
        let is_held = self.is_held(host);
        let line = self.lines.get_mut(&host).expect("the host is known");
        let number = line.len();
        let occurrence = line.last_mut().expect("it has an occurrence");
        if occurrence.status == Status::Suppressed {
            return;
        }
        let is_closed = occurrence.status == Status::Closed;
        let waited = std::mem::take(&mut occurrence.waits);
        let now = (occurrence.severity, occurrence.acknowledged);
        let mut say = |rule, destination, clear| {
            let sent = (rule, destination, host, number, clear);
            *self.sent.entry(sent).or_default() += 1;
        };
        let mut updated = BTreeSet::new();
        for (number, note) in &mut occurrence.notes {
            let rule = self.rules.get(number);
            let last = rule.or_else(|| self.deleted.get(number));
            let wait = waited.get(number);
            let clear = if is_closed {
                let owed = changed.closed && !note.cleared;
                (owed && last.is_some_and(|rule| rule.updates)).then_some(true)
            } else if note.cleared {
                Some(false)
            } else {
                let follows = rule.is_some_and(|rule| rule.enabled && rule.updates);
                (note.known != now && follows).then_some(true)
            };
            let Some(clear) = clear else { continue };
            if is_held && !is_closed {
                let repeat = wait.is_some_and(|wait| wait.repeat);
                occurrence
                    .waits
                    .insert(*number, HeldNotification { repeat });
                continue;
            }
            note.known = now;
            note.cleared = is_closed;
            if !clear {
                note.last_ms = now_ms;
            }
            updated.insert(*number);
            let there = note.destinations.difference(&self.gone);
            there.for_each(|destination| say(*number, *destination, clear));
        }
        if !(is_closed && occurrence.never_open) {
            let rules = self.rules.keys().copied().collect();
            let question = RuleQuestion {
                rules: &rules,
                changed,
                now_ms,
                updated: &updated,
                waited: &waited,
            };
            self.open(host, &question);
        }
        let line = self.lines.get_mut(&host).expect("the host is known");
        let occurrence = line.last_mut().expect("it has an occurrence");
        for (number, note) in &mut occurrence.notes {
            if !occurrence.waits.contains_key(number) {
                // A state that is not reported now is never reported.
                note.known = now;
            }
        }
    }

    /// Evaluates rules for a host's newest occurrence.
    fn open(&mut self, host: usize, question: &RuleQuestion<'_>) {
        let now_ms = question.now_ms;
        let is_held = self.is_held(host);
        let line = self.lines.get_mut(&host).expect("the host is known");
        let occurrence_number = line.len();
        let occurrence = line.last_mut().expect("it has an occurrence");
        let is_closed = occurrence.status == Status::Closed;
        let mut say = |rule, destination, clear| {
            let sent = (rule, destination, host, occurrence_number, clear);
            *self.sent.entry(sent).or_default() += 1;
        };
        for (number, rule) in self
            .rules
            .iter()
            .filter(|(number, _)| question.rules.contains(number))
        {
            let mut triggers = rule.triggers.iter().map(|trigger| self.triggers[*trigger]);
            let matches = triggers.any(|trigger| {
                trigger.closed == is_closed
                    && trigger.site == site_of(host)
                    && occurrence.severity >= trigger.level
            });
            let wait = question.waited.get(number);
            if !(rule.enabled && matches) || question.changed.is_review && wait.is_none() {
                continue;
            }
            let known = occurrence.notes.get_mut(number);
            if let Some(note) = &known {
                let due = rule.repeat_ms.is_some_and(|it| now_ms - note.last_ms >= it);
                // Only an event from a sender triggers a repeat.
                let is_due = question.changed.is_event && due;
                let waits = rule.repeat_ms.is_some() && wait.is_some_and(|wait| wait.repeat);
                if !(is_due || waits) {
                    continue;
                }
            }
            match known {
                _ if rule.destinations.is_empty() => {}
                Some(note) if question.updated.contains(number) => note.last_ms = now_ms,
                known if is_held => {
                    let repeat = known.is_some();
                    if !is_closed {
                        let waits = occurrence.waits.entry(*number);
                        let waits = waits.or_insert(HeldNotification { repeat });
                        waits.repeat |= repeat;
                    }
                }
                known => {
                    let old = known.cloned();
                    let mut destinations = rule.destinations.clone();
                    for destination in &destinations {
                        say(*number, *destination, is_closed);
                    }
                    destinations.extend(old.into_iter().flat_map(|note| note.destinations));
                    let note = Note {
                        last_ms: now_ms,
                        cleared: is_closed && rule.updates,
                        destinations,
                        known: (occurrence.severity, occurrence.acknowledged),
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
    if acknowledged.is_some() {
        let severity = occurrence.severity;
        occurrence.acknowledged_severity = occurrence.acknowledged.then_some(severity);
    }
    occurrence.never_open &= occurrence.status != Status::Open;
    Changed {
        is_event: false,
        is_review: false,
        closed: occurrence.status == Status::Closed && old.status != Status::Closed,
    }
}
