//! Conversion of check results.

use bellwether_proto::v1;

use crate::store::verify::{Findings, Progress};

pub fn response(progress: Progress, findings: Option<Findings>) -> v1::CheckStoreResponse {
    v1::CheckStoreResponse {
        done: progress.done,
        total: progress.total,
        findings: findings.map(findings_to_wire),
    }
}

pub fn findings_to_wire(findings: Findings) -> v1::CheckFindings {
    let records = findings.records.into_iter();
    v1::CheckFindings {
        records: records.map(|(word, count)| (word.into(), count)).collect(),
        entries: findings.entries,
        log_steps: findings.log_steps,
        faults: findings.errors,
        told: findings.descriptions,
        is_complete: findings.is_complete,
    }
}
