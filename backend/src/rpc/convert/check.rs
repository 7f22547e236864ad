//! Conversion of check results.

use bellwether_proto::v1;

use crate::{
    store::verify::{Findings, Progress},
    wire::FromDomain,
};

impl FromDomain<Findings> for v1::CheckFindings {
    fn from_domain(findings: Findings) -> Self {
        let records = findings.records.into_iter();
        Self {
            records: records.map(|(word, count)| (word.into(), count)).collect(),
            entries: findings.entries,
            log_steps: findings.log_steps,
            faults: findings.errors,
            told: findings.descriptions,
            is_complete: findings.is_complete,
        }
    }
}

pub fn response(progress: Progress, findings: Option<Findings>) -> v1::CheckStoreResponse {
    v1::CheckStoreResponse {
        done: progress.done,
        total: progress.total,
        findings: findings.map(FromDomain::from_domain),
    }
}
