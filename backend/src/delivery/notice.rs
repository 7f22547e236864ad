//! The events that the service reports about its destinations.

use crate::{
    delivery::dead_letters::DeadLetterSum,
    domain::{
        IncomingEvent, RecordId, Severity, Status,
        destination::{RejectedRecipient, failing_event, pause_event},
    },
    message::domain_json::time,
};

const SUMMARY_CHARACTERS_MAX: usize = 250;

pub(crate) fn paused_event(destination: &str, last_error: &str, now_ms: i64) -> IncomingEvent {
    IncomingEvent {
        summary: format!("destination {destination} is paused; its messages are waiting"),
        body: format!("{last_error}\nSaving the destination resumes it."),
        severity: Some(Severity::Error),
        status: Some(Status::Open),
        ..pause_notice(destination, now_ms)
    }
}

/// Creates the event that closes [`paused_event`].
pub(crate) fn resumed_event(destination: &str, now_ms: i64) -> IncomingEvent {
    IncomingEvent {
        summary: format!("destination {destination} is resumed"),
        status: Some(Status::Closed),
        ..pause_notice(destination, now_ms)
    }
}

pub(crate) fn dead_letters_event(
    destination: &str,
    sum: DeadLetterSum,
    last_error: &str,
    now_ms: i64,
) -> IncomingEvent {
    let summary = match sum.count {
        1 => format!("1 message to {destination} became a dead letter"),
        count => format!("{count} messages to {destination} became dead letters"),
    };
    let (first, last) = (time(sum.first_ms), time(sum.last_ms));
    IncomingEvent {
        summary,
        body: format!(
            "Highest severity: {}. First: {first}. Last: {last}: {last_error}\nThey are stored as dead \
             letters and can be resent.",
            sum.most_severe.as_str()
        ),
        severity: Some(sum.most_severe.max(Severity::Error)),
        status: Some(Status::Open),
        ..dead_letters_notice(destination, now_ms)
    }
}

/// Creates the event that closes [`dead_letters_event`].
pub(crate) fn no_dead_letters_event(destination: &str, now_ms: i64) -> IncomingEvent {
    IncomingEvent {
        summary: format!("no message to {destination} became a dead letter in the last hour"),
        status: Some(Status::Closed),
        ..dead_letters_notice(destination, now_ms)
    }
}

pub(crate) fn refused_recipients_event(
    destination: &str,
    refused: &[RejectedRecipient],
    now_ms: i64,
) -> IncomingEvent {
    let about = notice_event(
        "recipients refused",
        "recipients-refused",
        destination,
        now_ms,
    );
    if refused.is_empty() {
        return IncomingEvent {
            summary: format!("the mail server accepts every address of {destination}"),
            status: Some(Status::Closed),
            ..about
        };
    }
    let addresses: Vec<_> = refused.iter().map(|it| it.address.as_str()).collect();
    let summary = format!(
        "the mail server rejects {} of {destination}",
        addresses.join(", ")
    );
    let lines: Vec<_> = refused
        .iter()
        .map(|it| format!("{}: {}", it.address, it.said))
        .collect();
    let is_permanent = refused.iter().any(|it| it.is_permanent);
    IncomingEvent {
        summary: summary.chars().take(SUMMARY_CHARACTERS_MAX).collect(),
        body: format!(
            "{}\nAddresses that are accepted get the mail; only those with a temporary rejection (4xx) are retried.",
            lines.join("\n")
        ),
        severity: Some(if is_permanent {
            Severity::Error
        } else {
            Severity::Warning
        }),
        status: Some(Status::Open),
        ..about
    }
}

pub(crate) fn unreadable_event(
    delivery: RecordId,
    destination: &str,
    now_ms: i64,
) -> IncomingEvent {
    IncomingEvent {
        summary: format!("a delivery to {destination} cannot be read and is skipped"),
        body: format!(
            "The record of delivery {delivery} is damaged, so its message is not sent. Other \
             deliveries continue. The data folder may have more damage."
        ),
        severity: Some(Severity::Critical),
        status: Some(Status::Open),
        ..notice_event(
            "stored delivery unreadable",
            "delivery-unreadable",
            destination,
            now_ms,
        )
    }
}

pub(crate) fn poison_event(delivery: RecordId, destination: &str, now_ms: i64) -> IncomingEvent {
    IncomingEvent {
        summary: format!("a message to {destination} stopped the service twice and was given up"),
        body: format!(
            "The service stopped during two attempts of delivery {delivery}, the second time \
             while its message was rendered. It is a dead letter now; other deliveries continue. \
             Check the templates of its rule and destination before you resend it."
        ),
        severity: Some(Severity::Critical),
        status: Some(Status::Open),
        ..notice_event(
            "message stopped the service",
            "delivery-poison",
            destination,
            now_ms,
        )
    }
}

/// Creates the events that close every open event about a deleted destination.
pub(crate) fn closing_events_on_delete(destination: &str, now_ms: i64) -> [IncomingEvent; 4] {
    [
        pause_notice(destination, now_ms),
        failure_notice(destination, now_ms),
        refused_recipients_event(destination, &[], now_ms),
        dead_letters_notice(destination, now_ms),
    ]
    .map(|event| IncomingEvent {
        summary: format!("destination {destination} is deleted"),
        status: Some(Status::Closed),
        ..event
    })
}

fn pause_notice(destination: &str, now_ms: i64) -> IncomingEvent {
    let (name, dimensions) = pause_event(destination);
    IncomingEvent {
        dimensions,
        ..notice_event(name, "destination-paused", destination, now_ms)
    }
}

fn failure_notice(destination: &str, now_ms: i64) -> IncomingEvent {
    let (name, dimensions) = failing_event(destination);
    IncomingEvent {
        dimensions,
        ..notice_event(name, "destination-failing", destination, now_ms)
    }
}

fn dead_letters_notice(destination: &str, now_ms: i64) -> IncomingEvent {
    notice_event(
        "dead letters growing",
        "dead-letters-growing",
        destination,
        now_ms,
    )
}

fn notice_event(name: &str, kind: &str, destination: &str, now_ms: i64) -> IncomingEvent {
    IncomingEvent::new_own_event(name, kind, [("destination", destination)], now_ms)
}
