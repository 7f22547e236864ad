//! Conversion of backup steps.

use bellwether_proto::v1;

use crate::{
    store::backup::{BackupEnd, BackupRecord, Step},
    wire::FromDomain,
};

impl FromDomain<Step> for v1::ReadBackupResponse {
    fn from_domain(step: Step) -> Self {
        Self {
            records: step
                .records
                .into_iter()
                .map(FromDomain::from_domain)
                .collect(),
            place: step.place,
            end: step.end.map(FromDomain::from_domain),
            row_count: 0,
            proof: step.proof,
        }
    }
}

impl FromDomain<BackupRecord> for v1::StoredRecord {
    fn from_domain(stored: BackupRecord) -> Self {
        Self {
            kind: (stored.kind as u8).into(),
            key: stored.key,
            value: stored.value,
            attempts: stored.attempts,
        }
    }
}

impl FromDomain<BackupEnd> for v1::BackupEnd {
    fn from_domain(end: BackupEnd) -> Self {
        Self {
            identity: end.identity,
            place: end.place.to_number(),
            time: end.time,
        }
    }
}
