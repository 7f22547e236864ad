//! Conversion of backup steps.

use bellwether_proto::v1;

use crate::store::backup::{BackupRecord, Step};

pub fn response(step: Step, row_count: u64) -> v1::ReadBackupResponse {
    v1::ReadBackupResponse {
        records: step.records.into_iter().map(record).collect(),
        place: step.place,
        end: step.end.map(|end| v1::BackupEnd {
            identity: end.identity,
            place: end.place.to_number(),
            time: end.time,
        }),
        row_count,
        proof: step.proof,
    }
}

fn record(stored: BackupRecord) -> v1::StoredRecord {
    v1::StoredRecord {
        kind: (stored.kind as u8).into(),
        key: stored.key,
        value: stored.value,
        attempts: stored.attempts,
    }
}
