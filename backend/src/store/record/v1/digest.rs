//! Budgets, and what digests tell.

use super::occurrence::{OccurrenceV1, record_id};
use crate::domain::{BudgetWindow, DigestContent, DigestItem, DigestRow, RecordId, Severity};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BudgetWindowV1 {
    #[prost(bytes = "vec", tag = "1")]
    destination: Vec<u8>,
    #[prost(int64, tag = "2")]
    until_ms: i64,
    #[prost(uint32, tag = "3")]
    sent: u32,
    #[prost(bytes = "vec", optional, tag = "4")]
    held: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "5")]
    digest: Option<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "6")]
    dead: Vec<Vec<u8>>,
}

impl From<&BudgetWindow> for BudgetWindowV1 {
    fn from(window: &BudgetWindow) -> Self {
        let bytes = |id: RecordId| id.to_bytes().to_vec();
        Self {
            destination: bytes(window.destination),
            until_ms: window.until_ms,
            sent: window.sent,
            held: window.held.map(bytes),
            digest: window.digest.map(bytes),
            dead: window.dead.iter().copied().map(bytes).collect(),
        }
    }
}

impl BudgetWindowV1 {
    pub(crate) fn into_window(self) -> Option<BudgetWindow> {
        let optional = |bytes: Option<Vec<u8>>| match bytes {
            None => Some(None),
            Some(bytes) => record_id(bytes).map(Some),
        };
        Some(BudgetWindow {
            destination: record_id(self.destination)?,
            until_ms: self.until_ms,
            sent: self.sent,
            held: optional(self.held)?,
            digest: optional(self.digest)?,
            dead: {
                let all = self.dead.into_iter().map(record_id);
                all.collect::<Option<_>>()?
            },
        })
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DigestContentV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(int64, tag = "2")]
    start_ms: i64,
    #[prost(int64, tag = "3")]
    end_ms: i64,
    #[prost(uint32, tag = "4")]
    count: u32,
    #[prost(uint32, tag = "5")]
    clear_count: u32,
    #[prost(message, repeated, tag = "6")]
    rows: Vec<RowV1>,
    #[prost(message, repeated, tag = "7")]
    items: Vec<ItemV1>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RowV1 {
    /// None for all that have no row of their own.
    #[prost(string, optional, tag = "1")]
    rule_name: Option<String>,
    #[prost(int32, tag = "2")]
    severity: i32,
    #[prost(uint32, tag = "3")]
    count: u32,
    #[prost(uint32, tag = "4")]
    clear_count: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ItemV1 {
    #[prost(string, tag = "1")]
    rule_name: String,
    #[prost(bool, tag = "2")]
    clear: bool,
    #[prost(int64, tag = "3")]
    at_ms: i64,
    #[prost(message, optional, tag = "4")]
    occurrence: Option<OccurrenceV1>,
}

impl From<&DigestContent> for DigestContentV1 {
    fn from(content: &DigestContent) -> Self {
        let row = |it: &DigestRow| RowV1 {
            rule_name: it.rule_name.clone(),
            severity: it.severity as i32,
            count: it.count,
            clear_count: it.clear_count,
        };
        let item = |it: &DigestItem| ItemV1 {
            rule_name: it.rule_name.clone(),
            clear: it.clear,
            at_ms: it.at_ms,
            occurrence: Some((&it.occurrence).into()),
        };
        Self {
            id: content.id.to_bytes().into(),
            start_ms: content.start_ms,
            end_ms: content.end_ms,
            count: content.count,
            clear_count: content.clear_count,
            rows: content.rows.iter().map(row).collect(),
            items: content.items.iter().map(item).collect(),
        }
    }
}

impl DigestContentV1 {
    pub(super) fn into_content(self) -> Option<DigestContent> {
        let severity = |number: i32| Severity::ALL.into_iter().find(|it| *it as i32 == number);
        let row = |it: RowV1| {
            Some(DigestRow {
                rule_name: it.rule_name,
                severity: severity(it.severity)?,
                count: it.count,
                clear_count: it.clear_count,
            })
        };
        let item = |it: ItemV1| {
            Some(DigestItem {
                rule_name: it.rule_name,
                clear: it.clear,
                at_ms: it.at_ms,
                occurrence: it.occurrence?.into_occurrence()?,
            })
        };
        Some(DigestContent {
            id: record_id(self.id)?,
            start_ms: self.start_ms,
            end_ms: self.end_ms,
            count: self.count,
            clear_count: self.clear_count,
            rows: {
                let all = self.rows.into_iter().map(row);
                all.collect::<Option<_>>()?
            },
            items: {
                let all = self.items.into_iter().map(item);
                all.collect::<Option<_>>()?
            },
        })
    }
}
