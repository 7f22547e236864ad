//! What each kind of record is keyed by, and which index entries lead to it.

mod delivery;
mod heartbeat;
mod occurrence;
mod resource;
mod trace;

pub use delivery::{behind, in_thread, of_thread};
pub use heartbeat::{RUNNING, by_beat, by_start};
pub use occurrence::by_response;
pub use resource::uses;
pub(crate) use trace::proven_again;

use super::{
    Record,
    bytes::Key,
    table::{Reader, Secrets, Table, Unreadable, Writer, record},
};
use crate::{
    audit::Seen,
    domain::{AnyResource, Name, RecordId, any_resource::each_resource},
    engine::{EngineError, Entry, Index, Kind},
    seal::{PROOF_BYTES, Sealer},
};

/// Continues with the type of a kind of record: one row a kind, for code that does the same with
/// all of them. Facts and counters have no type.
macro_rules! with_record {
    ($kind:expr, $record:ident => $then:expr, else $otherwise:expr) => {
        $crate::domain::any_resource::each_resource! {
            with_record @each $kind, $record => $then, else $otherwise;
        }
    };
    (
        @each $kind:expr, $record:ident => $then:expr, else $otherwise:expr;
        $($number:literal $word:ident $resource:ident($type:ident) $own:tt)+
    ) => {
        match $kind {
            $($crate::Kind::$resource => with_record!(@ $type, $record => $then),)+
            $crate::Kind::Occurrence => with_record!(@ Occurrence, $record => $then),
            $crate::Kind::Delivery => with_record!(@ Delivery, $record => $then),
            $crate::Kind::Attempt => with_record!(@ Attempt, $record => $then),
            $crate::Kind::Health => with_record!(@ Health, $record => $then),
            $crate::Kind::Receipt => with_record!(@ Receipt, $record => $then),
            $crate::Kind::Revision => with_record!(@ Revision, $record => $then),
            $crate::Kind::Group => with_record!(@ Group, $record => $then),
            $crate::Kind::Audit => with_record!(@ AuditEntry, $record => $then),
            $crate::Kind::Expectation => with_record!(@ Expectation, $record => $then),
            $crate::Kind::Budget => with_record!(@ BudgetWindow, $record => $then),
            $crate::Kind::OwnEvent => with_record!(@ OwnEvent, $record => $then),
            $crate::Kind::Meta | $crate::Kind::Counter => $otherwise,
        }
    };
    (@ $type:ident, $record:ident => $then:expr) => {{
        type $record = $crate::domain::$type;
        $then
    }};
}
pub(crate) use with_record;

/// The encoding of most records, which is the first byte of every value.
const VERSION: u8 = 1;
/// The encoding of records that are proven: a proof stands before what [`VERSION`] holds.
const PROVEN: u8 = 2;
/// What proofs of records are for.
const PURPOSE: &str = "record";
/// What most records take about.
const RECORD_BYTES: usize = 512;

fn encoded(record: &impl Table) -> Vec<u8> {
    let mut to = Writer::new(Secrets::LeftOut);
    to.bytes.reserve(RECORD_BYTES);
    to.bytes.push(VERSION);
    record.write(&mut to);
    to.bytes
}

fn decoded<T: Table>(bytes: &[u8], kind: Kind) -> Result<T, EngineError> {
    read(unversioned(bytes, kind)?, Secrets::LeftOut, kind, T::read)
}

/// What stands after the number of the encoding.
fn unversioned(bytes: &[u8], kind: Kind) -> Result<&[u8], EngineError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
        Some((other, _)) => Err(corrupt(kind, &format!("has the unknown encoding {other}"))),
        None => Err(corrupt(kind, "is empty")),
    }
}

fn read<'a, T>(
    bytes: &'a [u8],
    secrets: Secrets<'a>,
    kind: Kind,
    read: impl FnOnce(Reader<'a>) -> Result<Option<T>, Unreadable>,
) -> Result<T, EngineError> {
    let read = read(Reader::new(bytes, secrets));
    let read = read.map_err(|Unreadable| corrupt(kind, "cannot be read"))?;
    read.ok_or_else(|| corrupt(kind, "holds values that cannot be"))
}

fn corrupt(kind: Kind, what: &str) -> EngineError {
    EngineError::Corrupt(format!("a {kind:?} record {what}"))
}

/// Which records of a store are proven by the keys of the service, so that a change of one without
/// them, or one that was put in another's place, is found out. Each level holds those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Proven {
    /// None.
    Nothing,
    /// Clients and destinations, which decide who may and where to: since layout 4.
    Access,
    /// Everything that people define, and what it was before: since layout 5.
    Definitions,
}

macro_rules! is_resource {
    ($kind:ident; $($number:literal $word:ident $resource:ident($type:ident) $own:tt)+) => {
        matches!($kind, $(Kind::$resource)|+)
    };
}

impl Proven {
    /// The first level at which records of a kind are proven; none for those that never are.
    pub(crate) const fn first_of(kind: Kind) -> Option<Self> {
        if matches!(kind, Kind::Client | Kind::Destination) {
            Some(Self::Access)
        } else if matches!(kind, Kind::Revision) || each_resource!(is_resource kind;) {
            Some(Self::Definitions)
        } else {
            None
        }
    }
}

/// The identity of what people define, which its secrets are sealed for.
struct Identified {
    id: RecordId,
}

record! { Identified { 1 id } }

/// The shift that the times of a record include, which is a field of every kind that has such times.
struct Shifted {
    shift_ms: i64,
}

record! { Shifted { 1_000 shift_ms } }

/// The bytes of a record with a note that its times include a shift.
pub(super) fn with_shift<T: Record>(mut value: Vec<u8>, shift_ms: i64, sealer: &Sealer) -> Vec<u8> {
    if !T::MOVES || shift_ms == 0 {
        return value;
    }
    let mut to = Writer::new(Secrets::LeftOut);
    Shifted { shift_ms }.write(&mut to);
    value.extend(to.bytes);
    match value.split_at_checked(1 + PROOF_BYTES) {
        Some(([PROVEN, ..], message)) => with_proof(T::KIND, message, sealer),
        _ => value,
    }
}

/// The shift that the times of a record include.
pub(super) fn shift_of<T: Record>(value: &[u8]) -> Result<i64, EngineError> {
    let head = match value.first() {
        Some(&PROVEN) => 1 + PROOF_BYTES,
        _ => 1,
    };
    let fields = value.get(head..).unwrap_or_default();
    read(fields, Secrets::LeftOut, T::KIND, Shifted::read).map(|it| it.shift_ms)
}

fn proven(record: &impl Table, id: RecordId, kind: Kind, sealer: &Sealer) -> Vec<u8> {
    let mut to = Writer::new(Secrets::Of(id, sealer));
    to.bytes.reserve(RECORD_BYTES);
    to.bytes.push(PROVEN);
    to.bytes.extend([0; PROOF_BYTES]);
    record.write(&mut to);
    let (proof, message) = to.bytes[1..].split_at_mut(PROOF_BYTES);
    proof.copy_from_slice(&sealer.prove(PURPOSE, &[&[kind as u8], message]));
    to.bytes
}

fn with_proof(kind: Kind, message: &[u8], sealer: &Sealer) -> Vec<u8> {
    let proof = sealer.prove(PURPOSE, &[&[kind as u8], message]);
    [&[PROVEN][..], &proof, message].concat()
}

/// The bytes of a record with the proof that those of its kind have by now; none where it has one, or
/// its kind never does. Only where something else says that what has none was written by the service.
pub(crate) fn proven_since(kind: Kind, value: &[u8], sealer: &Sealer) -> Option<Vec<u8>> {
    Proven::first_of(kind)?;
    match value.split_first() {
        Some((&VERSION, message)) => Some(with_proof(kind, message, sealer)),
        _ => None,
    }
}

fn decoded_proven<T: Table>(bytes: &[u8], kind: Kind, sealer: &Sealer) -> Result<T, EngineError> {
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
    let id = Identified::read(Reader::new(message, Secrets::LeftOut));
    let secrets = match id {
        Ok(Some(Identified { id })) => Secrets::Of(id, sealer),
        _ => Secrets::LeftOut,
    };
    read(message, secrets, kind, T::read)
}

/// What people define, as the audit log keeps it.
fn defined(name: &Name, state: AnyResource) -> Seen {
    Seen {
        name: name.to_string(),
        state: Some(state),
        outcome: String::new(),
    }
}

/// What the audit log only counts.
fn only_named(name: &impl ToString) -> Seen {
    Seen {
        name: name.to_string(),
        state: None,
        outcome: String::new(),
    }
}

fn entry(index: Index, key: Key) -> Entry {
    Entry {
        index,
        key: key.build(),
    }
}
