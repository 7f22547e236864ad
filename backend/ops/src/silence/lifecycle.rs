//! Reports silences that begin, end soon or have ended, and ends silences that no longer cover any
//! event.

use std::sync::Arc;

use futures_util::{
    TryFutureExt as _,
    future::{try_join, try_join3},
};

use super::{count_with_standing, silence_event_id};
use crate::{
    commit::commit,
    decide::{LoadedSilence, Snapshot},
    decision_context::DecisionContext,
    domain::{
        IncomingEvent, Progress, Severity, Silence, SilenceState, Stage, Status, own_event::SILENCE,
    },
    error::Error,
    find,
    intake::Intake,
    store::{
        Direction, Index, Lane, Record, SilenceStanding, Store, engine::Range, record::bytes::Key,
    },
};

/// Reports the stage changes of all silences.
///
/// # Errors
/// Returns an error if the store fails; the next call reports the remaining changes.
pub async fn report_stages(deciding: &DecisionContext, intake: &Intake) -> Result<(), Error> {
    let snapshot = deciding.ruleset.refresh().await?;
    let now_ms = deciding.clock.now_ms();
    let all = snapshot.silences().as_slice().iter();
    let changed = all.map(|it| (it, current_stage(it, now_ms)));
    let changed = changed.filter(|(it, stage)| *stage != it.silence.progress.stage);
    let report = |store: Store, (loaded, stage): (&Arc<LoadedSilence>, _)| {
        let (deciding, loaded) = (deciding.with_store(store), Arc::clone(loaded));
        async move { report_stage((&deciding, intake), &loaded, stage, now_ms).await }
    };
    deciding.store.read_each(changed, report).await?;
    Ok(())
}

async fn report_stage(
    (deciding, intake): (&DecisionContext, &Intake),
    loaded: &LoadedSilence,
    stage: Stage,
    now_ms: i64,
) -> Result<(), Error> {
    let silence = &loaded.silence;
    if stage == Stage::Unreported {
        close_event((deciding, intake), silence, "until its next window").await?;
    } else if stage == Stage::Over {
        close_event((deciding, intake), silence, "expired").await?;
    } else {
        let event = in_force_event(loaded, stage, now_ms);
        intake.submit_internal(event, Vec::new()).await?;
    }
    let change = |progress: &mut Progress| {
        progress.stage = stage;
        if stage == Stage::Unreported {
            // Open events are scanned again, because the next window begins.
            progress.counted_revision = 0;
        }
    };
    update_progress(deciding, silence, &change, None).await
}

fn current_stage(loaded: &LoadedSilence, now_ms: i64) -> Stage {
    let silence = &loaded.silence;
    match loaded.state_at(now_ms) {
        SilenceState::Expired => Stage::Over,
        SilenceState::Scheduled => Stage::Unreported,
        SilenceState::Active if silence.warning_ms().is_some_and(|at_ms| at_ms <= now_ms) => {
            Stage::EndsSoon
        }
        SilenceState::Active => Stage::InForce,
    }
}

/// Ends silences that have covered an event and then none for long enough.
pub async fn end_idle_silences(deciding: &DecisionContext) -> Result<(), Error> {
    let snapshot = deciding.ruleset.refresh().await?;
    let now_ms = deciding.clock.now_ms();
    let all = snapshot.silences().as_slice().iter();
    let expiring = all.filter(|it| it.silence.expire_when_idle_ms.is_some());
    let expiring = expiring.filter(|it| it.is_in_force(now_ms));
    let end = |store: Store, loaded: &Arc<LoadedSilence>| {
        let (deciding, loaded) = (deciding.with_store(store), Arc::clone(loaded));
        async move { end_if_idle(&deciding, &loaded.silence, now_ms).await }
    };
    deciding.store.read_each(expiring, end).await?;
    Ok(())
}

async fn end_if_idle(
    deciding: &DecisionContext,
    silence: &Silence,
    now_ms: i64,
) -> Result<(), Error> {
    // Read the stored version: a clock step may have changed it since the rules were loaded.
    let stored = deciding
        .store
        .get::<Silence>(silence.key())
        .map_err(Error::from);
    let (stored, covers) = try_join(stored, covers_any_occurrence(deciding, silence)).await?;
    let Some(stored) = stored else {
        return Ok(());
    };
    let known = stored.value.progress;
    let next = match (covers, known.idle_since_ms) {
        (true, _) => Progress {
            has_covered: true,
            idle_since_ms: None,
            ..known
        },
        (false, None) if known.has_covered => Progress {
            idle_since_ms: Some(now_ms),
            ..known
        },
        (false, _) => known,
    };
    let ends_ms = Silence {
        progress: next,
        ..silence.clone()
    };
    let is_over = ends_ms.idle_ends_ms().is_some_and(|it| it <= now_ms);
    if next != known || is_over {
        let change = |progress: &mut Progress| {
            progress.has_covered = next.has_covered;
            progress.idle_since_ms = next.idle_since_ms;
        };
        update_progress(deciding, silence, &change, is_over.then_some(now_ms)).await?;
    }
    Ok(())
}

async fn covers_any_occurrence(
    deciding: &DecisionContext,
    silence: &Silence,
) -> Result<bool, Error> {
    let prefix = Key::new()
        .byte(SilenceStanding::Covered as u8)
        .id(silence.id);
    let range = Range::with_prefix(&prefix.build());
    let engine = deciding.store.engine();
    let found = engine.entries(Index::OccurrenceBySilence, range, Direction::Ascending, 1);
    Ok(!found.await?.is_empty())
}

/// Updates the progress of a silence, and ends it if `end_ms` is set. Has no effect if it was
/// deleted concurrently.
pub(crate) async fn update_progress(
    deciding: &DecisionContext,
    silence: &Silence,
    change: &(dyn Fn(&mut Progress) + Send + Sync),
    end_ms: Option<i64>,
) -> Result<(), Error> {
    let store = &deciding.store;
    let decide = async || {
        let mut changes = store.new_changes();
        let stored = store.get::<Silence>(silence.key()).await?;
        if let Some(stored) = stored.filter(|it| it.value.id == silence.id) {
            let mut next = stored.value.clone();
            change(&mut next.progress);
            next.end_ms = end_ms.map_or(next.end_ms, |end_ms| end_ms.min(next.end_ms));
            if next != stored.value {
                changes.update(&stored, &next);
            }
        }
        Ok((changes, ()))
    };
    commit(store, Lane::Admin, decide).await?;
    Ok(())
}

/// Returns the first time after `after_ms` at which a silence must be reported or ended, in
/// milliseconds since the epoch.
pub fn next_due_ms(snapshot: &Snapshot, after_ms: i64) -> Option<i64> {
    let moments = |loaded: &Arc<LoadedSilence>| {
        let silence = &loaded.silence;
        let warns_ms = silence.warning_ms();
        let idle_ms = silence.idle_ends_ms();
        [
            loaded.next_start_ms(after_ms),
            loaded.current_end_ms(after_ms),
            silence.ends_ms(),
            warns_ms,
            idle_ms,
        ]
    };
    let all = snapshot.silences().as_slice().iter().flat_map(moments);
    all.flatten().filter(|at_ms| *at_ms > after_ms).min()
}

/// Deletes silences that ended longer ago than the retention of closed occurrences.
pub async fn delete_expired(deciding: &DecisionContext) -> Result<(), Error> {
    let snapshot = deciding.ruleset.refresh().await?;
    let retention = snapshot.settings().event_retention;
    if retention.is_zero() {
        return Ok(());
    }
    let retained_ms = deciding
        .clock
        .now_ms()
        .saturating_sub(super::to_millis(retention));
    let store = &deciding.store;
    let mut pages = store.pages::<Silence>(Range::with_prefix(&[]));
    while let Some(page) = pages.next().await? {
        let mut changes = store.new_changes();
        changes.depend_on(&snapshot);
        for stored in &page {
            let is_over = stored.value.progress.stage == Stage::Over;
            if is_over && stored.value.end_ms < retained_ms {
                changes.delete(stored);
            }
        }
        if !changes.is_empty() {
            store.apply(Lane::Bulk, changes).await?;
        }
    }
    Ok(())
}

fn in_force_event(loaded: &LoadedSilence, stage: Stage, now_ms: i64) -> IncomingEvent {
    let (silence, name) = (&loaded.silence, &loaded.silence.name);
    let until = loaded.current_end_ms(now_ms);
    let until = until.map_or_else(
        || "ended manually".into(),
        crate::decide::condition::format_time,
    );
    let summary = match stage {
        Stage::EndsSoon => format!("silence `{name}` ends soon, at {until}: {}", silence.reason),
        _ => format!(
            "silence `{name}` is active until {until}: {}",
            silence.reason
        ),
    };
    let severity = match stage {
        Stage::EndsSoon => Severity::Warning,
        _ => Severity::Info,
    };
    silence_event(silence, &summary, Some(severity), Status::Open, now_ms)
}

/// Closes the event of a silence if it is open, with a summary of the notifications it held.
pub(super) async fn close_event(
    (deciding, intake): (&DecisionContext, &Intake),
    silence: &Silence,
    why: &str,
) -> Result<(), Error> {
    if !find::is_event_open(&deciding.store, silence_event_id(&silence.name)).await? {
        return Ok(());
    }
    let count = async |standing| count_with_standing(&deciding.store, standing, silence).await;
    let (covered, pending, skipped) = try_join3(
        count(SilenceStanding::Covered),
        count(SilenceStanding::Pending),
        count(SilenceStanding::Skipped),
    )
    .await?;
    let summary = format!(
        "silence `{}` has ended ({why}): it covers {covered} open events; the notifications of \
         {pending} are evaluated now, and those of {skipped} were skipped",
        silence.name
    );
    let now_ms = deciding.clock.now_ms();
    let over = silence_event(silence, &summary, None, Status::Closed, now_ms);
    intake.submit_internal(over, Vec::new()).await?;
    Ok(())
}

/// Maximum characters of a summary. A summary of this length fits, however it is encoded.
const SUMMARY_CHARACTERS_MAX: usize = 250;

fn silence_event(
    silence: &Silence,
    summary: &str,
    severity: Option<Severity>,
    status: Status,
    now_ms: i64,
) -> IncomingEvent {
    IncomingEvent {
        summary: summary.chars().take(SUMMARY_CHARACTERS_MAX).collect(),
        body: format!("By {}. Why: {}", silence.author, silence.reason),
        severity,
        status: Some(status),
        ..SILENCE.event([silence.name.as_str()], now_ms)
    }
}
