//! The events that the service reports about its destinations.

use crate::{
    delivery::dead_letters::DeadLetterSum,
    domain::{
        IncomingEvent, RecordId, Severity,
        destination::RejectedRecipient,
        own_event::{
            DEAD_LETTERS_GROWING, DELIVERY_POISON, DELIVERY_UNREADABLE, DESTINATION_FAILING,
            DESTINATION_PAUSED, RECIPIENTS_REFUSED,
        },
    },
    message::domain_json::time,
};

const SUMMARY_CHARACTERS_MAX: usize = 250;

pub(crate) fn paused_event(destination: &str, last_error: &str, now_ms: i64) -> IncomingEvent {
    let summary = format!("destination {destination} is paused; its messages are waiting");
    IncomingEvent {
        body: format!("{last_error}\nSaving the destination resumes it."),
        ..DESTINATION_PAUSED.opened([destination], Severity::Error, summary, now_ms)
    }
}

/// Creates the event that closes [`paused_event`].
pub(crate) fn resumed_event(destination: &str, now_ms: i64) -> IncomingEvent {
    let summary = format!("destination {destination} is resumed");
    DESTINATION_PAUSED.closed([destination], summary, now_ms)
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
    let severity = sum.most_severe.max(Severity::Error);
    IncomingEvent {
        body: format!(
            "Highest severity: {}. First: {first}. Last: {last}: {last_error}\nThey are stored as dead \
             letters and can be resent.",
            sum.most_severe.as_str()
        ),
        ..DEAD_LETTERS_GROWING.opened([destination], severity, summary, now_ms)
    }
}

/// Creates the event that closes [`dead_letters_event`].
pub(crate) fn no_dead_letters_event(destination: &str, now_ms: i64) -> IncomingEvent {
    let summary = format!("no message to {destination} became a dead letter in the last hour");
    DEAD_LETTERS_GROWING.closed([destination], summary, now_ms)
}

pub(crate) fn refused_recipients_event(
    destination: &str,
    refused: &[RejectedRecipient],
    now_ms: i64,
) -> IncomingEvent {
    if refused.is_empty() {
        let summary = format!("the mail server accepts every address of {destination}");
        return RECIPIENTS_REFUSED.closed([destination], summary, now_ms);
    }
    let addresses: Vec<_> = refused.iter().map(|it| it.address.as_str()).collect();
    let summary = format!(
        "the mail server rejects {} of {destination}",
        addresses.join(", ")
    );
    let summary: String = summary.chars().take(SUMMARY_CHARACTERS_MAX).collect();
    let lines: Vec<_> = refused
        .iter()
        .map(|it| format!("{}: {}", it.address, it.said))
        .collect();
    let severity = if refused.iter().any(|it| it.is_permanent) {
        Severity::Error
    } else {
        Severity::Warning
    };
    IncomingEvent {
        body: format!(
            "{}\nAddresses that are accepted get the mail; only those with a temporary rejection (4xx) are retried.",
            lines.join("\n")
        ),
        ..RECIPIENTS_REFUSED.opened([destination], severity, summary, now_ms)
    }
}

pub(crate) fn unreadable_event(
    delivery: RecordId,
    destination: &str,
    now_ms: i64,
) -> IncomingEvent {
    let summary = format!("a delivery to {destination} cannot be read and is skipped");
    IncomingEvent {
        body: format!(
            "The record of delivery {delivery} is damaged, so its message is not sent. Other \
             deliveries continue. The data folder may have more damage."
        ),
        ..DELIVERY_UNREADABLE.opened([destination], Severity::Critical, summary, now_ms)
    }
}

pub(crate) fn poison_event(delivery: RecordId, destination: &str, now_ms: i64) -> IncomingEvent {
    let summary = format!("a message to {destination} stopped the service twice and was given up");
    IncomingEvent {
        body: format!(
            "The service stopped during two attempts of delivery {delivery}, the second time \
             while its message was rendered. It is a dead letter now; other deliveries continue. \
             Check the templates of its rule and destination before you resend it."
        ),
        ..DELIVERY_POISON.opened([destination], Severity::Critical, summary, now_ms)
    }
}

/// Creates the events that close every open event about a deleted destination.
pub(crate) fn closing_events_on_delete(destination: &str, now_ms: i64) -> [IncomingEvent; 4] {
    [
        DESTINATION_PAUSED,
        DESTINATION_FAILING,
        RECIPIENTS_REFUSED,
        DEAD_LETTERS_GROWING,
    ]
    .map(|about| {
        let summary = format!("destination {destination} is deleted");
        about.closed([destination], summary, now_ms)
    })
}
