//! The frozen encoding: the bytes of each kind of record, of its key and of its index entries.
//!
//! Lines of the frozen file never change. A new encoding adds lines. A line whose name ends with
//! `damaged` has a digest of the results of decoding damaged forms of a record.

mod damaged;

use std::{fmt::Write, sync::LazyLock};

use super::{ProofLevel, Record, chain_entry, upgrade_proof};
use crate::{
    domain::{
        AnyResource, AuditEntry, Delivery, DeliveryState, RevisedResource, Revision, Silence,
        any_resource::each_resource,
    },
    engine::{Index, Kind},
    samples,
    seal::Sealer,
    testing::audit::audit_entry,
};

const FROZEN: &str = include_str!("v1/frozen.txt");

static SEALER: LazyLock<Sealer> = LazyLock::new(|| Sealer::new(&[(1, [7; 32])]));

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn from_hex(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

fn read_frozen(name: &str) -> Option<Vec<u8>> {
    let mut lines = FROZEN.lines().filter(|line| !line.starts_with('#'));
    lines.find_map(|line| Some(from_hex(line.strip_prefix(name)?.strip_prefix(": ")?)))
}

/// Lines that are missing or that differ from the current encoding.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare(&mut self, name: &str, written: &[u8]) {
        if read_frozen(name).as_deref() != Some(written) {
            self.0.push(format!("{name}: {}", to_hex(written)));
        }
    }

    /// Compares a record. Sealed secrets differ each time, so for records with secrets only
    /// decoding is compared.
    fn record<T: Record + PartialEq>(&mut self, name: &str, value: &T) {
        self.compare(&format!("{name} key"), &value.key());
        let mut counts = std::collections::BTreeMap::new();
        for entry in value.entries() {
            let since = match entry.index {
                Index::OccurrenceByState | Index::OccurrenceByStart => " since layout 3",
                _ => "",
            };
            let count = counts.entry(entry.index as u8).or_insert(0);
            *count += 1;
            let which = if *count > 1 {
                format!(" ({count})")
            } else {
                String::new()
            };
            let name = format!("{name} entry {}{since}{which}", entry.index as u8);
            self.compare(&name, &entry.key);
        }
        let unproven = read_frozen(&format!("{name} value"));
        let since = match ProofLevel::oldest_for_kind(T::KIND) {
            Some(ProofLevel::Nothing) | None => "",
            Some(ProofLevel::Access) => " since layout 4",
            Some(ProofLevel::Definitions) => " since layout 5",
        };
        // Kinds added after that layout have no line without a proof.
        if let (false, Some(unproven)) = (since.is_empty(), unproven) {
            let proven = upgrade_proof(T::KIND, &unproven, &SEALER);
            let read = proven.and_then(|bytes| T::decode(&bytes, &SEALER).ok());
            assert!(
                read.as_ref() == Some(value),
                "{name} of an earlier version{since}"
            );
        }
        let name = format!("{name} value{since}");
        let written = value.encode(&SEALER);
        let is_sealed = value.encode(&SEALER) != written;
        let is_read = read_frozen(&name)
            .and_then(|frozen| T::decode(&frozen, &SEALER).ok())
            .is_some_and(|read| read == *value);
        if !is_read {
            self.0.push(format!("{name}: {}", to_hex(&written)));
        } else if !is_sealed {
            self.compare(&name, &written);
        }
        assert_lossless(&name, value, is_sealed);
        // The hash of an audit entry detects every change.
        if let (Some(frozen), false) = (read_frozen(&name), T::KIND == Kind::Audit) {
            let digest = damaged::mutation_digest::<T>(&frozen, &SEALER);
            let line = format!("{name} damaged: {digest}");
            if !FROZEN.lines().any(|it| it == line) {
                self.0.push(line);
            }
        }
    }
}

macro_rules! compare_resources {
    ($($number:literal $word:ident $kind:ident($type:ident) $more:tt)+) => {
        impl Differences {
            fn resource(&mut self, resource: &AnyResource) {
                match resource {
                    $(AnyResource::$kind(it) => self.record(stringify!($word), it),)+
                }
            }
        }
    };
}
each_resource!(compare_resources);

/// Checks that decoding and encoding a record reproduces its bytes, because hashes and proofs cover
/// them. Checks this with secrets, and without secrets as in the audit log.
fn assert_lossless<T: Record + PartialEq>(name: &str, value: &T, is_sealed: bool) {
    let written = value.encode(&SEALER);
    let read = T::decode(&written, &SEALER).unwrap();
    assert!(read == *value, "{name} changes when encoded and decoded");
    // Sealed secrets differ each time.
    if !is_sealed {
        assert_eq!(to_hex(&read.encode(&SEALER)), to_hex(&written), "{name}");
    }
    let Some(state) = value.audit_snapshot().and_then(|seen| seen.state) else {
        return;
    };
    let entry = AuditEntry {
        before: Some(state.clone()),
        after: Some(state),
        ..audit_entry()
    };
    let written = chain_entry(entry, 1, [0; 32]).encode(&SEALER);
    let read = AuditEntry::decode(&written, &SEALER);
    let read = read.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(
        to_hex(&read.encode(&SEALER)),
        to_hex(&written),
        "{name} in the audit log"
    );
}

fn shadow_samples(differences: &mut Differences) {
    differences.record("shadow rule", &samples::shadow_rule());
    let shadowed = samples::shadowed_occurrence();
    differences.record("shadowed occurrence", &shadowed);
    differences.record("shadow group", &samples::shadow_group());
    let escalated = samples::escalated_group();
    differences.record("escalated group", &escalated);
}

fn heartbeat_samples(differences: &mut Differences) {
    differences.record("heartbeat", &samples::heartbeat("backup"));
    differences.record("expectation", &samples::expectation());
    let in_windows = samples::window_heartbeat("reports");
    differences.record("heartbeat of a calendar", &in_windows);
    let running = samples::running_expectation();
    differences.record("running expectation", &running);
}

fn on_call_samples(differences: &mut Differences) {
    differences.record("contact", &samples::contact("ana"));
    differences.record("schedule", &samples::schedule("nights"));
    differences.record("policy", &samples::policy("database"));
    differences.record("paging rule", &samples::paging_rule());
    differences.record("escalated occurrence", &samples::escalated());
    let rotated = samples::rotated_schedule("rotated");
    differences.record("schedule with another feed", &rotated);
    differences.record("held response", &samples::held_response());
}

fn digest_samples(differences: &mut Differences) {
    let destination = samples::budget_destination();
    differences.record("destination with a budget", &destination);
    differences.record("budget window", &samples::budget_window());
    differences.record("lone delivery", &samples::lone_delivery());
    differences.record("folded delivery", &samples::folded_delivery());
    differences.record("digest", &samples::digest_delivery());
}

fn thread_samples(differences: &mut Differences) {
    differences.record("alike health", &samples::alike_health());
    differences.record("behind delivery", &samples::behind_delivery());
    let uncertain = samples::uncertain_delivery();
    differences.record("uncertain delivery", &uncertain);
    differences.record("later delivery", &samples::later_delivery());
}

fn flapping_samples(differences: &mut Differences) {
    differences.record("flapping rule", &samples::flapping_rule());
    let flapping = samples::flapping_occurrence();
    differences.record("flapping occurrence", &flapping);
    differences.record("delivery of a thread", &samples::thread_delivery());
    differences.record("waiting delivery", &samples::waiting_delivery());
}

fn occurrence_samples(differences: &mut Differences) {
    differences.record("judged occurrence", &samples::evaluated_occurrence());
    let reopened = samples::reopened_occurrence();
    differences.record("reopened occurrence", &reopened);
    differences.record("held occurrence", &samples::held_occurrence());
    let returned = samples::returned_occurrence();
    differences.record("returned occurrence", &returned);
    let expiring = samples::expiring_occurrence();
    differences.record("expiring occurrence", &expiring);
    let assigned = samples::assigned_occurrence();
    differences.record("assigned occurrence", &assigned);
    let traced = samples::traced_occurrence();
    differences.record("traced occurrence", &traced);
    let changed = samples::changed_occurrence();
    differences.record("changed occurrence", &changed);
    let partly_held = samples::partly_held_occurrence();
    differences.record("partly held occurrence", &partly_held);
    differences.record("own event", &samples::own_event());
    let reported = samples::reported_occurrence();
    let reported_again = samples::reported_again_occurrence();
    differences.record("reported occurrence", &reported);
    differences.record("reported-again occurrence", &reported_again);
}

fn silence_samples(differences: &mut Differences) {
    differences.record("silence", &samples::silence("db patch"));
    differences.record("nightly silence", &samples::nightly_silence());
    let of_destination = samples::destination_silence();
    differences.record("silence of a destination", &of_destination);
    let was = Revision {
        was: RevisedResource::Silence(samples::silence("db patch")),
        until_ms: 9,
        deleted: false,
    };
    differences.record("revision of a silence", &was);
}

#[test]
fn flexible_silence_is_read_as_a_span() {
    let mut expected = samples::silence("flexible");
    expected.start_ms += 60_000;
    expected.end_ms = expected.start_ms + 7_200_000;
    let unproven = read_frozen("flexible silence value").unwrap();
    let proven = upgrade_proof(Kind::Silence, &unproven, &SEALER).unwrap();
    for value in [
        proven,
        read_frozen("flexible silence value since layout 5").unwrap(),
    ] {
        assert!(Silence::decode(&value, &SEALER).unwrap() == expected);
    }
}

#[test]
fn kept_secret_is_sealed() {
    let delivery = samples::keeping_delivery(true);
    let written = delivery.encode(&SEALER);
    assert!(!written.windows(5).any(|it| it == b"OPS-1"));
    assert!(Delivery::decode(&written, &SEALER).unwrap() == delivery);
    let other = Sealer::new(&[(1, [8; 32])]);
    assert!(Delivery::decode(&written, &other).is_err());
}

fn group_samples(differences: &mut Differences) {
    differences.record("grouping rule", &samples::grouping_rule());
    differences.record("group", &samples::group());
    differences.record("open group", &samples::open_group());
    let grouped = samples::grouped_occurrence();
    differences.record("grouped occurrence", &grouped);
    differences.record("group delivery", &samples::group_delivery());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of all kinds")]
fn stored_format_of_every_record_is_unchanged() {
    let mut differences = Differences::default();
    differences.record("trigger", &samples::trigger("disk"));
    for destination in samples::destinations() {
        let name = format!("destination {}", destination.name.as_str());
        differences.record(&name, &destination);
    }
    let mut rule = samples::rule("page");
    rule.destination_names.truncate(1);
    differences.record("rule", &rule);
    differences.record("client", &samples::client("console"));
    differences.record("scoped client", &samples::scoped_client("console"));
    differences.record("rotated client", &samples::rotated_client("console"));
    differences.record("sender", &samples::sender("console"));
    differences.record("occurrence", &samples::occurrence(1));
    let states = [
        DeliveryState::Pending { due_ms: 1 },
        DeliveryState::Leased { until_ms: 2 },
        DeliveryState::Retry { due_ms: 3 },
        DeliveryState::Delivered,
        DeliveryState::Dead,
        DeliveryState::Cancelled,
        DeliveryState::Shadowed,
    ];
    for state in states {
        let name = format!("delivery {}", state.number());
        differences.record(&name, &samples::delivery(1, state));
    }
    differences.record("attempt", &samples::attempt(1, 2));
    differences.record("health", &samples::health());
    differences.record("tried health", &samples::tried_health());
    differences.record("mail destination", &samples::mail_destination());
    differences.record("refusing health", &samples::refusing_health());
    differences.record("partial delivery", &samples::partial_delivery());
    differences.record("deferred delivery", &samples::deferred_delivery());
    differences.record("reduced attempt", &samples::reduced_attempt());
    let judging = samples::judging_webhook();
    differences.record("destination that judges", &judging);
    differences.record("destination that keeps", &samples::keeping_webhook());
    let editing = samples::editing_webhook();
    differences.record("destination that edits", &editing);
    differences.record("keeping delivery", &samples::keeping_delivery(false));
    differences.record("asking health", &samples::asking_health());
    let alternating = samples::alternating_health();
    differences.record("alternating health", &alternating);
    for destination in samples::worded_destinations() {
        let name = format!("destination {}", destination.name.as_str());
        differences.record(&name, &destination);
    }
    differences.record("jinja rule", &samples::jinja_rule());
    differences.record("jinja delivery", &samples::jinja_delivery());
    occurrence_samples(&mut differences);
    silence_samples(&mut differences);
    shadow_samples(&mut differences);
    flapping_samples(&mut differences);
    thread_samples(&mut differences);
    digest_samples(&mut differences);
    differences.record("timed rule", &samples::timed_rule());
    differences.record("inhibition", &samples::inhibition("dead host"));
    differences.record("cause", &samples::cause());
    group_samples(&mut differences);
    differences.record("mapping", &samples::mapping("statuspage"));
    for resource in samples::plain_resources() {
        differences.resource(&resource);
    }
    let enriched = samples::enriched_occurrence();
    differences.record("enriched occurrence", &enriched);
    differences.record("settings", &samples::settings());
    let settings = samples::settings_with_templates();
    differences.record("settings with templates", &settings);
    heartbeat_samples(&mut differences);
    on_call_samples(&mut differences);
    differences.record("calendar", &samples::calendar("nights"));
    differences.record("audit entry", &audit_entry());
    differences.record("receipt", &samples::receipt());
    differences.record("retried delivery", &samples::retried_delivery());
    for (revision, of) in samples::revisions().into_iter().zip(["trigger", "rule"]) {
        differences.record(&format!("revision of a {of}"), &revision);
    }
    let bounded = samples::bounded_schedule();
    differences.record("bounded schedule", &bounded);
    differences.record("followed contact", &samples::followed_contact());
    let reordered = samples::reordered_contact();
    differences.record("contact with reordered methods", &reordered);
    let identified = samples::identified_response();
    differences.record("response with identities", &identified);
    let decoding = samples::decoding_mapping("sns");
    differences.record("decoding mapping", &decoding);
    let responding = samples::response_mapping("jira");
    differences.record("mapping to actions", &responding);
    let replying = samples::replying_mapping("discord");
    differences.record("mapping with a reply", &replying);
    let informed = samples::informed_occurrence();
    differences.record("occurrence closed by a destination", &informed);
    let in_cron = samples::cron_heartbeat("nightly");
    differences.record("heartbeat of a cron expression", &in_cron);
    let in_cron = samples::cron_drill("weekly page");
    differences.record("drill of a cron expression", &in_cron);
    let differences = differences.0;
    assert!(
        differences.is_empty(),
        "the bytes differ from those on existing disks; if these are new, add the lines:\n{}",
        differences.join("\n")
    );
}
