//! What an inhibition would hold of what is open now.

use std::{collections::BTreeMap, sync::Arc};

use super::{InhibitionDraft, Inhibitions};
use crate::{
    decide::LoadedInhibition,
    domain::{Delivery, Inhibition, Occurrence, RecordId, Status, inhibition::EqualValues},
    error::Error,
    limits::{TRIGGER_TEST_OCCURRENCES_MAX, TRIGGER_TEST_SHOWN_MAX},
    ops::{
        deciding::Deciding,
        resource::{Drafted as _, Origin},
        search::{Filter, NEWEST_FIRST, Walk},
        sent_lately::{Deadline, HeldMessages, held_messages, since_ms},
    },
};

/// Occurrences read at once.
const BATCH: usize = 500;

/// Tries drafts on what is open.
#[derive(Debug, Clone)]
pub struct Previews {
    all: Inhibitions,
    deciding: Deciding,
}

/// What an inhibition would hold now.
#[derive(Debug, Clone, Default)]
pub struct Preview {
    /// The first pairs, a cause and what it would hold.
    pub pairs: Vec<Pair>,
    /// Open or suppressed events that are sources.
    pub source_count: usize,
    /// Open events that are targets, and no sources.
    pub target_count: usize,
    /// Those of them that would be held.
    pub held_count: usize,
    /// Messages of the last days that it would have held back, as far as causes are known to have been
    /// there then: by what is stored of them now.
    pub messages: HeldMessages,
    /// What its author may not mean.
    pub warnings: Vec<String>,
    /// Whether not everything was looked at.
    pub stopped_early: bool,
}

/// A cause, and what it would hold.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The cause.
    pub source: Arc<Occurrence>,
    /// What it would hold.
    pub target: Arc<Occurrence>,
}

impl Previews {
    /// Tries drafts on what that store holds.
    pub fn new(all: Inhibitions, deciding: Deciding) -> Self {
        Self { all, deciding }
    }

    /// What a draft would hold of what is open now, by its own causes alone; nothing is stored, and the
    /// draft needs no name.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong.
    pub async fn preview(&self, mut draft: InhibitionDraft) -> Result<Preview, Error> {
        "preview".clone_into(&mut draft.name);
        let now_ms = self.deciding.clock.now_ms();
        let (inhibition, _) =
            Inhibition::checked(&self.all, &draft, None, Origin::new(now_ms)).await?;
        let mut warnings = self.all.fields.warnings(&inhibition.source).await?;
        warnings.extend(self.all.fields.warnings(&inhibition.target).await?);
        let loaded = LoadedInhibition::new(inhibition);
        let loaded = loaded.ok_or_else(|| Error::invalid("source", "cannot be asked"))?;
        let mut preview = self.open(&loaded).await?;
        preview.warnings = warnings;
        preview.messages = self.sent(&loaded).await?;
        preview.stopped_early |= preview.messages.stopped_early;
        Ok(preview)
    }

    async fn open(&self, loaded: &LoadedInhibition) -> Result<Preview, Error> {
        let filter = Filter {
            statuses: vec![Status::Open, Status::Suppressed],
            ..Filter::default()
        };
        let clock = &self.deciding.clock;
        let end = Deadline::of(&**clock);
        let mut walk = Walk::new(&self.deciding.store, &filter, NEWEST_FIRST, None);
        let mut sources: BTreeMap<EqualValues, Arc<Occurrence>> = BTreeMap::new();
        let mut targets = Vec::new();
        let (mut preview, mut seen) = (Preview::default(), 0);
        loop {
            let batch = walk.next(BATCH).await?;
            if batch.is_empty() {
                break;
            }
            for (_, found) in batch {
                let occurrence = Arc::new(found.value);
                seen += 1;
                if let Some(values) = loaded.of_source(&occurrence) {
                    preview.source_count += 1;
                    sources.entry(values).or_insert(Arc::clone(&occurrence));
                }
                let is_open = occurrence.status == Status::Open;
                if let Some(values) = loaded.of_target(&occurrence).filter(|_| is_open) {
                    preview.target_count += 1;
                    targets.push((values, occurrence));
                }
            }
            if seen >= TRIGGER_TEST_OCCURRENCES_MAX || end.is_over(&**clock) {
                preview.stopped_early = true;
                break;
            }
            tokio::task::yield_now().await;
        }
        for (values, target) in targets {
            let Some(source) = sources.get(&values) else {
                continue;
            };
            preview.held_count += 1;
            if preview.pairs.len() < TRIGGER_TEST_SHOWN_MAX {
                let source = Arc::clone(source);
                preview.pairs.push(Pair { source, target });
            }
        }
        Ok(preview)
    }

    /// The messages of the last days that it would have held back.
    async fn sent(&self, loaded: &LoadedInhibition) -> Result<HeldMessages, Error> {
        let (store, clock) = (&self.deciding.store, &*self.deciding.clock);
        let (causes, is_whole) = self.causes(loaded).await?;
        let is_held = |delivery: &Delivery| {
            let target = &delivery.content.occurrence;
            let values = loaded.of_target(target);
            let causes = values.and_then(|it| causes.get(&it));
            let mut causes = causes.into_iter().flatten();
            let at_ms = delivery.create_ms;
            causes.any(|it| it.key != target.key && (it.start_ms..it.until_ms).contains(&at_ms))
        };
        let mut messages = held_messages(store, clock, is_held).await?;
        messages.stopped_early |= !is_whole;
        Ok(messages)
    }

    /// What was a cause in the last days, and whether that is all.
    async fn causes(
        &self,
        loaded: &LoadedInhibition,
    ) -> Result<(BTreeMap<EqualValues, Vec<Cause>>, bool), Error> {
        let clock = &*self.deciding.clock;
        let filter = Filter {
            statuses: Status::ALL.to_vec(),
            ..Filter::default()
        };
        let end = Deadline::of(clock);
        let since_ms = since_ms(clock.now_ms());
        let mut walk = Walk::new(&self.deciding.store, &filter, NEWEST_FIRST, None);
        let (mut causes, mut seen) = (BTreeMap::<_, Vec<_>>::new(), 0);
        loop {
            let batch = walk.next(BATCH).await?;
            if batch.is_empty() {
                return Ok((causes, true));
            }
            for (_, found) in batch {
                seen += 1;
                let occurrence = found.value;
                let close = occurrence.close.as_ref().map(|it| it.at_ms);
                let until_ms = close.map_or(i64::MAX, |at_ms| {
                    at_ms.saturating_add(loaded.inhibition.linger_ms)
                });
                if let (Some(values), true) = (loaded.was_source(&occurrence), until_ms > since_ms)
                {
                    causes.entry(values).or_default().push(Cause {
                        key: occurrence.key,
                        start_ms: occurrence.start_ms,
                        until_ms,
                    });
                }
            }
            if seen >= TRIGGER_TEST_OCCURRENCES_MAX || end.is_over(clock) {
                return Ok((causes, false));
            }
            tokio::task::yield_now().await;
        }
    }
}

/// How long something was a cause, in milliseconds since 1970.
struct Cause {
    key: RecordId,
    start_ms: i64,
    until_ms: i64,
}
