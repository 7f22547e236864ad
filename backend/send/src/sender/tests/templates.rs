//! Handling of templates that fail while a message is rendered.

use super::{Receiver, Reply, sending, webhook};
use crate::domain::{DestinationKind, Outcome, destination::Webhook};

#[tokio::test]
async fn failing_template_is_reported_and_message_still_sent() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let world = sending();
    let kind = DestinationKind::Webhook(Webhook {
        payload: "{{event.summary}}".into(),
        ..webhook(receiver.url("/"))
    });
    let report = world.send(&kind).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    let explanation = &report.verdict.explanation;
    assert!(explanation.contains("not JSON"), "{explanation}");
    assert_eq!(receiver.count(), 1);
}
