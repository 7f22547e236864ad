//! Counts refused calls, and says so with an event of the service's own when there are many.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
};

use crate::{
    domain::{IncomingEvent, Severity},
    limits::{REFUSALS_TOLD_FROM, REFUSED_SUBJECTS_MAX, REFUSED_SUBJECTS_TOLD_MAX},
};

const MINUTE_MS: i64 = 60_000;
/// How often one subject is told of.
const TOLD_INTERVAL_MS: i64 = 10 * MINUTE_MS;
/// How long a subject that was told of counts against the limit of those.
const TOLD_WINDOW_MS: i64 = 60 * MINUTE_MS;
/// Stands for all whom there is no room for.
const OTHERS: &str = "others";

/// Why calls are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Why {
    /// The key is not known; by address.
    Key,
    /// The role is not enough; by client.
    Role,
    /// The client's rate is used up; by client.
    Rate,
}

impl Why {
    fn word(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Role => "role",
            Self::Rate => "rate",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::Key => "they carry no key, or none that is known",
            Self::Role => "the role of the key does not allow them",
            Self::Rate => "they come faster than the client may send",
        }
    }
}

/// Counts refused calls by why and by whom.
///
/// However many addresses an attacker has, few are counted at a time and few events are made: what
/// there is no room for is counted and told together, as `others`.
pub struct Refusals {
    counted: Mutex<Counted>,
    report: Box<dyn Fn(IncomingEvent) + Send + Sync>,
}

#[derive(Debug, Default)]
struct Counted {
    subjects: HashMap<(Why, String), Subject>,
    /// When each subject was first told of in the window.
    told: HashMap<(Why, String), i64>,
}

#[derive(Debug)]
struct Subject {
    since_ms: i64,
    count: u32,
    told_ms: Option<i64>,
}

impl Subject {
    fn is_over(&self, now_ms: i64) -> bool {
        let told_ms = self.told_ms.unwrap_or(i64::MIN);
        now_ms.saturating_sub(self.since_ms) >= MINUTE_MS
            && now_ms.saturating_sub(told_ms) >= TOLD_INTERVAL_MS
    }
}

impl Refusals {
    /// Nothing was refused yet; events go to `report`.
    pub fn new(report: impl Fn(IncomingEvent) + Send + Sync + 'static) -> Self {
        Self {
            counted: Mutex::default(),
            report: Box::new(report),
        }
    }

    /// A call from that address was refused.
    pub(super) fn address(&self, address: Option<IpAddr>, now_ms: i64) {
        let subject = match address.map(|it| it.to_canonical()) {
            None => "unknown".into(),
            Some(IpAddr::V4(address)) => address.to_string(),
            // Whoever has one address has all of its network.
            Some(IpAddr::V6(address)) => {
                let network = Ipv6Addr::from_bits(address.to_bits() >> 64 << 64);
                format!("{network}/64")
            }
        };
        self.count(Why::Key, subject, now_ms);
    }

    /// A call of that client was refused.
    pub(super) fn client(&self, why: Why, client: &str, now_ms: i64) {
        self.count(why, client.to_owned(), now_ms);
    }

    fn count(&self, why: Why, subject: String, now_ms: i64) {
        let event = {
            let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
            counted.count(why, subject, now_ms)
        };
        if let Some(event) = event {
            (self.report)(event);
        }
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Refusals").finish_non_exhaustive()
    }
}

impl Counted {
    fn count(&mut self, why: Why, subject: String, now_ms: i64) -> Option<IncomingEvent> {
        let mut key = (why, subject);
        if !self.subjects.contains_key(&key) && self.subjects.len() >= REFUSED_SUBJECTS_MAX {
            self.subjects.retain(|_, subject| !subject.is_over(now_ms));
            if self.subjects.len() >= REFUSED_SUBJECTS_MAX {
                key.1 = OTHERS.into();
            }
        }
        let subject = self.subjects.entry(key.clone()).or_insert(Subject {
            since_ms: now_ms,
            count: 0,
            told_ms: None,
        });
        if now_ms.saturating_sub(subject.since_ms) >= MINUTE_MS {
            (subject.since_ms, subject.count) = (now_ms, 0);
        }
        subject.count = subject.count.saturating_add(1);
        let told_lately = subject
            .told_ms
            .is_some_and(|at_ms| now_ms.saturating_sub(at_ms) < TOLD_INTERVAL_MS);
        if subject.count < REFUSALS_TOLD_FROM || told_lately {
            return None;
        }
        subject.told_ms = Some(now_ms);
        let count = subject.count;
        self.told
            .retain(|_, at_ms| now_ms.saturating_sub(*at_ms) < TOLD_WINDOW_MS);
        if !self.told.contains_key(&key) && self.told.len() >= REFUSED_SUBJECTS_TOLD_MAX {
            key.1 = OTHERS.into();
        }
        self.told.entry(key.clone()).or_insert(now_ms);
        Some(event(key.0, &key.1, count, now_ms))
    }
}

fn event(why: Why, subject: &str, count: u32, now_ms: i64) -> IncomingEvent {
    let (of, whose) = match why {
        Why::Key => ("address", "from"),
        Why::Role | Why::Rate => ("client", "of"),
    };
    let why_so = why.sentence();
    IncomingEvent {
        name: "key refused".into(),
        kind: "key-refused".into(),
        dimensions: BTreeMap::from([
            ("source".into(), "bellwether".into()),
            ("why".into(), why.word().into()),
            (of.into(), subject.into()),
        ]),
        metadata: BTreeMap::new(),
        summary: format!("{count} calls {whose} {subject} were refused within a minute: {why_so}"),
        body: String::new(),
        severity: Some(Severity::Warning),
        status: None,
        acknowledged: None,
        timestamp_ms: now_ms,
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, sync::Arc};

    use super::*;

    fn refusals() -> (Refusals, Arc<Mutex<Vec<IncomingEvent>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let report = Arc::clone(&told);
        (
            Refusals::new(move |event| report.lock().unwrap().push(event)),
            told,
        )
    }

    #[test]
    fn many_refusals_of_one_address_are_told_once_in_a_while() {
        let (refusals, told) = refusals();
        let address = Some(IpAddr::from([192, 0, 2, 7]));
        for at in 0..i64::from(REFUSALS_TOLD_FROM) - 1 {
            refusals.address(address, at);
        }
        // A minute later the count begins again.
        refusals.address(address, MINUTE_MS);
        assert!(told.lock().unwrap().is_empty());
        for at in 0..1_000 {
            refusals.address(address, MINUTE_MS + at);
        }
        refusals.client(Why::Rate, "sender", 0);
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].dimensions["address"], "192.0.2.7");
        assert_eq!(told[0].dimensions["source"], "bellwether");
        assert!(told[0].summary.contains("20 calls from 192.0.2.7"));
    }

    #[test]
    fn an_attacker_with_many_addresses_makes_few_events() {
        let (refusals, told) = refusals();
        for round in 0..30_i64 {
            for address in 0..600_u32 {
                let v4 = IpAddr::V4(Ipv4Addr::from_bits(address));
                let v6 = Ipv6Addr::from_bits((0x2001_0db8 << 96) + u128::from(address));
                refusals.address(Some(v4), round);
                refusals.address(Some(IpAddr::V6(v6)), round);
            }
        }
        let told = told.lock().unwrap();
        let subjects: std::collections::BTreeSet<_> = told
            .iter()
            .map(|it| it.dimensions["address"].clone())
            .collect();
        assert!(
            subjects.len() <= REFUSED_SUBJECTS_TOLD_MAX + 1,
            "{subjects:?}"
        );
        assert!(subjects.contains("others") && subjects.contains("2001:db8::/64"));
        assert!(told.len() <= REFUSED_SUBJECTS_MAX + 1, "{}", told.len());
        let counted = refusals.counted.lock().unwrap();
        assert!(counted.subjects.len() <= REFUSED_SUBJECTS_MAX + 1);
    }
}
