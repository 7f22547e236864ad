//! Holds notifications of events that usually close by themselves.

use super::{OutgoingNotification, format_length};
use crate::domain::{EarlierOccurrence, HeldBy, HoldKind};

/// Minimum number of known earlier occurrences.
const KNOWN_MIN: usize = 5;
/// Maximum age of the end of a known earlier occurrence, in milliseconds.
const KNOWN_FOR_MS: i64 = 30 * 24 * 3_600_000;

pub(super) fn auto_pause_hold(sending: &OutgoingNotification<'_>) -> Option<HeldBy> {
    let rule = sending.rule.filter(|_| sending.is_opening);
    let rule = rule.filter(|rule| rule.auto_pause_ms > 0);
    rule.and_then(|rule| {
        let until_ms = sending.first_ms.saturating_add(rule.auto_pause_ms);
        let (short, known) =
            count_short_occurrences(sending.earlier, rule.auto_pause_ms, sending.first_ms)?;
        (until_ms > sending.now_ms).then(|| HeldBy {
            kind: HoldKind::AutoPause,
            id: rule.id,
            name: rule.name.clone(),
            revision: rule.revision,
            since_ms: sending.first_ms,
            until_ms: Some(until_ms),
            author: None,
            shared: Vec::new(),
            detail: format!(
                "{short} of the last {known} occurrences closed automatically within {}",
                format_length(rule.auto_pause_ms)
            ),
        })
    })
}

/// Returns the number of known earlier occurrences that were closed by their sender within the
/// pause, and the number of all known ones. `None` if too few are known, or if fewer than four in
/// five were short.
fn count_short_occurrences(
    earlier: &[EarlierOccurrence],
    within_ms: i64,
    now_ms: i64,
) -> Option<(usize, usize)> {
    let is_known = |it: &&EarlierOccurrence| now_ms.saturating_sub(it.end_ms) <= KNOWN_FOR_MS;
    let known = earlier.iter().filter(is_known).count();
    let is_short = |it: &&EarlierOccurrence| it.by_sender && it.length_ms <= within_ms;
    let short = earlier.iter().filter(is_known).filter(is_short).count();
    (known >= KNOWN_MIN && short * 5 >= known * 4).then_some((short, known))
}
