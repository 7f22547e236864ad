//! Wire types to console data: the inward half of the conversions.

use std::error::Error as _;

use bellwether_proto::{cloud, v1};
use prost_types::value::Kind as WireKind;
use serde_json::{Number, Value};
use tonic_types::StatusExt;

use super::{Answer, Page};
use crate::data::{
    Annotation, Attempt, Caller, Clause, ClauseExplanation, Client, Delivery, DeliverySettings,
    DeliveryState, Destination, DestinationSpec, DestinationTraffic, DestinationType, Email,
    Equals, EventDestination, EventDetail, EventRow, EventTrigger, Explanation, Failure,
    FailureKind, FieldError, GateVerdict, Health, HealthState, HistoryEntry, MsTeams,
    OccurrenceDetail, Outcome, Overview, PagerDuty, Query, Role, Rule, RuleExplanation,
    RulePreview, RuleSpec, Sent, ServiceNow, Severity, Slack, Status, TestReport, Trigger,
    TriggerExplanation, TriggerSpec, TriggerTest, TriggerType, Webhook,
};

pub(in crate::client) fn failure(status: &tonic::Status) -> Failure {
    use tonic::Code;
    let kind = match status.code() {
        Code::Unavailable => FailureKind::Unreachable,
        Code::DeadlineExceeded | Code::Cancelled => FailureKind::TimedOut,
        Code::Unauthenticated => FailureKind::Unauthenticated,
        Code::PermissionDenied => FailureKind::Denied,
        Code::NotFound => FailureKind::NotFound,
        Code::Aborted | Code::AlreadyExists => FailureKind::Conflict,
        Code::InvalidArgument
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::ResourceExhausted => FailureKind::Invalid,
        Code::Unimplemented => FailureKind::Unsupported,
        // A connection that breaks under a call is told as an unknown error with its cause.
        Code::Unknown | Code::Internal if status.source().is_some() => FailureKind::Unreachable,
        _ => FailureKind::Internal,
    };
    let fields = status
        .get_details_bad_request()
        .map_or_else(Vec::new, |details| {
            let violations = details.field_violations.into_iter();
            violations
                .map(|item| FieldError {
                    path: item.field,
                    message: item.description,
                })
                .collect()
        });
    let message = match kind {
        FailureKind::Unreachable => status
            .source()
            .map_or_else(|| status.message().to_owned(), deepest),
        _ => status.message().to_owned(),
    };
    Failure {
        kind,
        message,
        fields,
    }
}

pub(in crate::client) fn unreachable(error: &tonic::transport::Error) -> Failure {
    Failure::new(FailureKind::Unreachable, deepest(error))
}

/// The innermost cause, which is the one an operator can act on.
fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    let told = error.to_string();
    match told.split_once(" (os error ") {
        Some((words, _number)) => words.to_lowercase(),
        None => told,
    }
}

/// A request that reached the wrong function; a fault of the console.
pub(in crate::client) fn misplaced() -> Failure {
    Failure::new(
        FailureKind::Internal,
        "the console sent this request the wrong way",
    )
}

fn millis(time: Option<prost_types::Timestamp>) -> Option<i64> {
    time.map(|time| {
        time.seconds
            .saturating_mul(1_000)
            .saturating_add(i64::from(time.nanos) / 1_000_000)
    })
}

fn severity(number: i32) -> Severity {
    match cloud::Severity::try_from(number) {
        Ok(cloud::Severity::Debug) => Severity::Debug,
        Ok(cloud::Severity::Info) => Severity::Info,
        Ok(cloud::Severity::Warning) => Severity::Warning,
        Ok(cloud::Severity::Error) => Severity::Error,
        Ok(cloud::Severity::Critical) => Severity::Critical,
        Ok(cloud::Severity::Default) | Err(_) => Severity::Unknown,
    }
}

fn status(number: i32) -> Status {
    match cloud::Status::try_from(number) {
        Ok(cloud::Status::Open) => Status::Open,
        Ok(cloud::Status::Suppressed) => Status::Suppressed,
        Ok(cloud::Status::Closed) => Status::Closed,
        Ok(cloud::Status::Default) | Err(_) => Status::Unknown,
    }
}

fn role(number: i32) -> Role {
    match v1::Role::try_from(number) {
        Ok(v1::Role::Ingest) => Role::Ingest,
        Ok(v1::Role::Viewer) => Role::Viewer,
        Ok(v1::Role::Operator) => Role::Operator,
        Ok(v1::Role::Editor) => Role::Editor,
        Ok(v1::Role::Admin) => Role::Admin,
        Ok(v1::Role::Unspecified) | Err(_) => Role::Unknown,
    }
}

pub(in crate::client) fn client(from: v1::Client) -> Client {
    Client {
        name: from.name,
        role: role(from.role),
        create_ms: millis(from.create_time),
        last_used_ms: millis(from.last_used_time),
    }
}

pub(in crate::client) fn caller(from: v1::GetCallerResponse) -> Caller {
    let client = client(from.client.unwrap_or_default());
    Caller {
        name: client.name,
        role: client.role,
    }
}

pub(in crate::client) fn new_client(from: v1::CreateClientResponse) -> Answer {
    Answer::Key {
        name: from.client.unwrap_or_default().name,
        key: from.key,
    }
}

pub(in crate::client) fn overview(from: v1::GetOverviewResponse) -> Answer {
    let open = |severity: Severity| {
        let word = format!("SEVERITY_{}", severity.word().to_uppercase());
        from.open_by_severity
            .get(&word)
            .copied()
            .unwrap_or_default()
    };
    let traffic = |from: v1::DestinationOverview| DestinationTraffic {
        name: from.destination_name,
        health: health(from.health),
        waiting: from.waiting_count.unwrap_or_default(),
        dead: from.dead_count.unwrap_or_default(),
        delivered: from.delivered_count.unwrap_or_default(),
    };
    Answer::Overview(Box::new(Overview {
        open_by_severity: Severity::WORST_FIRST
            .map(|word| (word, open(word)))
            .to_vec(),
        acknowledged_count: from.acknowledged_count.unwrap_or_default(),
        events_per_minute: from.events_per_minute,
        destinations: from.destinations.into_iter().map(traffic).collect(),
        oldest_undelivered_ms: millis(from.oldest_undelivered_time),
        start_ms: millis(from.start_time),
        version: from.version,
        trigger_count: from.trigger_count.unwrap_or_default(),
        destination_count: from.destination_count.unwrap_or_default(),
        rule_count: from.rule_count.unwrap_or_default(),
        enabled_rule_count: from.enabled_rule_count.unwrap_or_default(),
    }))
}

fn health(from: Option<v1::DestinationHealth>) -> Health {
    use v1::destination_health::State;
    let from = from.unwrap_or_default();
    let state = match State::try_from(from.state) {
        Ok(State::Healthy) => HealthState::Healthy,
        Ok(State::Failing) => HealthState::Failing,
        Ok(State::Paused) => HealthState::Paused,
        Ok(State::Unspecified) | Err(_) => HealthState::Unknown,
    };
    Health {
        state,
        since_ms: millis(from.since),
        last_error: from.last_error,
    }
}

fn clause(from: v1::Clause) -> Option<Clause> {
    use v1::clause::Kind;
    let all = |clauses: Vec<v1::Clause>| clauses.into_iter().filter_map(clause).collect();
    Some(match from.kind? {
        Kind::And(and) => Clause::And {
            clauses: all(and.clauses),
        },
        Kind::Or(or) => Clause::Or {
            clauses: all(or.clauses),
        },
        Kind::Not(not) => Clause::Not {
            clause: Box::new(clause(*not.clause?)?),
        },
        Kind::Equals(equals) => {
            use v1::equals::Value as Wanted;
            let mut read = Equals {
                field: equals.field,
                ..Equals::default()
            };
            match equals.value {
                Some(Wanted::StringVal(text)) => read.string_val = Some(text),
                Some(Wanted::NumberVal(double)) => read.number_val = number(double),
                Some(Wanted::BoolVal(flag)) => read.bool_val = Some(flag),
                None => {}
            }
            Clause::Equals(read)
        }
        Kind::In(set) => Clause::In {
            field: set.field,
            values: set.values.into_iter().map(value).collect(),
        },
        Kind::GreaterAndEquals(bound) => Clause::GreaterAndEquals {
            field: bound.field,
            value: bound.value.map_or(Value::Null, value),
        },
        Kind::LessAndEquals(bound) => Clause::LessAndEquals {
            field: bound.field,
            value: bound.value.map_or(Value::Null, value),
        },
        Kind::Contains(text) => Clause::Contains {
            field: text.field,
            value: text.value,
        },
        Kind::StartsWith(text) => Clause::StartsWith {
            field: text.field,
            value: text.value,
        },
        Kind::EndsWith(text) => Clause::EndsWith {
            field: text.field,
            value: text.value,
        },
    })
}

/// A number as people write it: without a fraction when it has none.
fn number(double: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if double.fract() == 0.0 && double.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        return Some(Number::from(double as i64));
    }
    Number::from_f64(double)
}

fn value(from: prost_types::Value) -> Value {
    match from.kind {
        None | Some(WireKind::NullValue(_)) => Value::Null,
        Some(WireKind::BoolValue(flag)) => Value::Bool(flag),
        Some(WireKind::NumberValue(double)) => number(double).map_or(Value::Null, Value::Number),
        Some(WireKind::StringValue(text)) => Value::String(text),
        Some(WireKind::ListValue(list)) => list.values.into_iter().map(value).collect(),
        Some(WireKind::StructValue(object)) => structure(object),
    }
}

fn structure(from: prost_types::Struct) -> Value {
    Value::Object(
        from.fields
            .into_iter()
            .map(|(key, item)| (key, value(item)))
            .collect(),
    )
}

pub(in crate::client) fn trigger(from: v1::Trigger) -> Trigger {
    use v1::trigger_type::Type;
    let clause = match from.r#type.and_then(|kind| kind.r#type) {
        Some(Type::Event(event)) => event.query.and_then(|query| query.clause).and_then(clause),
        _ => None,
    };
    Trigger {
        spec: TriggerSpec {
            name: from.name,
            description: from.description,
            tags: from.tags,
            kind: TriggerType {
                event: EventTrigger {
                    query: Query { clause },
                },
            },
        },
        rule_names: from.rule_names,
        recent_count: from.recent_notification_count.unwrap_or_default(),
        create_ms: millis(from.create_time),
        update_ms: millis(from.update_time),
        etag: from.etag,
    }
}

pub(in crate::client) fn trigger_test(from: v1::TestTriggerResponse) -> Answer {
    Answer::TriggerTest(Box::new(TriggerTest {
        matched: from.matched.unwrap_or_default(),
        matched_by_saved: from.matched_by_saved,
        scanned: from.scanned.unwrap_or_default(),
        occurrences: from.occurrences.into_iter().flat_map(event_rows).collect(),
    }))
}

pub(in crate::client) fn rule(from: v1::Rule) -> Rule {
    Rule {
        spec: RuleSpec {
            name: from.name,
            description: from.description,
            tags: from.tags,
            enabled: from.enabled.unwrap_or_default(),
            trigger_names: from.trigger_names,
            destination_names: from.destination_names,
            message: from.message,
            repeat: from.repeat.unwrap_or_default(),
            repeat_interval: from.repeat_interval,
            send_updates: from.send_updates.unwrap_or_default(),
        },
        recent_count: from.recent_notification_count.unwrap_or_default(),
        last_notification_ms: millis(from.last_notification_time),
        create_ms: millis(from.create_time),
        update_ms: millis(from.update_time),
        etag: from.etag,
    }
}

pub(in crate::client) fn rule_preview(from: v1::PreviewRuleResponse) -> Answer {
    let preview = |from: v1::RulePreview| RulePreview {
        destination_name: from.destination_name,
        rendered: from.rendered.map_or(Value::Null, structure),
        size_bytes: from.size_bytes.unwrap_or_default(),
        limit_bytes: from.limit_bytes,
        warnings: from.warnings,
    };
    Answer::RulePreview {
        previews: from.previews.into_iter().map(preview).collect(),
        warnings: from.warnings,
    }
}

pub(in crate::client) fn destination(from: v1::Destination) -> Destination {
    Destination {
        spec: DestinationSpec {
            name: from.name,
            description: from.description,
            tags: from.tags,
            kind: from
                .r#type
                .and_then(|kind| kind.r#type)
                .map(destination_type),
            delivery: from.delivery.map(|settings| DeliverySettings {
                timeout: settings
                    .timeout
                    .map_or_else(String::new, |timeout| seconds(&timeout)),
                max_in_flight: settings.max_in_flight,
                max_per_minute: settings.max_per_minute,
                max_attempts: settings.max_attempts,
            }),
        },
        rule_names: from.rule_names,
        recent_count: from.recent_notification_count.unwrap_or_default(),
        health: health(from.health),
        create_ms: millis(from.create_time),
        update_ms: millis(from.update_time),
        etag: from.etag,
    }
}

fn seconds(duration: &prost_types::Duration) -> String {
    let fraction = format!("{:09}", duration.nanos.unsigned_abs());
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        format!("{}s", duration.seconds)
    } else {
        format!("{}.{fraction}s", duration.seconds)
    }
}

fn destination_type(from: v1::destination_type::Type) -> DestinationType {
    use v1::destination_type::Type;
    match from {
        Type::Webhook(v1::Webhook {
            url,
            method,
            headers,
            payload,
            signing_secret,
        }) => DestinationType::Webhook(Webhook {
            url,
            method,
            headers,
            payload,
            signing_secret,
        }),
        Type::Email(v1::Email { to, subject, body }) => {
            DestinationType::Email(Email { to, subject, body })
        }
        Type::Slack(v1::Slack { channel, token }) => {
            DestinationType::Slack(Slack { channel, token })
        }
        Type::Msteams(v1::MsTeams { url }) => DestinationType::MsTeams(MsTeams { url }),
        Type::Pagerduty(v1::PagerDuty { routing_key }) => {
            DestinationType::PagerDuty(PagerDuty { routing_key })
        }
        Type::Servicenow(now) => DestinationType::ServiceNow(ServiceNow {
            instance_url: now.instance_url,
            client_id: now.client_id,
            client_secret: now.client_secret,
            token_url: now.token_url,
            refresh_token: now.refresh_token,
        }),
        Type::Event(event) => DestinationType::Event(EventDestination {
            name_template: event.name_template,
            type_template: event.type_template,
            summary_template: event.summary_template,
            severity: severity(event.severity).word().to_owned(),
        }),
    }
}

fn delivery_state(number: i32) -> DeliveryState {
    use v1::delivery::State;
    match State::try_from(number) {
        Ok(State::Pending) => DeliveryState::Pending,
        Ok(State::Leased) => DeliveryState::Leased,
        Ok(State::Retry) => DeliveryState::Retry,
        Ok(State::Delivered) => DeliveryState::Delivered,
        Ok(State::Dead) => DeliveryState::Dead,
        Ok(State::Cancelled) => DeliveryState::Cancelled,
        Ok(State::Unspecified) | Err(_) => DeliveryState::Unknown,
    }
}

pub(in crate::client) fn delivery(from: v1::Delivery) -> Delivery {
    Delivery {
        id: from.id,
        rule_name: from.rule_name,
        trigger_name: from.trigger_name,
        destination_name: from.destination_name,
        event_id: from.event_id,
        occurrence_id: from.occurrence_id,
        state: delivery_state(from.state),
        test: from.test.unwrap_or_default(),
        clear: from.clear.unwrap_or_default(),
        attempt_count: from.attempt_count.unwrap_or_default(),
        last_error: from.last_error,
        retry_of: from.retry_of,
        next_attempt_ms: millis(from.next_attempt_time),
        create_ms: millis(from.create_time),
        end_ms: millis(from.end_time),
        attempts: from.attempts.into_iter().map(attempt).collect(),
    }
}

fn outcome(number: i32) -> Outcome {
    match v1::Outcome::try_from(number) {
        Ok(v1::Outcome::Delivered) => Outcome::Delivered,
        Ok(v1::Outcome::Rejected) => Outcome::Rejected,
        Ok(v1::Outcome::Unreachable) => Outcome::Unreachable,
        Ok(v1::Outcome::Blocked) => Outcome::Blocked,
        Ok(v1::Outcome::Unspecified) => Outcome::UnderWay,
        Ok(v1::Outcome::Unknown) | Err(_) => Outcome::Unknown,
    }
}

fn duration_ms(from: &prost_types::Duration) -> i64 {
    from.seconds
        .saturating_mul(1_000)
        .saturating_add(i64::from(from.nanos) / 1_000_000)
}

fn attempt(from: v1::Attempt) -> Attempt {
    Attempt {
        number: from.number,
        start_ms: millis(from.start_time),
        duration_ms: from.duration.as_ref().map(duration_ms),
        outcome: outcome(from.outcome),
        explanation: from.explanation,
        request: from.request.map(request),
        response: from.response.map(response),
    }
}

fn request(from: v1::RequestTranscript) -> Sent {
    Sent {
        line: format!("{} {}", from.method, from.url),
        headers: from.headers,
        body: from.body,
    }
}

fn response(from: v1::ResponseTranscript) -> Sent {
    Sent {
        line: from.status.to_string(),
        headers: from.headers,
        body: from.body,
    }
}

pub(in crate::client) fn test_report(from: v1::TestDestinationResponse) -> Answer {
    Answer::TestReport(Box::new(TestReport {
        attempt: Attempt {
            number: 1,
            start_ms: None,
            duration_ms: from.duration.as_ref().map(duration_ms),
            outcome: outcome(from.outcome),
            explanation: from.explanation,
            request: from.request.map(request),
            response: from.response.map(response),
        },
        delivery_id: from.delivery_id,
    }))
}

fn entity<'a>(dimensions: impl IntoIterator<Item = (&'a String, &'a String)>) -> Box<str> {
    let pairs: Vec<String> = dimensions
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(" ").into_boxed_str()
}

/// One row an occurrence.
fn event_rows(from: v1::Event) -> Vec<EventRow> {
    let entity = entity(&from.dimensions);
    let name = from.name;
    let row = |occurrence: v1::Occurrence| EventRow {
        id: occurrence.id.into_boxed_str(),
        name: name.as_str().into(),
        entity: entity.clone(),
        summary: occurrence.summary.into_boxed_str(),
        severity: severity(occurrence.severity),
        status: status(occurrence.status),
        acknowledged: occurrence.acknowledged.unwrap_or_default(),
        last_seen_ms: occurrence.last_seen,
        count: occurrence.count.unwrap_or_default(),
    };
    from.occurrences.into_iter().map(row).collect()
}

pub(in crate::client) fn event_page(from: v1::SearchEventsResponse) -> Page<EventRow> {
    let info = from.page_info.unwrap_or_default();
    Page {
        rows: from.results.into_iter().flat_map(event_rows).collect(),
        next: if info.has_next.unwrap_or_default() {
            info.end_cursor
        } else {
            String::new()
        },
        total: info.total_count,
    }
}

pub(in crate::client) fn watched(
    events: Vec<v1::Event>,
    left: Vec<String>,
) -> (Vec<EventRow>, Vec<String>) {
    (events.into_iter().flat_map(event_rows).collect(), left)
}

pub(in crate::client) fn event_detail(from: v1::Event) -> EventDetail {
    let occurrence = from.occurrences.into_iter().next().unwrap_or_default();
    let reason = match v1::occurrence::CloseReason::try_from(occurrence.close_reason) {
        Ok(v1::occurrence::CloseReason::Sender) => "by its sender",
        Ok(v1::occurrence::CloseReason::Operator) => "by an operator",
        Ok(v1::occurrence::CloseReason::Aged) => "for lack of news",
        Ok(v1::occurrence::CloseReason::Unspecified) | Err(_) => "",
    };
    let annotation = |from: v1::Annotation| Annotation {
        id: from.annotation_id,
        text: from.annotation,
        author: from.author,
        update_ms: from.update_time,
    };
    let entry = |from: v1::HistoryEntry| HistoryEntry {
        time_ms: from.time,
        author: from.author,
        field: from.field,
        from: from.from,
        to: from.to,
    };
    EventDetail {
        id: from.id,
        name: from.name,
        kind: from.r#type,
        dimensions: from.dimensions,
        count: from.count.unwrap_or_default(),
        occurrence: OccurrenceDetail {
            id: occurrence.id,
            number: occurrence.number,
            severity: severity(occurrence.severity),
            status: status(occurrence.status),
            acknowledged: occurrence.acknowledged.unwrap_or_default(),
            summary: occurrence.summary,
            body: occurrence.body,
            metadata: occurrence.metadata_fields.map_or(Value::Null, structure),
            start_ms: occurrence.start_time,
            last_seen_ms: occurrence.last_seen,
            close_ms: occurrence.close_time,
            close_reason: reason,
            count: occurrence.count.unwrap_or_default(),
            annotations: occurrence.annotations.into_iter().map(annotation).collect(),
            history: occurrence.history.into_iter().map(entry).collect(),
        },
    }
}

pub(in crate::client) fn explanation(from: v1::ExplainEventResponse) -> Explanation {
    Explanation {
        occurrence_id: from.occurrence_id,
        rules: from.rules.into_iter().map(rule_explanation).collect(),
    }
}

fn rule_explanation(from: v1::RuleExplanation) -> RuleExplanation {
    let trigger = |from: v1::TriggerExplanation| TriggerExplanation {
        trigger_name: from.trigger_name,
        matched: from.matched.unwrap_or_default(),
        clause: from.clause.map(clause_explanation),
    };
    let gate = |from: v1::Gate| GateVerdict {
        name: from.name,
        passed: from.passed.unwrap_or_default(),
        detail: from.detail,
    };
    let delivery =
        |from: v1::ExplainedDelivery| (from.id, from.destination_name, from.state.to_lowercase());
    RuleExplanation {
        rule_name: from.rule_name,
        notified: from.notified.unwrap_or_default(),
        reason: from.reason,
        triggers: from.triggers.into_iter().map(trigger).collect(),
        gates: from.gates.into_iter().map(gate).collect(),
        deliveries: from.deliveries.into_iter().map(delivery).collect(),
    }
}

fn clause_explanation(from: v1::ClauseExplanation) -> ClauseExplanation {
    ClauseExplanation {
        kind: from.r#type,
        field: from.field,
        expected: from.expected.map_or(Value::Null, value),
        actual: from.actual.map(value),
        result: from.result.unwrap_or_default(),
        clauses: from.clauses.into_iter().map(clause_explanation).collect(),
    }
}

/// What became of items that succeed or fail on their own.
pub(in crate::client) fn item_results(
    results: impl Iterator<Item = (Option<bool>, String)>,
) -> Answer {
    let mut failed = 0;
    let mut first_error = String::new();
    for (success, error) in results {
        if !success.unwrap_or_default() {
            failed += 1;
            if first_error.is_empty() {
                first_error = error;
            }
        }
    }
    Answer::Done {
        failed,
        first_error,
    }
}
