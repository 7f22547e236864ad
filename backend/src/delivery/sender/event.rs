//! Event destinations: a message that becomes a new event of this service.

use std::{collections::BTreeMap, fmt::Debug};

use async_trait::async_trait;
use serde_json::json;

use crate::{
    delivery::{
        transcript::{BODY_BYTES_MAX, EXPLANATION_BYTES_MAX, Masker},
        verdict::{Advice, Verdict},
    },
    domain::{
        IncomingEvent, RecordId, Severity, Status, Transcript,
        delivery::{Request, Response},
    },
    error::Error,
    ops::intake::Intake,
};

use super::mission::Ending;

/// Takes in events that this service makes itself.
#[async_trait]
pub trait EventSink: Debug + Send + Sync + 'static {
    /// Takes in an event that the given rules led to, oldest first; returns once it is on disk.
    ///
    /// # Errors
    /// Why it was not taken in.
    async fn put(&self, event: IncomingEvent, chain: Vec<RecordId>) -> Result<(), Error>;

    /// Takes in an event about this service itself, without waiting; it may be lost.
    fn report(&self, event: IncomingEvent);
}

#[async_trait]
impl EventSink for Intake {
    async fn put(&self, event: IncomingEvent, chain: Vec<RecordId>) -> Result<(), Error> {
        self.submit_internal(event, chain).await.map(drop)
    }

    fn report(&self, event: IncomingEvent) {
        Self::report(self, event, Vec::new());
    }
}

/// Puts the event in, unless the rule that asks for it already led to what it tells about.
pub(super) async fn send(
    sink: Option<&dyn EventSink>,
    event: IncomingEvent,
    chain: &[RecordId],
    rule: Option<RecordId>,
) -> Ending {
    if let Some(rule) = rule
        && chain.contains(&rule)
    {
        let verdict = Verdict::rejected(
            "no event was made: the rule already led to the event that it tells about",
            Advice::GiveUp,
        );
        return (verdict, Transcript::default());
    }
    let Some(sink) = sink else {
        let verdict = Verdict::unreachable("this service takes in no events of its own");
        return (verdict, Transcript::default());
    };
    let mut transcript = Transcript {
        request: Some(describe(&event)),
        response: None,
    };
    let chain = chain.iter().copied().chain(rule).collect();
    let id = event.id();
    let verdict = match sink.put(event, chain).await {
        Ok(()) => {
            transcript.response = Some(Response {
                status: 200,
                headers: BTreeMap::new(),
                body: json!({"eventId": id.to_string()}).to_string(),
            });
            Verdict::delivered(format!("taken in as event {id}"))
        }
        Err(error) => {
            let text = Masker::default().mask(&error.to_string(), EXPLANATION_BYTES_MAX);
            match error {
                Error::Invalid(_) => Verdict::rejected(text, Advice::FewMore),
                _ => Verdict::unreachable(text),
            }
        }
    };
    (verdict, transcript)
}

fn describe(event: &IncomingEvent) -> Request {
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
        body: Masker::default().mask(&body.to_string(), BODY_BYTES_MAX),
    }
}
