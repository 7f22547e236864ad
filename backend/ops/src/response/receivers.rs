//! The receivers of a response: all notified ones, those of the latest step, and those of the next
//! step.

use std::collections::BTreeSet;

use bellwether_proto::v1;

use super::number;
use crate::{
    decide::{AdvanceContext, PageTarget, Responders, advance},
    delivery::Deliveries,
    domain::{DeliveryState, Name, PagedReceiver, QueuedMethod, Response, ResponseState, Severity},
    error::Error,
    wire::time::timestamp,
};

#[derive(Debug, Default)]
pub(super) struct NextStep {
    pub(super) receivers: Vec<v1::ResponseReceiver>,
    /// Whether the response is then unanswered, because all rounds are over.
    pub(super) is_unanswered: bool,
}

pub(super) fn notified_receiver(paged: &PagedReceiver) -> v1::ResponseReceiver {
    let contact = paged.contact.as_ref();
    v1::ResponseReceiver {
        contact_name: receiver_text(contact.map(|it| &it.name)),
        schedule_name: receiver_text(paged.schedule.as_ref()),
        destination_name: paged.destination.1.to_string(),
        delivery_id: paged.delivery.to_string(),
        time: Some(timestamp(paged.at_ms)),
        round: number(paged.round),
        step: number(paged.step),
        method_id: contact.map_or_else(String::new, |it| it.method.clone()),
        ..v1::ResponseReceiver::default()
    }
}

/// Returns the receivers notified in the latest round and step, with the state of their messages.
pub(super) async fn current_receivers(
    deliveries: &Deliveries,
    response: &Response,
) -> Result<Vec<v1::ResponseReceiver>, Error> {
    let Some(latest) = response.paged.iter().filter_map(step_position).max() else {
        return Ok(Vec::new());
    };
    let paged = response.paged.iter();
    let paged: Vec<_> = paged
        .filter(|it| step_position(it) == Some(latest))
        .collect();
    let ids = paged.iter().map(|it| it.delivery).collect();
    let messages = deliveries.newest_retries(ids).await?;
    let mut reasons = deliveries.wait_reasons();
    let mut current = Vec::with_capacity(paged.len());
    for paged in paged {
        let mut receiver = notified_receiver(paged);
        if let Some(message) = messages.get(&paged.delivery) {
            let wait = reasons.wait_reason(message).await?;
            receiver.delivery_id = message.id.to_string();
            receiver.delivery_state = message.state.number().into();
            if message.state != DeliveryState::Delivered {
                receiver.last_error.clone_from(&message.last_error);
            }
            receiver.next_attempt_time = wait.next_ms.map(timestamp);
            receiver.wait_reason = wait.reason;
        }
        current.push(receiver);
    }
    Ok(current)
}

/// Returns the position of a step among all steps; the fallback follows all steps of its round.
/// `None` for receivers of an earlier response.
fn step_position(paged: &PagedReceiver) -> Option<(u32, u32)> {
    let step = paged.step.checked_sub(1).unwrap_or(u32::MAX);
    (paged.round > 0).then_some((paged.round, step))
}

/// Returns the receivers of the next step, by running it on a copy of the response.
pub(super) fn next_step(
    responders: &Responders,
    (response, severity): (&Response, Severity),
    now_ms: i64,
) -> NextStep {
    let may_continue = matches!(response.state, ResponseState::Active | ResponseState::Held);
    let Some(next_ms) = response.next_ms.filter(|_| may_continue) else {
        return NextStep::default();
    };
    let next_ms = next_ms.max(now_ms);
    let mut copy = response.clone();
    let context = AdvanceContext {
        responders,
        severity,
        failed: &BTreeSet::new(),
        now_ms: next_ms,
    };
    let advanced = advance(&mut copy, &context);
    let before = (response.round, response.step);
    let is_new = |it: &PageTarget| it.step == 0 || (it.round, it.step) > before;
    let pages = advanced.pages.iter().filter(|it| is_new(it));
    let at_once = pages.map(|it| page_receiver(it, next_ms));
    let queued = copy.queued.iter();
    let queued = queued.filter(|it| (it.round, it.step) > before);
    let later = queued.filter_map(|it| delayed_receiver(responders, it));
    NextStep {
        receivers: at_once.chain(later).collect(),
        is_unanswered: copy.is_unanswered && !response.is_unanswered,
    }
}

fn page_receiver(page: &PageTarget, at_ms: i64) -> v1::ResponseReceiver {
    let contact = page.contact.as_ref();
    v1::ResponseReceiver {
        contact_name: receiver_text(contact.map(|it| &it.name)),
        schedule_name: receiver_text(page.schedule.as_ref()),
        destination_name: page.destination.to_string(),
        time: Some(timestamp(at_ms)),
        round: number(page.round),
        step: number(page.step),
        method_id: contact.map_or_else(String::new, |it| it.method.clone()),
        ..v1::ResponseReceiver::default()
    }
}

fn delayed_receiver(
    responders: &Responders,
    queued: &QueuedMethod,
) -> Option<v1::ResponseReceiver> {
    let contact = responders.contacts.get(&queued.contact)?;
    let mut methods = contact.methods.iter();
    let method = methods.find(|it| it.id == queued.method)?;
    Some(v1::ResponseReceiver {
        contact_name: contact.name.to_string(),
        schedule_name: receiver_text(queued.schedule.as_ref()),
        destination_name: method.destination.to_string(),
        time: Some(timestamp(queued.due_ms)),
        round: number(queued.round),
        step: number(queued.step),
        method_id: method.id.clone(),
        ..v1::ResponseReceiver::default()
    })
}

fn receiver_text(name: Option<&Name>) -> String {
    name.map(ToString::to_string).unwrap_or_default()
}
