//! Creates the event, unless its rule would cause a loop.

use std::collections::BTreeMap;

use serde_json::json;

use crate::{
    AttemptContext, AttemptOutcome,
    domain::{
        IncomingEvent, Severity, Status, Transcript,
        delivery::{Request, Response},
    },
    error::Error,
    http::SendFailure,
    trace,
    verdict::{Advice, Verdict},
};

/// Submits the event, unless its rule is already in the chain that led to the occurrence.
pub(super) async fn submit_event(
    attempt: &AttemptContext<'_>,
    event: IncomingEvent,
) -> AttemptOutcome {
    let rule = attempt.rule;
    let chain = &attempt.content.occurrence.chain;
    if let Some(rule) = rule
        && chain.contains(&rule)
    {
        let verdict = Verdict::new_rejected(
            "no event was created: this rule already caused the event of this message",
            Advice::GiveUp,
        );
        return (verdict, Transcript::default());
    }
    let Some(sink) = &attempt.outlets.sink else {
        let verdict = Verdict::new_unreachable("this service cannot create events");
        return (verdict, Transcript::default());
    };
    let mut transcript = Transcript {
        request: Some(describe_request(attempt, &event)),
        response: None,
    };
    if !attempt.sends {
        let verdict = SendFailure::OnlyRendered.verdict(&attempt.masker);
        return (verdict, transcript);
    }
    let chain = chain.iter().copied().chain(rule).collect();
    let id = event.id();
    let verdict = match trace::run_in_context(attempt.trace, sink.put(event, chain)).await {
        Ok(()) => {
            transcript.response = Some(Response {
                status: 200,
                headers: BTreeMap::new(),
                body: json!({"eventId": id.to_string()}).to_string(),
            });
            Verdict::new_delivered(format!("accepted as event {id}"))
        }
        Err(error) => {
            let text = attempt.mask_and_truncate(&error.to_string());
            match error {
                Error::Invalid(_) => Verdict::new_rejected(text, Advice::FewMore),
                _ => Verdict::new_unreachable(text),
            }
        }
    };
    (verdict, transcript)
}

fn describe_request(attempt: &AttemptContext<'_>, event: &IncomingEvent) -> Request {
    let body = json!({
        "name": event.name,
        "type": event.kind,
        "dimensions": event.dimensions,
        "summary": event.summary,
        "body": event.body,
        "severity": event.severity.map(Severity::enum_name),
        "status": event.status.map(Status::enum_name),
    });
    Request {
        method: "EVENT".into(),
        url: String::new(),
        headers: BTreeMap::new(),
        body: attempt.masker.mask_body(body.to_string().as_bytes()),
    }
}
