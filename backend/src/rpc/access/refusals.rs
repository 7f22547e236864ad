//! Counts rejected calls, reports an event if there are many, and slows down callers who guess
//! keys.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bellwether_process::listen::network_key;

use crate::{
    clock::MINUTE_MS,
    domain::{
        IncomingEvent, Severity,
        own_event::{CLIENT_REFUSED, KEY_REFUSED},
    },
    limits::{REFUSALS_REPORTED_FROM, REFUSED_SUBJECTS_MAX, REFUSED_SUBJECTS_REPORTED_MAX},
    metrics::Metrics,
};

const REPORT_INTERVAL_MS: i64 = 10 * MINUTE_MS;
/// Time for which a reported subject counts towards the limit on subjects.
const REPORTED_WINDOW_MS: i64 = 60 * MINUTE_MS;
/// Interval between responses to calls without a valid key from one address, after a burst of
/// [`PACED_FROM`].
const PACE_MS: i64 = 100;
const PACED_FROM: i64 = 20;
const WAIT_MAX_MS: i64 = 1_000;
/// The subject for all calls above the limit on subjects.
const OTHERS: &str = "others";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RefusalReason {
    /// The key is unknown; by address.
    Key,
    /// The role is insufficient; by client.
    Role,
    /// The rate limit is exceeded; by client.
    Rate,
}

pub fn reason_labels() -> [&'static str; 3] {
    [RefusalReason::Key, RefusalReason::Role, RefusalReason::Rate].map(RefusalReason::as_str)
}

impl RefusalReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Role => "role",
            Self::Rate => "rate",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Key => "missing or unknown key",
            Self::Role => "not allowed for the key's role",
            Self::Rate => "over the client's rate limit",
        }
    }
}

/// Counts rejected calls by reason and caller.
///
/// However many addresses an attacker has, only a few subjects are tracked and few events are sent.
/// Further subjects are counted and reported together as `others`.
pub struct Refusals {
    counted: Mutex<RefusalCounts>,
    metrics: Metrics,
    report: Box<dyn Fn(IncomingEvent) + Send + Sync>,
}

#[derive(Debug, Default)]
struct RefusalCounts {
    subjects: HashMap<(RefusalReason, String), RefusedSubject>,
    /// Time of the first report about each subject in the window.
    reported: HashMap<(RefusalReason, String), i64>,
}

#[derive(Debug)]
struct RefusedSubject {
    since_ms: i64,
    count: u32,
    unreported_since_ms: i64,
    unreported: u64,
    reported_ms: Option<i64>,
    due_ms: i64,
}

impl RefusedSubject {
    fn next_wait_ms(&mut self, now_ms: i64) -> i64 {
        let at_once_ms = now_ms.saturating_sub(PACED_FROM * PACE_MS);
        let due_ms = self.due_ms.max(at_once_ms).saturating_add(PACE_MS);
        self.due_ms = due_ms.min(now_ms.saturating_add(WAIT_MAX_MS));
        (self.due_ms - now_ms).max(0)
    }

    fn has_ended(&self, now_ms: i64) -> bool {
        let reported_ms = self.reported_ms.unwrap_or(i64::MIN);
        now_ms.saturating_sub(self.since_ms) >= MINUTE_MS
            && now_ms.saturating_sub(reported_ms) >= REPORT_INTERVAL_MS
    }
}

impl Refusals {
    pub fn new(report: impl Fn(IncomingEvent) + Send + Sync + 'static) -> Self {
        Self {
            counted: Mutex::default(),
            metrics: Metrics::default(),
            report: Box::new(report),
        }
    }

    #[must_use]
    pub fn with_metrics(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }

    /// Counts a call with an unknown key from an address. Returns the delay of the response.
    pub(super) fn refuse_address(&self, address: Option<IpAddr>, now_ms: i64) -> Duration {
        let subject = match address.map(network_key) {
            None => "unknown".into(),
            Some(IpAddr::V4(address)) => address.to_string(),
            Some(IpAddr::V6(network)) => format!("{network}/64"),
        };
        let wait_ms = self.record_refusal(RefusalReason::Key, subject, now_ms);
        Duration::from_millis(wait_ms.max(0).unsigned_abs())
    }

    pub(super) fn refuse_client(&self, why: RefusalReason, client: &str, now_ms: i64) {
        self.record_refusal(why, client.to_owned(), now_ms);
    }

    /// Records a rejection, and returns the delay of the response to it.
    fn record_refusal(&self, why: RefusalReason, subject: String, now_ms: i64) -> i64 {
        self.metrics.record_refused_call(why.as_str());
        let (wait_ms, event) = {
            let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
            counted.count_refusal(why, subject, now_ms)
        };
        if let Some(event) = event {
            (self.report)(event);
        }
        wait_ms
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Refusals").finish_non_exhaustive()
    }
}

impl RefusalCounts {
    fn count_refusal(
        &mut self,
        why: RefusalReason,
        subject: String,
        now_ms: i64,
    ) -> (i64, Option<IncomingEvent>) {
        let mut key = (why, subject);
        if !self.subjects.contains_key(&key) && self.subjects.len() >= REFUSED_SUBJECTS_MAX {
            self.subjects
                .retain(|_, subject| !subject.has_ended(now_ms));
            if self.subjects.len() >= REFUSED_SUBJECTS_MAX {
                key.1 = OTHERS.into();
            }
        }
        let subject = self.subjects.entry(key.clone()).or_insert(RefusedSubject {
            since_ms: now_ms,
            count: 0,
            unreported_since_ms: now_ms,
            unreported: 0,
            reported_ms: None,
            due_ms: i64::MIN,
        });
        if now_ms.saturating_sub(subject.since_ms) >= MINUTE_MS {
            (subject.since_ms, subject.count) = (now_ms, 0);
        }
        if subject.reported_ms.is_none() && subject.count == 0 {
            // Drop earlier rejections, which were too few to report.
            subject.unreported = 0;
        }
        if subject.unreported == 0 {
            subject.unreported_since_ms = now_ms;
        }
        subject.count = subject.count.saturating_add(1);
        subject.unreported += 1;
        let wait_ms = subject.next_wait_ms(now_ms);
        let reported_lately = subject
            .reported_ms
            .is_some_and(|at_ms| now_ms.saturating_sub(at_ms) < REPORT_INTERVAL_MS);
        if subject.count < REFUSALS_REPORTED_FROM || reported_lately {
            return (wait_ms, None);
        }
        subject.reported_ms = Some(now_ms);
        let count = std::mem::take(&mut subject.unreported);
        let since_ms = subject.unreported_since_ms;
        self.reported
            .retain(|_, at_ms| now_ms.saturating_sub(*at_ms) < REPORTED_WINDOW_MS);
        if !self.reported.contains_key(&key) && self.reported.len() >= REFUSED_SUBJECTS_REPORTED_MAX
        {
            key.1 = OTHERS.into();
        }
        self.reported.entry(key.clone()).or_insert(now_ms);
        (
            wait_ms,
            Some(refusals_event(key.0, &key.1, count, since_ms, now_ms)),
        )
    }
}

fn refusals_event(
    why: RefusalReason,
    subject: &str,
    count: u64,
    since_ms: i64,
    now_ms: i64,
) -> IncomingEvent {
    let minutes = now_ms.saturating_sub(since_ms) / MINUTE_MS + 1;
    let within = match minutes {
        1 => "a minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    };
    let (about, whose) = match why {
        RefusalReason::Key => (KEY_REFUSED, "from"),
        RefusalReason::Role | RefusalReason::Rate => (CLIENT_REFUSED, "of"),
    };
    let why_so = why.description();
    IncomingEvent {
        summary: format!("{count} calls {whose} {subject} were refused within {within}: {why_so}"),
        severity: Some(Severity::Warning),
        ..about.event([why.as_str(), subject], now_ms)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, Ipv6Addr},
        sync::Arc,
    };

    use super::*;

    fn sample_refusals() -> (Refusals, Arc<Mutex<Vec<IncomingEvent>>>) {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let report = Arc::clone(&reported);
        (
            Refusals::new(move |event| report.lock().unwrap().push(event)),
            reported,
        )
    }

    #[test]
    fn repeated_refusals_of_an_address_are_reported_once() {
        let (refusals, reported) = sample_refusals();
        let address = Some(IpAddr::from([192, 0, 2, 7]));
        for at in 0..i64::from(REFUSALS_REPORTED_FROM) - 1 {
            refusals.refuse_address(address, at);
        }
        // The count restarts after a minute.
        refusals.refuse_address(address, MINUTE_MS);
        assert!(reported.lock().unwrap().is_empty());
        for at in 0..1_000 {
            refusals.refuse_address(address, MINUTE_MS + at);
        }
        refusals.refuse_client(RefusalReason::Rate, "sender", 0);
        let reported = reported.lock().unwrap();
        assert_eq!(reported.len(), 1);
        assert_eq!(reported[0].dimensions["address"], "192.0.2.7");
        assert_eq!(reported[0].dimensions["source"], "bellwether");
        assert!(reported[0].summary.contains("20 calls from 192.0.2.7"));
    }

    #[test]
    fn key_guessing_is_slowed_and_fully_reported() {
        let (refusals, reported) = sample_refusals();
        let [bad, good] = [7, 8].map(|last| Some(IpAddr::from([192, 0, 2, last])));
        for at in 0..i64::from(REFUSALS_REPORTED_FROM) {
            assert_eq!(refusals.refuse_address(bad, at), Duration::ZERO);
        }
        assert_eq!(refusals.refuse_address(bad, 20), Duration::from_millis(80));
        for minute in 0..11 {
            for at in 0..100 {
                refusals.refuse_address(bad, minute * MINUTE_MS + at);
            }
            let wait = refusals.refuse_address(bad, minute * MINUTE_MS + 100);
            assert_eq!(wait, Duration::from_secs(1));
        }
        assert_eq!(refusals.refuse_address(good, 0), Duration::ZERO);
        let reported: Vec<_> = reported
            .lock()
            .unwrap()
            .iter()
            .map(|it| it.summary.clone())
            .collect();
        assert!(reported[0].starts_with("20 calls from 192.0.2.7 were refused within a minute"));
        // Ten minutes of 101 calls each, and the calls before and after.
        assert!(
            reported[1].starts_with("1031 calls from 192.0.2.7 were refused within 10 minutes"),
            "{reported:?}"
        );
    }

    #[test]
    fn refusals_from_many_addresses_create_few_events() {
        let (refusals, reported) = sample_refusals();
        for round in 0..30_i64 {
            for address in 0..600_u32 {
                let v4 = IpAddr::V4(Ipv4Addr::from_bits(address));
                let v6 = Ipv6Addr::from_bits((0x2001_0db8 << 96) + u128::from(address));
                refusals.refuse_address(Some(v4), round);
                refusals.refuse_address(Some(IpAddr::V6(v6)), round);
            }
        }
        let reported = reported.lock().unwrap();
        let subjects: std::collections::BTreeSet<_> = reported
            .iter()
            .map(|it| it.dimensions["address"].clone())
            .collect();
        assert!(
            subjects.len() <= REFUSED_SUBJECTS_REPORTED_MAX + 1,
            "{subjects:?}"
        );
        assert!(subjects.contains("others") && subjects.contains("2001:db8::/64"));
        assert!(
            reported.len() <= REFUSED_SUBJECTS_MAX + 1,
            "{}",
            reported.len()
        );
        let counted = refusals.counted.lock().unwrap();
        assert!(counted.subjects.len() <= REFUSED_SUBJECTS_MAX + 1);
    }
}
