//! Keys and index entries of each kind of record.

mod delivery;
mod heartbeat;
mod occurrence;
mod resource;
mod trace;

pub use delivery::{delivery_thread_prefix, kept_value_prefix, thread_prefix, waiting_prefix};
pub use heartbeat::{RUNNING, beat_prefix, start_prefix};
pub use occurrence::response_prefix;
pub use resource::users_prefix;
pub(crate) use trace::renew_proof;

use super::{
    Record,
    bytes::Key,
    table::{Reader, Secrets, Table, Unreadable, Writer, record},
};
use crate::{
    audit::AuditSnapshot,
    domain::{AnyResource, Name, RecordId, any_resource::each_resource},
    engine::{EngineError, Entry, Index, Kind},
    seal::{PROOF_BYTES, Sealer},
};

/// Calls a macro with the type of a kind of record, for code that is the same for all kinds. Facts
/// and counters have no type.
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

/// The first byte of a value states its encoding. This one is used for most records.
const VERSION: u8 = 1;
/// The encoding of authenticated records: a proof, then the content as in [`VERSION`].
const PROVEN: u8 = 2;
const PURPOSE: &str = "record";
const RECORD_BYTES: usize = 512;

fn encode(record: &impl Table) -> Vec<u8> {
    let mut to = Writer::new(Secrets::LeftOut);
    to.bytes.reserve(RECORD_BYTES);
    to.bytes.push(VERSION);
    record.write(&mut to);
    to.bytes
}

fn decode<T: Table>(bytes: &[u8], kind: Kind) -> Result<T, EngineError> {
    read(strip_version(bytes, kind)?, Secrets::LeftOut, kind, T::read)
}

fn strip_version(bytes: &[u8], kind: Kind) -> Result<&[u8], EngineError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
        Some((other, _)) => Err(corrupt_error(
            kind,
            &format!("has the unknown encoding {other}"),
        )),
        None => Err(corrupt_error(kind, "is empty")),
    }
}

fn read<'a, T>(
    bytes: &'a [u8],
    secrets: Secrets<'a>,
    kind: Kind,
    read: impl FnOnce(Reader<'a>) -> Result<Option<T>, Unreadable>,
) -> Result<T, EngineError> {
    let read = read(Reader::new(bytes, secrets));
    let read = read.map_err(|Unreadable| corrupt_error(kind, "cannot be read"))?;
    read.ok_or_else(|| corrupt_error(kind, "contains invalid values"))
}

fn corrupt_error(kind: Kind, what: &str) -> EngineError {
    EngineError::Corrupt(format!("a {kind:?} record {what}"))
}

/// The set of records that the service's keys authenticate, so that forged or moved records are
/// detected. Each level includes the previous levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProofLevel {
    Nothing,
    /// Clients and destinations, which control access and targets: since layout 4.
    Access,
    /// All definitions and their revisions: since layout 5.
    Definitions,
}

macro_rules! is_resource {
    ($kind:ident; $($number:literal $word:ident $resource:ident($type:ident) $own:tt)+) => {
        matches!($kind, $(Kind::$resource)|+)
    };
}

impl ProofLevel {
    pub(crate) const fn oldest_for_kind(kind: Kind) -> Option<Self> {
        if matches!(kind, Kind::Client | Kind::Destination) {
            Some(Self::Access)
        } else if matches!(kind, Kind::Revision) || each_resource!(is_resource kind;) {
            Some(Self::Definitions)
        } else {
            None
        }
    }
}

struct RecordIdField {
    id: RecordId,
}

record! { RecordIdField { 1 id } }

/// The shift that the times of a record include, which is a field of every kind that has such
/// times.
struct ShiftField {
    shift_ms: i64,
}

record! { ShiftField { 1_000 shift_ms } }

/// Returns an encoded record to which the shift of its times was added.
pub(super) fn with_shift<T: Record>(mut value: Vec<u8>, shift_ms: i64, sealer: &Sealer) -> Vec<u8> {
    if !T::MOVES || shift_ms == 0 {
        return value;
    }
    let mut to = Writer::new(Secrets::LeftOut);
    ShiftField { shift_ms }.write(&mut to);
    value.extend(to.bytes);
    match value.split_at_checked(1 + PROOF_BYTES) {
        Some(([PROVEN, ..], message)) => with_proof(T::KIND, message, sealer),
        _ => value,
    }
}

pub(super) fn read_shift<T: Record>(value: &[u8]) -> Result<i64, EngineError> {
    let head = match value.first() {
        Some(&PROVEN) => 1 + PROOF_BYTES,
        _ => 1,
    };
    let fields = value.get(head..).unwrap_or_default();
    read(fields, Secrets::LeftOut, T::KIND, ShiftField::read).map(|it| it.shift_ms)
}

fn prove_record(record: &impl Table, id: RecordId, kind: Kind, sealer: &Sealer) -> Vec<u8> {
    let mut to = Writer::new(Secrets::Of(id, sealer));
    to.bytes.reserve(RECORD_BYTES);
    to.bytes.push(PROVEN);
    to.bytes.extend([0; PROOF_BYTES]);
    record.write(&mut to);
    let (proof, message) = to.bytes[1..].split_at_mut(PROOF_BYTES);
    proof.copy_from_slice(&sealer.compute_proof(PURPOSE, &[&[kind as u8], message]));
    to.bytes
}

fn with_proof(kind: Kind, message: &[u8], sealer: &Sealer) -> Vec<u8> {
    let proof = sealer.compute_proof(PURPOSE, &[&[kind as u8], message]);
    [&[PROVEN][..], &proof, message].concat()
}

/// Adds the proof that a kind requires. `None` if the record has a proof or requires none. Only for
/// records that are otherwise known to be written by the service.
pub(crate) fn upgrade_proof(kind: Kind, value: &[u8], sealer: &Sealer) -> Option<Vec<u8>> {
    ProofLevel::oldest_for_kind(kind)?;
    match value.split_first() {
        Some((&VERSION, message)) => Some(with_proof(kind, message, sealer)),
        _ => None,
    }
}

fn decode_proven<T: Table>(bytes: &[u8], kind: Kind, sealer: &Sealer) -> Result<T, EngineError> {
    let unproven = || {
        EngineError::Corrupt(format!(
            "a {kind:?} record was not written by this service, or was written with another key"
        ))
    };
    let rest = bytes.strip_prefix(&[PROVEN]).ok_or_else(unproven)?;
    let (proof, message) = rest.split_at_checked(PROOF_BYTES).ok_or_else(unproven)?;
    if !sealer.is_proven(PURPOSE, &[&[kind as u8], message], proof) {
        return Err(unproven());
    }
    let id = RecordIdField::read(Reader::new(message, Secrets::LeftOut));
    let secrets = match id {
        Ok(Some(RecordIdField { id })) => Secrets::Of(id, sealer),
        _ => Secrets::LeftOut,
    };
    read(message, secrets, kind, T::read)
}

fn definition_snapshot(name: &Name, state: AnyResource) -> AuditSnapshot {
    AuditSnapshot {
        name: name.to_string(),
        state: Some(state),
        outcome: String::new(),
    }
}

fn name_only_snapshot(name: &impl ToString) -> AuditSnapshot {
    AuditSnapshot {
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
