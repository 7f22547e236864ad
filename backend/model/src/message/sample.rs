//! The sample event of a test for which the caller provides none.

use std::{collections::BTreeMap, sync::Arc};

use super::{Context, Facts, Links};
use crate::domain::{
    Content, DestinationKind, EventId, GroupContent, Grouping, MemberChange, Occurrence, RecordId,
    Severity, Status, TemplateLanguage, Value, delivery::RuleContent,
    rule::REPEAT_INTERVAL_SECONDS_DEFAULT,
};
use crate::template::Variables;

/// Returns an open occurrence that is recognizably a sample.
pub fn sample_occurrence(now_ms: i64) -> Occurrence {
    let text = |text: &str| text.to_owned();
    let dimensions = BTreeMap::from([
        (text("host"), text("db-1.example.com")),
        (text("source"), text("bellwether-test")),
    ]);
    let metadata = BTreeMap::from([
        (text("mount"), Value::Text(text("/var"))),
        (text("usedPercent"), Value::Number(97.5)),
    ]);
    Occurrence {
        key: RecordId::first_at_time(now_ms.try_into().unwrap_or_default()),
        event: EventId::derive("disk-full", &dimensions),
        number: 1,
        name: text("disk-full"),
        kind: text("disk"),
        dimensions,
        metadata,
        summary: text("Sample: disk /var is 97.5 % full"),
        body: text("This is a test message. Nothing is wrong."),
        severity: Severity::Error,
        status: Status::Open,
        acknowledged: false,
        start_ms: now_ms,
        last_seen_ms: now_ms,
        close: None,
        count: 1,
        prior_count: 0,
        annotations: Vec::new(),
        history: Vec::new(),
        notified: Vec::new(),
        chain: Vec::new(),
        review_ms: now_ms,
        content_ms: None,
        evaluation: None,
        received_ms: None,
        reopened: None,
        earlier: Vec::new(),
        causes: Vec::new(),
        covered_by: Vec::new(),
        pending: Vec::new(),
        hold_changes: Vec::new(),
        expire_ms: None,
        reports: crate::domain::Reports::default(),
        flapping: Vec::new(),
        assignee: None,
        trace: None,
        acknowledged_until_ms: None,
        acknowledged_severity: None,
        enriched: Vec::new(),
        age_shift_ms: 0,
        informed: Vec::new(),
    }
}

/// Returns a new group of three members, one of which is the occurrence.
pub fn sample_group(grouping: &Grouping, occurrence: &Occurrence) -> GroupContent {
    let field = |name: &String| {
        let inside = name.strip_prefix("dimensions.");
        let key = inside.unwrap_or(name);
        (name.clone(), occurrence.dimensions.get(key).cloned())
    };
    let member = |number: u32| {
        let summary = match number {
            0 => occurrence.summary.clone(),
            number => format!("Sample {}: {}", number + 1, occurrence.summary),
        };
        let number = occurrence.number + number;
        let like = occurrence.clone();
        (
            Some(MemberChange::Joined),
            Occurrence {
                number,
                summary,
                ..like
            },
        )
    };
    GroupContent {
        id: occurrence.key,
        by: grouping.by.iter().map(field).collect(),
        count: SAMPLE_MEMBERS,
        open_count: SAMPLE_MEMBERS,
        joined_count: SAMPLE_MEMBERS,
        closed_count: 0,
        is_first: true,
        is_over: false,
        acknowledged: false,
        members: (0..SAMPLE_MEMBERS).map(member).collect(),
    }
}

const SAMPLE_MEMBERS: u32 = 3;

/// Returns the content of a test: an occurrence with a substitute rule. An empty message means the
/// default.
pub fn sample_content(occurrence: Occurrence, kind: DestinationKind, message: String) -> Content {
    Content {
        clear: false,
        occurrence,
        rule: RuleContent {
            name: "test".into(),
            description: "Placeholder for a rule in test messages.".into(),
            message,
            template_language: TemplateLanguage::default(),
            enabled: true,
            repeat_interval_seconds: REPEAT_INTERVAL_SECONDS_DEFAULT,
            trigger_names: Vec::new(),
            destination_names: Vec::new(),
        },
        trigger: None,
        destination_kind: kind,
        template_language: TemplateLanguage::default(),
        group: None,
        thread: None,
        digest: None,
        contact: None,
        previous: None,
    }
}

pub fn sample_variables() -> Variables {
    let at_ms = 1_769_846_400_000;
    let kind = DestinationKind::Email(crate::domain::destination::Email::default());
    let content = sample_content(sample_occurrence(at_ms), kind, String::new());
    let context = Context {
        delivery_id: content.occurrence.key,
        destination_name: "test",
        tenant: "bellwether",
        links: &Links::default(),
        snippets: &Arc::default(),
        opening: None,
        kept: None,
    };
    Variables::new(Facts::new(&content, &context).make_variables())
}
