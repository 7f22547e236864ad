//! Failures, clients and the overview from the wire, and the scalars that all others share.

use std::error::Error as _;

use bellwether_proto::{cloud, v1};
use tonic_types::StatusExt;

use super::resource::health;
use crate::{
    client::Answer,
    data::{
        Caller, Client, DestinationTraffic, Failure, FailureKind, FieldError, Overview, Role,
        Severity, Status,
    },
    limits,
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
        // The wire's own words for it tell nobody whose limit it is.
        FailureKind::Invalid if is_too_large(status) => format!(
            "the answer is larger than the {} MiB that this console takes",
            limits::MESSAGE_BYTES / (1024 * 1024)
        ),
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

fn is_too_large(status: &tonic::Status) -> bool {
    status.code() == tonic::Code::OutOfRange
        && status.message().contains("message length too large")
}

pub(in crate::client) fn unreachable(error: &tonic::transport::Error) -> Failure {
    Failure::new(FailureKind::Unreachable, deepest(error))
}

/// The innermost cause, which is the one an operator can act on.
pub(super) fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
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

pub(super) fn timestamp(ms: i64) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: ms.div_euclid(1_000),
        // Below a thousand million.
        nanos: i32::try_from(ms.rem_euclid(1_000) * 1_000_000).unwrap_or_default(),
    }
}

pub(super) fn millis(time: Option<prost_types::Timestamp>) -> Option<i64> {
    time.map(|time| {
        time.seconds
            .saturating_mul(1_000)
            .saturating_add(i64::from(time.nanos) / 1_000_000)
    })
}

pub(super) fn severity(number: i32) -> Severity {
    match cloud::Severity::try_from(number) {
        Ok(cloud::Severity::Debug) => Severity::Debug,
        Ok(cloud::Severity::Info) => Severity::Info,
        Ok(cloud::Severity::Warning) => Severity::Warning,
        Ok(cloud::Severity::Error) => Severity::Error,
        Ok(cloud::Severity::Critical) => Severity::Critical,
        Ok(cloud::Severity::Default) | Err(_) => Severity::Unknown,
    }
}

pub(super) fn status(number: i32) -> Status {
    match cloud::Status::try_from(number) {
        Ok(cloud::Status::Open) => Status::Open,
        Ok(cloud::Status::Suppressed) => Status::Suppressed,
        Ok(cloud::Status::Closed) => Status::Closed,
        Ok(cloud::Status::Default) | Err(_) => Status::Unknown,
    }
}

pub(super) fn role(number: i32) -> Role {
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
