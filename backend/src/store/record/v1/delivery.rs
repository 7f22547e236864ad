//! Deliveries and attempts.

use std::{collections::BTreeMap, time::Duration};

use super::{
    destination::{DestinationKindV1, Secrets},
    digest::DigestContentV1,
    group::GroupContentV1,
    occurrence::{OccurrenceV1, ThreadV1, record_id},
    rule::{names, texts},
    trigger::TriggerV1,
};
use crate::domain::{
    Attempt, Content, Delivery, DeliveryState, EventId, Folding, Outcome, RecordId,
    TemplateLanguage, Transcript,
    delivery::{Recipients, Request, Response, RuleContent},
};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DeliveryV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "2")]
    rule: Option<Vec<u8>>,
    #[prost(bytes = "vec", tag = "3")]
    destination: Vec<u8>,
    #[prost(string, tag = "4")]
    destination_name: String,
    #[prost(bytes = "vec", optional, tag = "5")]
    event: Option<Vec<u8>>,
    #[prost(enumeration = "StateV1", tag = "6")]
    state: i32,
    #[prost(int64, tag = "7")]
    due_ms: i64,
    #[prost(bool, tag = "8")]
    test: bool,
    #[prost(uint32, tag = "9")]
    attempts: u32,
    #[prost(string, tag = "10")]
    last_error: String,
    #[prost(int64, tag = "11")]
    create_ms: i64,
    #[prost(int64, optional, tag = "12")]
    end_ms: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "13")]
    retry_of: Option<Vec<u8>>,
    #[prost(message, optional, tag = "14")]
    content: Option<ContentV1>,
    #[prost(bytes = "vec", optional, tag = "15")]
    retried_as: Option<Vec<u8>>,
    /// Whether it is sent separately, whatever the budget.
    #[prost(bool, tag = "16")]
    alone: bool,
    /// The digest that includes it.
    #[prost(bytes = "vec", optional, tag = "17")]
    folded_into: Option<Vec<u8>>,
    /// The first of those that it sends again.
    #[prost(bytes = "vec", optional, tag = "18")]
    origin: Option<Vec<u8>>,
    /// The addresses of a mail that have it.
    #[prost(string, repeated, tag = "19")]
    reached: Vec<String>,
    /// The addresses of a mail that were refused permanently.
    #[prost(string, repeated, tag = "20")]
    refused: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum StateV1 {
    Unknown = 0,
    Pending = 1,
    Leased = 2,
    Retry = 3,
    Delivered = 4,
    Dead = 5,
    Cancelled = 6,
    Folded = 7,
    Shadowed = 8,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ContentV1 {
    #[prost(bool, tag = "1")]
    clear: bool,
    #[prost(message, optional, tag = "2")]
    occurrence: Option<OccurrenceV1>,
    #[prost(message, optional, tag = "3")]
    rule: Option<RuleContentV1>,
    #[prost(message, optional, tag = "4")]
    trigger: Option<TriggerV1>,
    #[prost(message, optional, tag = "5")]
    destination_kind: Option<DestinationKindV1>,
    #[prost(message, optional, tag = "6")]
    group: Option<GroupContentV1>,
    #[prost(message, optional, tag = "7")]
    thread: Option<ThreadV1>,
    #[prost(message, optional, tag = "8")]
    digest: Option<DigestContentV1>,
    #[prost(int32, tag = "9")]
    template_language: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RuleContentV1 {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    message: String,
    #[prost(bool, tag = "4")]
    enabled: bool,
    #[prost(uint32, tag = "5")]
    repeat_interval_seconds: u32,
    #[prost(string, repeated, tag = "6")]
    trigger_names: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    destination_names: Vec<String>,
    #[prost(int32, tag = "8")]
    template_language: i32,
}

impl From<&Delivery> for DeliveryV1 {
    fn from(delivery: &Delivery) -> Self {
        let (state, due_ms) = match delivery.state {
            DeliveryState::Pending { due_ms } => (StateV1::Pending, due_ms),
            DeliveryState::Leased { until_ms } => (StateV1::Leased, until_ms),
            DeliveryState::Retry { due_ms } => (StateV1::Retry, due_ms),
            DeliveryState::Delivered => (StateV1::Delivered, 0),
            DeliveryState::Dead => (StateV1::Dead, 0),
            DeliveryState::Cancelled => (StateV1::Cancelled, 0),
            DeliveryState::Folded => (StateV1::Folded, 0),
            DeliveryState::Shadowed => (StateV1::Shadowed, 0),
        };
        let bytes = |id: RecordId| id.to_bytes().to_vec();
        Self {
            id: bytes(delivery.id),
            rule: delivery.rule.map(bytes),
            destination: bytes(delivery.destination),
            destination_name: delivery.destination_name.clone(),
            event: delivery.event.map(|event| event.to_bytes().into()),
            state: state.into(),
            due_ms,
            test: delivery.test,
            attempts: delivery.attempts,
            last_error: delivery.last_error.clone(),
            create_ms: delivery.create_ms,
            end_ms: delivery.end_ms,
            retry_of: delivery.retry_of.map(bytes),
            retried_as: delivery.retried_as.map(bytes),
            origin: delivery.origin.map(bytes),
            alone: delivery.folding == Folding::Alone,
            folded_into: delivery.folding.digest().map(bytes),
            reached: delivery.recipients.reached.clone(),
            refused: delivery.recipients.refused.clone(),
            content: Some((&delivery.content).into()),
        }
    }
}

impl DeliveryV1 {
    pub(crate) fn into_delivery(self) -> Option<Delivery> {
        let due_ms = self.due_ms;
        let state = match StateV1::try_from(self.state).ok()? {
            StateV1::Unknown => return None,
            StateV1::Pending => DeliveryState::Pending { due_ms },
            StateV1::Leased => DeliveryState::Leased { until_ms: due_ms },
            StateV1::Retry => DeliveryState::Retry { due_ms },
            StateV1::Delivered => DeliveryState::Delivered,
            StateV1::Dead => DeliveryState::Dead,
            StateV1::Cancelled => DeliveryState::Cancelled,
            StateV1::Folded => DeliveryState::Folded,
            StateV1::Shadowed => DeliveryState::Shadowed,
        };
        let event = match self.event {
            None => None,
            Some(bytes) => Some(EventId::from_bytes(bytes.try_into().ok()?)),
        };
        let optional = |bytes: Option<Vec<u8>>| match bytes {
            None => Some(None),
            Some(bytes) => record_id(bytes).map(Some),
        };
        Some(Delivery {
            id: record_id(self.id)?,
            rule: optional(self.rule)?,
            destination: record_id(self.destination)?,
            destination_name: self.destination_name,
            event,
            state,
            test: self.test,
            attempts: self.attempts,
            last_error: self.last_error,
            create_ms: self.create_ms,
            end_ms: self.end_ms,
            retry_of: optional(self.retry_of)?,
            retried_as: optional(self.retried_as)?,
            origin: optional(self.origin)?,
            folding: match optional(self.folded_into)? {
                Some(digest) => Folding::Into(digest),
                None if self.alone => Folding::Alone,
                None => Folding::Open,
            },
            recipients: Recipients {
                reached: self.reached,
                refused: self.refused,
            },
            content: self.content?.into_content()?,
        })
    }
}

impl From<&Content> for ContentV1 {
    fn from(content: &Content) -> Self {
        let kind = DestinationKindV1::new(&content.destination_kind, Secrets::LeftOut);
        Self {
            clear: content.clear,
            occurrence: Some((&content.occurrence).into()),
            rule: Some((&content.rule).into()),
            trigger: content.trigger.as_ref().map(TriggerV1::from),
            destination_kind: Some(kind),
            group: content.group.as_ref().map(GroupContentV1::from),
            thread: content.thread.map(ThreadV1::from),
            digest: content.digest.as_ref().map(DigestContentV1::from),
            template_language: content.template_language.number(),
        }
    }
}

impl ContentV1 {
    fn into_content(self) -> Option<Content> {
        let trigger = match self.trigger {
            None => None,
            Some(trigger) => Some(trigger.into_trigger()?),
        };
        Some(Content {
            clear: self.clear,
            occurrence: self.occurrence?.into_occurrence()?,
            rule: self.rule?.into_content()?,
            trigger,
            destination_kind: self.destination_kind?.into_kind(Secrets::LeftOut)?,
            template_language: TemplateLanguage::of_number(self.template_language)?,
            group: match self.group {
                None => None,
                Some(group) => Some(group.into_content()?),
            },
            thread: match self.thread {
                None => None,
                Some(thread) => Some(thread.into_thread()?),
            },
            digest: match self.digest {
                None => None,
                Some(digest) => Some(digest.into_content()?),
            },
        })
    }
}

impl From<&RuleContent> for RuleContentV1 {
    fn from(rule: &RuleContent) -> Self {
        Self {
            name: rule.name.clone(),
            description: rule.description.clone(),
            message: rule.message.clone(),
            template_language: rule.template_language.number(),
            enabled: rule.enabled,
            repeat_interval_seconds: rule.repeat_interval_seconds,
            trigger_names: texts(&rule.trigger_names),
            destination_names: texts(&rule.destination_names),
        }
    }
}

impl RuleContentV1 {
    fn into_content(self) -> Option<RuleContent> {
        Some(RuleContent {
            name: self.name,
            description: self.description,
            message: self.message,
            template_language: TemplateLanguage::of_number(self.template_language)?,
            enabled: self.enabled,
            repeat_interval_seconds: self.repeat_interval_seconds,
            trigger_names: names(&self.trigger_names)?,
            destination_names: names(&self.destination_names)?,
        })
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AttemptV1 {
    #[prost(bytes = "vec", tag = "1")]
    delivery: Vec<u8>,
    #[prost(uint32, tag = "2")]
    number: u32,
    #[prost(int64, tag = "3")]
    start_ms: i64,
    #[prost(uint64, optional, tag = "4")]
    duration_us: Option<u64>,
    #[prost(enumeration = "OutcomeV1", tag = "5")]
    outcome: i32,
    #[prost(string, tag = "6")]
    explanation: String,
    #[prost(message, optional, tag = "7")]
    request: Option<RequestV1>,
    #[prost(message, optional, tag = "8")]
    response: Option<ResponseV1>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum OutcomeV1 {
    UnderWay = 0,
    Delivered = 1,
    Rejected = 2,
    Unreachable = 3,
    Blocked = 4,
    Unknown = 5,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RequestV1 {
    #[prost(string, tag = "1")]
    method: String,
    #[prost(string, tag = "2")]
    url: String,
    #[prost(btree_map = "string, string", tag = "3")]
    headers: BTreeMap<String, String>,
    #[prost(string, tag = "4")]
    body: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResponseV1 {
    #[prost(uint32, tag = "1")]
    status: u32,
    #[prost(btree_map = "string, string", tag = "2")]
    headers: BTreeMap<String, String>,
    #[prost(string, tag = "3")]
    body: String,
}

impl From<&Attempt> for AttemptV1 {
    fn from(attempt: &Attempt) -> Self {
        let outcome = match attempt.outcome {
            None => OutcomeV1::UnderWay,
            Some(Outcome::Delivered) => OutcomeV1::Delivered,
            Some(Outcome::Rejected) => OutcomeV1::Rejected,
            Some(Outcome::Unreachable) => OutcomeV1::Unreachable,
            Some(Outcome::Blocked) => OutcomeV1::Blocked,
            Some(Outcome::Unknown) => OutcomeV1::Unknown,
        };
        let duration_us =
            |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self {
            delivery: attempt.delivery.to_bytes().into(),
            number: attempt.number,
            start_ms: attempt.start_ms,
            duration_us: attempt.duration.map(duration_us),
            outcome: outcome.into(),
            explanation: attempt.explanation.clone(),
            request: attempt
                .transcript
                .request
                .as_ref()
                .map(|request| RequestV1 {
                    method: request.method.clone(),
                    url: request.url.clone(),
                    headers: request.headers.clone(),
                    body: request.body.clone(),
                }),
            response: attempt
                .transcript
                .response
                .as_ref()
                .map(|response| ResponseV1 {
                    status: response.status.into(),
                    headers: response.headers.clone(),
                    body: response.body.clone(),
                }),
        }
    }
}

impl AttemptV1 {
    pub(crate) fn into_attempt(self) -> Option<Attempt> {
        let outcome = match OutcomeV1::try_from(self.outcome).ok()? {
            OutcomeV1::UnderWay => None,
            OutcomeV1::Delivered => Some(Outcome::Delivered),
            OutcomeV1::Rejected => Some(Outcome::Rejected),
            OutcomeV1::Unreachable => Some(Outcome::Unreachable),
            OutcomeV1::Blocked => Some(Outcome::Blocked),
            OutcomeV1::Unknown => Some(Outcome::Unknown),
        };
        let request = self.request.map(|request| Request {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: request.body,
        });
        let response = match self.response {
            None => None,
            Some(response) => Some(Response {
                status: response.status.try_into().ok()?,
                headers: response.headers,
                body: response.body,
            }),
        };
        Some(Attempt {
            delivery: record_id(self.delivery)?,
            number: self.number,
            start_ms: self.start_ms,
            duration: self.duration_us.map(Duration::from_micros),
            outcome,
            explanation: self.explanation,
            transcript: Transcript { request, response },
        })
    }
}
