//! Minimal values that belong together: an event about a disk, and the rules that notify about it.

use std::collections::BTreeMap;

use crate::{
    decide::NO_ENRICHMENTS,
    domain::{
        Clause, DeliverySettings, Destination, DestinationKind, IncomingEvent, Literal, Name,
        Occurrence, Query, RecordId, Report, Rule, Severity, SharedSettings, TemplateLanguage,
        Trigger,
        destination::{EventTemplates, Webhook},
    },
    lifecycle::{Arrival, EventEffect, apply_event},
};

/// Name of the trigger for severity error or worse.
pub const DISK_TRIGGER: &str = "disk";

/// Start of the tests, in milliseconds since 1970.
pub const START_MS: i64 = 1_800_000_000_000;

pub fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

/// Derives an identity from a text.
pub fn id(text: &str) -> RecordId {
    let random = text
        .bytes()
        .fold(7_u128, |sum, byte| sum * 31 + u128::from(byte));
    RecordId::from_parts(1, random % (1 << 80))
}

/// Returns an event of severity error about a host.
pub fn event(host: &str) -> IncomingEvent {
    IncomingEvent {
        name: "disk-full".into(),
        kind: "disk".into(),
        dimensions: BTreeMap::from([("host".into(), host.into())]),
        metadata: BTreeMap::new(),
        summary: "the disk is full".into(),
        body: String::new(),
        severity: Some(Severity::Error),
        status: None,
        acknowledged: None,
        timestamp_ms: START_MS,
        expire_ms: None,
        report: Report::default(),
    }
}

/// Returns the occurrence that [`event`] opens.
pub fn occurrence() -> Occurrence {
    let event = event("a");
    let arrival = Arrival {
        enrichments: &NO_ENRICHMENTS,
        trace: None,
        event: &event,
        author: None,
        chain: &[],
        now_ms: START_MS,
    };
    match apply_event(None, &arrival, &SharedSettings::default(), id("occurrence")) {
        EventEffect::Opened(opened) => *opened,
        EventEffect::Repeated(_) | EventEffect::Counted => unreachable!("nothing existed before"),
    }
}

/// Returns a trigger: `disk` matches severity error or worse, `nothing` no event, any other name
/// all events.
pub fn trigger(of: &str) -> Trigger {
    let severity = |word: &str| Literal::Text(word.into());
    let clause = match of {
        DISK_TRIGGER => Clause::GreaterAndEquals("severity".into(), severity("error")),
        "nothing" => Clause::Equals("name".into(), Literal::Text("nothing is called so".into())),
        "closed" => Clause::Equals("status".into(), Literal::Text("closed".into())),
        _ => Clause::GreaterAndEquals("severity".into(), severity("debug")),
    };
    Trigger {
        id: id(of),
        name: name(of),
        description: String::new(),
        tags: Vec::new(),
        query: Query { clause },
        revision: 1,
        create_ms: START_MS,
        update_ms: START_MS,
    }
}

/// Returns an enabled rule without repeats and updates.
pub fn rule(of: &str, triggers: &[&str], destinations: &[&str]) -> Rule {
    Rule {
        id: id(of),
        name: name(of),
        description: String::new(),
        tags: Vec::new(),
        enabled: true,
        trigger_names: triggers.iter().map(|it| name(it)).collect(),
        destination_names: destinations.iter().map(|it| name(it)).collect(),
        escalation_policy: None,
        message: String::new(),
        template_language: TemplateLanguage::default(),
        repeat: false,
        repeat_interval_seconds: 3600,
        send_updates: false,
        delay_ms: 0,
        auto_pause_ms: 0,
        active_calendar: None,
        group: None,
        flapping: None,
        shadow: false,
        revision: 1,
        create_ms: START_MS,
        update_ms: START_MS,
    }
}

/// Returns a destination: one whose name starts with `event` creates events, any other is a
/// webhook.
pub fn destination(of: &str) -> Destination {
    let kind = if of.starts_with("event") {
        DestinationKind::Event(EventTemplates {
            name_template: "made".into(),
            type_template: "made".into(),
            summary_template: "made".into(),
            severity: Severity::Error,
        })
    } else {
        DestinationKind::Webhook(Webhook {
            url: "https://example.org/".into(),
            ..Webhook::default()
        })
    };
    Destination {
        id: id(of),
        name: name(of),
        description: String::new(),
        tags: Vec::new(),
        kind,
        template_language: TemplateLanguage::default(),
        delivery: DeliverySettings::default(),
        revision: 1,
        create_ms: START_MS,
        update_ms: START_MS,
    }
}
