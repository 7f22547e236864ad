//! Which rules no one acts on, by counters, and which silences cover nothing.

use std::collections::HashMap;

use super::{
    Suggested, SuggestionKind,
    candidates::{Candidate, History},
    changed, span,
};
use crate::{
    clock::DAY_MS,
    decide::{LoadedSilence, Snapshot},
    domain::{
        Occurrence, RecordId, SilenceState,
        counter::Subject,
        noise::{NoiseBy, NoiseTally, day},
    },
    error::Error,
    limits::SUGGESTION_SAVES_MIN,
    ops::noise::NoiseNumbers,
    store::Store,
};

/// Days in which no one acted on a rule.
const UNUSED_DAYS: i64 = 30;
/// Days in which a silence covered nothing, in milliseconds.
const IDLE_MS: i64 = 7 * DAY_MS;

/// Rules whose notifications of the last 30 days were all closed, or are open, without anyone acting.
pub(super) async fn unused_rules(
    store: &Store,
    history: &History<'_>,
    now_ms: i64,
) -> Result<Vec<Candidate>, Error> {
    let since_ms = now_ms.saturating_sub(UNUSED_DAYS * DAY_MS);
    let counted_ms = store.noise_since_ms().await?;
    if counted_ms.is_none_or(|it| it > since_ms) {
        return Ok(Vec::new());
    }
    let mut sums: HashMap<RecordId, NoiseNumbers> = HashMap::new();
    let mut pages = store.noise(NoiseBy::Rule, day(since_ms), day(now_ms).saturating_add(1));
    while let Some(page) = pages.next().await? {
        for one in page {
            if let Subject::Noise(_, id, part) = one.counter.subject {
                sums.entry(id).or_default().add(part, &one.numbers);
            }
        }
    }
    let old = history.rules.iter();
    let old = old.filter(|it| it.enabled && !it.shadow && it.update_ms <= since_ms);
    let candidates = old.filter_map(|rule| {
        let numbers = sums.get(&rule.id)?;
        let (all, notifications) = (
            numbers.of(NoiseTally::Occurrence),
            numbers.of(NoiseTally::Notification),
        );
        let closed = numbers.of(NoiseTally::NeverActedOn);
        let open = history.occurrences.iter();
        let first_ms = i64::from(day(since_ms)) * DAY_MS;
        let open = open.filter(|it| is_open_without_action(it, rule.id, first_ms));
        let open = i64::try_from(open.count()).unwrap_or_default();
        let is_unused = numbers.of(NoiseTally::Acknowledged) == 0 && closed + open >= all;
        let enough = usize::try_from(closed).is_ok_and(|it| it >= SUGGESTION_SAVES_MIN);
        (is_unused && enough).then(|| Candidate {
            kind: SuggestionKind::UnusedRule,
            name: rule.name.to_string(),
            evidence: format!(
                "rule `{}` sent {notifications} notifications about {all} occurrences in \
                 {UNUSED_DAYS} days; no one acknowledged, annotated, assigned or closed one",
                rule.name
            ),
            draft: changed(rule, |it| it.shadow = true),
            saves: usize::try_from(notifications).unwrap_or_default(),
        })
    });
    Ok(candidates.collect())
}

/// Whether a rule notified of it since a moment, and it is open without anyone having acted.
fn is_open_without_action(occurrence: &Occurrence, rule: RecordId, since_ms: i64) -> bool {
    let mut notified = occurrence.notified.iter().filter(|it| it.rule == rule);
    occurrence.close.is_none()
        && occurrence.annotations.is_empty()
        && occurrence.assignee.is_none()
        && notified.any(|it| it.opened_ms().is_some_and(|at_ms| at_ms >= since_ms))
}

/// Silences in force that have covered nothing of what happened in the last days.
pub(super) fn idle_silences(
    snapshot: &Snapshot,
    history: &History<'_>,
    now_ms: i64,
    messages: usize,
) -> Vec<Suggested> {
    let loaded = snapshot.silences();
    let idle = loaded.all().iter().filter_map(|it| {
        let silence = &it.silence;
        // An edit may have changed what it covers.
        let since_ms = silence.start_ms.max(silence.update_ms);
        let is_old = now_ms.saturating_sub(since_ms) >= IDLE_MS;
        let is_in_force = silence.state(now_ms) == SilenceState::Active;
        if !is_old || !is_in_force || silence.calendar.is_some() {
            return None;
        }
        let mut seen = history.occurrences.iter();
        if seen.any(|occurrence| has_covered(it, occurrence, snapshot)) {
            return None;
        }
        let (name, idle) = (silence.name.to_string(), span(IDLE_MS));
        Some(Suggested {
            kind: SuggestionKind::IdleSilence,
            evidence: format!("silence `{name}` has covered no event for {idle}"),
            effect: format!("would have sent the same {messages} messages: it held nothing"),
            name,
            messages,
            messages_before: messages,
            draft: None,
        })
    });
    idle.collect()
}

/// Whether a silence covers an occurrence as it is now, or is known to have held something of it.
fn has_covered(loaded: &LoadedSilence, occurrence: &Occurrence, snapshot: &Snapshot) -> bool {
    let silence = &loaded.silence;
    let pending = occurrence.pending.iter().flat_map(|it| &it.held_by);
    let changes = occurrence.hold_changes.iter().flat_map(|it| &it.held_by);
    let is_for_some = !silence.rule_names.is_empty();
    let matches = is_for_some.then(|| snapshot.matches(occurrence));
    let rules = matches.iter().flatten().map(|it| &it.rule.name);
    occurrence.covered_by.contains(&silence.id)
        || pending.chain(changes).any(|it| it.id == silence.id)
        || loaded.covers(occurrence, &rules.collect::<Vec<_>>())
}
