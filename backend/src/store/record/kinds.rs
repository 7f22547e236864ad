//! What each kind of record is keyed by, and which index entries lead to it.

use std::collections::BTreeSet;

use prost::Message;

use super::{
    Record,
    bytes::Key,
    steps,
    v1::{
        audit::AuditV1,
        calendar::CalendarV1,
        client::ClientV1,
        delivery::{AttemptV1, DeliveryV1},
        destination::{DestinationV1, HealthV1},
        digest::BudgetWindowV1,
        group::GroupV1,
        inhibition::InhibitionV1,
        mapping::MappingV1,
        occurrence::{self, OccurrenceV1},
        receipt::ReceiptV1,
        revision::RevisionV1,
        rule::RuleV1,
        silence::SilenceV1,
        trigger::TriggerV1,
    },
};
use crate::{
    domain::{
        Attempt, AuditEntry, AuditState, BudgetWindow, Calendar, CauseMark, Client, Delivery,
        DeliveryState, Destination, Group, Health, HeldBy, HoldKind, Inhibition, IntakeMapping,
        Name, Occurrence, Receipt, RecordId, Revision, Rule, Silence, Status, Trigger,
        counter::Counted,
    },
    metrics::CommitStep,
    store::{
        audit::Seen,
        engine::{EngineError, Entry, Index, Kind, Membership, Standing},
        seal::{PROOF_BYTES, Sealer},
    },
};

/// Goes on with the type of a kind of record: one row a kind, for whoever does the same with all of
/// them. Facts and counters have no type.
macro_rules! with_record {
    ($kind:expr, $record:ident => $then:expr, else $otherwise:expr) => {
        match $kind {
            $crate::store::Kind::Trigger => with_record!(@ Trigger, $record => $then),
            $crate::store::Kind::Destination => with_record!(@ Destination, $record => $then),
            $crate::store::Kind::Rule => with_record!(@ Rule, $record => $then),
            $crate::store::Kind::Client => with_record!(@ Client, $record => $then),
            $crate::store::Kind::Occurrence => with_record!(@ Occurrence, $record => $then),
            $crate::store::Kind::Delivery => with_record!(@ Delivery, $record => $then),
            $crate::store::Kind::Attempt => with_record!(@ Attempt, $record => $then),
            $crate::store::Kind::Health => with_record!(@ Health, $record => $then),
            $crate::store::Kind::Receipt => with_record!(@ Receipt, $record => $then),
            $crate::store::Kind::Revision => with_record!(@ Revision, $record => $then),
            $crate::store::Kind::Silence => with_record!(@ Silence, $record => $then),
            $crate::store::Kind::Calendar => with_record!(@ Calendar, $record => $then),
            $crate::store::Kind::Inhibition => with_record!(@ Inhibition, $record => $then),
            $crate::store::Kind::Group => with_record!(@ Group, $record => $then),
            $crate::store::Kind::Audit => with_record!(@ AuditEntry, $record => $then),
            $crate::store::Kind::Mapping => with_record!(@ IntakeMapping, $record => $then),
            $crate::store::Kind::Budget => with_record!(@ BudgetWindow, $record => $then),
            $crate::store::Kind::Meta | $crate::store::Kind::Counter => $otherwise,
        }
    };
    (@ $type:ident, $record:ident => $then:expr) => {{
        type $record = $crate::domain::$type;
        $then
    }};
}
pub(in crate::store) use with_record;

/// The encoding of most records, which is the first byte of every value.
const VERSION: u8 = 1;
/// The encoding of records that are proven: a proof stands before what [`VERSION`] holds.
const PROVEN: u8 = 2;
/// What proofs of records are for.
const PURPOSE: &str = "record";
/// What an occurrence takes about, beside its texts.
const RECORD_BYTES: usize = 512;
/// Where what no time ends stands in the order of due times.
const DUE_NEVER_MS: i64 = i64::MAX;

fn encoded(message: &impl Message) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + message.encoded_len());
    bytes.push(VERSION);
    message.encode_raw(&mut bytes);
    bytes
}

fn decoded<M: Message + Default, T>(
    bytes: &[u8],
    kind: Kind,
    convert: impl FnOnce(M) -> Option<T>,
) -> Result<T, EngineError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => converted(rest, kind, convert),
        Some((other, _)) => Err(corrupt(kind, &format!("has the unknown encoding {other}"))),
        None => Err(corrupt(kind, "is empty")),
    }
}

fn converted<M: Message + Default, T>(
    message: &[u8],
    kind: Kind,
    convert: impl FnOnce(M) -> Option<T>,
) -> Result<T, EngineError> {
    let message = M::decode(message).map_err(|_fault| corrupt(kind, "cannot be read"))?;
    convert(message).ok_or_else(|| corrupt(kind, "holds values that cannot be"))
}

fn corrupt(kind: Kind, what: &str) -> EngineError {
    EngineError::Corrupt(format!("a {kind:?} record {what}"))
}

/// Whether records of a kind are proven by the keys of the service: who changes one without them, or
/// puts one in another's place, is found out. Those that decide who may, and where to.
pub(in crate::store) const fn is_proven(kind: Kind) -> bool {
    matches!(kind, Kind::Client | Kind::Destination)
}

fn proven(message: &impl Message, kind: Kind, sealer: &Sealer) -> Vec<u8> {
    with_proof(kind, &message.encode_to_vec(), sealer)
}

fn with_proof(kind: Kind, message: &[u8], sealer: &Sealer) -> Vec<u8> {
    let proof = sealer.prove(PURPOSE, &[&[kind as u8], message]);
    [&[PROVEN][..], &proof, message].concat()
}

/// The bytes of a record with the proof that those of its kind have since layout 4. Only where
/// something else says that what has none was written by the service.
pub(in crate::store) fn proven_since(kind: Kind, value: &[u8], sealer: &Sealer) -> Option<Vec<u8>> {
    match value.split_first() {
        Some((&VERSION, message)) if is_proven(kind) => Some(with_proof(kind, message, sealer)),
        _ => None,
    }
}

fn decoded_proven<M: Message + Default, T>(
    bytes: &[u8],
    kind: Kind,
    sealer: &Sealer,
    convert: impl FnOnce(M) -> Option<T>,
) -> Result<T, EngineError> {
    let unproven = || {
        EngineError::Corrupt(format!(
            "a {kind:?} record was not written by this service, or with another key"
        ))
    };
    let rest = bytes.strip_prefix(&[PROVEN]).ok_or_else(unproven)?;
    let (proof, message) = rest.split_at_checked(PROOF_BYTES).ok_or_else(unproven)?;
    if !sealer.is_proven(PURPOSE, &[&[kind as u8], message], proof) {
        return Err(unproven());
    }
    converted(message, kind, convert)
}

/// What people define, as the audit log keeps it.
fn defined(name: &Name, state: AuditState) -> Seen {
    Seen {
        name: name.to_string(),
        state: Some(state),
    }
}

/// What the audit log only counts.
fn only_named(name: &impl ToString) -> Seen {
    Seen {
        name: name.to_string(),
        state: None,
    }
}

fn entry(index: Index, key: Key) -> Entry {
    Entry {
        index,
        key: key.build(),
    }
}

impl Record for Trigger {
    const KIND: Kind = Kind::Trigger;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Trigger(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&TriggerV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, TriggerV1::into_trigger)
    }
}

impl Record for Destination {
    const KIND: Kind = Kind::Destination;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Destination(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        proven(&DestinationV1::new(self, sealer), Self::KIND, sealer)
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded_proven(bytes, Self::KIND, sealer, |record: DestinationV1| {
            record.into_destination(sealer)
        })
    }
}

impl Record for Rule {
    const KIND: Kind = Kind::Rule;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Rule(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let name = self.name.as_str().as_bytes();
        let of = |index, other: &str| entry(index, Key::new().name(other).rest(name));
        let triggers = self.trigger_names.iter();
        let destinations = self.destination_names.iter();
        let calendar = self.active_calendar.iter();
        triggers
            .map(|trigger| of(Index::RuleByTrigger, trigger.as_str()))
            .chain(destinations.map(|other| of(Index::RuleByDestination, other.as_str())))
            .chain(calendar.map(|other| of(Index::RuleByCalendar, other.as_str())))
            .collect()
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&RuleV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, RuleV1::into_rule)
    }
}

impl Record for Silence {
    const KIND: Kind = Kind::Silence;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Silence(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let name = self.name.as_str().as_bytes();
        let calendar = self.calendar.iter();
        let key = |other: &Name| Key::new().name(other.as_str()).rest(name);
        calendar
            .map(|other| entry(Index::SilenceByCalendar, key(other)))
            .collect()
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&SilenceV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, SilenceV1::into_silence)
    }
}

impl Record for Calendar {
    const KIND: Kind = Kind::Calendar;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Calendar(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let name = self.name.as_str().as_bytes();
        let out = |other: &Name| Key::new().name(other.as_str()).rest(name);
        let out = self.except.iter().map(out);
        out.map(|key| entry(Index::CalendarByException, key))
            .collect()
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&CalendarV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, CalendarV1::into_calendar)
    }
}

impl Record for IntakeMapping {
    const KIND: Kind = Kind::Mapping;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Mapping(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        encoded(&MappingV1::new(self, sealer))
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, |record: MappingV1| {
            record.into_mapping(sealer)
        })
    }
}

impl Record for Inhibition {
    const KIND: Kind = Kind::Inhibition;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Inhibition(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&InhibitionV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, InhibitionV1::into_inhibition)
    }
}

impl Record for Group {
    const KIND: Kind = Kind::Group;

    fn key(&self) -> Vec<u8> {
        self.id.to_bytes().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        if self.takes_members() {
            let key = Key::new().id(self.key).id(self.id);
            entries.push(entry(Index::GroupByKey, key));
        }
        if let Some(end_ms) = self.end_ms {
            let key = Key::new().moment(end_ms).id(self.id);
            entries.push(entry(Index::GroupByEnd, key));
        }
        entries
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&GroupV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, GroupV1::into_group)
    }

    fn steps(&self, before: Option<&Self>, to: &mut Vec<CommitStep>) {
        steps::group(self, before, to);
    }
}

impl Record for Client {
    const KIND: Kind = Kind::Client;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Client(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let keys = self.keys().map(|(hash, _)| hash);
        keys.map(|hash| entry(Index::ClientByKey, Key::new().rest(&hash)))
            .collect()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        proven(&ClientV1::from(self), Self::KIND, sealer)
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded_proven(bytes, Self::KIND, sealer, ClientV1::into_client)
    }
}

/// What leads to an occurrence that silences cover or that is a cause, and to what of it waits.
fn add_holds(occurrence: &Occurrence, entries: &mut Vec<Entry>) {
    let standing = |standing: Standing, silence| {
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
    let spared = occurrence.hold_changes.iter();
    let spared = spared.filter(|it| it.what.spared_reason().is_some());
    let mut spared = spared.flat_map(|it| by_silence(&it.held_by));
    for (how, silences) in [
        (Standing::Covered, distinct(&mut covered)),
        (Standing::Pending, distinct(&mut held)),
        (Standing::Spared, distinct(&mut spared)),
        (Standing::Inhibited, distinct(&mut inhibited)),
    ] {
        entries.extend(silences.into_iter().map(|silence| standing(how, silence)));
    }
    let causes: BTreeSet<_> = occurrence
        .causes
        .iter()
        .map(|it| (it.inhibition, it.values))
        .collect();
    entries.extend(causes.into_iter().map(|(inhibition, values)| {
        let key = Key::new().id(inhibition).rest(&values);
        entry(Index::OccurrenceByCause, key.id(occurrence.key))
    }));
    let due = occurrence
        .pending
        .iter()
        .map(|it| it.due_ms().unwrap_or(DUE_NEVER_MS));
    let due = due.chain(occurrence.causes.iter().filter_map(CauseMark::due_ms));
    if let Some(due_ms) = due.min() {
        let key = Key::new().moment(due_ms).id(occurrence.key);
        entries.push(entry(Index::OccurrenceByDue, key));
    }
}

/// What leads from groups to an occurrence that they tell of, or are about to.
fn add_memberships(occurrence: &Occurrence, entries: &mut Vec<Entry>) {
    let standing = |how: Membership, id| Key::new().byte(how as u8).id(id);
    for pending in &occurrence.pending {
        let Some(hold) = pending.group_hold() else {
            continue;
        };
        let how = if pending.is_opening {
            Membership::Joining
        } else {
            Membership::News
        };
        let key = standing(how, hold.id).id(occurrence.key);
        entries.push(entry(Index::OccurrenceByGroup, key));
    }
    for notified in &occurrence.notified {
        let Some(group) = notified.group else {
            continue;
        };
        let mut pending = occurrence.pending.iter();
        // What flaps counts as open until it settles.
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

    fn seen(&self) -> Option<Seen> {
        Some(only_named(&self.id()))
    }

    fn key(&self) -> Vec<u8> {
        self.key.to_bytes().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let state = Key::new()
            .byte(self.status as u8)
            .byte(self.severity as u8)
            .moment(self.last_seen_ms)
            .tie(self)
            .id(self.key);
        let severity = Key::new()
            .byte(self.status as u8)
            .byte(self.severity as u8)
            .tie(self)
            .id(self.key);
        let mut entries = vec![
            entry(
                Index::OccurrenceByEvent,
                Key::new().event(self.event).number(self.number),
            ),
            entry(Index::OccurrenceByState, state),
            entry(Index::OccurrenceByStart, Key::new().tie(self).id(self.key)),
            entry(
                Index::OccurrenceByReview,
                Key::new().moment(self.review_ms).id(self.key),
            ),
            entry(Index::OccurrenceBySeverity, severity),
        ];
        add_holds(self, &mut entries);
        add_memberships(self, &mut entries);
        entries
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        let text_bytes = self.weight_bytes() + self.name.len() + self.kind.len();
        let mut bytes = Vec::with_capacity(RECORD_BYTES + text_bytes);
        bytes.push(VERSION);
        occurrence::write(self, &mut bytes);
        bytes
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, OccurrenceV1::into_occurrence)
    }

    fn steps(&self, before: Option<&Self>, to: &mut Vec<CommitStep>) {
        steps::occurrence(self, before, to);
    }
}

impl Record for Delivery {
    const KIND: Kind = Kind::Delivery;

    fn seen(&self) -> Option<Seen> {
        Some(only_named(&self.id))
    }

    fn key(&self) -> Vec<u8> {
        self.id.to_bytes().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let state = Key::new().byte(self.state.number()).id(self.id);
        let destination = Key::new().id(self.destination).id(self.id);
        let mut entries = vec![
            entry(Index::DeliveryByState, state),
            entry(Index::DeliveryByDestination, destination),
        ];
        // A test is under way only while its caller waits: nobody else is to lease it.
        if let (Some(due_ms), false) = (self.state.due_ms(), self.test) {
            let due = Key::new().id(self.destination).moment(due_ms).id(self.id);
            entries.push(entry(Index::DeliveryByDue, due));
        }
        let is_shadowed = self.state == DeliveryState::Shadowed;
        // A digest stands for others that are.
        let is_notification = !self.test && !is_shadowed && self.content.digest.is_none();
        if is_notification {
            let destination = Key::new().id(self.destination).id(self.id);
            entries.push(entry(Index::NotificationByDestination, destination));
        }
        if let (Some(trigger), true) = (&self.content.trigger, is_notification) {
            let trigger = Key::new().id(trigger.id).id(self.id);
            entries.push(entry(Index::NotificationByTrigger, trigger));
        }
        let group = self.content.group.iter();
        let members = group.flat_map(|it| it.members.iter().map(|(_, it)| it.event));
        let named: BTreeSet<_> = self.event.into_iter().chain(members).collect();
        entries.extend(named.into_iter().map(|event| {
            let key = Key::new().event(event).id(self.id);
            entry(Index::DeliveryByEvent, key)
        }));
        if let Some(group) = &self.content.group {
            let key = Key::new().id(group.id).id(self.id);
            entries.push(entry(Index::DeliveryByGroup, key));
        }
        if let Some(digest) = self.folding.digest() {
            let key = Key::new().id(digest).id(self.id);
            entries.push(entry(Index::DeliveryByDigest, key));
        }
        if let Some(rule) = self.rule {
            let index = if is_shadowed {
                Index::NotificationByTrigger
            } else {
                Index::DeliveryByRule
            };
            entries.push(entry(index, Key::new().id(rule).id(self.id)));
        }
        entries
    }

    fn counted(&self) -> Vec<Counted> {
        Self::counted(self)
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&DeliveryV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, DeliveryV1::into_delivery)
    }

    fn steps(&self, before: Option<&Self>, to: &mut Vec<CommitStep>) {
        steps::delivery(self, before, to);
    }
}

impl Record for Attempt {
    const KIND: Kind = Kind::Attempt;

    fn key(&self) -> Vec<u8> {
        Key::new().id(self.delivery).number(self.number).build()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&AttemptV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, AttemptV1::into_attempt)
    }
}

impl Record for Health {
    const KIND: Kind = Kind::Health;

    fn key(&self) -> Vec<u8> {
        self.destination.to_bytes().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&HealthV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, HealthV1::into_health)
    }
}

impl Record for BudgetWindow {
    const KIND: Kind = Kind::Budget;

    fn key(&self) -> Vec<u8> {
        self.destination.to_bytes().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&BudgetWindowV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, BudgetWindowV1::into_window)
    }
}

impl Record for Receipt {
    const KIND: Kind = Kind::Receipt;

    fn key(&self) -> Vec<u8> {
        Key::new().id(self.client).rest(self.key.as_bytes()).build()
    }

    fn entries(&self) -> Vec<Entry> {
        let time = Key::new().moment(self.create_ms).rest(&self.key());
        vec![entry(Index::ReceiptByTime, time)]
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&ReceiptV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, ReceiptV1::into_receipt)
    }
}

impl Record for Revision {
    const KIND: Kind = Kind::Revision;

    fn key(&self) -> Vec<u8> {
        Key::new().revision(self.of(), &self.id()).build()
    }

    fn entries(&self) -> Vec<Entry> {
        let end = Key::new().moment(self.until_ms).rest(&self.key());
        vec![entry(Index::RevisionByEnd, end)]
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&RevisionV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, RevisionV1::into_revision)
    }
}

impl Record for AuditEntry {
    const KIND: Kind = Kind::Audit;

    fn key(&self) -> Vec<u8> {
        self.number.to_be_bytes().into()
    }

    fn entries(&self) -> Vec<Entry> {
        if self.before.is_none() && self.after.is_none() {
            return Vec::new();
        }
        let named = self.names.iter().map(|name| {
            let key = Key::new().name(&self.kind).name(name);
            entry(Index::AuditByName, key.rest(&self.number.to_be_bytes()))
        });
        named.collect()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        encoded(&AuditV1::new(self, sealer))
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, |record: AuditV1| {
            record.into_entry(sealer)
        })
    }
}
