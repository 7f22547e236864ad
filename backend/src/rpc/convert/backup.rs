//! Conversion of backup steps.

use bellwether_proto::v1;

use crate::{
    ops::wire::Shows,
    store::backup::{BackupEnd, BackupRecord, Step},
};

impl Shows<Step> for v1::ReadBackupResponse {
    fn of(step: Step) -> Self {
        Self {
            records: step.records.into_iter().map(Shows::of).collect(),
            place: step.place,
            end: step.end.map(Shows::of),
            row_count: 0,
            proof: step.proof,
        }
    }
}

impl Shows<BackupRecord> for v1::StoredRecord {
    fn of(kept: BackupRecord) -> Self {
        Self {
            kind: (kept.kind as u8).into(),
            key: kept.key,
            value: kept.value,
            attempts: kept.attempts,
        }
    }
}

impl Shows<BackupEnd> for v1::BackupEnd {
    fn of(end: BackupEnd) -> Self {
        Self {
            identity: end.identity,
            place: end.place.to_number(),
            time: end.time,
        }
    }
}
