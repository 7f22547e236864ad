//! A delivery with its attempts, and what was said on the wire in each.

use super::{Document, Link, duration, label, span};
use crate::{
    data::{Attempt, Delivery, Outcome, Sent},
    model::{Model, page::Route},
    theme::Token,
};

pub(super) fn delivery(into: &mut Document, model: &Model, delivery: &Delivery) {
    into.line(vec![
        label("state"),
        span(delivery.state.into(), delivery.state.word()),
    ]);
    if delivery.test {
        into.field("what", Token::Text, "a test");
    } else if delivery.clear {
        into.field(
            "what",
            Token::Text,
            "tells that the occurrence changed or ended",
        );
    }
    let destination = delivery.destination_name.clone();
    into.link(
        "destination",
        &delivery.destination_name,
        Link::Go(Route::Destination(destination)),
    );
    if !delivery.rule_name.is_empty() {
        let link = Link::Go(Route::Rule(delivery.rule_name.clone()));
        into.link("rule", &delivery.rule_name, link);
    }
    if !delivery.trigger_name.is_empty() {
        let link = Link::Go(Route::Trigger(delivery.trigger_name.clone()));
        into.link("trigger", &delivery.trigger_name, link);
    }
    if !delivery.occurrence_id.is_empty() {
        let link = Link::Go(Route::Event(delivery.occurrence_id.clone()));
        into.link("event", &delivery.occurrence_id, link);
    }
    if !delivery.retry_of.is_empty() {
        let link = Link::Go(Route::Delivery(delivery.retry_of.clone()));
        into.link("sends again", &delivery.retry_of, link);
    }
    if !delivery.retried_as.is_empty() {
        let link = Link::Go(Route::Delivery(delivery.retried_as.clone()));
        into.link("sent again as", &delivery.retried_as, link);
    }
    let moments = [
        ("decided", delivery.create_ms),
        ("next attempt", delivery.next_attempt_ms),
        ("ended", delivery.end_ms),
    ];
    for (label, ms) in moments {
        if let Some(ms) = ms {
            into.field(label, Token::Text, &model.moment_in_full(ms));
        }
    }
    into.field("id", Token::Text, &delivery.id);
    if delivery.attempts.is_empty() {
        into.heading("Attempts");
        into.text(Token::Dim, 0, "none yet");
    }
    for one in delivery.attempts.iter().rev() {
        into.heading(&format!("Attempt {}", one.number));
        if let Some(start) = one.start_ms {
            into.field("began", Token::Text, &model.moment_in_full(start));
        }
        attempt(into, one);
    }
}

/// The verdict first, then the answer, which is short, then what was sent.
pub(super) fn attempt(into: &mut Document, attempt: &Attempt) {
    let mark = match attempt.outcome {
        Outcome::Delivered => "✓",
        Outcome::UnderWay => "…",
        Outcome::Unknown => "?",
        Outcome::Rejected | Outcome::Unreachable | Outcome::Blocked => "✗",
    };
    let took = attempt
        .duration_ms
        .map_or_else(String::new, |ms| format!(" in {}", duration(ms)));
    into.line(vec![
        label("verdict"),
        span(
            attempt.outcome.into(),
            &format!("{mark} {}", attempt.outcome.word().to_uppercase()),
        ),
        span(Token::Text, &took),
    ]);
    if !attempt.explanation.is_empty() {
        into.field("", Token::Text, &attempt.explanation);
    }
    sent(
        into,
        "Response",
        attempt.response.as_ref(),
        "nothing came back",
    );
    sent(
        into,
        "Request",
        attempt.request.as_ref(),
        "nothing was sent",
    );
}

fn sent(into: &mut Document, title: &str, sent: Option<&Sent>, nothing: &str) {
    into.heading(title);
    let Some(sent) = sent else {
        into.text(Token::Dim, 0, nothing);
        return;
    };
    let line = if title == "Response" {
        format!("status {}", sent.line)
    } else {
        sent.line.clone()
    };
    into.text(Token::Title, 0, &line);
    for (name, value) in &sent.headers {
        into.text(Token::Dim, 0, &format!("{name}: {value}"));
    }
    if !sent.body.is_empty() {
        into.blank();
        into.text(Token::Text, 0, &readable(&sent.body));
    }
}

/// JSON spread over lines; anything else as it is.
pub(super) fn readable(body: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(body) {
        Ok(value) if value.is_object() || value.is_array() => spread(body),
        _ => body.to_owned(),
    }
}

/// Valid JSON over several lines, everything in the order it was sent.
fn spread(json: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut escaped = false;
    for char in json.chars() {
        if quoted {
            out.push(char);
            quoted = escaped || char != '"';
            escaped = !escaped && char == '\\';
            continue;
        }
        let line = |out: &mut String, depth: usize| {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        };
        match char {
            '{' | '[' => {
                depth += 1;
                out.push(char);
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if out.trim_end().ends_with(['{', '[']) {
                    out.truncate(out.trim_end().len());
                } else {
                    line(&mut out, depth);
                }
                out.push(char);
            }
            ',' => {
                out.push(char);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            char if char.is_whitespace() => {}
            char => {
                quoted = char == '"';
                out.push(char);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_spread_in_the_order_it_was_sent() {
        let sent = r#"{"b": [1,2], "a":{"x\"{":"y, z"},"e":[]}"#;
        let shown = r#"{
  "b": [
    1,
    2
  ],
  "a": {
    "x\"{": "y, z"
  },
  "e": []
}"#;
        assert_eq!(readable(sent), shown);
        assert_eq!(readable("plain, text"), "plain, text");
    }
}
