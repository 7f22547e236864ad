//! What is on disks already: the bytes of each kind of record, of its key and of its index entries.
//!
//! A line of the frozen file is never changed. A new encoding gets lines of its own beside the old.

use std::{fmt::Write, sync::LazyLock};

use super::Record;
use crate::{
    domain::DeliveryState,
    store::{Sealer, samples},
};

const FROZEN: &str = include_str!("v1/frozen.txt");

static SEALER: LazyLock<Sealer> = LazyLock::new(|| Sealer::new(&[(1, [7; 32])]));

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

/// The bytes that were frozen under a name.
fn frozen(name: &str) -> Option<Vec<u8>> {
    let mut lines = FROZEN.lines().filter(|line| !line.starts_with('#'));
    lines.find_map(|line| Some(bytes(line.strip_prefix(name)?.strip_prefix(": ")?)))
}

/// Lines that are missing or other than what is written now.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare(&mut self, name: &str, written: &[u8]) {
        if frozen(name).as_deref() != Some(written) {
            self.0.push(format!("{name}: {}", hex(written)));
        }
    }

    /// Compares a record. Sealed secrets are other bytes each time, so of these only the reading
    /// is frozen.
    fn record<T: Record + PartialEq>(&mut self, name: &str, value: &T, is_sealed: bool) {
        self.compare(&format!("{name} key"), &value.key());
        for entry in value.entries() {
            let name = format!("{name} entry {}", entry.index as u8);
            self.compare(&name, &entry.key);
        }
        let name = format!("{name} value");
        let written = value.encode(&SEALER);
        let is_read = frozen(&name)
            .and_then(|frozen| T::decode(&frozen, &SEALER).ok())
            .is_some_and(|read| read == *value);
        if !is_read {
            self.0.push(format!("{name}: {}", hex(&written)));
        } else if !is_sealed {
            self.compare(&name, &written);
        }
    }
}

#[test]
fn every_kind_of_record_is_read_and_written_as_it_lies_on_disks() {
    let mut differences = Differences::default();
    differences.record("trigger", &samples::trigger("disk"), false);
    for destination in samples::destinations() {
        let name = format!("destination {}", destination.name.as_str());
        differences.record(&name, &destination, true);
    }
    let mut rule = samples::rule("page");
    rule.destination_names.truncate(1);
    differences.record("rule", &rule, false);
    differences.record("client", &samples::client("console"), false);
    differences.record("sender", &samples::sender("console"), false);
    differences.record("occurrence", &samples::occurrence(1), false);
    let states = [
        DeliveryState::Pending { due_ms: 1 },
        DeliveryState::Leased { until_ms: 2 },
        DeliveryState::Retry { due_ms: 3 },
        DeliveryState::Delivered,
        DeliveryState::Dead,
        DeliveryState::Cancelled,
    ];
    for state in states {
        let name = format!("delivery {}", state.number());
        differences.record(&name, &samples::delivery(1, state), false);
    }
    differences.record("attempt", &samples::attempt(1, 2), false);
    differences.record("health", &samples::health(), false);
    differences.record("judged occurrence", &samples::evaluated_occurrence(), false);
    let reopened = samples::reopened_occurrence();
    differences.record("reopened occurrence", &reopened, false);
    differences.record("receipt", &samples::receipt(), false);
    differences.record("retried delivery", &samples::retried_delivery(), false);
    for (revision, of) in samples::revisions().into_iter().zip(["trigger", "rule"]) {
        differences.record(&format!("revision of a {of}"), &revision, false);
    }
    let differences = differences.0;
    assert!(
        differences.is_empty(),
        "other bytes than on disks already; if these are new, add the lines:\n{}",
        differences.join("\n")
    );
}
