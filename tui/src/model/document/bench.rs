//! The test bench of a destination: the response of the selected test, and the request that it sent
//! or that the next one would send.

use std::collections::BTreeMap;

use bellwether_proto::v1::{ExchangeTimes, Outcome, TestDestinationResponse};

use crate::{
    data::span_ms,
    document::{Document, format_duration},
    model::{
        Model,
        form::{Comparison, Form, FormTest, RequestTab, curl_command},
    },
    theme::Token,
};

/// Number of differences listed when they are expanded.
const LISTED: usize = 12;

pub(super) fn write_request(into: &mut Document, form: &Form) {
    match &form.live.made {
        _ if form.bench.shown > 0 => {}
        Some(Err(_)) if !form.is_changed() => {
            let words = "The request appears here while the form is filled in.";
            into.text(Token::Dim, 0, words);
        }
        Some(Err(failure)) if failure.fields.is_empty() => into.failure(failure),
        Some(Err(failure)) => {
            for error in &failure.fields {
                let words = format!("{} {}", form.label_for_path(&error.path), error.message);
                into.text(Token::Warning, 0, &words);
            }
        }
        Some(Ok(made)) => {
            for warning in made.warnings() {
                into.text(Token::Warning, 0, &format!("! {warning}"));
            }
        }
        None => {}
    }
    let Some(request) = form.request() else {
        if form.live.made.is_none() {
            into.text(Token::Dim, 0, "reading…");
        }
        return;
    };
    match form.bench.tab {
        RequestTab::Body => {
            // For a mail, the headers contain the recipients and the subject.
            if !request.url.starts_with("http") {
                write_headers(into, &request.headers);
            }
            into.body(0, &request.body);
        }
        RequestTab::Headers => write_headers(into, &request.headers),
        RequestTab::Curl => match curl_command(request) {
            Some(command) => into.text(Token::Text, 0, &command),
            None => into.text(Token::Dim, 0, "not an HTTP request"),
        },
    }
}

pub(super) fn write_response_pane(into: &mut Document, model: &Model, form: &Form) {
    let bench = &form.bench;
    let (test, before) = bench.tests();
    let Some(test) = test else {
        let words = if bench.waiting.is_some() {
            "waiting for the response…".to_owned()
        } else {
            model.expand_keys("not tested yet; ‹form_test› sends a test message")
        };
        return into.text(Token::Dim, 0, &words);
    };
    if bench.shown == 0 && !form.is_test_current() && bench.waiting.is_none() {
        let words = model.expand_keys("changed since the test; ‹form_test› tests again");
        into.text(Token::Warning, 0, &words);
    }
    if let Some(cause) = test.likely_cause(form.type_word()) {
        into.text(Token::Warning, 0, &format!("→ {}", cause.words));
    }
    match &test.result {
        Err(failure) => into.failure(failure),
        Ok(found) => write_outcome(into, found),
    }
    if let Some(before) = before {
        let compared = test.compare(before);
        write_comparison(
            into,
            &compared,
            bench.current_number() - 1,
            bench.is_unfolded,
        );
    }
    if let Ok(found) = &test.result {
        write_response(into, found, bench.tab);
    }
}

fn write_outcome(into: &mut Document, found: &TestDestinationResponse) {
    // The explanation is omitted if the response is shown and says the same.
    let is_delivered = found.outcome() == Outcome::Delivered;
    let response = found.response.as_ref().filter(|it| !it.body.is_empty());
    let is_shown = response.is_some_and(|it| is_delivered || !(200..300).contains(&it.status));
    if !found.explanation.is_empty() && !is_shown {
        into.text(found.outcome().into(), 0, &found.explanation);
    }
    let times = found.times.as_ref().map(format_times).unwrap_or_default();
    if !times.is_empty() {
        into.text(Token::Dim, 0, &times);
    }
}

/// Formats the times in one line. The total is omitted, because the title contains it. If all times
/// are in milliseconds, the unit follows the last one.
fn format_times(times: &ExchangeTimes) -> String {
    let parts = [
        ("name", &times.resolve),
        ("connect", &times.connect),
        ("TLS", &times.tls),
        ("first byte", &times.first_byte),
    ];
    let parts = parts.into_iter();
    let parts: Vec<(&str, String)> = parts
        .filter_map(|(name, span)| Some((name, format_duration(span_ms(span.as_ref()?)))))
        .collect();
    let is_short = parts.iter().all(|(_, took)| took.ends_with(" ms"));
    let last = parts.len().saturating_sub(1);
    let words = parts.iter().enumerate().map(|(at, (name, took))| {
        let took = took
            .strip_suffix(" ms")
            .filter(|_| is_short && at < last)
            .unwrap_or(took);
        format!("{name} {took}")
    });
    words.collect::<Vec<_>>().join(" · ")
}

fn write_comparison(into: &mut Document, compared: &Comparison, before: usize, is_unfolded: bool) {
    let sign = match compared.request.is_empty() {
        true => "=",
        false if is_unfolded => "▾",
        false => "▸",
    };
    let words = format!("{sign} {}", compared.summary(before));
    into.text(Token::Info, 0, &words);
    if !is_unfolded {
        return;
    }
    for difference in compared.request.iter().take(LISTED) {
        into.text(Token::Dim, 2, &difference.part);
        for (token, sign, value) in [
            (Token::Bad, '-', &difference.was),
            (Token::Good, '+', &difference.is),
        ] {
            if !value.is_empty() {
                into.text(token, 2, &format!("{sign} {value}"));
            }
        }
    }
    let more = compared.request.len().saturating_sub(LISTED);
    if more > 0 {
        into.text(Token::Dim, 2, &format!("and {more} more"));
    }
}

fn write_headers(into: &mut Document, headers: &BTreeMap<String, String>) {
    for (name, value) in headers {
        into.text(Token::Dim, 0, &format!("{name}: {value}"));
    }
}

fn write_response(into: &mut Document, found: &TestDestinationResponse, tab: RequestTab) {
    let Some(response) = &found.response else {
        return;
    };
    if tab == RequestTab::Headers {
        write_headers(into, &response.headers);
    }
    if !response.body.is_empty() {
        into.body(0, &response.body);
    }
}

pub(crate) fn format_verdict(form: &Form) -> String {
    let (test, before) = form.bench.tests();
    match test {
        _ if form.bench.waiting.is_some() => "… testing".to_owned(),
        Some(test) => FormTest::verdict_compared_to(test, before),
        None => String::new(),
    }
}
