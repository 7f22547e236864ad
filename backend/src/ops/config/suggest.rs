//! Suggestions: changes of the configuration that would have sent less, each proved by a replay.

mod candidates;
mod counted;

use std::cmp::Reverse;

use bellwether_proto::v1::config_document::Resource as Definition;

use self::candidates::{Candidate, History};
use super::{
    Document,
    impact::{Impacts, compared, repeat},
};
use crate::{
    clock::DAY_MS,
    domain::{Inhibition, Rule, Severity},
    error::Error,
    limits::{
        REPLAY_DAYS, REPLAY_TIME_MAX, SUGGESTION_SAVES_MIN, SUGGESTIONS_MAX, SUGGESTIONS_TIME_MAX,
        SUGGESTIONS_TRIED_MAX,
    },
    ops::{
        replay::{Replayed, Timeline, replay},
        wire::Shows as _,
    },
    store::engine::Range,
};

/// How long a replay continues without anything new, in milliseconds: what a delay or a group holds is sent
/// by then.
const TAIL_MS: i64 = 16 * 60_000;

/// What a suggestion changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuggestionKind {
    /// A rule gets a delay.
    Delay,
    /// A rule groups.
    Group,
    /// An inhibition.
    Inhibition,
    /// A rule becomes a dry run.
    UnusedRule,
    /// A silence ends.
    IdleSilence,
}

/// A change that would have sent less.
#[derive(Debug, Clone)]
pub struct Suggested {
    /// What it changes.
    pub kind: SuggestionKind,
    /// The name of what it changes or makes.
    pub name: String,
    /// Why, for people.
    pub evidence: String,
    /// What would have been different, for people.
    pub effect: String,
    /// Messages that would have been sent.
    pub messages: usize,
    /// Messages with what is stored now.
    pub messages_before: usize,
    /// The changed resource; none for what is no configuration.
    pub draft: Option<Definition>,
}

/// Changes that would have sent less.
#[derive(Debug, Default)]
pub struct Suggestions {
    /// The changes, the greatest effect first.
    pub found: Vec<Suggested>,
    /// What happened from then on was looked at, in milliseconds since 1970,
    pub start_ms: i64,
    /// and up to then.
    pub end_ms: i64,
    /// Whether not everything was looked at.
    pub stopped_early: bool,
}

impl Impacts {
    /// What would have sent less in the last days. A change is suggested if it would have saved some
    /// messages, and would have kept no critical event from notifying.
    ///
    /// # Errors
    /// [`Error::Exhausted`] while another one or an impact is under way; those of the store.
    pub async fn suggestions(&self) -> Result<Suggestions, Error> {
        let _turn = self.turn()?;
        let (stored, clock) = (&self.configuration.store, &self.deciding.clock);
        let now_ms = clock.now_ms();
        let since_ms = now_ms.saturating_sub(i64::from(REPLAY_DAYS) * DAY_MS);
        let timeline = Timeline::read(stored, since_ms, repeat(stored).await?).await?;
        let end = clock.passed() + SUGGESTIONS_TIME_MAX;
        let until = || end.min(clock.passed() + REPLAY_TIME_MAX);
        let until_ms = now_ms.saturating_add(TAIL_MS);
        let before = replay((stored, &self.deciding), &timeline, until_ms, until()).await?;
        let history = History::new(&timeline, self.rules().await?);
        let mut candidates = history
            .candidates(self.inhibitions().await?.as_slice())
            .await;
        candidates.extend(counted::unused_rules(stored, &history, now_ms).await?);
        candidates.sort_by_key(|it| Reverse(it.saves));
        let mut all = Suggestions {
            start_ms: timeline.since_ms,
            end_ms: before.until_ms.min(now_ms),
            stopped_early: timeline.is_cut
                || before.until_ms < until_ms
                || candidates.len() > SUGGESTIONS_TRIED_MAX,
            ..Suggestions::default()
        };
        for candidate in candidates.into_iter().take(SUGGESTIONS_TRIED_MAX) {
            if clock.passed() >= end {
                all.stopped_early = true;
                break;
            }
            let tried = self.tried(candidate, (&timeline, &before, now_ms), until());
            all.found.extend(tried.await?);
        }
        let saved = |it: &Suggested| Reverse(it.messages_before - it.messages);
        all.found.sort_by_key(saved);
        let sent = before.messages.iter();
        let sent = sent.filter(|it| (all.start_ms..=all.end_ms).contains(&it.at_ms));
        if !timeline.is_cut {
            let snapshot = self.deciding.ruleset.refreshed().await?;
            let idle = counted::idle_silences(&snapshot, &history, now_ms, sent.count());
            all.found.extend(idle);
        }
        all.found.truncate(SUGGESTIONS_MAX);
        Ok(all)
    }

    /// The effect of a change; none where it is no improvement.
    async fn tried(
        &self,
        candidate: Candidate,
        (timeline, before, now_ms): (&Timeline, &Replayed, i64),
        end: std::time::Duration,
    ) -> Result<Option<Suggested>, Error> {
        let document = Document {
            definition: candidate.draft.clone(),
            must_be_new: candidate.kind == SuggestionKind::Inhibition,
        };
        let (staged, _) = match self.configuration.staged(&[document], "").await {
            Ok(staged) => staged,
            // Such as a name that is too much like another one.
            Err(Error::Invalid(_) | Error::AlreadyExists(_) | Error::Aborted(_)) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let after = replay(
            (staged.store(), &self.deciding),
            timeline,
            before.until_ms,
            end,
        );
        let impact = compared(timeline, before, &after.await?, now_ms);
        let saved = impact.messages_before.saturating_sub(impact.messages);
        let mut silent = impact.no_longer_notified.iter();
        if saved < SUGGESTION_SAVES_MIN || silent.any(|it| it.severity == Severity::Critical) {
            return Ok(None);
        }
        let span = span(impact.end_ms.min(now_ms) - impact.start_ms);
        let (messages, messages_before) = (impact.messages, impact.messages_before);
        let sent = many(messages, "message");
        let silent = match impact.no_longer_notified_count {
            0 => String::new(),
            count => format!(
                "; {} would not have notified, none critical",
                many(count, "occurrence")
            ),
        };
        let effect =
            format!("would have sent {sent} instead of {messages_before} in {span}{silent}");
        Ok(Some(Suggested {
            kind: candidate.kind,
            name: candidate.name,
            evidence: candidate.evidence,
            effect,
            messages,
            messages_before,
            draft: Some(candidate.draft),
        }))
    }

    async fn rules(&self) -> Result<Vec<Rule>, Error> {
        let mut rules = Vec::new();
        let mut pages = self.configuration.store.pages::<Rule>(Range::under(&[]));
        while let Some(page) = pages.next().await? {
            rules.extend(page.into_iter().map(|it| it.value));
        }
        Ok(rules)
    }

    async fn inhibitions(&self) -> Result<Vec<Inhibition>, Error> {
        let mut all = Vec::new();
        let store = &self.configuration.store;
        let mut pages = store.pages::<Inhibition>(Range::under(&[]));
        while let Some(page) = pages.next().await? {
            all.extend(page.into_iter().map(|it| it.value));
        }
        Ok(all)
    }
}

/// So many of a thing, for people.
fn many(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// A length of time, for people.
fn span(ms: i64) -> String {
    let hours = ms.max(0) / 3_600_000;
    if hours >= 48 {
        format!("{} days", (hours + 12) / 24)
    } else {
        format!("{} h", hours.max(1))
    }
}

/// A rule as a document, changed.
fn changed(rule: &Rule, change: impl FnOnce(&mut Rule)) -> Definition {
    let mut rule = rule.clone();
    change(&mut rule);
    Definition::of(rule)
}

#[cfg(test)]
mod tests;
