//! Conversion of deliveries, attempts and the filters of their list.

use bellwether_proto::{cloud, v1};
use prost_types::Timestamp;

use super::{
    incoming::event_from_wire,
    time::{duration, timestamp},
    to_i32,
};
use crate::{
    domain::{
        Attempt, Delivery, DigestId, EventId, GroupId, RecordId,
        delivery::{Request, Response},
        destination::KeptValue,
    },
    error::{Error, Violation},
    ops::{
        delivery::{DeliveryTally, Filter, WaitReason},
        destination::{CompletedTest, RenderedTest, SentTest, TestSubject},
        intake::check::check,
        page::PageRequest,
    },
    validate::Violations,
};

pub(super) use crate::domain::NO_EVENT_ID;

pub(super) const NO_DELIVERY_ID: &str = "is not a delivery id; expected 26 letters and digits";

/// Converts a delivery with its attempts; lists omit them.
#[expect(clippy::too_many_lines, reason = "one field after the other")]
pub fn delivery(delivery: Delivery, attempts: Vec<Attempt>, waiting: WaitReason) -> v1::Delivery {
    let content = delivery.content;
    let known_as = delivery
        .event
        .map(|_| content.displayed_occurrence().to_string());
    // The rule of a test is a placeholder, and so is its event unless the request named one.
    let rule_name = if delivery.test {
        String::new()
    } else {
        content.rule.name
    };
    let group_id = content.group.as_ref().map(|it| GroupId(it.id).to_string());
    let digest = content.digest.as_ref();
    let digest_id = digest.map(|it| DigestId(it.id).to_string());
    let folded_count = digest.map_or(0, |it| i32::try_from(it.count).unwrap_or(i32::MAX));
    let folded_into = delivery.folding.digest_id().map(|it| it.to_string());
    let occurrence_id = delivery.event.map(|_| content.occurrence.id().to_string());
    let about = delivery.event.map(|_| content.occurrence);
    let event_id = delivery.event.map(|it| it.to_string());
    let retry_ms = delivery
        .retried_as
        .and_then(|it| i64::try_from(it.time_ms()).ok());
    v1::Delivery {
        id: delivery.id.to_string(),
        rule_name,
        destination_name: delivery.destination_name,
        event_id: event_id.unwrap_or_default(),
        thread_id: digest_id
            .clone()
            .or_else(|| group_id.clone())
            .or(known_as)
            .unwrap_or_default(),
        group_id: group_id.unwrap_or_default(),
        occurrence_id: occurrence_id.unwrap_or_default(),
        state: delivery.state.number().into(),
        test: Some(delivery.test),
        attempts: attempts.into_iter().map(attempt).collect(),
        next_attempt_time: waiting.next_ms.map(timestamp),
        wait_reason: waiting.reason,
        wait_code: waiting.code.into(),
        ahead_count: waiting.ahead.map(to_i32),
        create_time: Some(timestamp(delivery.create_ms)),
        end_time: delivery.end_ms.map(timestamp),
        attempt_count: Some(delivery.attempts.try_into().unwrap_or(i32::MAX)),
        last_error: delivery.last_error,
        retry_of: delivery
            .retry_of
            .map(|id| id.to_string())
            .unwrap_or_default(),
        retried_as: delivery
            .retried_as
            .map(|id| id.to_string())
            .unwrap_or_default(),
        retry_time: retry_ms.map(timestamp),
        clear: Some(content.clear),
        rendered: None,
        contact_name: content
            .contact
            .map_or_else(String::new, |it| it.name.to_string()),
        is_digest: Some(digest_id.is_some()),
        folded_into: folded_into.unwrap_or_default(),
        folded_count,
        trigger_name: content
            .trigger
            .map(|trigger| trigger.name.to_string())
            .unwrap_or_default(),
        severity: about.as_ref().map_or(0, |it| it.severity as i32),
        event_name: about
            .as_ref()
            .map_or_else(String::new, |it| it.name.clone()),
        kept: delivery.kept.values.into_iter().map(kept_value).collect(),
        dimensions: about.map(|it| it.dimensions).unwrap_or_default(),
    }
}

fn kept_value(kept: KeptValue) -> (String, String) {
    let text = if kept.is_secret {
        kept.text.to_string()
    } else {
        kept.text.reveal().to_owned()
    };
    (kept.name, text)
}

pub fn counts(tally: DeliveryTally) -> v1::DeliveryCounts {
    v1::DeliveryCounts {
        waiting_count: Some(to_i32(tally.waiting)),
        delivered_count: Some(to_i32(tally.delivered)),
        dead_count: Some(to_i32(tally.dead)),
        resent_count: Some(to_i32(tally.resent)),
        cancelled_count: Some(to_i32(tally.cancelled)),
        folded_count: Some(to_i32(tally.folded)),
        shadowed_count: Some(to_i32(tally.shadowed)),
        test_count: Some(to_i32(tally.tests)),
        is_complete: Some(tally.is_complete),
    }
}

fn attempt(attempt: Attempt) -> v1::Attempt {
    v1::Attempt {
        number: attempt.number.try_into().unwrap_or(i32::MAX),
        start_time: Some(timestamp(attempt.start_ms)),
        duration: attempt.duration.map(duration),
        outcome: attempt.outcome.map_or(0, |it| it as i32),
        explanation: attempt.explanation,
        request: attempt.transcript.request.map(request),
        response: attempt.transcript.response.map(response),
        reduced: attempt.is_reduced,
    }
}

/// Converts the subject of a destination test: a stored event, or else the event of the request, or
/// else a sample.
pub fn test_subject(
    event_id: &str,
    event: Option<cloud::Event>,
    now_ms: i64,
) -> Result<TestSubject, Error> {
    if !event_id.is_empty() {
        let event = EventId::parse(event_id);
        let event = event.ok_or_else(|| Error::invalid("eventId", NO_EVENT_ID))?;
        return Ok(TestSubject::Stored(event));
    }
    let Some(event) = event else {
        return Ok(TestSubject::Sample);
    };
    let within = |violations: Vec<Violation>| {
        let within = |violation: Violation| Violation {
            field: format!("event.{}", violation.field),
            ..violation
        };
        Error::Invalid(violations.into_iter().map(within).collect())
    };
    let event = event_from_wire(event, now_ms).map_err(within)?;
    match check(&event, now_ms) {
        violations if violations.is_empty() => Ok(TestSubject::Incoming(Box::new(event))),
        violations => Err(within(violations)),
    }
}

pub fn test_response(test: CompletedTest) -> v1::TestDestinationResponse {
    v1::TestDestinationResponse {
        lasting_effect: test.lasting_effect,
        closing: test.closing.map(|it| Box::new(sent_test(it))),
        ..sent_test(test.opening)
    }
}

fn sent_test(sent: SentTest) -> v1::TestDestinationResponse {
    let SentTest {
        delivery,
        attempt,
        times,
    } = sent;
    v1::TestDestinationResponse {
        lasting_effect: String::new(),
        closing: None,
        outcome: attempt.outcome.map_or(0, |it| it as i32),
        explanation: attempt.explanation,
        duration: attempt.duration.map(duration),
        request: attempt.transcript.request.map(request),
        response: attempt.transcript.response.map(response),
        delivery_id: delivery.id.to_string(),
        times: times.map(|times| v1::ExchangeTimes {
            resolve: times.resolve.map(duration),
            connect: times.connect.map(duration),
            tls: times.tls.map(duration),
            first_byte: Some(duration(times.first_byte)),
            total: Some(duration(times.total)),
        }),
    }
}

pub fn render_response(
    rendered: RenderedTest,
    route: Option<v1::EventRoute>,
) -> v1::RenderDestinationResponse {
    let bytes = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
    v1::RenderDestinationResponse {
        request: rendered.request.map(request),
        warnings: rendered.warnings,
        size_bytes: Some(bytes(rendered.size_bytes)),
        limit_bytes: rendered.limit_bytes.map(bytes),
        lasting_effect: rendered.lasting_effect,
        route,
    }
}

pub fn request(request: Request) -> v1::RequestTranscript {
    v1::RequestTranscript {
        method: request.method,
        url: request.url,
        headers: request.headers,
        body: request.body,
    }
}

pub fn response(response: Response) -> v1::ResponseTranscript {
    v1::ResponseTranscript {
        status: response.status.into(),
        headers: response.headers,
        body: response.body,
    }
}

pub fn id(text: &str) -> Result<RecordId, Error> {
    RecordId::parse(text).ok_or_else(|| Error::invalid("id", NO_DELIVERY_ID))
}

/// Converts a list request to a filter and a page request, without the filter text.
pub fn list(request: v1::ListDeliveriesRequest) -> Result<(Filter, PageRequest), Error> {
    let wire = v1::DeliveryFilter {
        states: request.states,
        rule_names: request.rule_names,
        destination_names: request.destination_names,
        event_id: request.event_id,
        start: request.start,
        end: request.end,
        folded_into: request.folded_into,
        filter: String::new(),
    };
    let mut violations = Violations::default();
    let filter = filter("", wire, &mut violations);
    violations.finish()?;
    Ok((
        filter,
        PageRequest::new(request.page_size, request.page_token),
    ))
}

/// Converts a filter without its text. Violations are added with `prefix` before the fields.
pub fn filter(prefix: &str, wire: v1::DeliveryFilter, violations: &mut Violations) -> Filter {
    use v1::delivery::State;
    let path = |field: &str| format!("{prefix}{field}");
    let expected = "PENDING, LEASED, RETRY, DELIVERED, DEAD, CANCELLED, FOLDED, SHADOWED";
    let state = |state: State| {
        let number = u8::try_from(state as i32).ok();
        number.filter(|_| state != State::Unspecified)
    };
    let mut states = violations.convert_each(&path("states"), &wire.states, expected, state);
    states.sort_unstable();
    states.dedup();
    violations.check_entries(&path("ruleNames"), wire.rule_names.len());
    violations.check_entries(&path("destinationNames"), wire.destination_names.len());
    let digest = RecordId::parse(&wire.folded_into);
    if digest.is_none() && !wire.folded_into.is_empty() {
        violations.add(path("foldedInto"), NO_DELIVERY_ID);
    }
    let event = violations.optional_event(&path("eventId"), &wire.event_id);
    let mut moment = |field: &str, at: Option<Timestamp>| {
        let at_ms = at.map(milliseconds)?;
        if at_ms.is_none() {
            violations.add(path(field), "is not a time between the years 1 and 9999");
        }
        at_ms
    };
    let start_ms = moment("start", wire.start);
    let end_ms = moment("end", wire.end);
    Filter {
        states,
        rule_names: wire.rule_names,
        destination_names: wire.destination_names,
        event,
        digest,
        start_ms,
        end_ms,
        condition: None,
    }
}

fn milliseconds(at: Timestamp) -> Option<i64> {
    let nanos = u32::try_from(at.nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000)?;
    at.seconds
        .checked_mul(1000)?
        .checked_add(i64::from(nanos / 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::RULE_NAMES_MAX;

    #[test]
    fn every_invalid_filter_is_listed() {
        let at = |seconds, nanos| Some(Timestamp { seconds, nanos });
        let request = v1::ListDeliveriesRequest {
            states: vec![5, 0, 99],
            rule_names: vec![String::new(); RULE_NAMES_MAX + 1],
            event_id: "short".into(),
            start: at(i64::MAX, 0),
            end: at(0, -1),
            ..v1::ListDeliveriesRequest::default()
        };
        let Err(Error::Invalid(violations)) = list(request) else {
            panic!("invalid filters were accepted");
        };
        let fields: Vec<_> = violations
            .iter()
            .map(|violation| violation.field.as_str())
            .collect();
        assert_eq!(
            fields,
            [
                "states[1]",
                "states[2]",
                "ruleNames",
                "eventId",
                "start",
                "end"
            ]
        );
    }

    #[test]
    fn valid_filters_are_converted() {
        let request = v1::ListDeliveriesRequest {
            states: vec![5, 1, 5],
            start: Some(timestamp(1_500)),
            page_size: 7,
            ..v1::ListDeliveriesRequest::default()
        };
        let (filter, page) = list(request).unwrap();
        assert_eq!((filter.states, filter.start_ms), (vec![1, 5], Some(1_500)));
        assert_eq!(page.size, 7);
    }
}
