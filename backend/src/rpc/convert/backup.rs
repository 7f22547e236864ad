//! Steps of a backup.

use bellwether_proto::v1;

use crate::store::backup::{BackupEnd, BackupRecord, Step};

impl From<Step> for v1::ReadBackupResponse {
    fn from(step: Step) -> Self {
        Self {
            records: step.records.into_iter().map(Into::into).collect(),
            place: step.place,
            end: step.end.map(Into::into),
            row_count: 0,
            proof: step.proof,
        }
    }
}

impl From<BackupRecord> for v1::StoredRecord {
    fn from(kept: BackupRecord) -> Self {
        Self {
            kind: (kept.kind as u8).into(),
            key: kept.key,
            value: kept.value,
            attempts: kept.attempts,
        }
    }
}

impl From<BackupEnd> for v1::BackupEnd {
    fn from(end: BackupEnd) -> Self {
        Self {
            identity: end.identity,
            place: end.place,
            time: end.time,
        }
    }
}
