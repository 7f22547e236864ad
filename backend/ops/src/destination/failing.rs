//! Reports failing destinations: in the log when they begin to fail and recover, and as an event if
//! the failure lasts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use crate::{
    clock::to_millis,
    decide::{Causes, PastDefinitions, Snapshot, Step, StepKind, Transition, notify},
    decision_context::{DecisionContext, new_id},
    domain::{
        Destination, Health, HealthState, IncomingEvent, Name, RecordId, Severity,
        counter::{Subject, Tally},
        own_event::DESTINATION_FAILING,
    },
    error::Error,
    find,
    intake::Intake,
    lifecycle::{Arrival, EventEffect, apply_event},
    repeat::repeat_until_shutdown,
    store::EngineError,
};

const INTERVAL: Duration = Duration::from_secs(5);
/// Consecutive failures after which a destination counts as failing.
const FAILURES_MIN: u32 = 5;
/// Minimum duration of the failure before an event is opened.
const LASTS_MIN: Duration = Duration::from_secs(120);

/// Task on the leader that reports failing destinations.
#[derive(Debug)]
pub struct FailingWatch {
    deciding: DecisionContext,
    intake: Intake,
    seen: BTreeMap<RecordId, KnownHealth>,
    has_checked: bool,
}

#[derive(Debug, Default)]
struct KnownHealth {
    is_failing: bool,
    /// Time since which the destination has been failing, in milliseconds since the epoch; `None`
    /// if it is not.
    open_since_ms: Option<i64>,
    /// Severity of the open event about the destination; `None` until it has been read.
    event: Option<ReportedSeverity>,
}

/// The severity of an open event; `None` if it is closed.
type ReportedSeverity = Option<Severity>;

impl FailingWatch {
    pub fn new(deciding: DecisionContext, intake: Intake) -> Self {
        Self {
            deciding,
            intake,
            seen: BTreeMap::new(),
            has_checked: false,
        }
    }

    pub async fn run(self, shutdown: CancellationToken) {
        let clock = Arc::clone(&self.deciding.clock);
        repeat_until_shutdown(
            self,
            &*clock,
            INTERVAL,
            shutdown,
            "failed to check the health of destinations",
            |it| Box::pin(it.run_once()),
        )
        .await;
    }

    pub async fn run_once(&mut self) -> Result<(), Error> {
        let snapshot = self.deciding.ruleset.refresh().await?;
        let destinations: Vec<_> = snapshot.destinations().collect();
        let keys = destinations.iter().map(|it| it.id.to_bytes().into());
        let healths = self.deciding.store.get_readable::<Health>(keys.collect());
        let (healths, _) = healths.await?;
        let ids: BTreeSet<_> = destinations.iter().map(|it| it.id).collect();
        self.seen.retain(|id, _| ids.contains(id));
        for (destination, health) in destinations.into_iter().zip(healths) {
            let health = health.map(|it| it.value);
            self.check_destination(&snapshot, destination, health.as_ref())
                .await?;
        }
        self.has_checked = true;
        Ok(())
    }

    async fn check_destination(
        &mut self,
        snapshot: &Snapshot,
        destination: &Destination,
        health: Option<&Health>,
    ) -> Result<(), Error> {
        let now_ms = self.deciding.clock.now_ms();
        let state = health.map(|it| it.state);
        let failing = health.filter(|it| it.state == HealthState::Failing);
        let seen = self.seen.entry(destination.id).or_default();
        let was_failing = seen.is_failing;
        // A paused destination has not recovered.
        let is_failing = failing.is_some() || was_failing && state == Some(HealthState::Paused);
        seen.is_failing = is_failing;
        seen.open_since_ms = match failing {
            Some(health) if health.failures >= FAILURES_MIN => {
                let began_ms = if self.has_checked {
                    now_ms
                } else {
                    health.since_ms
                };
                seen.open_since_ms.or(Some(began_ms))
            }
            _ => None,
        };
        let (open_since_ms, event) = (seen.open_since_ms, seen.event);
        if is_failing != was_failing {
            self.log_change(destination, failing).await?;
        }
        let has_recovered = !matches!(state, Some(HealthState::Failing | HealthState::Paused));
        let is_due = open_since_ms.is_some_and(|it| now_ms - it >= to_millis(LASTS_MIN));
        if !is_due && (!has_recovered || event == Some(None)) {
            return Ok(());
        }
        let due = failing.filter(|_| is_due);
        let reported =
            due.map(|health| failing_destination_event(snapshot, destination, health, now_ms));
        let said = self
            .report_change(destination, event, reported, now_ms)
            .await?;
        if let Some(seen) = self.seen.get_mut(&destination.id) {
            seen.event = Some(said);
        }
        Ok(())
    }

    /// Opens, updates or closes the event about a destination. Returns the event's severity; `None`
    /// if the event is closed.
    async fn report_change(
        &self,
        destination: &Destination,
        known: Option<ReportedSeverity>,
        reported: Option<IncomingEvent>,
        now_ms: i64,
    ) -> Result<Option<Severity>, Error> {
        let severity = reported.as_ref().and_then(|it| it.severity);
        if known == Some(severity) {
            return Ok(severity);
        }
        let event = reported.unwrap_or_else(|| recovered_event(destination.name.as_str(), now_ms));
        if find::has_effect(&self.deciding.store, &event).await? {
            self.intake.submit_internal(event, Vec::new()).await?;
        }
        Ok(severity)
    }

    async fn log_change(
        &self,
        destination: &Destination,
        failing: Option<&Health>,
    ) -> Result<(), EngineError> {
        let subjects = [Subject::Destination(destination.id)];
        let counted = self.deciding.store.current_counts(&subjects).await?;
        let waiting = counted.first().map_or(0, |it| it.get(Tally::Waiting));
        let destination = destination.name.as_str();
        if let Some(health) = failing {
            let error = &health.last_error;
            tracing::warn!(destination, error, waiting, "a destination is failing");
        } else {
            tracing::info!(destination, waiting, "a destination has recovered");
        }
        Ok(())
    }
}

fn failing_destination_event(
    snapshot: &Snapshot,
    destination: &Destination,
    health: &Health,
    now_ms: i64,
) -> IncomingEvent {
    let name = &destination.name;
    let (severity, paged) = if is_used_for_paging(snapshot, name) {
        (Severity::Critical, "It is used for paging. ")
    } else {
        (Severity::Error, "")
    };
    let summary = format!("destination {name} is failing; its messages are waiting");
    IncomingEvent {
        body: format!(
            "{}\n{paged}Deliveries are retried; messages wait or become dead letters.",
            health.last_error
        ),
        ..DESTINATION_FAILING.opened([name.as_str()], severity, summary, now_ms)
    }
}

fn recovered_event(destination: &str, now_ms: i64) -> IncomingEvent {
    let summary = format!("destination {destination} has recovered");
    DESTINATION_FAILING.closed([destination], summary, now_ms)
}

fn is_used_for_paging(snapshot: &Snapshot, destination: &Name) -> bool {
    let responders = snapshot.responders();
    let of_contact = |it: &Name| {
        let contact = responders.contacts.get(it);
        contact.is_some_and(|it| it.destinations().any(|it| it == destination))
    };
    let of_schedule = |it: &Name| {
        let schedule = responders.schedules.get(it);
        schedule.is_some_and(|it| it.schedule.contacts().any(of_contact))
    };
    responders.policies.values().any(|policy| {
        policy.destinations().any(|it| it == destination)
            || policy.contacts().any(of_contact)
            || policy.schedules().any(of_schedule)
    })
}

/// Returns whether the event about a failing destination would only be sent to failing
/// destinations.
pub fn would_notify_no_one(
    snapshot: &Snapshot,
    destination: &Destination,
    health: &Health,
    failing: &BTreeSet<&str>,
    now_ms: i64,
) -> bool {
    let event = failing_destination_event(snapshot, destination, health, now_ms);
    let receivers = receiver_names(snapshot, &event, now_ms);
    !receivers.is_empty() && receivers.iter().all(|it| failing.contains(it.as_str()))
}

/// Returns the destinations to which an event would be sent, including by rules that would delay
/// it.
fn receiver_names(snapshot: &Snapshot, event: &IncomingEvent, now_ms: i64) -> BTreeSet<String> {
    let arrival = Arrival {
        enrichments: snapshot.enrichments(),
        event,
        author: None,
        chain: &[],
        trace: None,
        now_ms,
    };
    let key = new_id(now_ms);
    let EventEffect::Opened(mut occurrence) = apply_event(None, &arrival, snapshot.settings(), key)
    else {
        return BTreeSet::new();
    };
    let matches = snapshot.matching_triggers(&occurrence);
    let past = PastDefinitions::default().with_causes(&Causes::default());
    let step = Step {
        kind: StepKind::Event,
        transition: Transition::default(),
        matches: &matches,
        now_ms,
        past: &past,
    };
    let notices = notify(&mut occurrence, &step, snapshot, &mut || new_id(now_ms));
    let sent = notices.deliveries.iter();
    let sent = sent.filter(|it| it.state.due_ms().is_some());
    let sent = sent.map(|it| it.destination_name.clone());
    let held = occurrence.pending.iter();
    let held = held.filter_map(|it| snapshot.rule(it.rule));
    let held = held.flat_map(|it| &it.destination_names);
    sent.chain(held.map(ToString::to_string)).collect()
}

#[cfg(test)]
mod tests;
