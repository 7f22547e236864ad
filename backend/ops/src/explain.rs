//! Explains why each rule did or did not notify about an occurrence, as of the time of the
//! decision.
//!
//! A notification is explained by the definitions and the state of the occurrence at its first
//! message. A rule that did not notify is explained by its last decision, or by the latest decision
//! at which a trigger matched but the message was held. Past triggers and rules are read from
//! stored revisions. Of the occurrence, the fields that have not changed since are known. The
//! decision that would be made now is reported separately.

mod definitions;
mod gates;
mod history;
mod holds;
mod judge;
mod opening;
mod reason;
mod sent;
mod timeline;

use std::collections::{HashMap, HashSet};

use bellwether_proto::v1::{
    DecisionBasis, Definition, ExplainedNotification, Gate, NotificationOutcome,
};
use definitions::Definitions;
pub use history::build_timeline;
use judge::{Judge, Subject};
pub use reason::{Reason, describe};
use sent::PauseHistory;
use timeline::{DecisionPoint, PastState};

use crate::{
    decide::Snapshot,
    delivery::{Deliveries, WaitReason},
    domain::{
        Attempt, Delivery, DeliveryState, HeldBy, HoldChange, Name, Notified, Occurrence, RecordId,
        Status,
    },
    error::Error,
    limits::EVENT_AHEAD_MAX,
    matching::ClauseEvaluation,
    scan,
    store::Store,
};

/// Maximum number of decisions evaluated per occurrence.
const POINTS_MAX: usize = 32;
/// Maximum number of evaluations: definitions times decisions.
const EVALUATIONS_MAX: usize = 50_000;
/// Rules explained before yielding to other tasks.
const RULES_AT_ONCE: usize = 50;
/// Maximum time for which an edit can have been in progress, so that a decision could miss it.
const EDIT_MS: i64 = 60_000;

#[derive(Debug, Clone)]
pub struct RuleExplanation {
    pub rule_name: Name,
    pub deleted: bool,
    /// Time of the deletion, in milliseconds since the epoch; `None` if not deleted or unknown.
    pub deleted_ms: Option<i64>,
    pub notified: bool,
    pub main: Judgement,
    /// The decision that would be made now, and the last decision if it is later than the main one.
    pub others: Vec<Judgement>,
    /// Notifications of the rule, oldest first.
    pub notifications: Vec<ExplainedNotification>,
    /// Deliveries of the rule about the occurrence, oldest first.
    pub deliveries: Vec<SentDelivery>,
    /// Reasons why the pending message is held; empty if no message is held.
    pub held_by: Vec<HeldBy>,
    pub skipped_reason: Option<String>,
    /// History of the rule's holds, oldest first.
    pub hold_changes: Vec<HoldChange>,
}

/// The result of a rule for an occurrence at one decision.
#[derive(Debug, Clone)]
pub struct Judgement {
    pub basis: DecisionBasis,
    pub at_ms: i64,
    /// Whether the rule notified, or would notify now.
    pub notifies: bool,
    pub held_back: bool,
    pub reason: Reason,
    /// Revision of the rule; `None` if it did not exist or is no longer stored.
    pub definition: Option<Definition>,
    pub triggers: Vec<TriggerExplanation>,
    /// Conditions that must be met before a match notifies, in order.
    pub gates: Vec<Gate>,
}

impl Judgement {
    pub fn reason_text(&self) -> String {
        self.reason.text(self.basis == DecisionBasis::Now)
    }
}

#[derive(Debug, Clone)]
pub struct TriggerExplanation {
    pub trigger_name: Name,
    /// Whether the revision of the trigger that was in force is still stored.
    pub is_stored: bool,
    pub definition: Option<Definition>,
    /// Explanation of the query. `None` if the trigger did not exist, is no longer stored, or has
    /// an invalid query.
    pub query: Option<ClauseEvaluation>,
    /// Whether the query is true but does not match, because the occurrence was closed and the
    /// query does not mention the status.
    pub matches_only_open: bool,
}

impl TriggerExplanation {
    fn for_missing_trigger(name: &Name) -> Self {
        Self {
            trigger_name: name.clone(),
            is_stored: true,
            definition: None,
            query: None,
            matches_only_open: false,
        }
    }

    pub fn verdict(&self) -> Option<bool> {
        match &self.query {
            Some(_) if self.matches_only_open => Some(false),
            Some(query) => query.verdict(),
            None => self.is_stored.then_some(false),
        }
    }
}

#[derive(Debug, Clone)]
pub struct SentDelivery {
    pub delivery: Delivery,
    /// Attempts, oldest first; omitted for older deliveries.
    pub attempts: Vec<Attempt>,
    /// Outcome of the digest that includes the delivery; `None` if the delivery was sent
    /// separately.
    pub digest: Option<DigestEnd>,
    pub waiting: WaitReason,
}

#[derive(Debug, Clone)]
pub struct DigestEnd {
    pub id: RecordId,
    pub state: DeliveryState,
    pub end_ms: Option<i64>,
    pub count: u32,
}

impl SentDelivery {
    fn is_shadow(&self) -> bool {
        self.delivery.state == DeliveryState::Shadowed
    }

    fn final_state(&self) -> DeliveryState {
        let digest = self.digest.as_ref();
        digest.map_or(self.delivery.state, |it| it.state)
    }

    /// Returns the state of the message, or of the digest that includes it.
    pub fn outcome(&self) -> NotificationOutcome {
        match self.final_state() {
            DeliveryState::Delivered => NotificationOutcome::Sent,
            DeliveryState::Shadowed => NotificationOutcome::Recorded,
            // The digest is no longer stored.
            DeliveryState::Folded => NotificationOutcome::Unknown,
            DeliveryState::Dead | DeliveryState::Cancelled => NotificationOutcome::NotSent,
            DeliveryState::Pending { .. }
            | DeliveryState::Leased { .. }
            | DeliveryState::Retry { .. } => NotificationOutcome::Waiting,
        }
    }
}

/// Returns the best outcome of a rule's deliveries, which is unknown if they are no longer stored;
/// `None` if there were none.
fn best_outcome(notified: Option<&Notified>, sent: &[SentDelivery]) -> Option<NotificationOutcome> {
    if sent.is_empty() {
        let notified = notified.filter(|it| !it.destinations.is_empty());
        return notified.map(|_| NotificationOutcome::Unknown);
    }
    let order = [
        NotificationOutcome::Sent,
        NotificationOutcome::Waiting,
        NotificationOutcome::Recorded,
        NotificationOutcome::NotSent,
        NotificationOutcome::Unknown,
    ];
    let has = |outcome: &NotificationOutcome| sent.iter().any(|it| it.outcome() == *outcome);
    order.into_iter().find(has)
}

/// Explains every rule, by name. Includes deleted rules that notified, or that were in force at a
/// decision.
pub async fn explain(
    store: &Store,
    snapshot: &Snapshot,
    occurrence: &Occurrence,
    now_ms: i64,
) -> Result<Vec<RuleExplanation>, Error> {
    let mut sent = sent::deliveries_by_rule(store, occurrence).await?;
    let ahead_ms = i64::try_from(EVENT_AHEAD_MAX.as_millis()).unwrap_or(i64::MAX);
    let since_ms = occurrence.start_ms.saturating_sub(ahead_ms + EDIT_MS);
    let definitions = Definitions::read(store, snapshot, since_ms).await?;
    let notified = occurrence.notified.iter().flat_map(|it| &it.destinations);
    let notified = notified.map(|(id, name)| (*id, name));
    let current = snapshot.destinations().map(|it| (it.id, &it.name));
    let pauses = PauseHistory::read(store, notified.chain(current)).await?;
    let limit = (EVALUATIONS_MAX / definitions.len().max(1)).clamp(2, POINTS_MAX);
    let points = timeline::decision_points(occurrence, limit).into_iter();
    let now = DecisionPoint {
        at_ms: now_ms,
        rules_ms: now_ms,
        last: true,
    };
    let mut judge = Judge {
        snapshot,
        pauses,
        states: points
            .map(|point| (point, timeline::state_at(occurrence, point)))
            .collect(),
        now: (now, PastState::from_current(occurrence.clone())),
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
        scan::yield_if_needed().await;
        let deliveries = sent.remove(&id).unwrap_or_default();
        let notified = occurrence.notified.iter().find(|it| it.rule == id);
        let subject = Subject {
            name: &name,
            id,
            notified,
            sent: &deliveries,
        };
        let explained = explain_rule(&mut judge, &subject, deleted_ms);
        explanations.extend(explained.map(|it| {
            it.with_deliveries(notified, deliveries, now_ms)
                .with_pending(id, snapshot, occurrence)
        }));
    }
    for notified in &occurrence.notified {
        if !known.contains(&notified.rule) {
            explanations.push(unstored_explanation(
                notified,
                sent.remove(&notified.rule).unwrap_or_default(),
            ));
        }
    }
    for rule in &mut explanations {
        let judgements = std::iter::once(&mut rule.main).chain(&mut rule.others);
        judgements.for_each(|it| it.reason.drop_passed_end(now_ms));
    }
    explanations.sort_by(|a, b| {
        let key = |it: &RuleExplanation| (it.deleted, it.rule_name.clone());
        key(a).cmp(&key(b))
    });
    Ok(explanations)
}

pub async fn add_waits(all: &Deliveries, rules: &mut [RuleExplanation]) -> Result<(), Error> {
    let mut reasons = all.wait_reasons();
    let sent = rules.iter_mut().flat_map(|rule| &mut rule.deliveries);
    let is_waiting = |it: &&mut SentDelivery| it.final_state().due_ms().is_some();
    for sent in sent.filter(is_waiting) {
        sent.waiting = match &sent.digest {
            None => reasons.wait_reason(&sent.delivery).await?,
            Some(digest) => {
                let (digest, _) = all.get(digest.id).await?;
                reasons.wait_reason(&digest).await?
            }
        };
    }
    Ok(())
}

/// Explains one rule; `None` if it was deleted before the first decision.
fn explain_rule(
    judge: &mut Judge<'_>,
    subject: &Subject<'_>,
    deleted_ms: Option<i64>,
) -> Option<RuleExplanation> {
    let decided = subject.notified.is_some() || !subject.sent.is_empty();
    let is_notified = subject.notified.is_some_and(|it| !it.shadow);
    let notified = is_notified || subject.sent.iter().any(|it| !it.is_shadow());
    let now = judge.evaluate_current(subject);
    let decisions = judge.states.len();
    let mut others = Vec::new();
    let main = match judge.judge_opening(subject) {
        Some(mut opening) if decided => {
            let last = judge.states.first().map(|(point, _)| *point);
            if last.is_some_and(|it| it.last && it.at_ms > opening.at_ms) {
                others.push(judge.judge_decision(subject, 0));
            }
            let suffix = outcome_suffix(subject.sent);
            opening.reason.detail.push_str(&suffix);
            Some(opening)
        }
        _ => {
            let held_back = (0..decisions).find(|at| judge.was_held(subject, *at));
            let existed = (0..decisions).find(|at| judge.rule_existed(subject, *at));
            let gone = deleted_ms.is_some() && existed.is_none() && !decided;
            if gone {
                return None;
            }
            let shown = held_back.or(existed.filter(|_| deleted_ms.is_some()));
            let shown = shown.or((decisions > 0).then_some(0));
            shown.map(|at| judge.judge_decision(subject, at))
        }
    };
    let main = main.or_else(|| now.clone())?;
    others.extend(now);
    Some(RuleExplanation {
        rule_name: subject.name.clone(),
        deleted: deleted_ms.is_some(),
        deleted_ms,
        notified,
        main,
        others,
        notifications: sent::list_notifications(subject.notified, subject.sent),
        deliveries: Vec::new(),
        held_by: Vec::new(),
        skipped_reason: None,
        hold_changes: Vec::new(),
    })
}

impl RuleExplanation {
    fn with_deliveries(
        mut self,
        notified: Option<&Notified>,
        deliveries: Vec<SentDelivery>,
        now_ms: i64,
    ) -> Self {
        self.main.reason.delivered = best_outcome(notified, &deliveries);
        self.main
            .gates
            .extend(gates::budget_gate(&deliveries, now_ms));
        Self { deliveries, ..self }
    }

    /// Adds the pending message and past holds. They take precedence as the reason why the rule did
    /// not notify.
    fn with_pending(
        mut self,
        rule: RecordId,
        snapshot: &Snapshot,
        occurrence: &Occurrence,
    ) -> Self {
        let changes = occurrence.hold_changes.iter();
        self.hold_changes = changes.filter(|it| it.rule == rule).cloned().collect();
        let is_matched = self.others.last().is_some_and(|now| now.held_back);
        if is_matched && occurrence.status == Status::Suppressed {
            self.held_by
                .extend(holds::suppression_hold(&self.rule_name, rule, occurrence));
        }
        let pending = occurrence.pending.iter().find(|it| it.rule == rule);
        if let Some(pending) = pending {
            self.main.reason = Reason::from_pending(pending, snapshot);
            self.held_by.extend_from_slice(&pending.held_by);
            return self;
        }
        if let Some(skipped) = Reason::from_skipped(occurrence, rule) {
            self.skipped_reason = Some(skipped.detail.clone());
            if !self.notified {
                self.main.reason = skipped;
            }
        }
        self
    }
}

fn unstored_explanation(notified: &Notified, deliveries: Vec<SentDelivery>) -> RuleExplanation {
    let first = deliveries.first().map(|it| it.delivery.create_ms);
    let at_ms = first.unwrap_or(notified.last_ms);
    let suffix = outcome_suffix(&deliveries);
    let mut reason = Reason::new_notified(
        notified.shadow,
        format!("the rule was deleted and is no longer stored{suffix}"),
    );
    reason.delivered = best_outcome(Some(notified), &deliveries);
    RuleExplanation {
        rule_name: notified.rule_name.clone(),
        deleted: true,
        deleted_ms: None,
        notified: !notified.shadow,
        main: Judgement {
            basis: DecisionBasis::Notification,
            at_ms,
            notifies: true,
            held_back: false,
            reason,
            definition: None,
            triggers: Vec::new(),
            gates: Vec::new(),
        },
        others: Vec::new(),
        notifications: sent::list_notifications(Some(notified), &deliveries),
        deliveries,
        held_by: Vec::new(),
        skipped_reason: None,
        hold_changes: Vec::new(),
    }
}

fn outcome_suffix(sent: &[SentDelivery]) -> String {
    let ended = |state: DeliveryState| sent.iter().filter(|it| it.final_state() == state).count();
    let (delivered, dead) = (ended(DeliveryState::Delivered), ended(DeliveryState::Dead));
    let folded = sent.iter().filter(|it| it.digest.is_some()).count();
    let folded = match folded {
        0 => String::new(),
        folded => format!(", {folded} in a digest"),
    };
    let shadows = sent.iter().filter(|it| it.is_shadow()).count();
    match sent.len() {
        count if count > 0 && shadows == count => format!(". {count} recorded, none sent"),
        0 => ". Its deliveries are no longer stored".into(),
        1 => format!(". 1 message, {delivered} delivered, {dead} failed{folded}"),
        count => format!(". {count} messages, {delivered} delivered, {dead} failed{folded}"),
    }
}
