//! Previews of the open events that an inhibition would hold.

use std::{collections::BTreeMap, sync::Arc};

use bellwether_proto::v1;

use super::Inhibitions;
use crate::{
    cause_lookup::load_missing,
    decide::{Causes, LoadedInhibition},
    decision_context::DecisionContext,
    domain::{
        Delivery, EqualFields, Inhibition, Occurrence, RecordId, Status, inhibition::EqualValues,
    },
    error::Error,
    limits::{TRIGGER_TEST_OCCURRENCES_MAX, TRIGGER_TEST_SHOWN_MAX},
    recent_messages::{Deadline, HeldMessages, held_messages, since_ms},
    resource::{AuthoredResource as _, Origin},
    scan,
    search::{Filter, IndexWalk, NEWEST_FIRST},
    wire::event::event_with_one_occurrence,
};

const BATCH: usize = 500;
const RINGS_SHOWN_MAX: usize = 3;

#[derive(Debug, Clone)]
pub struct InhibitionPreviews {
    all: Inhibitions,
    deciding: DecisionContext,
}

/// A source and a target that it would hold.
type HeldPair = (Arc<Occurrence>, Arc<Occurrence>);

impl InhibitionPreviews {
    pub fn new(all: Inhibitions, deciding: DecisionContext) -> Self {
        Self { all, deciding }
    }

    /// Returns the open events that a draft would hold, considering only its own causes, and the
    /// messages of the past days that it would have held, as far as data about their causes is
    /// still stored. The draft is not stored and requires no name.
    pub async fn preview(
        &self,
        mut draft: v1::Inhibition,
    ) -> Result<v1::PreviewInhibitionResponse, Error> {
        "preview".clone_into(&mut draft.name);
        let now_ms = self.deciding.clock.now_ms();
        let (inhibition, _) =
            Inhibition::from_draft(&self.all, &draft, None, Origin::new(now_ms)).await?;
        let mut warnings = inhibition.warnings(&self.all).await?;
        let loaded = LoadedInhibition::new(inhibition);
        let loaded = loaded.ok_or_else(|| Error::invalid("source", "cannot be asked"))?;
        let (mut preview, pairs) = self.preview_open_events(&loaded).await?;
        let (causes, missing, is_whole) = self.causes(&loaded).await?;
        warnings.extend(missing.warnings(&loaded.inhibition.equal));
        warnings.extend(self.find_cycles(&pairs).await?);
        preview.warnings = warnings;
        let shown = |it| Some(event_with_one_occurrence(Arc::unwrap_or_clone(it)));
        let pairs = pairs.into_iter().map(|(source, target)| v1::InhibitedPair {
            source: shown(source),
            target: shown(target),
        });
        preview.pairs = pairs.collect();
        let (messages, is_cut) = self.held_messages(&loaded, &causes).await?;
        preview.last_days = Some(messages);
        preview.stopped_early |= !is_whole || is_cut;
        Ok(preview)
    }

    async fn preview_open_events(
        &self,
        loaded: &LoadedInhibition,
    ) -> Result<(v1::PreviewInhibitionResponse, Vec<HeldPair>), Error> {
        let filter = Filter {
            statuses: vec![Status::Open, Status::Suppressed],
            ..Filter::default()
        };
        let clock = &self.deciding.clock;
        let end = Deadline::start(&**clock);
        let mut walk = IndexWalk::new(&self.deciding.store, &filter, NEWEST_FIRST, None);
        let mut sources: BTreeMap<EqualValues, Arc<Occurrence>> = BTreeMap::new();
        let mut targets = Vec::new();
        let (mut source_count, mut target_count, mut held_count) = (0, 0, 0);
        let (mut pairs, mut seen, mut stopped_early) = (Vec::new(), 0, false);
        loop {
            let batch = walk.next(BATCH).await?;
            if batch.is_empty() {
                break;
            }
            for (_, found) in batch {
                scan::yield_if_needed().await;
                let occurrence = Arc::new(found.value);
                seen += 1;
                if let Some(values) = loaded.source_values(&occurrence) {
                    source_count += 1;
                    sources.entry(values).or_insert(Arc::clone(&occurrence));
                }
                let is_open = occurrence.status == Status::Open;
                if let Some(values) = loaded.target_values(&occurrence).filter(|_| is_open) {
                    target_count += 1;
                    targets.push((values, occurrence));
                }
            }
            if seen >= TRIGGER_TEST_OCCURRENCES_MAX || end.has_passed(&**clock) {
                stopped_early = true;
                break;
            }
            tokio::task::yield_now().await;
        }
        for (values, target) in targets {
            let Some(source) = sources.get(&values) else {
                continue;
            };
            held_count += 1;
            if pairs.len() < TRIGGER_TEST_SHOWN_MAX {
                pairs.push((Arc::clone(source), target));
            }
        }
        let preview = v1::PreviewInhibitionResponse {
            source_count: Some(source_count),
            target_count: Some(target_count),
            held_count: Some(held_count),
            stopped_early,
            ..v1::PreviewInhibitionResponse::default()
        };
        Ok((preview, pairs))
    }

    async fn held_messages(
        &self,
        loaded: &LoadedInhibition,
        causes: &BTreeMap<EqualValues, Vec<PreviewedCause>>,
    ) -> Result<HeldMessages, Error> {
        let (store, clock) = (&self.deciding.store, &*self.deciding.clock);
        let is_held = |delivery: &Delivery| {
            let target = &delivery.content.occurrence;
            let values = loaded.target_values(target);
            let causes = values.and_then(|it| causes.get(&it));
            let mut causes = causes.into_iter().flatten();
            let at_ms = delivery.create_ms;
            causes.any(|it| it.key != target.key && (it.start_ms..it.until_ms).contains(&at_ms))
        };
        held_messages(store, clock, is_held).await
    }

    /// Returns the cycles that the draft would create together with current inhibitions. In a
    /// cycle, an effect is also a cause of its cause.
    async fn find_cycles(&self, pairs: &[HeldPair]) -> Result<Vec<String>, Error> {
        let snapshot = self.deciding.ruleset.refresh().await?;
        let now_ms = self.deciding.clock.now_ms();
        let causes = Causes::default();
        let mut rings: Vec<&HeldPair>;
        loop {
            let inhibitions = snapshot.inhibitions();
            let is_ring = |(source, target): &&HeldPair| {
                inhibitions.is_cause(target.key, source, &causes, now_ms)
            };
            rings = pairs.iter().filter(is_ring).collect();
            if load_missing(&self.deciding.store, &causes).await? {
                break;
            }
        }
        let warning = |(source, target): &HeldPair| {
            format!(
                "`{}` {} is already held by `{}` {}; in this cycle, the first to open notifies",
                source.name, source.event, target.name, target.event
            )
        };
        let shown = rings.into_iter().take(RINGS_SHOWN_MAX);
        Ok(shown.map(warning).collect())
    }

    /// Returns the causes of the past days, the fields that no stored event has, and whether all
    /// events were read.
    async fn causes(
        &self,
        loaded: &LoadedInhibition,
    ) -> Result<
        (
            BTreeMap<EqualValues, Vec<PreviewedCause>>,
            MissingFields,
            bool,
        ),
        Error,
    > {
        let clock = &*self.deciding.clock;
        let filter = Filter {
            statuses: Status::ALL.to_vec(),
            ..Filter::default()
        };
        let end = Deadline::start(clock);
        let since_ms = since_ms(clock.now_ms());
        let mut walk = IndexWalk::new(&self.deciding.store, &filter, NEWEST_FIRST, None);
        let (mut causes, mut missing) = (BTreeMap::<_, Vec<_>>::new(), MissingFields::default());
        let mut seen = 0;
        loop {
            let batch = walk.next(BATCH).await?;
            if batch.is_empty() {
                return Ok((causes, missing, true));
            }
            for (_, found) in batch {
                scan::yield_if_needed().await;
                seen += 1;
                let occurrence = found.value;
                missing.record(loaded, &occurrence);
                let close = occurrence.close.as_ref().map(|it| it.at_ms);
                let until_ms = close.map_or(i64::MAX, |at_ms| {
                    at_ms.saturating_add(loaded.inhibition.linger_ms)
                });
                if let (Some(values), true) = (
                    loaded.source_values_of_any_status(&occurrence),
                    until_ms > since_ms,
                ) {
                    causes.entry(values).or_default().push(PreviewedCause {
                        key: occurrence.key,
                        start_ms: occurrence.start_ms,
                        until_ms,
                    });
                }
            }
            if seen >= TRIGGER_TEST_OCCURRENCES_MAX || end.has_passed(clock) {
                return Ok((causes, MissingFields::default(), false));
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Whether each field that must be equal occurs in matching events; `None` while no event matches.
#[derive(Default)]
struct MissingFields {
    source: Option<Vec<bool>>,
    target: Option<Vec<bool>>,
}

impl MissingFields {
    fn record(&mut self, loaded: &LoadedInhibition, occurrence: &Occurrence) {
        for (known, has) in [
            (&mut self.source, loaded.source_fields_present(occurrence)),
            (&mut self.target, loaded.target_fields_present(occurrence)),
        ] {
            let Some(has) = has else { continue };
            let before = known.get_or_insert_with(|| vec![false; has.len()]);
            for (before, has) in before.iter_mut().zip(has) {
                *before |= has;
            }
        }
    }

    /// Returns warnings about missing fields, without which the draft never holds any notification.
    fn warnings(&self, equal: &[EqualFields]) -> Vec<String> {
        let mut warnings = Vec::new();
        for (at, fields) in equal.iter().enumerate() {
            for (side, has, field) in [
                ("sources", &self.source, &fields.source),
                ("targets", &self.target, &fields.target),
            ] {
                let has = has.as_ref().and_then(|it| it.get(at));
                if has == Some(&false) {
                    warnings.push(format!(
                        "no stored event among the {side} has the field `{field}`, so nothing is held"
                    ));
                }
            }
        }
        warnings
    }
}

struct PreviewedCause {
    key: RecordId,
    start_ms: i64,
    until_ms: i64,
}
