//! Tests of silences, on a service with a manual clock.

mod edits;
mod flapping;
mod holds;
mod inhibitions;
mod itself;
mod timing;

use bellwether_language::filter;
use bellwether_proto::v1::ReasonCode;

use super::*;
use crate::{
    clock::Clock as _,
    domain::{Delivery, IncomingEvent, Occurrence, Severity, Status, Trigger},
    edit::OccurrenceTarget,
    explain::{RuleExplanation, explain},
    pending,
    samples::{self, DISK_TRIGGER, START_MS, name, rule, world::World},
    store::Lane,
};

const MINUTE_MS: i64 = 60_000;

impl World {
    fn draft(&self, called: &str, text: &str, minutes: i64) -> SilenceDraft {
        let query = filter::parse(text, None).ok();
        SilenceDraft {
            name: called.into(),
            description: String::new(),
            tags: Vec::new(),
            reason: "kernel update".into(),
            query: query
                .filter(|_| !text.is_empty())
                .map(|it| Query { clause: it.clause }),
            rule_names: Vec::new(),
            destination_names: Vec::new(),
            annotations: BTreeMap::new(),
            calendar: String::new(),
            start_ms: None,
            end_ms: Some(self.clock.now_ms() + minutes * MINUTE_MS),
            expire_when_idle_ms: None,
            warn_before_ms: None,
            from_event: None,
            editor: name("Ana"),
            etag: String::new(),
            violations: Vec::new(),
        }
    }

    async fn create(&self, draft: SilenceDraft) -> SilenceView {
        let silences = &self.node().silences;
        silences.create(draft, false, false).await.unwrap()
    }

    async fn update(&self, draft: SilenceDraft) -> SilenceView {
        let silences = &self.node().silences;
        silences.update(draft, false, false).await.unwrap()
    }

    async fn silence(&self, called: &str, text: &str, minutes: i64) -> SilenceView {
        let draft = self.draft(called, text, minutes);
        let view = self.create(draft).await;
        self.review().await;
        view
    }

    /// Returns the decided messages, oldest first: the host, and the `clear` flag.
    async fn sent(&self) -> Vec<(String, bool)> {
        let mut all = samples::all::<Delivery>(&self.store).await;
        all.sort_by_key(|it| it.create_ms);
        let host = |it: &Delivery| it.content.occurrence.dimensions.get("host").cloned();
        let about = |it: Delivery| Some((host(&it)?, it.content.clear));
        all.into_iter().filter_map(about).collect()
    }

    async fn occurrence(&self, host: &str) -> Occurrence {
        let all = samples::all::<Occurrence>(&self.store).await;
        let is_of = |it: &Occurrence| it.dimensions.get("host").is_some_and(|it| it == host);
        all.into_iter().rev().find(is_of).unwrap()
    }

    async fn explained(&self, host: &str) -> RuleExplanation {
        let snapshot = self.node().deciding.ruleset.refresh().await.unwrap();
        let (occurrence, now_ms) = (self.occurrence(host).await, self.clock.now_ms());
        let all = explain(&self.store, &snapshot, &occurrence, now_ms).await;
        all.unwrap().remove(0)
    }

    async fn view(&self, called: &str) -> SilenceView {
        self.node().silences.get(called).await.unwrap()
    }

    async fn own_event(&self, called: &str) -> Option<Occurrence> {
        let all = samples::all::<Occurrence>(&self.store).await;
        let event = silence_event_id(&name(called));
        all.into_iter().rev().find(|it| it.event == event)
    }
}

fn page() -> Rule {
    rule("page", &[DISK_TRIGGER], &["hook"])
}

fn with_updates() -> Rule {
    Rule {
        send_updates: true,
        ..page()
    }
}

fn close(event: &mut IncomingEvent) {
    event.status = Some(Status::Closed);
}

fn severity(severity: Severity) -> impl FnOnce(&mut IncomingEvent) {
    move |event| event.severity = Some(severity)
}

fn about(host: &str, clear: bool) -> (String, bool) {
    (host.into(), clear)
}

#[test]
fn duration_is_formatted_in_days_and_minutes() {
    const DAY: i64 = 24 * 60 * 60_000;
    for (ms, length) in [
        (0, "0 days"),
        (1, "1 minute"),
        (60_000, "1 minute"),
        (60_001, "2 minutes"),
        (DAY - 1, "1 day"),
        (DAY, "1 day"),
        (DAY + 1, "1 day and 1 minute"),
        (40 * DAY - 1, "40 days"),
        (40 * DAY, "40 days"),
        (40 * DAY + 61_000, "40 days and 2 minutes"),
    ] {
        assert_eq!(format_days(ms), length, "{ms}");
    }
}
