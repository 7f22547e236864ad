//! What waits, how it came to wait, and what holds others back.

use crate::domain::{
    CauseMark, Held, HeldBy, HoldChange, HoldKind, LastNotified, Name, Pending, RecordId, Severity,
    hold::SharedValue,
};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PendingV1 {
    #[prost(bytes = "vec", tag = "1")]
    rule: Vec<u8>,
    #[prost(string, tag = "2")]
    rule_name: String,
    #[prost(bool, tag = "3")]
    is_opening: bool,
    #[prost(int64, tag = "4")]
    since_ms: i64,
    #[prost(bool, tag = "5")]
    repeat_due: bool,
    #[prost(message, optional, tag = "6")]
    last_notified: Option<LastNotifiedV1>,
    #[prost(message, repeated, tag = "7")]
    held_by: Vec<HeldByV1>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct LastNotifiedV1 {
    #[prost(int32, tag = "1")]
    severity: i32,
    #[prost(bool, tag = "2")]
    acknowledged: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct HeldByV1 {
    /// The number of a `HoldKind`.
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(bytes = "vec", tag = "2")]
    id: Vec<u8>,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(uint64, tag = "4")]
    revision: u64,
    #[prost(int64, tag = "5")]
    since_ms: i64,
    #[prost(int64, optional, tag = "6")]
    until_ms: Option<i64>,
    #[prost(string, tag = "7")]
    author: String,
    #[prost(string, tag = "8")]
    detail: String,
    #[prost(message, repeated, tag = "9")]
    shared: Vec<SharedV1>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HoldChangeV1 {
    #[prost(int64, tag = "1")]
    at_ms: i64,
    #[prost(bytes = "vec", tag = "2")]
    rule: Vec<u8>,
    /// The number of a `Held`.
    #[prost(uint32, tag = "3")]
    what: u32,
    #[prost(message, repeated, tag = "4")]
    held_by: Vec<HeldByV1>,
}

impl From<&Pending> for PendingV1 {
    fn from(pending: &Pending) -> Self {
        Self {
            rule: pending.rule.to_bytes().into(),
            rule_name: pending.rule_name.to_string(),
            is_opening: pending.is_opening,
            since_ms: pending.since_ms,
            repeat_due: pending.repeat_due,
            last_notified: pending.last_notified.map(|told| LastNotifiedV1 {
                severity: told.severity as i32,
                acknowledged: told.acknowledged,
            }),
            held_by: pending.held_by.iter().map(HeldByV1::from).collect(),
        }
    }
}

impl PendingV1 {
    pub(crate) fn into_pending(self) -> Option<Pending> {
        let last_notified = match self.last_notified {
            None => None,
            Some(told) => Some(LastNotified {
                severity: Severity::from_number(told.severity)?,
                acknowledged: told.acknowledged,
            }),
        };
        Some(Pending {
            rule: id(self.rule)?,
            rule_name: Name::parse(&self.rule_name).ok()?,
            is_opening: self.is_opening,
            since_ms: self.since_ms,
            repeat_due: self.repeat_due,
            last_notified,
            held_by: held_by(self.held_by)?,
        })
    }
}

impl From<&HeldBy> for HeldByV1 {
    fn from(held_by: &HeldBy) -> Self {
        Self {
            kind: held_by.kind as u32,
            id: held_by.id.to_bytes().into(),
            name: held_by.name.to_string(),
            revision: held_by.revision,
            since_ms: held_by.since_ms,
            until_ms: held_by.until_ms,
            author: held_by
                .author
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            detail: held_by.detail.clone(),
            shared: held_by.shared.iter().map(SharedV1::from).collect(),
        }
    }
}

fn held_by(records: Vec<HeldByV1>) -> Option<Vec<HeldBy>> {
    let one = |record: HeldByV1| {
        let mut kinds = HoldKind::ALL.into_iter();
        Some(HeldBy {
            kind: kinds.find(|kind| *kind as u32 == record.kind)?,
            id: id(record.id)?,
            name: Name::parse(&record.name).ok()?,
            revision: record.revision,
            since_ms: record.since_ms,
            until_ms: record.until_ms,
            author: match record.author.as_str() {
                "" => None,
                author => Some(Name::parse(author).ok()?),
            },
            detail: record.detail,
            shared: shared(record.shared),
        })
    };
    records.into_iter().map(one).collect()
}

impl From<&HoldChange> for HoldChangeV1 {
    fn from(change: &HoldChange) -> Self {
        Self {
            at_ms: change.at_ms,
            rule: change.rule.to_bytes().into(),
            what: change.what as u32,
            held_by: change.held_by.iter().map(HeldByV1::from).collect(),
        }
    }
}

impl HoldChangeV1 {
    pub(crate) fn into_change(self) -> Option<HoldChange> {
        let mut all = Held::ALL.into_iter();
        Some(HoldChange {
            at_ms: self.at_ms,
            rule: id(self.rule)?,
            what: all.find(|what| *what as u32 == self.what)?,
            held_by: held_by(self.held_by)?,
        })
    }
}

fn id(bytes: Vec<u8>) -> Option<RecordId> {
    Some(RecordId::from_bytes(bytes.try_into().ok()?))
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CauseMarkV1 {
    #[prost(bytes = "vec", tag = "1")]
    inhibition: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    values: Vec<u8>,
    #[prost(int64, optional, tag = "3")]
    until_ms: Option<i64>,
    #[prost(bool, tag = "4")]
    is_freed: bool,
}

impl From<&CauseMark> for CauseMarkV1 {
    fn from(mark: &CauseMark) -> Self {
        Self {
            inhibition: mark.inhibition.to_bytes().into(),
            values: mark.values.into(),
            until_ms: mark.until_ms,
            is_freed: mark.is_freed,
        }
    }
}

impl CauseMarkV1 {
    pub(crate) fn into_mark(self) -> Option<CauseMark> {
        Some(CauseMark {
            inhibition: RecordId::from_bytes(self.inhibition.try_into().ok()?),
            values: self.values.try_into().ok()?,
            until_ms: self.until_ms,
            is_freed: self.is_freed,
        })
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SharedV1 {
    #[prost(string, tag = "1")]
    field: String,
    #[prost(string, optional, tag = "2")]
    value: Option<String>,
}

impl From<&SharedValue> for SharedV1 {
    fn from((field, value): &SharedValue) -> Self {
        Self {
            field: field.clone(),
            value: value.clone(),
        }
    }
}

pub(super) fn shared(records: Vec<SharedV1>) -> Vec<SharedValue> {
    let one = |record: SharedV1| (record.field, record.value);
    records.into_iter().map(one).collect()
}
