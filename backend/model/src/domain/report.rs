//! Reports of one condition by senders that repeat them, several of which may report the same.

use sha2::{Digest as _, Sha256};

use crate::{
    domain::{EventId, RecordId},
    limits::REPORT_LATE_MAX_MS,
};

/// Reporters of one occurrence that are stored; above it the one is forgotten that ended or ends first.
const REPORTERS_MAX: usize = 8;

/// The condition that an event reports, as far as stated. The times are of the sender's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// When the condition began, in milliseconds since 1970.
    pub began_ms: Option<i64>,
    /// The time at which it ended, or ends unless it is reported again, in milliseconds since 1970.
    pub end_ms: Option<i64>,
    /// A hash of the name of its reporter.
    pub reporter: Option<u64>,
    /// The identity that an earlier version gave the event, where that was another one.
    pub folded: Option<EventId>,
    /// Whether it only changes what is open.
    pub is_update: bool,
}

impl Report {
    /// The report of a condition by a reporter of that name; an empty one is of no reporter.
    pub fn new(began_ms: Option<i64>, end_ms: Option<i64>, reporter: &str) -> Self {
        Self {
            began_ms,
            end_ms,
            reporter: (!reporter.is_empty()).then(|| hash(reporter.as_bytes())),
            folded: None,
            is_update: false,
        }
    }

    /// The same report by a reporter that is known only together with its client.
    #[must_use]
    pub fn sent_by(self, client: RecordId) -> Self {
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
    /// A hash of its name.
    pub id: u64,
    /// Until when it keeps an occurrence open, or when the condition ended by its clock, in milliseconds
    /// since 1970; 0 when not stated.
    pub until_ms: i64,
    /// The beginning of the condition by the earliest of its reports, in milliseconds since 1970.
    pub began_ms: Option<i64>,
    /// Whether it reported the end.
    pub is_over: bool,
}

/// The reports that an occurrence is built from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reports {
    /// When the condition began, in milliseconds since 1970, by the earliest and by the latest of what
    /// was reported; none when no report stated it.
    pub began_ms: Option<(i64, i64)>,
    /// The end by the report that closed it, in milliseconds since 1970; while it is open, that of the
    /// one before it.
    pub ended_ms: Option<i64>,
    /// Those who reported it.
    pub reporters: Vec<Reporter>,
}

impl Reports {
    /// Adds a report, which may say until when it holds.
    pub fn add(&mut self, report: Report, until_ms: Option<i64>) {
        self.extend(report);
        let Some(id) = report.reporter else {
            return;
        };
        // What it said before it ended is of an earlier condition.
        let before = self.of(id).filter(|it| !it.is_over);
        let before = before.and_then(|it| it.began_ms);
        self.put(Reporter {
            id,
            until_ms: until_ms.unwrap_or_default(),
            began_ms: [before, report.began_ms].into_iter().flatten().min(),
            is_over: false,
        });
    }

    /// Notes that a reporter reports the end.
    pub fn end(&mut self, report: Report) {
        if let Some(id) = report.reporter {
            let before = self.of(id);
            self.put(Reporter {
                id,
                until_ms: report.end_ms.unwrap_or_default(),
                began_ms: before.and_then(|it| it.began_ms).or(report.began_ms),
                is_over: true,
            });
        }
    }

    /// Notes the report of an end that closes it, or that comes after that.
    pub fn close(&mut self, report: Report) {
        self.extend(report);
        self.end(report);
        self.ended_ms = self.ended_ms.max(report.end_ms);
    }

    /// Returns the reports that the next occurrence begins with.
    #[must_use]
    pub fn of_next(&self) -> Self {
        let over = self.reporters.iter().filter(|it| it.is_over);
        Self {
            began_ms: None,
            ended_ms: self.ended_ms,
            reporters: over.copied().collect(),
        }
    }

    fn extend(&mut self, report: Report) {
        if let Some(began_ms) = report.began_ms {
            let (first, last) = self.began_ms.unwrap_or((began_ms, began_ms));
            self.began_ms = Some((first.min(began_ms), last.max(began_ms)));
        }
    }

    fn put(&mut self, reporter: Reporter) {
        self.reporters.retain(|it| it.id != reporter.id);
        self.reporters.push(reporter);
        if self.reporters.len() > REPORTERS_MAX {
            let first = self.reporters.iter().enumerate();
            let first = first.min_by_key(|(_, it)| (!it.is_over, it.until_ms));
            let at = first.map_or(0, |(at, _)| at);
            // The order stays, so that the bytes on disk change little.
            self.reporters.remove(at);
        }
    }

    fn of(&self, id: u64) -> Option<&Reporter> {
        self.reporters.iter().find(|it| it.id == id)
    }

    fn own(&self, report: Report) -> Option<&Reporter> {
        self.of(report.reporter?)
    }

    /// Whether its reporter reported before: then the order of arrival decides.
    pub fn is_of_known(&self, report: Report) -> bool {
        self.own(report).is_some()
    }

    /// Whether anyone but that reporter keeps it open.
    pub fn is_held(&self, but: Option<u64>, now_ms: i64) -> bool {
        let mut open = self.reporters.iter().filter(|it| !it.is_over);
        open.any(|it| Some(it.id) != but && it.until_ms > now_ms)
    }

    /// Whether a report that ends in the future is of an end: its reporter, whose clock is
    /// ahead, said before that the condition lasts longer, or said the same of its end.
    pub fn is_cut_short(&self, report: Report, now_ms: i64) -> bool {
        let (Some(end_ms), Some(own)) = (report.end_ms, self.own(report)) else {
            return false;
        };
        let is_sooner = end_ms < own.until_ms || own.is_over && end_ms == own.until_ms;
        is_sooner && end_ms <= now_ms.saturating_add(REPORT_LATE_MAX_MS)
    }

    /// Whether the report of an end is of an earlier condition than this one: its end, by the clock of
    /// its reporter, is before this began.
    pub fn is_of_earlier(&self, report: Report) -> bool {
        // No condition ends before it began.
        let Some(end_ms) = report.end_ms.max(report.began_ms) else {
            return false;
        };
        let is_before_all = self.began_ms.is_some_and(|(first, _)| end_ms < first);
        let is_until = |ended_ms| report.end_ms.is_some_and(|it| it <= ended_ms);
        match self.own(report) {
            Some(own) if own.is_over => is_before_all || is_until(own.until_ms),
            Some(own) => own.began_ms.is_some_and(|it| end_ms < it),
            None if report.reporter.is_none() => is_before_all,
            None => is_before_all || self.ended_ms.is_some_and(is_until),
        }
    }

    /// Whether a report of what was closed is a late one: of a condition that is known, by another
    /// reporter than those who reported its end.
    pub fn is_late(&self, report: Report) -> bool {
        let (Some(began_ms), Some(_)) = (report.began_ms, report.reporter) else {
            return false;
        };
        let is_known = self.began_ms.is_some_and(|(_, last)| began_ms <= last);
        is_known && !self.own(report).is_some_and(|it| it.is_over)
    }

    /// Whether a condition that began then is one of those that were reported.
    pub fn is_begun(&self, began_ms: i64) -> bool {
        let began = self.began_ms;
        began.is_some_and(|(first, last)| began_ms == first || began_ms == last)
    }
}
