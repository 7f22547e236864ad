//! Validation of events; no I/O.

use std::time::Duration;

use crate::{
    domain::{IncomingEvent, claims_own_event, drill::DRILL, has_own_source, value::json_bytes},
    error::Violation,
    limits::{
        EVENT_AGE_MAX, EVENT_AHEAD_MAX, EVENT_BODY_BYTES_MAX, EVENT_DIMENSION_BYTES_MAX,
        EVENT_DIMENSIONS_MAX, EVENT_METADATA_BYTES_MAX, EVENT_NAME_BYTES_MAX,
        EVENT_SUMMARY_BYTES_MAX,
    },
};

pub fn check(event: &IncomingEvent, now_ms: i64) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut violate = |field: &str, description: String| {
        violations.push(Violation::new(field, description));
    };
    check_name(&event.name, &mut violate);
    let texts = [
        ("name", event.name.len(), EVENT_NAME_BYTES_MAX),
        ("type", event.kind.len(), EVENT_NAME_BYTES_MAX),
        ("summary", event.summary.len(), EVENT_SUMMARY_BYTES_MAX),
        ("body", event.body.len(), EVENT_BODY_BYTES_MAX),
        (
            "metadataFields",
            json_bytes(&event.metadata),
            EVENT_METADATA_BYTES_MAX,
        ),
        (
            "dimensions",
            dimension_bytes(event),
            EVENT_DIMENSION_BYTES_MAX,
        ),
    ];
    for (field, bytes, bytes_max) in texts {
        // Name and type default to each other, so report the violation only once.
        let is_twice = field == "type" && event.kind == event.name;
        if bytes > bytes_max && !is_twice {
            violate(field, format!("is {bytes} bytes; the limit is {bytes_max}"));
        }
    }
    if event.dimensions.is_empty() {
        violate(
            "dimensions",
            "is required: at least one pair that identifies the entity".into(),
        );
    }
    if event.dimensions.len() > EVENT_DIMENSIONS_MAX {
        let pairs = event.dimensions.len();
        violate(
            "dimensions",
            format!("has {pairs} pairs; the limit is {EVENT_DIMENSIONS_MAX}"),
        );
    }
    check_keys(event, &mut violate);
    if event.dimensions.contains_key("name") {
        violate(
            "dimensions.name",
            "a dimension cannot be named `name`".into(),
        );
    }
    if event.timestamp_ms < now_ms.saturating_sub(to_millis(EVENT_AGE_MAX)) {
        violate("timestamp", "is more than 24 hours ago".into());
    }
    if event.timestamp_ms > now_ms.saturating_add(to_millis(EVENT_AHEAD_MAX)) {
        violate(
            "timestamp",
            "is more than 1 hour ahead; expected milliseconds since 1970".into(),
        );
    }
    violations
}

pub fn check_source(event: &IncomingEvent) -> Vec<Violation> {
    let claims = [
        ("dimensions", has_own_source(&event.dimensions)),
        ("metadataFields", claims_own_event(&event.metadata)),
    ];
    let claims = claims.into_iter().filter(|(_, is_claimed)| *is_claimed);
    let message =
        "`source` = `bellwether` is reserved for events of the service; use another source";
    claims
        .map(|(field, _)| Violation::new(field, message))
        .collect()
}

/// Like [`check_source`], and rejects the dimension of drills, which senders must not set.
pub fn check_sender(event: &IncomingEvent) -> Vec<Violation> {
    let mut violations = check_source(event);
    if event.dimensions.contains_key(DRILL) {
        let message = format!("`{DRILL}` is reserved for drills; use another key");
        violations.push(Violation::new("dimensions", message));
    }
    violations
}

fn check_name(name: &str, violate: &mut impl FnMut(&str, String)) {
    if name.is_empty() {
        violate("name", "is required unless `type` is set".into());
    } else if name.trim().is_empty() {
        violate("name", "is blank".into());
    } else if let Some(control) = first_control_character(name) {
        let message = format!("contains the control character {control:?}; remove it");
        violate("name", message);
    }
}

fn check_keys(event: &IncomingEvent, violate: &mut impl FnMut(&str, String)) {
    let message = event
        .dimensions
        .keys()
        .find_map(|key| match first_control_character(key) {
            _ if key.is_empty() => Some("has a pair with an empty key".to_owned()),
            Some(control) => Some(format!(
                "the key `{}` contains the control character {control:?}; remove it",
                key.escape_debug()
            )),
            None => None,
        });
    if let Some(message) = message {
        violate("dimensions", message);
    }
}

fn first_control_character(text: &str) -> Option<char> {
    text.chars().find(|it| it.is_control())
}

fn dimension_bytes(event: &IncomingEvent) -> usize {
    let pairs = event.dimensions.iter();
    pairs.map(|(key, value)| key.len() + value.len()).sum()
}

fn to_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::Value,
        samples::{START_MS, event},
    };

    type Change = fn(&mut IncomingEvent);

    const TABLE: &[(&str, Change)] = &[
        ("", |_| {}),
        ("", |it| it.timestamp_ms -= 24 * 3_600_000),
        ("timestamp", |it| it.timestamp_ms -= 24 * 3_600_000 + 1),
        ("", |it| it.timestamp_ms += 3_600_000),
        ("timestamp", |it| it.timestamp_ms += 3_600_001),
        ("timestamp", |it| it.timestamp_ms = i64::MAX),
        ("timestamp", |it| it.timestamp_ms = i64::MIN),
        ("name", |it| it.name.clear()),
        ("name", |it| {
            it.name = " \u{3000}\t".trim_end_matches('\t').into();
        }),
        ("name", |it| it.name = "disk\nfull".into()),
        ("name", |it| it.name = "disk\u{0}full".into()),
        ("", |it| it.name = " Festplatte voll ".into()),
        ("", |it| it.name = "x".repeat(256)),
        ("name", |it| it.name = "x".repeat(257)),
        ("type", |it| it.kind = "x".repeat(257)),
        ("summary", |it| it.summary = "x".repeat(1025)),
        ("", |it| it.body = "x".repeat(65_536)),
        ("body", |it| it.body = "x".repeat(65_537)),
        ("dimensions", |it| it.dimensions.clear()),
        ("dimensions", |it| {
            it.dimensions.insert(String::new(), "x".into());
        }),
        ("dimensions", |it| {
            it.dimensions.insert("ho\u{85}st".into(), "x".into());
            it.dimensions.insert("ho\tst".into(), "x".into());
        }),
        ("", |it| {
            it.dimensions.insert("host".into(), String::new());
        }),
        ("dimensions.name", |it| {
            it.dimensions.insert("name".into(), "x".into());
        }),
        ("", |it| {
            let more = (0..63).map(|at| (at.to_string(), String::new()));
            it.dimensions.extend(more);
        }),
        ("dimensions", |it| {
            let more = (0..64).map(|at| (at.to_string(), String::new()));
            it.dimensions.extend(more);
        }),
        ("dimensions", |it| {
            it.dimensions.insert("big".into(), "x".repeat(65_536));
        }),
        ("metadataFields", |it| {
            it.metadata
                .insert("big".into(), Value::Text("x".repeat(65_536)));
        }),
    ];

    #[test]
    fn refusal_names_the_invalid_field() {
        for (at, (field, change)) in TABLE.iter().enumerate() {
            let mut event = event("a");
            change(&mut event);
            let violations = check(&event, START_MS);
            let fields: Vec<_> = violations.iter().map(|it| it.field.as_str()).collect();
            let expected: Vec<_> = Some(*field)
                .into_iter()
                .filter(|it| !it.is_empty())
                .collect();
            assert_eq!(fields, expected, "row {at}");
        }
    }
}
