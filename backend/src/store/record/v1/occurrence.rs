//! Occurrences.

mod write;

use std::collections::BTreeMap;

pub(crate) use self::write::write;
use super::{
    hold::{CauseMarkV1, HoldChangeV1, PendingV1},
    value::FieldsV1,
};
use crate::domain::{
    Annotation, Close, CloseReason, Earlier, Evaluation, EventId, Field, Flapping, HistoryEntry,
    Lease, Name, Notified, Occurrence, Opening, RecordId, Reports, RevisionId, Severity, Status,
    ThreadOf, TraceContext,
};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OccurrenceV1 {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    event: Vec<u8>,
    #[prost(uint32, tag = "3")]
    number: u32,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(string, tag = "5")]
    kind: String,
    #[prost(btree_map = "string, string", tag = "6")]
    dimensions: BTreeMap<String, String>,
    #[prost(message, optional, tag = "7")]
    metadata: Option<FieldsV1>,
    #[prost(string, tag = "8")]
    summary: String,
    #[prost(string, tag = "9")]
    body: String,
    #[prost(int32, tag = "10")]
    severity: i32,
    #[prost(int32, tag = "11")]
    status: i32,
    #[prost(bool, tag = "12")]
    acknowledged: bool,
    #[prost(int64, tag = "13")]
    start_ms: i64,
    #[prost(int64, tag = "14")]
    last_seen_ms: i64,
    #[prost(int64, tag = "15")]
    close_ms: i64,
    #[prost(enumeration = "CloseReasonV1", tag = "16")]
    close_reason: i32,
    #[prost(uint64, tag = "17")]
    count: u64,
    #[prost(uint64, tag = "18")]
    prior_count: u64,
    #[prost(message, repeated, tag = "19")]
    annotations: Vec<AnnotationV1>,
    #[prost(message, repeated, tag = "20")]
    history: Vec<HistoryEntryV1>,
    #[prost(message, repeated, tag = "21")]
    notified: Vec<NotifiedV1>,
    #[prost(bytes = "vec", repeated, tag = "22")]
    chain: Vec<Vec<u8>>,
    #[prost(int64, tag = "23")]
    review_ms: i64,
    #[prost(int64, optional, tag = "24")]
    content_ms: Option<i64>,
    #[prost(message, optional, tag = "25")]
    evaluation: Option<EvaluationV1>,
    #[prost(int64, optional, tag = "26")]
    received_ms: Option<i64>,
    #[prost(uint32, optional, tag = "27")]
    reopened: Option<u32>,
    #[prost(bytes = "vec", repeated, tag = "28")]
    covered_by: Vec<Vec<u8>>,
    #[prost(message, repeated, tag = "29")]
    pending: Vec<PendingV1>,
    #[prost(message, repeated, tag = "30")]
    hold_changes: Vec<HoldChangeV1>,
    #[prost(message, repeated, tag = "31")]
    earlier: Vec<EarlierV1>,
    #[prost(message, repeated, tag = "32")]
    causes: Vec<CauseMarkV1>,
    #[prost(int64, optional, tag = "33")]
    expire_ms: Option<i64>,
    #[prost(message, repeated, tag = "34")]
    flapping: Vec<FlappingV1>,
    #[prost(string, tag = "35")]
    assignee: String,
    /// [`TraceContext::to_bytes`]; empty for none.
    #[prost(bytes = "vec", tag = "36")]
    trace: Vec<u8>,
    #[prost(int64, optional, tag = "37")]
    began_first_ms: Option<i64>,
    #[prost(int64, optional, tag = "38")]
    began_last_ms: Option<i64>,
    #[prost(message, repeated, tag = "39")]
    leases: Vec<LeaseV1>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct LeaseV1 {
    #[prost(fixed64, tag = "1")]
    reporter: u64,
    #[prost(int64, tag = "2")]
    until_ms: i64,
}

impl From<&Lease> for LeaseV1 {
    fn from(lease: &Lease) -> Self {
        Self {
            reporter: lease.reporter,
            until_ms: lease.until_ms,
        }
    }
}

impl From<LeaseV1> for Lease {
    fn from(lease: LeaseV1) -> Self {
        Self {
            reporter: lease.reporter,
            until_ms: lease.until_ms,
        }
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct FlappingV1 {
    #[prost(bytes = "vec", tag = "1")]
    rule: Vec<u8>,
    #[prost(int64, repeated, tag = "2")]
    openings: Vec<i64>,
    #[prost(uint32, tag = "3")]
    number: u32,
    #[prost(int64, tag = "4")]
    changed_ms: i64,
    #[prost(int64, optional, tag = "5")]
    since_ms: Option<i64>,
}

/// The occurrence that receivers know another one by.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ThreadV1 {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(uint32, tag = "2")]
    number: u32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct EarlierV1 {
    #[prost(int64, tag = "1")]
    end_ms: i64,
    #[prost(int64, tag = "2")]
    length_ms: i64,
    #[prost(bool, tag = "3")]
    by_sender: bool,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct EvaluationV1 {
    #[prost(int64, tag = "1")]
    at_ms: i64,
    #[prost(int64, tag = "2")]
    rules_ms: i64,
    #[prost(bool, tag = "3")]
    by_event: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum CloseReasonV1 {
    NotClosed = 0,
    Sender = 1,
    Operator = 2,
    Aged = 3,
    Expired = 4,
}

#[derive(Clone, PartialEq, prost::Message)]
struct AnnotationV1 {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    text: String,
    #[prost(string, tag = "3")]
    author: String,
    #[prost(int64, tag = "4")]
    create_ms: i64,
    #[prost(int64, tag = "5")]
    update_ms: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct HistoryEntryV1 {
    #[prost(int64, tag = "1")]
    at_ms: i64,
    #[prost(string, tag = "2")]
    author: String,
    #[prost(enumeration = "FieldV1", tag = "3")]
    field: i32,
    #[prost(string, tag = "4")]
    from: String,
    #[prost(string, tag = "5")]
    to: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum FieldV1 {
    Unknown = 0,
    Severity = 1,
    Status = 2,
    Acknowledged = 3,
    Assignee = 4,
}

#[derive(Clone, PartialEq, prost::Message)]
struct NotifiedV1 {
    #[prost(bytes = "vec", tag = "1")]
    rule: Vec<u8>,
    #[prost(string, tag = "2")]
    rule_name: String,
    #[prost(int64, tag = "3")]
    last_ms: i64,
    #[prost(bool, tag = "4")]
    send_updates: bool,
    #[prost(message, repeated, tag = "5")]
    destinations: Vec<ReferenceV1>,
    #[prost(bool, tag = "6")]
    cleared: bool,
    #[prost(message, optional, tag = "7")]
    opening: Option<OpeningV1>,
    #[prost(bytes = "vec", tag = "8")]
    group: Vec<u8>,
    #[prost(bool, tag = "9")]
    shadow: bool,
    #[prost(message, optional, tag = "10")]
    thread: Option<ThreadV1>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct OpeningV1 {
    #[prost(int64, tag = "1")]
    at_ms: i64,
    #[prost(message, optional, tag = "2")]
    trigger: Option<ReferenceV1>,
    #[prost(uint64, tag = "3")]
    trigger_revision: u64,
    #[prost(uint64, tag = "4")]
    rule_revision: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ReferenceV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(string, tag = "2")]
    name: String,
}

impl From<&Occurrence> for OccurrenceV1 {
    fn from(occurrence: &Occurrence) -> Self {
        Self {
            key: occurrence.key.to_bytes().into(),
            event: occurrence.event.to_bytes().into(),
            number: occurrence.number,
            name: occurrence.name.clone(),
            kind: occurrence.kind.clone(),
            dimensions: occurrence.dimensions.clone(),
            metadata: (!occurrence.metadata.is_empty()).then(|| (&occurrence.metadata).into()),
            summary: occurrence.summary.clone(),
            body: occurrence.body.clone(),
            severity: occurrence.severity as i32,
            status: occurrence.status as i32,
            acknowledged: occurrence.acknowledged,
            start_ms: occurrence.start_ms,
            last_seen_ms: occurrence.last_seen_ms,
            close_ms: occurrence.close.map_or(0, |close| close.at_ms),
            close_reason: close_reason(occurrence).into(),
            count: occurrence.count,
            prior_count: occurrence.prior_count,
            annotations: occurrence
                .annotations
                .iter()
                .map(AnnotationV1::from)
                .collect(),
            history: occurrence
                .history
                .iter()
                .map(HistoryEntryV1::from)
                .collect(),
            notified: occurrence.notified.iter().map(NotifiedV1::from).collect(),
            chain: ids(&occurrence.chain),
            review_ms: occurrence.review_ms,
            content_ms: occurrence.content_ms,
            evaluation: occurrence.evaluation.as_ref().map(EvaluationV1::from),
            received_ms: occurrence.received_ms,
            reopened: occurrence.reopened,
            covered_by: ids(&occurrence.covered_by),
            pending: occurrence.pending.iter().map(PendingV1::from).collect(),
            hold_changes: occurrence
                .hold_changes
                .iter()
                .map(HoldChangeV1::from)
                .collect(),
            earlier: occurrence.earlier.iter().map(EarlierV1::from).collect(),
            causes: occurrence.causes.iter().map(CauseMarkV1::from).collect(),
            expire_ms: occurrence.expire_ms,
            flapping: occurrence.flapping.iter().map(FlappingV1::from).collect(),
            assignee: occurrence
                .assignee
                .as_ref()
                .map_or_else(String::new, Name::to_string),
            trace: occurrence
                .trace
                .map_or_else(Vec::new, |it| it.to_bytes().into()),
            began_first_ms: occurrence.reports.began_ms.map(|(first, _)| first),
            began_last_ms: occurrence.reports.began_ms.map(|(_, last)| last),
            leases: occurrence
                .reports
                .leases
                .iter()
                .map(LeaseV1::from)
                .collect(),
        }
    }
}

fn close_reason(occurrence: &Occurrence) -> CloseReasonV1 {
    match occurrence.close.map(|close| close.reason) {
        None => CloseReasonV1::NotClosed,
        Some(CloseReason::Sender) => CloseReasonV1::Sender,
        Some(CloseReason::Operator) => CloseReasonV1::Operator,
        Some(CloseReason::Aged) => CloseReasonV1::Aged,
        Some(CloseReason::Expired) => CloseReasonV1::Expired,
    }
}

impl From<&Evaluation> for EvaluationV1 {
    fn from(evaluation: &Evaluation) -> Self {
        Self {
            at_ms: evaluation.at_ms,
            rules_ms: evaluation.rules_ms,
            by_event: evaluation.by_event,
        }
    }
}

impl From<&Flapping> for FlappingV1 {
    fn from(flapping: &Flapping) -> Self {
        Self {
            rule: flapping.rule.to_bytes().into(),
            openings: flapping.openings.clone(),
            number: flapping.number,
            changed_ms: flapping.changed_ms,
            since_ms: flapping.since_ms,
        }
    }
}

impl FlappingV1 {
    fn into_flapping(self) -> Option<Flapping> {
        Some(Flapping {
            rule: record_id(self.rule)?,
            openings: self.openings,
            number: self.number,
            changed_ms: self.changed_ms,
            since_ms: self.since_ms,
        })
    }
}

impl From<ThreadOf> for ThreadV1 {
    fn from(thread: ThreadOf) -> Self {
        Self {
            key: thread.key.to_bytes().into(),
            number: thread.number,
        }
    }
}

impl ThreadV1 {
    pub(super) fn into_thread(self) -> Option<ThreadOf> {
        Some(ThreadOf {
            key: record_id(self.key)?,
            number: self.number,
        })
    }
}

impl From<&Earlier> for EarlierV1 {
    fn from(earlier: &Earlier) -> Self {
        Self {
            end_ms: earlier.end_ms,
            length_ms: earlier.length_ms,
            by_sender: earlier.by_sender,
        }
    }
}

impl From<EarlierV1> for Earlier {
    fn from(earlier: EarlierV1) -> Self {
        Self {
            end_ms: earlier.end_ms,
            length_ms: earlier.length_ms,
            by_sender: earlier.by_sender,
        }
    }
}

impl OccurrenceV1 {
    #[expect(clippy::too_many_lines, reason = "a row for each field")]
    pub(crate) fn into_occurrence(self) -> Option<Occurrence> {
        let reason = match CloseReasonV1::try_from(self.close_reason).ok()? {
            CloseReasonV1::NotClosed => None,
            CloseReasonV1::Sender => Some(CloseReason::Sender),
            CloseReasonV1::Operator => Some(CloseReason::Operator),
            CloseReasonV1::Aged => Some(CloseReason::Aged),
            CloseReasonV1::Expired => Some(CloseReason::Expired),
        };
        let annotations = self
            .annotations
            .into_iter()
            .map(AnnotationV1::into_annotation);
        let history = self.history.into_iter().map(HistoryEntryV1::into_entry);
        let notified = self.notified.into_iter().map(NotifiedV1::into_notified);
        let pending = self.pending.into_iter().map(PendingV1::into_pending);
        let flapping = self.flapping.into_iter().map(FlappingV1::into_flapping);
        let causes = self.causes.into_iter().map(CauseMarkV1::into_mark);
        let hold_changes = self.hold_changes.into_iter();
        let hold_changes = hold_changes.map(HoldChangeV1::into_change);
        Some(Occurrence {
            key: record_id(self.key)?,
            event: EventId::from_bytes(self.event.try_into().ok()?),
            number: self.number,
            name: self.name,
            kind: self.kind,
            dimensions: self.dimensions,
            metadata: self.metadata.unwrap_or_default().into_fields()?,
            summary: self.summary,
            body: self.body,
            severity: Severity::from_number(self.severity)?,
            status: Status::from_number(self.status)?,
            acknowledged: self.acknowledged,
            assignee: match self.assignee.as_str() {
                "" => None,
                name => Some(Name::parse(name).ok()?),
            },
            trace: match &self.trace[..] {
                [] => None,
                bytes => Some(TraceContext::from_bytes(bytes.try_into().ok()?)),
            },
            start_ms: self.start_ms,
            last_seen_ms: self.last_seen_ms,
            close: reason.map(|reason| Close {
                at_ms: self.close_ms,
                reason,
            }),
            count: self.count,
            prior_count: self.prior_count,
            annotations: annotations.collect::<Option<_>>()?,
            history: history.collect::<Option<_>>()?,
            notified: notified.collect::<Option<_>>()?,
            chain: record_ids(self.chain)?,
            review_ms: self.review_ms,
            content_ms: self.content_ms,
            evaluation: self.evaluation.map(|evaluation| Evaluation {
                at_ms: evaluation.at_ms,
                rules_ms: evaluation.rules_ms,
                by_event: evaluation.by_event,
            }),
            received_ms: self.received_ms,
            reopened: self.reopened,
            covered_by: record_ids(self.covered_by)?,
            pending: pending.collect::<Option<_>>()?,
            hold_changes: hold_changes.collect::<Option<_>>()?,
            earlier: self.earlier.into_iter().map(Into::into).collect(),
            causes: causes.collect::<Option<_>>()?,
            expire_ms: self.expire_ms,
            reports: Reports {
                began_ms: self.began_first_ms.zip(self.began_last_ms),
                leases: self.leases.into_iter().map(Into::into).collect(),
            },
            flapping: flapping.collect::<Option<_>>()?,
        })
    }
}

fn ids(ids: &[RecordId]) -> Vec<Vec<u8>> {
    ids.iter().map(|id| id.to_bytes().into()).collect()
}

fn record_ids(ids: Vec<Vec<u8>>) -> Option<Vec<RecordId>> {
    ids.into_iter().map(record_id).collect()
}

pub(crate) fn record_id(bytes: Vec<u8>) -> Option<RecordId> {
    Some(RecordId::from_bytes(bytes.try_into().ok()?))
}

impl From<&Annotation> for AnnotationV1 {
    fn from(annotation: &Annotation) -> Self {
        Self {
            id: annotation.id.clone(),
            text: annotation.text.clone(),
            author: annotation.author.as_str().into(),
            create_ms: annotation.create_ms,
            update_ms: annotation.update_ms,
        }
    }
}

impl AnnotationV1 {
    fn into_annotation(self) -> Option<Annotation> {
        Some(Annotation {
            id: self.id,
            text: self.text,
            author: Name::parse(&self.author).ok()?,
            create_ms: self.create_ms,
            update_ms: self.update_ms,
        })
    }
}

impl From<Field> for FieldV1 {
    fn from(field: Field) -> Self {
        match field {
            Field::Severity => Self::Severity,
            Field::Status => Self::Status,
            Field::Acknowledged => Self::Acknowledged,
            Field::Assignee => Self::Assignee,
        }
    }
}

impl From<&HistoryEntry> for HistoryEntryV1 {
    fn from(entry: &HistoryEntry) -> Self {
        Self {
            at_ms: entry.at_ms,
            author: entry
                .author
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            field: FieldV1::from(entry.field).into(),
            from: entry.from.clone(),
            to: entry.to.clone(),
        }
    }
}

impl HistoryEntryV1 {
    fn into_entry(self) -> Option<HistoryEntry> {
        let field = match FieldV1::try_from(self.field).ok()? {
            FieldV1::Unknown => return None,
            FieldV1::Severity => Field::Severity,
            FieldV1::Status => Field::Status,
            FieldV1::Acknowledged => Field::Acknowledged,
            FieldV1::Assignee => Field::Assignee,
        };
        let author = match self.author.as_str() {
            "" => None,
            author => Some(Name::parse(author).ok()?),
        };
        Some(HistoryEntry {
            at_ms: self.at_ms,
            author,
            field,
            from: self.from,
            to: self.to,
        })
    }
}

impl From<&Notified> for NotifiedV1 {
    fn from(notified: &Notified) -> Self {
        let reference = |(id, name): &(RecordId, Name)| ReferenceV1 {
            id: id.to_bytes().into(),
            name: name.as_str().into(),
        };
        Self {
            rule: notified.rule.to_bytes().into(),
            rule_name: notified.rule_name.as_str().into(),
            last_ms: notified.last_ms,
            send_updates: notified.send_updates,
            destinations: notified.destinations.iter().map(reference).collect(),
            cleared: notified.cleared,
            opening: notified.opening.as_ref().map(OpeningV1::from),
            group: notified
                .group
                .map_or_else(Vec::new, |it| it.to_bytes().into()),
            shadow: notified.shadow,
            thread: notified.thread.map(ThreadV1::from),
        }
    }
}

impl NotifiedV1 {
    fn into_notified(self) -> Option<Notified> {
        let reference = |reference: ReferenceV1| {
            Some((record_id(reference.id)?, Name::parse(&reference.name).ok()?))
        };
        Some(Notified {
            rule: record_id(self.rule)?,
            rule_name: Name::parse(&self.rule_name).ok()?,
            last_ms: self.last_ms,
            send_updates: self.send_updates,
            destinations: self
                .destinations
                .into_iter()
                .map(reference)
                .collect::<Option<_>>()?,
            cleared: self.cleared,
            opening: match self.opening {
                None => None,
                Some(opening) => Some(opening.into_opening()?),
            },
            group: if self.group.is_empty() {
                None
            } else {
                Some(record_id(self.group)?)
            },
            shadow: self.shadow,
            thread: match self.thread {
                None => None,
                Some(thread) => Some(thread.into_thread()?),
            },
        })
    }
}

impl From<&Opening> for OpeningV1 {
    fn from(opening: &Opening) -> Self {
        Self {
            at_ms: opening.at_ms,
            trigger: Some(ReferenceV1 {
                id: opening.trigger.id.to_bytes().into(),
                name: opening.trigger.name.as_str().into(),
            }),
            trigger_revision: opening.trigger.revision,
            rule_revision: opening.rule_revision,
        }
    }
}

impl OpeningV1 {
    fn into_opening(self) -> Option<Opening> {
        let trigger = self.trigger?;
        Some(Opening {
            at_ms: self.at_ms,
            trigger: RevisionId {
                name: Name::parse(&trigger.name).ok()?,
                id: record_id(trigger.id)?,
                revision: self.trigger_revision,
            },
            rule_revision: self.rule_revision,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        domain::Occurrence,
        store::{Record, Sealer},
    };

    /// Written before what a decision rests on was noted.
    const OLD: &str = "010a10000102030405060708090a0b0c0d0e0f1214000102030405060708090a0b0c0d0e0f101112\
        13180122046469736b2a046469736b32090a04686f7374120161420466756c6c500458016880a0f1\
        c2b1347080a0f1c2b134880101a201170880a0f1c2b134120673656e64657218022a046f70656eaa\
        013b0a10090909090909090909090909090909091204706167651880a0f1c2b13420012a180a1007\
        0707070707070707070707070707071204686f6f6bb801c0ef95c3b134";

    #[test]
    fn an_occurrence_without_notes_of_its_decisions_is_read_and_written_as_it_was() {
        let pairs = OLD.as_bytes().chunks(2);
        let bytes: Vec<u8> = pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        let sealer = Sealer::ephemeral();
        let old = Occurrence::decode(&bytes, &sealer).unwrap();
        assert_eq!((old.content_ms, old.evaluation), (None, None));
        assert_eq!(old.notified[0].rule_name.as_str(), "page");
        assert_eq!(old.notified[0].opening, None);
        assert_eq!(old.encode(&sealer), bytes);
    }
}
