//! The inhibitions in force, and how they hold occurrences.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use sha2::{Digest, Sha256};

use super::{CauseKey, Causes};
use crate::{
    domain::{
        CauseMark, EqualFields, HeldBy, HoldKind, Inhibition, Occurrence, RecordId, Status,
        has_own_source, inhibition::EqualValues,
    },
    limits::{INHIBITION_CAUSES_MAX, INHIBITION_CHAIN_MAX},
    matching::{
        self, CompiledQuery, TriggerSet,
        field::{Field, FieldValue},
        fold::fold,
    },
};

#[derive(Default)]
struct DirectCauses<'a> {
    found: Vec<(&'a LoadedInhibition, Arc<Occurrence>)>,
    more: Vec<CauseKey>,
}

#[derive(Debug)]
pub struct LoadedInhibition {
    pub inhibition: Inhibition,
    source: CompiledQuery,
    target: CompiledQuery,
    source_fields: Vec<Field>,
    target_fields: Vec<Field>,
}

impl LoadedInhibition {
    /// Compiles an inhibition. `None` if the stored inhibition does not compile; it then has no
    /// effect.
    pub fn new(inhibition: Inhibition) -> Option<Self> {
        let fields = |of: fn(&EqualFields) -> &String| {
            let all = inhibition.equal.iter();
            all.map(|it| Field::parse(of(it)).ok())
                .collect::<Option<Vec<_>>>()
        };
        Some(Self {
            source: matching::compile(&inhibition.source).ok()?,
            target: matching::compile(&inhibition.target).ok()?,
            source_fields: fields(|it| &it.source)?,
            target_fields: fields(|it| &it.target)?,
            inhibition,
        })
    }

    /// Returns the digest of the occurrence's field values if it is a source of the inhibition.
    pub fn source_values(&self, occurrence: &Occurrence) -> Option<EqualValues> {
        let is_up = occurrence.status != Status::Closed;
        is_up.then(|| self.source_values_of_any_status(occurrence))?
    }

    /// Like [`Self::source_values`], but also for a source that has closed. A drill is never a
    /// source.
    pub fn source_values_of_any_status(&self, occurrence: &Occurrence) -> Option<EqualValues> {
        let is_source = !occurrence.is_drill() && self.source.matches(occurrence);
        is_source.then(|| equal_values(&self.source_fields, occurrence))?
    }

    /// Returns the digest of the occurrence's field values if it is a target of the inhibition. A
    /// source is never also a target.
    pub fn target_values(&self, occurrence: &Occurrence) -> Option<EqualValues> {
        let is_target = !has_own_source(&occurrence.dimensions)
            && self.target.matches(occurrence)
            && !self.source.matches(occurrence);
        is_target.then(|| equal_values(&self.target_fields, occurrence))?
    }

    /// Returns, for each source field, whether the occurrence has it; `None` if `source` does not
    /// match.
    pub fn source_fields_present(&self, occurrence: &Occurrence) -> Option<Vec<bool>> {
        let is_source = self.source.matches(occurrence);
        is_source.then(|| present_fields(&self.source_fields, occurrence))
    }

    /// Returns, for each target field, whether the occurrence has it; `None` if `target` does not
    /// match.
    pub fn target_fields_present(&self, occurrence: &Occurrence) -> Option<Vec<bool>> {
        let is_target = self.target.matches(occurrence);
        is_target.then(|| present_fields(&self.target_fields, occurrence))
    }
}

fn present_fields(fields: &[Field], occurrence: &Occurrence) -> Vec<bool> {
    let has = |it: &Field| it.any_value(occurrence, &mut |_| true);
    fields.iter().map(has).collect()
}

/// Returns a digest of the field values, ignoring case; `None` if a field is missing.
fn equal_values(fields: &[Field], occurrence: &Occurrence) -> Option<EqualValues> {
    let mut digest = Sha256::new();
    for field in fields {
        let mut first = None;
        field.any_value(occurrence, &mut |found| {
            first = Some(match found {
                FieldValue::Text(text) => fold(text).into_owned(),
                FieldValue::Number(number) => number.to_string(),
                FieldValue::Bool(flag) => flag.to_string(),
            });
            true
        });
        let first = first?;
        digest.update((first.len() as u64).to_be_bytes());
        digest.update(first);
    }
    let digest = digest.finalize();
    digest.first_chunk().copied()
}

#[derive(Debug, Default)]
pub struct Inhibitions {
    all: Vec<Arc<LoadedInhibition>>,
    by_source: Option<TriggerSet<usize>>,
    by_target: Option<TriggerSet<usize>>,
}

impl Inhibitions {
    pub fn new(all: Vec<Arc<LoadedInhibition>>) -> Self {
        let set = |of: fn(&LoadedInhibition) -> &CompiledQuery| {
            let queries = (0..).zip(&all).map(|(at, it)| (at, of(it).clone()));
            (!all.is_empty()).then(|| TriggerSet::build(queries.collect()))
        };
        Self {
            by_source: set(|it| &it.source),
            by_target: set(|it| &it.target),
            all,
        }
    }

    pub fn as_slice(&self) -> &[Arc<LoadedInhibition>] {
        &self.all
    }

    pub fn has_any(&self) -> bool {
        !self.all.is_empty()
    }

    fn find<'a>(
        &'a self,
        set: Option<&'a TriggerSet<usize>>,
        occurrence: &Occurrence,
    ) -> impl Iterator<Item = &'a LoadedInhibition> {
        let places = set.map(|set| set.find_matching(occurrence));
        let places = places.into_iter().flatten();
        places.filter_map(|at| self.all.get(*at)).map(AsRef::as_ref)
    }

    /// Returns the marks of an occurrence: the inhibitions of which it is a source, or was a source
    /// within their linger time. `is_review` means that the targets have just been re-evaluated.
    pub fn cause_marks(
        &self,
        occurrence: &Occurrence,
        is_review: bool,
        now_ms: i64,
    ) -> Vec<CauseMark> {
        let before = &occurrence.causes;
        if self.all.is_empty() && before.is_empty() {
            return Vec::new();
        }
        let mut marks: Vec<CauseMark> = Vec::new();
        for loaded in self.find(self.by_source.as_ref(), occurrence) {
            if let Some(values) = loaded.source_values(occurrence) {
                marks.push(CauseMark {
                    inhibition: loaded.inhibition.id,
                    values,
                    until_ms: None,
                    is_freed: false,
                });
            }
        }
        for mark in before {
            let is_still =
                |it: &CauseMark| it.inhibition == mark.inhibition && it.values == mark.values;
            let mut all = self.all.iter();
            let loaded = all.find(|it| it.inhibition.id == mark.inhibition);
            if marks.iter().any(is_still) {
                continue;
            }
            // Deleted or disabled inhibitions have no effect. The edit itself re-evaluates their
            // targets.
            let Some(loaded) = loaded else { continue };
            let linger_ms = loaded.inhibition.linger_ms;
            let until_ms = mark.until_ms.unwrap_or(now_ms.saturating_add(linger_ms));
            let lingering = CauseMark {
                until_ms: Some(until_ms),
                ..*mark
            };
            if is_review {
                marks.extend(lingering.after_evaluation(now_ms));
            } else {
                marks.push(lingering);
            }
        }
        marks
    }

    /// Returns the holds of an occurrence, one per inhibition with its first cause. If all causes
    /// would then be held, as in a cycle, the occurrence that opened first is not held. After an
    /// edit, existing holds stay until all causes have been marked with the new revision.
    pub(super) fn holds(
        &self,
        target: &Occurrence,
        causes: &Causes,
        is_marked: impl Fn(&Inhibition) -> bool,
        now_ms: i64,
    ) -> Vec<HeldBy> {
        let mut held = self.existing_holds(target, is_marked);
        let direct = self.direct_causes(target, causes, now_ms).found;
        if direct.is_empty() || !self.has_uninhibited_cause(target, causes, now_ms) {
            return held;
        }
        for (loaded, cause) in direct {
            let inhibition = &loaded.inhibition;
            if held.iter().any(|it| it.name == inhibition.name) {
                continue;
            }
            let marks = cause.causes.iter();
            let marks = marks.filter(|it| it.inhibition == inhibition.id);
            let ends = marks.map(|it| it.until_ms).collect::<Option<Vec<_>>>();
            held.push(HeldBy {
                kind: HoldKind::Inhibition,
                id: cause.key,
                name: inhibition.name.clone(),
                revision: inhibition.revision,
                since_ms: now_ms,
                until_ms: ends.and_then(|ends| ends.into_iter().max()),
                author: None,
                shared: Vec::new(),
                detail: format!("`{}` {} is open", cause.name, cause.event),
            });
        }
        held
    }

    fn existing_holds(
        &self,
        target: &Occurrence,
        is_marked: impl Fn(&Inhibition) -> bool,
    ) -> Vec<HeldBy> {
        let edited = self.all.iter().map(|it| &it.inhibition);
        let edited: Vec<_> = edited.filter(|it| !is_marked(it)).collect();
        let mut existing: Vec<HeldBy> = Vec::new();
        for hold in target.pending.iter().flat_map(|it| &it.held_by) {
            let is_edited = edited.iter().any(|it| it.name == hold.name);
            let is_known = existing.iter().any(|it| it.name == hold.name);
            if hold.kind == HoldKind::Inhibition && is_edited && !is_known {
                existing.push(hold.clone());
            }
        }
        existing
    }

    fn direct_causes(&self, target: &Occurrence, causes: &Causes, now_ms: i64) -> DirectCauses<'_> {
        let mut direct = DirectCauses::default();
        if self.all.is_empty() || !causes.may_contain_any() {
            return direct;
        }
        for loaded in self.find(self.by_target.as_ref(), target) {
            let id = loaded.inhibition.id;
            if !causes.may_contain(id) {
                continue;
            }
            let Some(values) = loaded.target_values(target) else {
                continue;
            };
            let sources = causes.find_sources((id, values), |it| {
                let mut marks = it.causes.iter();
                let is_own = |mark: &CauseMark| mark.inhibition == id && mark.values == values;
                it.key != target.key && marks.any(|mark| is_own(mark) && mark.holds(now_ms))
            });
            direct.more.extend(sources.has_more.then_some((id, values)));
            let found = sources.found.into_iter();
            direct.found.extend(found.map(|it| (loaded, it)));
        }
        direct
    }

    /// Whether `upper` is a direct or indirect cause of `lower`, within the limits for following
    /// chains.
    pub fn is_cause(
        &self,
        upper: RecordId,
        lower: &Arc<Occurrence>,
        causes: &Causes,
        now_ms: i64,
    ) -> bool {
        let mut seen = BTreeSet::from([lower.key]);
        let mut next = VecDeque::from([(Arc::clone(lower), 0)]);
        while let Some((at, links)) = next.pop_front() {
            for (_, cause) in self.direct_causes(&at, causes, now_ms).found {
                if cause.key == upper {
                    return true;
                }
                let is_far = links >= INHIBITION_CHAIN_MAX || seen.len() >= INHIBITION_CAUSES_MAX;
                if !is_far && seen.insert(cause.key) {
                    next.push_back((cause, links + 1));
                }
            }
        }
        false
    }

    /// Whether the causes above an occurrence lead to another occurrence that is not held. If there
    /// are too many causes to follow, whether one of the direct causes opened earlier.
    fn has_uninhibited_cause(&self, target: &Occurrence, causes: &Causes, now_ms: i64) -> bool {
        let mut above: BTreeMap<RecordId, Vec<RecordId>> = BTreeMap::new();
        let mut opened: BTreeMap<RecordId, (i64, RecordId)> = BTreeMap::new();
        let mut next = VecDeque::from([(Arc::new(target.clone()), 0)]);
        let own = (target.start_ms, target.key);
        opened.insert(target.key, own);
        let (mut is_cut, mut more) = (false, Vec::new());
        while let Some((at, links)) = next.pop_front() {
            let direct = self.direct_causes(&at, causes, now_ms);
            more.extend(direct.more);
            let over = direct.found;
            if over.is_empty() {
                // Without a cause, `at` is not held, so all occurrences below it may be held.
                return at.key != target.key;
            }
            let keys: BTreeSet<_> = over.iter().map(|(_, it)| it.key).collect();
            above.insert(at.key, keys.into_iter().collect());
            for (_, cause) in over {
                if opened.contains_key(&cause.key) {
                    continue;
                }
                if links >= INHIBITION_CHAIN_MAX || opened.len() >= INHIBITION_CAUSES_MAX {
                    is_cut = true;
                    continue;
                }
                opened.insert(cause.key, (cause.start_ms, cause.key));
                next.push_back((cause, links + 1));
            }
        }
        if is_cut {
            // Following older and older causes ends at an oldest one, even in a cycle of any
            // length.
            let direct = above.get(&target.key).into_iter().flatten();
            let mut direct = direct.filter_map(|key| opened.get(key));
            return direct.any(|cause| *cause < own);
        }
        if !more.is_empty() {
            // A cause that has not been read yet might not be held. Request these causes and decide
            // again.
            for key in more {
                causes.request_more(key);
            }
            return true;
        }
        // All chains above end in cycles. Causes from which the target is reachable are in the
        // target's own cycle.
        let ring: Vec<_> = opened
            .keys()
            .filter(|key| is_reachable(&above, **key, target.key))
            .collect();
        let is_in_ring = above
            .get(&target.key)
            .is_some_and(|over| over.iter().any(|it| ring.contains(&it)));
        if !is_in_ring || ring.len() < opened.len() {
            return true;
        }
        let first = ring.iter().filter_map(|key| opened.get(*key)).min();
        first.is_some_and(|(_, key)| *key != target.key)
    }
}

/// Whether `to` is a direct or indirect cause of `from`.
fn is_reachable(above: &BTreeMap<RecordId, Vec<RecordId>>, from: RecordId, to: RecordId) -> bool {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(at) = next.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            next.extend(above.get(&at).into_iter().flatten().copied());
        }
    }
    false
}

#[cfg(test)]
mod tests;
