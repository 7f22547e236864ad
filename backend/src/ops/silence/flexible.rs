//! Silences that begin by themselves: checked, and begun when they first cover something open.

use super::{SilenceDraft, days, millis};
use crate::{
    domain::{Flexible, Occurrence, RecordId, Silence},
    error::Error,
    limits::SILENCE_LENGTH_MAX,
    ops::{commit::commit, deciding::Deciding, validate::Faults},
    store::{
        Direction, Index, Lane, Record as _, SilenceStanding, engine::Range, record::bytes::Key,
    },
};

/// Occurrences that are looked at for when it began.
const LOOKED_AT_MAX: usize = 100;

/// Where a flexible silence is in time.
pub(super) struct Span {
    pub(super) start_ms: i64,
    pub(super) end_ms: i64,
    pub(super) flexible: Flexible,
}

/// The span of a draft that is flexible, and that it had before.
pub(super) fn span(
    (draft, duration_ms): (&SilenceDraft, i64),
    stored: Option<&Silence>,
    now_ms: i64,
    faults: &mut Faults,
) -> Option<Span> {
    let before = stored.and_then(|it| it.flexible);
    let begun = stored.filter(|it| !it.is_armed() && it.start_ms <= now_ms);
    if begun.is_some() && before.is_none() {
        faults.add("flexible", "the silence has already started");
        return None;
    }
    let known = before.filter(|it| it.start_ms <= now_ms);
    let start_ms = match (known, draft.start_ms) {
        (Some(known), Some(asked)) if asked != known.start_ms => {
            let fault = "has passed, and cannot be changed any more; leave it out";
            faults.add("flexible.startTime", fault);
            return None;
        }
        (Some(known), _) => known.start_ms,
        (None, asked) => asked.unwrap_or(now_ms),
    };
    let Some(end_ms) = draft.end_ms else {
        faults.add_new("flexible.endTime", "is required");
        return None;
    };
    let length_max_ms = millis(SILENCE_LENGTH_MAX);
    let mut is_right = true;
    let mut refuse = |field: &str, fault: String| {
        faults.add(field, fault);
        is_right = false;
    };
    if end_ms <= start_ms {
        let fault = "is not after `flexible.startTime`";
        refuse("flexible.endTime", fault.into());
    } else if stored.is_none() && end_ms <= now_ms {
        refuse("flexible.endTime", "has passed".into());
    } else if end_ms.saturating_sub(start_ms) > length_max_ms {
        let (found, most) = (days(end_ms - start_ms), days(length_max_ms));
        let fault = format!("is {found} after the start; at most {most} are allowed");
        refuse("flexible.endTime", fault);
    }
    if !(1_000..=length_max_ms).contains(&duration_ms) {
        let fault = format!(
            "is {} s; give 1 s to {}",
            duration_ms / 1_000,
            days(length_max_ms)
        );
        refuse("flexible.duration", fault);
    }
    let flexible = Flexible {
        start_ms,
        end_ms,
        duration_ms,
    };
    let (start_ms, end_ms) = match (begun, before) {
        // The end that an operator moved stays.
        (Some(begun), Some(before)) if before.duration_ms == duration_ms => {
            (begun.start_ms, begun.end_ms)
        }
        (Some(begun), _) => {
            let end_ms = begun.start_ms.saturating_add(duration_ms);
            (begun.start_ms, end_ms.max(now_ms))
        }
        (None, _) => (start_ms, end_ms),
    };
    is_right.then_some(Span {
        start_ms,
        end_ms,
        flexible,
    })
}

/// Begins the silences that cover something open, or did, and wait for that.
///
/// # Errors
/// Those of the store: what did not begin does the next time.
pub async fn begin(deciding: &Deciding) -> Result<(), Error> {
    let snapshot = deciding.ruleset.refreshed().await?;
    let now_ms = deciding.clock.now_ms();
    for loaded in snapshot.silences().all() {
        let silence = &loaded.silence;
        if !silence.is_armed() || !loaded.is_in_force(now_ms) {
            continue;
        }
        if let Some(first_ms) = first_ms(deciding, silence).await? {
            let least_ms = silence.start_ms.max(silence.update_ms);
            let start_ms = first_ms.clamp(least_ms, now_ms.max(least_ms));
            note(deciding, silence, start_ms).await?;
        }
    }
    Ok(())
}

/// When it first covered something open, as far as that is noted; none when it did not.
async fn first_ms(deciding: &Deciding, silence: &Silence) -> Result<Option<i64>, Error> {
    let mut first_ms = None;
    for standing in [
        SilenceStanding::Covered,
        SilenceStanding::Pending,
        SilenceStanding::Skipped,
    ] {
        let prefix = Key::new().byte(standing as u8).id(silence.id).build();
        let (index, ascending) = (Index::OccurrenceBySilence, Direction::Ascending);
        let found = deciding.store.page_by::<Occurrence>(
            index,
            Range::under(&prefix),
            ascending,
            LOOKED_AT_MAX,
        );
        for (_, found) in found.await? {
            let at_ms = since_ms(&found.value, silence.id);
            first_ms = Some(first_ms.map_or(at_ms, |first_ms: i64| first_ms.min(at_ms)));
        }
    }
    Ok(first_ms)
}

/// When a silence held something of an occurrence first; else when that was decided on last.
fn since_ms(occurrence: &Occurrence, silence: RecordId) -> i64 {
    let mut changes = occurrence.hold_changes.iter();
    let held = changes.find(|it| it.held_by.iter().any(|it| it.id == silence));
    let decided_ms = occurrence.evaluation.map(|it| it.at_ms);
    held.map(|it| it.at_ms).or(decided_ms).unwrap_or_default()
}

/// Notes that a silence began; nothing when it was edited or deleted meanwhile.
async fn note(deciding: &Deciding, silence: &Silence, start_ms: i64) -> Result<(), Error> {
    let store = &deciding.store;
    let decide = async || {
        let mut changes = store.changes();
        let stored = store.get::<Silence>(silence.key()).await?;
        let is_same = |it: &Silence| it.id == silence.id && it.revision == silence.revision;
        let stored = stored.filter(|it| is_same(&it.value) && it.value.is_armed());
        if let Some(stored) = stored {
            let mut next = stored.value.clone();
            next.begin(start_ms);
            changes.update(&stored, &next);
        }
        Ok((changes, ()))
    };
    commit(store, Lane::Admin, decide).await?;
    Ok(())
}
