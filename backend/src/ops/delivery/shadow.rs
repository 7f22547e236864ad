//! What is not sent by itself, or was not yet, as it would be.

use serde_json::Value;

use crate::{
    destination,
    domain::{Delivery, DeliveryState},
    message::Context,
    ops::rule::Installation,
};

/// The message that a shadow rule recorded, that a digest tells of, or that a digest is to be, without
/// secrets; none for any other delivery.
pub fn would_send(delivery: &Delivery, installation: &Installation) -> Option<Value> {
    let around = Context {
        delivery_id: delivery.id,
        destination_name: &delivery.destination_name,
        tenant: &installation.tenant,
        links: &installation.links,
    };
    let is_shown = match delivery.state {
        DeliveryState::Shadowed | DeliveryState::Folded => true,
        DeliveryState::Pending { .. } => delivery.content.digest.is_some(),
        _ => false,
    };
    is_shown.then(|| destination::render(&delivery.content, &around).shown)
}
