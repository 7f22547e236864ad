//! Clean-up after a test.

use bellwether_proto::v1;
use serde_json::Value;

use super::send_write;
use crate::{
    client::{StatusChange, events},
    data::Status,
    model::{Model, write::Write},
};

/// Closes the event that a test created; confirming the test includes this.
pub(super) fn close_test_event(model: &mut Model, tested: &v1::TestDestinationResponse) {
    let is_event = tested
        .request
        .as_ref()
        .is_some_and(|it| it.method == "EVENT");
    let body = tested.response.as_ref().filter(|_| is_event);
    let body = body.and_then(|it| serde_json::from_str::<Value>(&it.body).ok());
    let Some(id) = body.as_ref().and_then(|it| it["eventId"].as_str()) else {
        return;
    };
    let closed = StatusChange::Status(Status::Closed);
    let call = events::set_status(&[id.to_owned()], &closed);
    let write = Box::new(Write::new("closed the test event"));
    send_write(model, call, write);
}
