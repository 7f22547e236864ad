//! Mail over a real SMTP session, from an event and from a test.

use bellwether_tests::{eventually::eventually, smtp::MailServer, world::World};
use serde_json::json;

use crate::samples;

#[tokio::test]
async fn event_is_sent_as_mail() {
    let server = MailServer::start().await;
    let world = World::with_settings(&format!(
        "[smtp]\nhost = \"127.0.0.1\"\nport = {}\nsecurity = \"none\"\n\
         from = \"Bellwether <bellwether@example.net>\"\n",
        server.port()
    ));
    let rest = world.rest();
    let destination = json!({"name": "duty", "type": {"email": {"to": "duty@example.net"}}});

    let tested = rest
        .post("/v1/notification/destinations:test", &destination)
        .await
        .ok();

    assert_eq!(tested["outcome"], "OUTCOME_DELIVERED", "{tested}");
    assert_eq!(server.mails().len(), 1);
    rest.post("/v1/notification/destinations", &destination)
        .await
        .ok();
    rest.post(
        "/v1/notification/triggers",
        &samples::trigger("disk", "disk"),
    )
    .await
    .ok();
    rest.post(
        "/v1/notification/rules",
        &samples::rule("disks", "disk", "duty", ""),
    )
    .await
    .ok();
    let event = samples::event("full", "db-1", "SEVERITY_CRITICAL", "the disk is <full>");
    rest.post("/v1/data-receiver/events", &samples::events(&[event]))
        .await
        .ok();

    let mail = eventually("the mail", async || server.mails().get(1).cloned()).await;
    assert_eq!(mail.from, "bellwether@example.net");
    assert_eq!(mail.to, ["duty@example.net"]);
    let subject = "Subject: [bellwether] critical: the disk is <full> (db-1";
    let mut lines = mail.data.lines();
    assert!(lines.any(|line| line.starts_with(subject)), "{}", mail.data);
    assert!(mail.data.contains("Message-ID: "), "{}", mail.data);
    assert!(
        mail.data.contains("text/plain") && mail.data.contains("text/html"),
        "{}",
        mail.data
    );
    assert!(mail.data.contains("db-1"), "{}", mail.data);
    assert!(mail.data.contains("&lt;full&gt;"), "{}", mail.data);
}

#[tokio::test]
async fn mail_test_without_a_server_explains_the_failure() {
    let world = World::start();
    let destination = json!({"name": "duty", "type": {"email": {"to": "duty@example.net"}}});
    let tested = world
        .rest()
        .post("/v1/notification/destinations:test", &destination)
        .await
        .ok();
    assert_ne!(tested["outcome"], "OUTCOME_DELIVERED");
    let explanation = tested["explanation"].as_str().expect("a sentence");
    assert!(explanation.contains("mail server"), "{explanation}");
}
