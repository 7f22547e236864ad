//! Tests of ServiceNow with a test server that issues and refuses tokens.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;

use super::{CANARY, send_with, sending};
use crate::{
    domain::{DestinationKind, Outcome, Secret, destination::ServiceNow},
    sending::receiver::{Receiver, Reply},
};

#[tokio::test]
async fn servicenow_token_is_reused_until_rejected() {
    let good = Arc::new(Mutex::new("canary-token-1"));
    let now_good = Arc::clone(&good);
    let receiver = Receiver::start(move |request| {
        let good = *now_good.lock().unwrap();
        if request.path == "/oauth_token.do" {
            return Reply::json(&json!({"access_token": good, "expires_in": 1799}));
        }
        let knows = request.header("authorization") == format!("Bearer {good}");
        Reply::status(if knows { 201 } else { 401 })
    })
    .await;
    let world = sending();
    let sender = world.sender();
    let kind = DestinationKind::ServiceNow(ServiceNow {
        instance_url: receiver.url("/"),
        client_id: "bellwether".into(),
        client_secret: Secret::new(CANARY),
        token_url: String::new(),
        refresh_token: Secret::default(),
    });
    let paths = || {
        let all = receiver.received_requests();
        all.iter()
            .map(|request| request.path.clone())
            .collect::<Vec<_>>()
            .join(" ")
    };
    for _ in 0..2 {
        let report = send_with(&sender, &kind).await;
        assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    }
    let (token, record) = ("/oauth_token.do", "/api/now/table/em_event");
    assert_eq!(paths(), format!("{token} {record} {record}"));
    let form = receiver.received_requests()[0].body.clone();
    assert_eq!(
        form,
        "grant_type=client_credentials&client_id=bellwether&client_secret=canary-S3cret%2F%2Bx"
    );
    *good.lock().unwrap() = "canary-token-2";
    let report = send_with(&sender, &kind).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    assert_eq!(
        paths(),
        format!("{token} {record} {record} {record} {token} {record}")
    );
    world.clock.advance(Duration::from_secs(1800));
    send_with(&sender, &kind).await;
    assert!(
        paths().ends_with(&format!("{token} {record}")),
        "an expired token is renewed"
    );
}
