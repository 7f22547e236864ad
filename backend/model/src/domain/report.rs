//! Reports of conditions by senders that repeat them; several reporters may report the same
//! condition.

use sha2::{Digest as _, Sha256};

use crate::{
    domain::{EventId, RecordId},
    limits::REPORT_LATE_MAX_MS,
};

/// Maximum number of reporters stored for an occurrence. Above that, the reporter with the earliest
/// end is dropped.
const REPORTERS_MAX: usize = 8;

/// A report of a condition, with the times that were provided. Times are from the sender's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Time at which the condition began, in milliseconds since 1970.
    pub began_ms: Option<i64>,
    /// Time at which the condition ended, or will end unless it is reported again, in milliseconds
    /// since 1970.
    pub end_ms: Option<i64>,
    /// A hash of the name of the reporter.
    pub reporter: Option<u64>,
    /// The identity that an earlier version would have assigned to the event, if different.
    pub folded: Option<EventId>,
    /// Whether the report only updates an open occurrence.
    pub is_update: bool,
}

impl Report {
    /// Creates a report; an empty `reporter` means none.
    pub fn new(began_ms: Option<i64>, end_ms: Option<i64>, reporter: &str) -> Self {
        Self {
            began_ms,
            end_ms,
            reporter: (!reporter.is_empty()).then(|| hash(reporter.as_bytes())),
            folded: None,
            is_update: false,
        }
    }

    #[must_use]
    pub fn with_qualified_reporter(self, client: RecordId) -> Self {
        let name = self.reporter.unwrap_or_default().to_be_bytes();
        let both = [&client.to_bytes()[..], &name].concat();
        Self {
            reporter: Some(hash(&both)),
            ..self
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let digest = Sha256::digest(bytes);
    let first = digest.iter().take(8);
    first.fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// The last report of a reporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reporter {
    pub id: u64,
    /// Time until which the reporter keeps an occurrence open, in milliseconds since 1970; 0 if not
    /// provided. Once the condition is over, the time at which it ended, by the reporter's clock.
    pub until_ms: i64,
    /// The earliest reported beginning of the condition, in milliseconds since 1970.
    pub began_ms: Option<i64>,
    pub is_over: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reports {
    /// The earliest and latest reported beginning of the condition, in milliseconds since 1970;
    /// `None` if never reported.
    pub began_ms: Option<(i64, i64)>,
    /// The reported end of the occurrence, in milliseconds since 1970. While the occurrence is
    /// open, the reported end of the previous one.
    pub ended_ms: Option<i64>,
    pub reporters: Vec<Reporter>,
}

impl Reports {
    pub fn add(&mut self, report: Report, until_ms: Option<i64>) {
        self.record_begin(report);
        let Some(id) = report.reporter else {
            return;
        };
        // A beginning reported before an end belongs to an earlier condition.
        let before = self.reporter(id).filter(|it| !it.is_over);
        let before = before.and_then(|it| it.began_ms);
        self.insert(Reporter {
            id,
            until_ms: until_ms.unwrap_or_default(),
            began_ms: [before, report.began_ms].into_iter().flatten().min(),
            is_over: false,
        });
    }

    pub fn end_report(&mut self, report: Report) {
        if let Some(id) = report.reporter {
            let before = self.reporter(id);
            self.insert(Reporter {
                id,
                until_ms: report.end_ms.unwrap_or_default(),
                began_ms: before.and_then(|it| it.began_ms).or(report.began_ms),
                is_over: true,
            });
        }
    }

    /// Records a report of an end that closes the occurrence, or that follows its close.
    pub fn close(&mut self, report: Report) {
        self.record_begin(report);
        self.end_report(report);
        self.ended_ms = self.ended_ms.max(report.end_ms);
    }

    /// Returns the reports that the next occurrence starts with.
    #[must_use]
    pub fn for_next_occurrence(&self) -> Self {
        let over = self.reporters.iter().filter(|it| it.is_over);
        Self {
            began_ms: None,
            ended_ms: self.ended_ms,
            reporters: over.copied().collect(),
        }
    }

    fn record_begin(&mut self, report: Report) {
        if let Some(began_ms) = report.began_ms {
            let (first, last) = self.began_ms.unwrap_or((began_ms, began_ms));
            self.began_ms = Some((first.min(began_ms), last.max(began_ms)));
        }
    }

    fn insert(&mut self, reporter: Reporter) {
        self.reporters.retain(|it| it.id != reporter.id);
        self.reporters.push(reporter);
        if self.reporters.len() > REPORTERS_MAX {
            let first = self.reporters.iter().enumerate();
            let first = first.min_by_key(|(_, it)| (!it.is_over, it.until_ms));
            let at = first.map_or(0, |(at, _)| at);
            // Keeps the order, so that the bytes on disk change little.
            self.reporters.remove(at);
        }
    }

    fn reporter(&self, id: u64) -> Option<&Reporter> {
        self.reporters.iter().find(|it| it.id == id)
    }

    fn own_reporter(&self, report: Report) -> Option<&Reporter> {
        self.reporter(report.reporter?)
    }

    /// Whether the reporter of a report has reported before. The order of arrival then decides.
    pub fn is_from_known_reporter(&self, report: Report) -> bool {
        self.own_reporter(report).is_some()
    }

    /// Whether a reporter other than `but` keeps the occurrence open.
    pub fn is_kept_open(&self, but: Option<u64>, now_ms: i64) -> bool {
        let mut open = self.reporters.iter().filter(|it| !it.is_over);
        open.any(|it| Some(it.id) != but && it.until_ms > now_ms)
    }

    /// Whether a report with an end in the future nevertheless reports the end, because the
    /// reporter's clock is ahead. This is so if the reporter previously reported a later end, or
    /// reported the same end as over.
    pub fn is_cut_short(&self, report: Report, now_ms: i64) -> bool {
        let (Some(end_ms), Some(own)) = (report.end_ms, self.own_reporter(report)) else {
            return false;
        };
        let is_sooner = end_ms < own.until_ms || own.is_over && end_ms == own.until_ms;
        is_sooner && end_ms <= now_ms.saturating_add(REPORT_LATE_MAX_MS)
    }

    /// Whether a report of an end is about an earlier condition, which by the clock of the reporter
    /// ended before this one began.
    pub fn is_about_earlier_condition(&self, report: Report) -> bool {
        // A condition cannot end before it began.
        let Some(end_ms) = report.end_ms.max(report.began_ms) else {
            return false;
        };
        let is_before_all = self.began_ms.is_some_and(|(first, _)| end_ms < first);
        let is_until = |ended_ms| report.end_ms.is_some_and(|it| it <= ended_ms);
        match self.own_reporter(report) {
            Some(own) if own.is_over => is_before_all || is_until(own.until_ms),
            Some(own) => own.began_ms.is_some_and(|it| end_ms < it),
            None if report.reporter.is_none() => is_before_all,
            None => is_before_all || self.ended_ms.is_some_and(is_until),
        }
    }

    /// Whether a report about a closed occurrence is late: it is about a known condition whose end
    /// its reporter has not reported.
    pub fn is_late_report(&self, report: Report) -> bool {
        let (Some(began_ms), Some(_)) = (report.began_ms, report.reporter) else {
            return false;
        };
        let is_known = self.began_ms.is_some_and(|(_, last)| began_ms <= last);
        is_known && !self.own_reporter(report).is_some_and(|it| it.is_over)
    }

    pub fn has_condition_begun_at(&self, began_ms: i64) -> bool {
        let began = self.began_ms;
        began.is_some_and(|(first, last)| began_ms == first || began_ms == last)
    }
}
