//! Occurrences, and the groups in which they are reported, as records.

use std::collections::BTreeSet;

use super::{decode, encode, entry, name_only_snapshot};
use crate::record::{
    Record,
    bytes::Key,
    noise::{self, NoiseCounts},
    steps,
};
use crate::{
    audit::AuditSnapshot,
    domain::{Group, HeldBy, HoldKind, Occurrence, OwnEvent, RecordId, ResponseState, Status},
    engine::{
        EngineError, Entry, Index, Kind, Membership, SilenceStanding,
        ownership::review_slot_for_key,
    },
    metrics::CommitStep,
    seal::Sealer,
};

/// Adds the index entries for silences and inhibitions of an occurrence, and for its pending
/// notifications.
fn add_holds(occurrence: &Occurrence, entries: &mut Vec<Entry>) {
    let standing = |standing: SilenceStanding, silence| {
        let key = Key::new().byte(standing as u8).id(silence);
        entry(Index::OccurrenceBySilence, key.id(occurrence.key))
    };
    let by = |kind, held_by: &[HeldBy]| {
        let of_kind = held_by.iter().filter(|it| it.kind == kind);
        of_kind.map(|it| it.id).collect::<Vec<_>>()
    };
    let by_silence = |held_by: &[HeldBy]| by(HoldKind::Silence, held_by);
    let distinct = |of: &mut dyn Iterator<Item = RecordId>| of.collect::<BTreeSet<_>>();
    let mut covered = occurrence.covered_by.iter().copied();
    let held = occurrence.pending.iter();
    let mut held = held.flat_map(|it| by_silence(&it.held_by));
    let inhibited = occurrence.pending.iter();
    let mut inhibited = inhibited.flat_map(|it| by(HoldKind::Inhibition, &it.held_by));
    let skipped = occurrence.hold_changes.iter();
    let skipped = skipped.filter(|it| it.what.skipped_reason().is_some());
    let mut skipped = skipped.flat_map(|it| by_silence(&it.held_by));
    let responses = occurrence.notified.iter();
    let responses = responses.filter_map(|it| it.response.as_ref());
    let of_responses: Vec<_> = responses.flat_map(|it| &it.held_by).collect();
    let responses_by = |kind| {
        let of_kind = of_responses.iter().filter(|it| it.0 == kind);
        of_kind.map(|it| it.1).collect::<BTreeSet<_>>()
    };
    for (how, silences) in [
        (SilenceStanding::Covered, distinct(&mut covered)),
        (SilenceStanding::Pending, distinct(&mut held)),
        (SilenceStanding::Skipped, distinct(&mut skipped)),
        (SilenceStanding::Inhibited, distinct(&mut inhibited)),
        (SilenceStanding::Response, responses_by(HoldKind::Silence)),
        (
            SilenceStanding::ResponseInhibited,
            responses_by(HoldKind::Inhibition),
        ),
    ] {
        entries.extend(silences.into_iter().map(|silence| standing(how, silence)));
    }
    let causes: BTreeSet<_> = occurrence
        .causes
        .iter()
        .map(|it| (it.inhibition, it.values))
        .collect();
    entries.extend(causes.into_iter().map(|(inhibition, values)| {
        let key = Key::new().id(inhibition).remainder(&values);
        entry(Index::OccurrenceByCause, key.id(occurrence.key))
    }));
    if let Some(due_ms) = occurrence.due_ms() {
        let key = Key::new().time_ms(due_ms).id(occurrence.key);
        entries.push(entry(Index::OccurrenceByDue, key));
    }
}

pub fn response_prefix(state: ResponseState) -> Key {
    Key::new().byte(state as u8)
}

fn add_memberships(occurrence: &Occurrence, entries: &mut Vec<Entry>) {
    let standing = |how: Membership, id| Key::new().byte(how as u8).id(id);
    for pending in &occurrence.pending {
        let Some(hold) = pending.group_hold() else {
            continue;
        };
        let how = if pending.is_opening {
            Membership::Joining
        } else {
            Membership::Updated
        };
        let key = standing(how, hold.id).id(occurrence.key);
        entries.push(entry(Index::OccurrenceByGroup, key));
    }
    for notified in &occurrence.notified {
        let Some(group) = notified.group else {
            continue;
        };
        let mut pending = occurrence.pending.iter();
        // A flapping event counts as open until it settles.
        let flaps = pending.any(|it| it.rule == notified.rule && it.is_flapping());
        if notified.cleared || occurrence.status == Status::Closed && !flaps {
            let key = standing(Membership::Closed, group).id(occurrence.key);
            entries.push(entry(Index::OccurrenceByGroup, key));
            continue;
        }
        let severity = u8::MAX - occurrence.severity as u8;
        let key = standing(Membership::Open, group).byte(severity);
        entries.push(entry(Index::OccurrenceByGroup, key.id(occurrence.key)));
        if !occurrence.acknowledged {
            let key = standing(Membership::Unacknowledged, group).id(occurrence.key);
            entries.push(entry(Index::OccurrenceByGroup, key));
        }
    }
}

impl Record for Occurrence {
    const KIND: Kind = Kind::Occurrence;

    fn audit_snapshot(&self) -> Option<AuditSnapshot> {
        Some(name_only_snapshot(&self.id()))
    }

    fn key(&self) -> Vec<u8> {
        self.key.to_bytes().into()
    }

    fn review_slot(&self) -> Option<u8> {
        Some(review_slot_for_key(&self.key.to_bytes()))
    }

    fn entries(&self) -> Vec<Entry> {
        let state = Key::new()
            .byte(self.status as u8)
            .byte(self.severity as u8)
            .time_ms(self.last_seen_ms)
            .tie_breaker(self)
            .id(self.key);
        let severity = Key::new()
            .byte(self.status as u8)
            .byte(self.severity as u8)
            .tie_breaker(self)
            .id(self.key);
        let mut entries = vec![
            entry(
                Index::OccurrenceByEvent,
                Key::new().event(self.event).number(self.number),
            ),
            entry(Index::OccurrenceByState, state),
            entry(
                Index::OccurrenceByStart,
                Key::new().tie_breaker(self).id(self.key),
            ),
            entry(
                Index::OccurrenceByReview,
                Key::new().time_ms(self.review_ms).id(self.key),
            ),
            entry(Index::OccurrenceBySeverity, severity),
        ];
        add_holds(self, &mut entries);
        add_memberships(self, &mut entries);
        let responses = self.notified.iter().filter_map(|it| it.response.as_ref());
        entries.extend(responses.map(|it| {
            entry(
                Index::OccurrenceByResponse,
                response_prefix(it.state).id(it.id),
            )
        }));
        entries
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encode(self)
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decode(bytes, Self::KIND)
    }

    fn steps(&self, before: Option<&Self>, to: &mut Vec<CommitStep>) {
        steps::occurrence_steps(self, before, to);
    }

    fn count_noise(&self, before: Option<&Self>, to: &mut NoiseCounts<'_>) {
        noise::count_occurrence(self, before, to);
    }
}

impl Record for Group {
    const KIND: Kind = Kind::Group;

    fn key(&self) -> Vec<u8> {
        self.id.to_bytes().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        if self.accepts_members() {
            let key = Key::new().id(self.key).id(self.id);
            entries.push(entry(Index::GroupByKey, key));
        }
        if let Some(end_ms) = self.end_ms {
            let key = Key::new().time_ms(end_ms).id(self.id);
            entries.push(entry(Index::GroupByEnd, key));
        }
        entries
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encode(self)
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decode(bytes, Self::KIND)
    }

    fn steps(&self, before: Option<&Self>, to: &mut Vec<CommitStep>) {
        steps::group_steps(self, before, to);
    }
}

impl Record for OwnEvent {
    const KIND: Kind = Kind::OwnEvent;

    fn key(&self) -> Vec<u8> {
        self.id.to_bytes().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encode(self)
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decode(bytes, Self::KIND)
    }
}
