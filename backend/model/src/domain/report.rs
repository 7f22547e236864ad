//! Reports of one condition by senders that repeat them, several of which may report the same.

use sha2::{Digest as _, Sha256};

/// Reporters of one occurrence that are kept; above it the one is forgotten that ends first.
const LEASES_MAX: usize = 8;

/// What an event says of the condition that it reports, where stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// When the condition began, in milliseconds since 1970.
    pub began_ms: Option<i64>,
    /// A hash of the name of its reporter.
    pub reporter: Option<u64>,
}

impl Report {
    /// The report of a condition by a reporter of that name; an empty one is of no reporter.
    pub fn new(began_ms: Option<i64>, reporter: &str) -> Self {
        let digest = Sha256::digest(reporter);
        let first = digest.iter().take(8);
        let hash = first.fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        Self {
            began_ms,
            reporter: (!reporter.is_empty()).then_some(hash),
        }
    }
}

/// Until when a reporter holds an occurrence open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// A hash of the name of the reporter.
    pub reporter: u64,
    /// In milliseconds since 1970.
    pub until_ms: i64,
}

/// The reports that an occurrence is built from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reports {
    /// When the condition began, in milliseconds since 1970, by the earliest and by the latest of what
    /// was reported; none when no report stated it.
    pub began_ms: Option<(i64, i64)>,
    /// Who holds it open.
    pub leases: Vec<Lease>,
}

impl Reports {
    /// Adds a report, which may say until when it holds.
    pub fn add(&mut self, report: Report, until_ms: Option<i64>) {
        if let Some(began_ms) = report.began_ms {
            let (first, last) = self.began_ms.unwrap_or((began_ms, began_ms));
            self.began_ms = Some((first.min(began_ms), last.max(began_ms)));
        }
        let (Some(reporter), Some(until_ms)) = (report.reporter, until_ms) else {
            return;
        };
        self.end(report);
        self.leases.push(Lease { reporter, until_ms });
        if self.leases.len() > LEASES_MAX {
            let first = self.leases.iter().enumerate();
            let first = first.min_by_key(|(_, lease)| lease.until_ms);
            let at = first.map_or(0, |(at, _)| at);
            self.leases.swap_remove(at);
        }
    }

    /// The reporter holds it open no longer.
    pub fn end(&mut self, report: Report) {
        self.leases
            .retain(|lease| Some(lease.reporter) != report.reporter);
    }

    /// Whether anyone but that reporter holds it open.
    pub fn is_held(&self, but: Option<u64>, now_ms: i64) -> bool {
        let mut others = self.leases.iter();
        others.any(|lease| Some(lease.reporter) != but && lease.until_ms > now_ms)
    }

    /// Whether a condition that began then is an earlier one than this.
    pub fn is_before(&self, began_ms: i64) -> bool {
        self.began_ms.is_some_and(|(first, _)| began_ms < first)
    }

    /// Whether a condition that began then is this or an earlier one.
    pub fn is_known(&self, began_ms: i64) -> bool {
        self.began_ms.is_some_and(|(_, last)| began_ms <= last)
    }
}
