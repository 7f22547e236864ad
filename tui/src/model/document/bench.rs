//! The test bench of a destination: the request that would be sent, and the results of tests.

use bellwether_proto::v1::{Attempt, RequestTranscript, TestDestinationResponse};

use super::transcript;
use crate::{
    data::{Failure, Named},
    document::{Document, difference},
    model::{
        Model,
        form::{Form, FormTest, LivePreview},
    },
    theme::Token,
};

const LINES: usize = 12;

pub(super) fn request(into: &mut Document, form: &Form) {
    match &form.live.made {
        None => into.text(Token::Dim, 0, "reading…"),
        Some(Err(failure)) if failure.fields.is_empty() => into.failure(failure),
        Some(Err(failure)) => {
            for error in &failure.fields {
                let words = format!("{}: {}", error.path, error.message);
                into.text(Token::Warning, 0, &words);
            }
        }
        Some(Ok(LivePreview::Request(made))) => {
            for warning in &made.warnings {
                into.text(Token::Warning, 0, &format!("! {warning}"));
            }
            if let Some(request) = &made.request {
                transcript::request(into, request);
            }
        }
        Some(Ok(_)) => {}
    }
}

pub(super) fn response(into: &mut Document, model: &Model, form: &Form) {
    if form.bench.waiting.is_some() {
        into.text(Token::Info, 0, "… testing");
    }
    let (test, before) = form.bench.tests();
    let Some(test) = test else {
        if form.bench.waiting.is_none() {
            let words = model.expand_keys("not tested yet; ‹form_test› runs the test");
            into.text(Token::Dim, 0, &words);
        }
        return;
    };
    if let Some((_, words)) = form
        .test_summary(model.now_ms)
        .filter(|_| form.bench.shown > 0)
    {
        into.text(Token::Dim, 0, &words);
    }
    if let Some(lead) = test.likely_cause(form.type_word()) {
        into.text(Token::Warning, 0, &format!("→ {}", lead.words));
    }
    if let Some(before) = before {
        differences(into, before, test);
    }
    match &test.result {
        Err(failure) => into.failure(failure),
        Ok(found) => write_outcome(into, found),
    }
}

fn write_outcome(into: &mut Document, found: &TestDestinationResponse) {
    if let Some(times) = &found.times {
        transcript::times(into, times);
    }
    let attempt = Attempt {
        duration: found.duration,
        outcome: found.outcome,
        explanation: found.explanation.clone(),
        response: found.response.clone(),
        ..Attempt::default()
    };
    transcript::write_response(into, &attempt);
}

fn differences(into: &mut Document, before: &FormTest, test: &FormTest) {
    let [was, is] = [before, test].map(|test| status(&test.result));
    if was != is {
        into.field("changed", Token::Title, &format!("{was} → {is}"));
    }
    let [was, is] = [before, test].map(|test| text(&test.result));
    for (token, line) in difference(&was, &is, 0).into_iter().take(LINES) {
        into.text(token, 2, &line);
    }
}

fn status(result: &Result<TestDestinationResponse, Failure>) -> String {
    match result {
        Err(_) => "not tested".to_owned(),
        Ok(test) => match &test.response {
            Some(response) => response.status.to_string(),
            None => test.outcome().label().to_owned(),
        },
    }
}

const OWN_HEADERS: [&str; 5] = [
    "idempotency-key",
    "traceparent",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];

fn text(result: &Result<TestDestinationResponse, Failure>) -> String {
    let Ok(test) = result else {
        return String::new();
    };
    let request = test.request.clone().unwrap_or_default();
    let RequestTranscript {
        method,
        url,
        headers,
        body,
    } = request;
    let headers = headers.into_iter();
    let headers = headers.filter(|(name, _)| !OWN_HEADERS.contains(&name.as_str()));
    let headers: Vec<String> = headers
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let response = test.response.clone().unwrap_or_default();
    let headers = headers.join("\n");
    format!("{method} {url}\n{headers}\n{body}\n{}\n", response.body)
}
