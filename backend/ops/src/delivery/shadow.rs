//! Previews of messages that are not sent on their own, or not yet.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    domain::{Delivery, DeliveryState},
    error::Error,
    message::Context,
    rule::Installation,
    send as destination,
};

/// Renders the message of a shadow delivery, of a part of a digest, or of a pending digest, without
/// secrets; `None` for other deliveries.
pub async fn render_shadow_message(
    delivery: &Delivery,
    installation: &Installation,
) -> Result<Option<Value>, Error> {
    let is_shown = match delivery.state {
        DeliveryState::Shadowed | DeliveryState::Folded => true,
        DeliveryState::Pending { .. } => delivery.content.digest.is_some(),
        _ => false,
    };
    if !is_shown {
        return Ok(None);
    }
    let (delivery, ours) = (delivery.clone(), installation.clone());
    let settings = Arc::clone(&installation.settings.borrow());
    let rendered = installation
        .renderers
        .run(destination::RenderPurpose::Preview, move || {
            let around = Context {
                delivery_id: delivery.id,
                destination_name: &delivery.destination_name,
                tenant: &settings.tenant,
                links: &ours.links,
                snippets: &settings.templates,
                opening: None,
                kept: None,
            };
            destination::render(&delivery.content, &around).shown
        });
    rendered.await.map(Some)
}
