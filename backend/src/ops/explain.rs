//! Why each rule did or did not notify about an occurrence, when that was decided.
//!
//! A notification is explained by the definitions and the occurrence that the first message rested
//! on. A rule that did not notify is explained by the last decision, or by the newest one at which
//! a trigger matched and something held the message back: triggers and rules as they were then are
//! kept as revisions, and of the occurrence it is known which fields are as they were. What would
//! happen now is reported beside it and apart from it.

mod definitions;
mod gates;
mod held;
mod history;
mod judge;
mod opening;
mod sent;
mod timeline;

use std::collections::{HashMap, HashSet};

use definitions::Definitions;
pub use history::{Moment, story};
use judge::{Judge, Subject};
use sent::Pauses;
use timeline::{PastState, Point};

use crate::{
    decide::{Snapshot, Tense},
    domain::{
        Attempt, Delivery, DeliveryState, HeldBy, HoldChange, HoldOutcome, Name, Notified,
        Occurrence, RecordId, Status,
    },
    error::Error,
    limits::EVENT_AHEAD_MAX,
    matching::Explained,
    ops::delivery::{Deliveries, Waiting},
    scan,
    store::Store,
};

/// Decisions about one occurrence that are looked at.
const POINTS_MAX: usize = 32;
/// Rules and triggers times decisions that are looked at.
const LOOKS_MAX: usize = 50_000;
/// Deliveries of an explanation for which those before them are counted.
const WAITS_LOOKED_MAX: usize = 20;
/// Rules explained without letting others have their turn.
const RULES_AT_ONCE: usize = 50;
/// How much an edit may have been under way before the decision that did not know it.
const EDIT_MS: i64 = 60_000;

/// What one rule decided about an occurrence.
#[derive(Debug, Clone)]
pub struct RuleExplanation {
    /// The rule's name.
    pub rule_name: Name,
    /// Whether it is deleted.
    pub deleted: bool,
    /// When it was deleted, in milliseconds since 1970; none when it is not, or that is not known.
    pub deleted_ms: Option<i64>,
    /// Whether it notified about the occurrence.
    pub notified: bool,
    /// The decision that tells most.
    pub main: Judgement,
    /// The last decision, when that is a later one, and what would be decided now.
    pub others: Vec<Judgement>,
    /// Each time it notified, oldest first.
    pub notifications: Vec<Notification>,
    /// What it sent about the occurrence, or is to send, oldest first.
    pub deliveries: Vec<SentDelivery>,
    /// What holds back what waits now; empty when nothing does.
    pub held_by: Vec<HeldBy>,
    /// Why what waited last was never sent.
    pub skipped_reason: Option<String>,
    /// What is to come of what waits.
    pub next: Option<NextStep>,
    /// How what it was to send came to wait and ceased to, oldest first.
    pub hold_changes: Vec<HoldChange>,
}

/// What is to come for a rule.
#[derive(Debug, Clone)]
pub struct NextStep {
    /// When it is decided, in milliseconds since 1970; none when no time ends what holds it.
    pub at_ms: Option<i64>,
    /// Who would be notified.
    pub destinations: Vec<Name>,
    /// On what condition.
    pub condition: &'static str,
}

/// What happened to something held, for people.
pub fn describe(change: &HoldChange) -> String {
    let held = held::sentence(&change.held_by, Tense::Then).unwrap_or_default();
    match change.what {
        HoldOutcome::Waits => format!("it waits: {held}"),
        HoldOutcome::Released => format!("it was sent; before, {held}"),
        HoldOutcome::ReleasedByHand => format!("an operator had it sent, although {held}"),
        HoldOutcome::HandedOver => format!("it keeps waiting with the next occurrence; {held}"),
        other => {
            let why = other.skipped_reason().unwrap_or_default();
            format!("it was skipped: {why}, while {held}")
        }
    }
}

/// Which decision a judgement speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The one that made the rule report on the occurrence.
    Notification,
    /// The newest one there was.
    LastDecision,
    /// One before that.
    EarlierDecision,
    /// One that would be made now.
    Now,
}

/// What a rule decided about an occurrence at one moment.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// Which decision it speaks of.
    pub basis: Basis,
    /// When that was, in milliseconds since 1970.
    pub at_ms: i64,
    /// Whether the rule notified then, or would now.
    pub notifies: bool,
    /// Whether a trigger matched and nothing was reported anyway.
    pub held_back: bool,
    /// A message for people.
    pub reason: String,
    /// Which state of the rule it speaks of; none when there was none, or it is not kept.
    pub definition: Option<Definition>,
    /// Its triggers, each with how it saw the occurrence.
    pub triggers: Vec<TriggerExplanation>,
    /// What stood between a match and a notification, in order.
    pub gates: Vec<Gate>,
}

/// Which state of a trigger or rule is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// Counts its edits from 1.
    pub revision: u64,
    /// Since when it was in force, in milliseconds since 1970.
    pub since_ms: i64,
    /// Until when; none while it is in force.
    pub until_ms: Option<i64>,
    /// Whether it was deleted then, and not edited.
    pub deleted: bool,
}

/// How one trigger saw an occurrence.
#[derive(Debug, Clone)]
pub struct TriggerExplanation {
    /// The trigger's name.
    pub trigger_name: Name,
    /// Whether it is known what the trigger was.
    pub kept: bool,
    /// Which state of the trigger it speaks of.
    pub definition: Option<Definition>,
    /// Its query; none when there was no such trigger, it is not kept, or its query is not valid.
    pub query: Option<Explained>,
    /// Whether its query is true, and yet it does not match: it says nothing of the status, and the
    /// occurrence was closed.
    pub is_for_open_only: bool,
}

impl TriggerExplanation {
    fn missing(name: &Name) -> Self {
        Self {
            trigger_name: name.clone(),
            kept: true,
            definition: None,
            query: None,
            is_for_open_only: false,
        }
    }

    /// Whether it matched; none when that is not known.
    pub fn verdict(&self) -> Option<bool> {
        match &self.query {
            Some(_) if self.is_for_open_only => Some(false),
            Some(query) => query.verdict(),
            None => self.kept.then_some(false),
        }
    }
}

/// One thing that stands between a match and a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// What it is called.
    pub name: &'static str,
    /// Whether it lets a notification pass.
    pub passed: bool,
    /// What it saw.
    pub detail: String,
}

/// One time a rule notified.
#[derive(Debug, Clone)]
pub struct Notification {
    /// When that was decided, in milliseconds since 1970.
    pub at_ms: i64,
    /// Whether it reported that a notified occurrence changed or ended.
    pub clear: bool,
    /// The trigger that the messages name.
    pub trigger_name: Option<Name>,
    /// Its deliveries; none when they are forgotten.
    pub deliveries: Vec<RecordId>,
}

/// A delivery and its attempts.
#[derive(Debug, Clone)]
pub struct SentDelivery {
    /// The delivery.
    pub delivery: Delivery,
    /// Its attempts, oldest first; those of old deliveries are left out.
    pub attempts: Vec<Attempt>,
    /// What happened to the digest that includes it; none where it is sent separately.
    pub digest: Option<DigestEnd>,
    /// Why it waits, or its digest does.
    pub waiting: Waiting,
}

/// What happened to a digest.
#[derive(Debug, Clone)]
pub struct DigestEnd {
    /// Its delivery.
    pub id: RecordId,
    /// Where that stands.
    pub state: DeliveryState,
    /// When it ended, in milliseconds since 1970.
    pub end_ms: Option<i64>,
    /// How many messages it includes.
    pub count: u32,
}

impl SentDelivery {
    /// Whether a shadow rule only recorded it.
    fn is_shadow(&self) -> bool {
        self.delivery.state == DeliveryState::Shadowed
    }

    /// Where it stands; of what a digest includes, where that stands.
    fn ended(&self) -> DeliveryState {
        let digest = self.digest.as_ref();
        digest.map_or(self.delivery.state, |it| it.state)
    }
}

/// Explains every rule, by name, also those that were deleted since and notified or were in force
/// when something was decided.
///
/// # Errors
/// Those of the store.
pub async fn explain(
    store: &Store,
    snapshot: &Snapshot,
    occurrence: &Occurrence,
    now_ms: i64,
) -> Result<Vec<RuleExplanation>, Error> {
    let mut sent = sent::by_rule(store, occurrence).await?;
    let ahead_ms = i64::try_from(EVENT_AHEAD_MAX.as_millis()).unwrap_or(i64::MAX);
    let since_ms = occurrence.start_ms.saturating_sub(ahead_ms + EDIT_MS);
    let definitions = Definitions::read(store, snapshot, since_ms).await?;
    let notified = occurrence.notified.iter().flat_map(|it| &it.destinations);
    let notified = notified.map(|(id, name)| (*id, name));
    let current = snapshot.destinations().map(|it| (it.id, &it.name));
    let pauses = Pauses::read(store, notified.chain(current)).await?;
    let limit = (LOOKS_MAX / definitions.len().max(1)).clamp(2, POINTS_MAX);
    let points = timeline::points(occurrence, limit).into_iter();
    let now = Point {
        at_ms: now_ms,
        rules_ms: now_ms,
        last: true,
    };
    let mut judge = Judge {
        snapshot,
        pauses,
        states: points
            .map(|point| (point, timeline::state(occurrence, point)))
            .collect(),
        now: (now, PastState::whole(occurrence.clone())),
        verdicts: HashMap::new(),
        definitions,
    };
    let rules: Vec<_> = judge
        .definitions
        .rules()
        .map(|(name, id, deleted_ms)| (name.clone(), id, deleted_ms))
        .collect();
    let known: HashSet<_> = rules.iter().map(|(_, id, _)| *id).collect();
    let mut explanations = Vec::with_capacity(rules.len());
    for (at, (name, id, deleted_ms)) in rules.into_iter().enumerate() {
        if at % RULES_AT_ONCE == RULES_AT_ONCE - 1 {
            tokio::task::yield_now().await;
        }
        scan::turn().await;
        let deliveries = sent.remove(&id).unwrap_or_default();
        let subject = Subject {
            name: &name,
            id,
            notified: occurrence.notified.iter().find(|it| it.rule == id),
            sent: &deliveries,
        };
        let explained = one(&mut judge, &subject, deleted_ms);
        explanations
            .extend(explained.map(|it| it.with(deliveries).waiting(id, snapshot, occurrence)));
    }
    for notified in &occurrence.notified {
        if !known.contains(&notified.rule) {
            explanations.push(forgotten(
                notified,
                sent.remove(&notified.rule).unwrap_or_default(),
            ));
        }
    }
    explanations.sort_by(|a, b| {
        let key = |it: &RuleExplanation| (it.deleted, it.rule_name.clone());
        key(a).cmp(&key(b))
    });
    Ok(explanations)
}

/// Finds out why the deliveries of explanations wait, as lists of deliveries do.
///
/// # Errors
/// Those of the store.
pub async fn add_waits(all: &Deliveries, rules: &mut [RuleExplanation]) -> Result<(), Error> {
    let mut reasons = all.wait_reasons();
    let sent = rules.iter_mut().flat_map(|rule| &mut rule.deliveries);
    let is_waiting = |it: &&mut SentDelivery| it.ended().due_ms().is_some();
    for (at, sent) in sent.filter(is_waiting).enumerate() {
        let looking = at < WAITS_LOOKED_MAX;
        sent.waiting = match &sent.digest {
            None => reasons.of(&sent.delivery, looking).await?,
            Some(digest) => {
                let (digest, _) = all.get(digest.id).await?;
                reasons.of(&digest, looking).await?
            }
        };
    }
    Ok(())
}

/// What one rule decided about it; none for one that was deleted before anything was decided.
fn one(
    judge: &mut Judge<'_>,
    subject: &Subject<'_>,
    deleted_ms: Option<i64>,
) -> Option<RuleExplanation> {
    let decided = subject.notified.is_some() || !subject.sent.is_empty();
    let is_notified = subject.notified.is_some_and(|it| !it.shadow);
    let notified = is_notified || subject.sent.iter().any(|it| !it.is_shadow());
    let now = judge.now(subject);
    let decisions = judge.states.len();
    let mut others = Vec::new();
    let main = match judge.opening(subject) {
        Some(mut opening) if decided => {
            let last = judge.states.first().map(|(point, _)| *point);
            if last.is_some_and(|it| it.last && it.at_ms > opening.at_ms) {
                others.push(judge.decision(subject, 0));
            }
            let so_far = notified_so_far(subject.sent);
            opening.reason.push_str(&so_far);
            Some(opening)
        }
        _ => {
            let held_back = (0..decisions).find(|at| judge.was_held_back(subject, *at));
            let existed = (0..decisions).find(|at| judge.existed(subject, *at));
            let gone = deleted_ms.is_some() && existed.is_none() && !decided;
            if gone {
                return None;
            }
            let shown = held_back.or(existed.filter(|_| deleted_ms.is_some()));
            let shown = shown.or((decisions > 0).then_some(0));
            shown.map(|at| judge.decision(subject, at))
        }
    };
    let main = match (main, &now) {
        (Some(main), _) => main,
        (None, Some(now)) => Judgement {
            reason: format!("what was decided is not known; now: {}", now.reason),
            ..now.clone()
        },
        (None, None) => return None,
    };
    others.extend(now);
    Some(RuleExplanation {
        rule_name: subject.name.clone(),
        deleted: deleted_ms.is_some(),
        deleted_ms,
        notified,
        main,
        others,
        notifications: sent::notifications(subject.notified, subject.sent),
        deliveries: Vec::new(),
        held_by: Vec::new(),
        skipped_reason: None,
        next: None,
        hold_changes: Vec::new(),
    })
}

impl RuleExplanation {
    fn with(mut self, deliveries: Vec<SentDelivery>) -> Self {
        self.main.gates.extend(gates::budget(&deliveries));
        Self { deliveries, ..self }
    }

    /// Adds what waits of the rule, and what happened to what waited before. That answers first why
    /// no one was notified.
    fn waiting(mut self, rule: RecordId, snapshot: &Snapshot, occurrence: &Occurrence) -> Self {
        let changes = occurrence.hold_changes.iter();
        self.hold_changes = changes.filter(|it| it.rule == rule).cloned().collect();
        let is_matched = self.others.last().is_some_and(|now| now.held_back);
        if is_matched && occurrence.status == Status::Suppressed {
            self.held_by
                .extend(held::suppressed(&self.rule_name, rule, occurrence));
        }
        let pending = occurrence.pending.iter().find(|it| it.rule == rule);
        if let Some(pending) = pending {
            let next = held::next(pending, snapshot);
            if let Some(why) = held::why_it_waits(pending, &next) {
                self.main.reason = why;
            }
            self.held_by.extend_from_slice(&pending.held_by);
            self.next = Some(next);
            return self;
        }
        self.skipped_reason = held::skipped(occurrence, rule);
        if let (Some(why), false) = (&self.skipped_reason, self.notified) {
            self.main.reason = format!("no one was notified: {why}");
        }
        self
    }
}

/// A rule that reported something and of which nothing is kept any more.
fn forgotten(notified: &Notified, deliveries: Vec<SentDelivery>) -> RuleExplanation {
    let first = deliveries.first().map(|it| it.delivery.create_ms);
    let at_ms = first.unwrap_or(notified.last_ms);
    let so_far = notified_so_far(&deliveries);
    RuleExplanation {
        rule_name: notified.rule_name.clone(),
        deleted: true,
        deleted_ms: None,
        notified: !notified.shadow,
        main: Judgement {
            basis: Basis::Notification,
            at_ms,
            notifies: true,
            held_back: false,
            reason: format!(
                "it notified, and was deleted since; its definition is no longer stored{so_far}"
            ),
            definition: None,
            triggers: Vec::new(),
            gates: Vec::new(),
        },
        others: Vec::new(),
        notifications: sent::notifications(Some(notified), &deliveries),
        deliveries,
        held_by: Vec::new(),
        skipped_reason: None,
        next: None,
        hold_changes: Vec::new(),
    }
}

/// How many messages there are, and their health.
fn notified_so_far(sent: &[SentDelivery]) -> String {
    let ended = |state: DeliveryState| sent.iter().filter(|it| it.ended() == state).count();
    let (delivered, dead) = (ended(DeliveryState::Delivered), ended(DeliveryState::Dead));
    let folded = sent.iter().filter(|it| it.digest.is_some()).count();
    let folded = match folded {
        0 => String::new(),
        folded => format!(", {folded} of them folded into a digest"),
    };
    let shadows = sent.iter().filter(|it| it.is_shadow()).count();
    match sent.len() {
        count if count > 0 && shadows == count => format!("; {count} recorded, none sent"),
        0 => "; its deliveries are no longer kept".into(),
        1 => format!("; 1 message, {delivered} delivered, {dead} given up{folded}"),
        count => format!("; {count} messages, {delivered} delivered, {dead} given up{folded}"),
    }
}
