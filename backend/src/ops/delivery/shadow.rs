//! What a shadow rule would have sent.

use serde_json::Value;

use crate::{
    destination,
    domain::{Delivery, DeliveryState},
    message::Context,
    ops::rule::Installation,
};

/// The message that a shadow rule recorded, as it would have been sent, without secrets; none for a
/// delivery that is sent, or was.
pub fn would_send(delivery: &Delivery, installation: &Installation) -> Option<Value> {
    let around = Context {
        delivery_id: delivery.id,
        destination_name: &delivery.destination_name,
        tenant: &installation.tenant,
        links: &installation.links,
    };
    let is_shadow = delivery.state == DeliveryState::Shadowed;
    is_shadow.then(|| destination::render(&delivery.content, &around).shown)
}
