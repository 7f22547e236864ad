//! Certificates: an authority of one's own is trusted when it is named, and nothing wrong is.

use std::path::{Path, PathBuf};

use bellwether_tests::{
    providers::{
        StandIn,
        certificates::Authority,
        mail::{MailSecurity, StrictMailServer},
        pagerduty::PagerDuty,
        standard_webhooks::Verifier,
    },
    world::World,
};
use rustls::ServerConfig;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{email, pagerduty};

const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

/// An authority, and the file that holds its certificate.
fn authority() -> (Authority, TempDir, PathBuf) {
    let authority = Authority::new("ours");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ca.pem");
    authority.write(&file);
    (authority, folder, file)
}

async fn test(world: &World, kind: Value) -> (Value, String) {
    let destination = json!({"name": "place", "type": kind});
    let path = "/v1/notification/destinations:test";
    let tested = world.rest().post(path, &destination).await.ok();
    let explanation = tested["explanation"].as_str().expect("a sentence");
    (tested["outcome"].clone(), explanation.to_owned())
}

async fn webhook(tls: ServerConfig) -> (StandIn, Value) {
    let secrets = vec![SECRET.to_owned()];
    let receiver = StandIn::start_tls(Verifier { secrets }, tls).await;
    let kind = json!({"webhook": {"url": receiver.url("/hook"), "signingSecret": SECRET}});
    (receiver, kind)
}

/// Certificates that are wrong, and what is said about them.
fn wrong(authority: &Authority) -> [(ServerConfig, &'static str); 4] {
    [
        (
            authority.server("elsewhere.example"),
            "the server's certificate is for another host name: elsewhere.example",
        ),
        (
            authority.expired_server("localhost"),
            "the server's certificate has expired",
        ),
        (
            Authority::new("a stranger's").server("localhost"),
            "from an authority that is not trusted here; `egress.ca_file` can add it",
        ),
        (
            Authority::new("ours").server("localhost"),
            "from an authority that is not trusted here; `egress.ca_file` can add it",
        ),
    ]
}

#[tokio::test]
async fn webhooks_and_providers_with_a_certificate_of_our_own_are_reached() {
    let (authority, _folder, file) = authority();
    let (receiver, kind) = webhook(authority.server("localhost")).await;
    let routing_key = pagerduty::ROUTING_KEY.to_owned();
    let pagerduty =
        StandIn::start_tls(PagerDuty { routing_key }, authority.server("localhost")).await;
    let settings = format!("[providers]\npagerduty = {:?}\n", pagerduty.url(""));

    let world = World::with_authorities(&settings, &file);
    let (outcome, explanation) = test(&world, kind.clone()).await;
    assert_eq!(outcome, "OUTCOME_DELIVERED", "{explanation}");
    assert_eq!(receiver.taken().len(), 1);
    let alert = json!({"pagerduty": {"routingKey": pagerduty::ROUTING_KEY}});
    let (outcome, explanation) = test(&world, alert).await;
    assert_eq!(outcome, "OUTCOME_DELIVERED", "{explanation}");

    let world = World::with_settings(&settings);
    let (outcome, explanation) = test(&world, kind).await;
    assert_eq!(outcome, "OUTCOME_UNREACHABLE", "{explanation}");
    assert!(explanation.contains("`egress.ca_file`"), "{explanation}");
    assert_eq!(receiver.requests(), 1, "nothing is sent to a stranger");
}

#[tokio::test]
async fn a_webhook_with_a_wrong_certificate_is_sent_nothing() {
    let (authority, _folder, file) = authority();
    let world = World::with_authorities("", &file);
    for (tls, says) in wrong(&authority) {
        let (receiver, kind) = webhook(tls).await;
        let (outcome, explanation) = test(&world, kind).await;
        assert_eq!(outcome, "OUTCOME_UNREACHABLE", "{explanation}");
        assert!(explanation.contains(says), "{explanation}");
        assert_eq!(receiver.requests(), 0);
    }
}

#[tokio::test]
async fn a_mail_server_with_a_wrong_certificate_is_given_nothing() {
    let (authority, _folder, file) = authority();
    for (tls, says) in wrong(&authority) {
        for security in [
            MailSecurity::StartTls(tls.clone()),
            MailSecurity::Tls(tls.clone()),
        ] {
            is_not_given_a_mail(security, says, &file).await;
        }
    }
}

async fn is_not_given_a_mail(security: MailSecurity, says: &str, file: &Path) {
    let server = StrictMailServer::start(email::rules(security, "PLAIN")).await;
    let world = World::with_authorities(&email::settings(&server), file);
    let kind = json!({"email": {"to": "duty@example.net"}});
    let (outcome, explanation) = test(&world, kind).await;
    assert_eq!(outcome, "OUTCOME_UNREACHABLE", "{explanation}");
    assert!(explanation.contains(says), "{explanation}");
    assert!(server.mails().is_empty());
}

#[tokio::test]
async fn a_mail_server_that_cannot_secure_the_conversation_is_given_nothing() {
    let server = StrictMailServer::start(email::rules(MailSecurity::None, "PLAIN")).await;
    let settings = email::settings(&server).replace("\"none\"", "\"starttls\"");
    let world = World::with_settings(&settings);
    let (outcome, explanation) = test(&world, json!({"email": {"to": "duty@example.net"}})).await;
    assert_eq!(outcome, "OUTCOME_UNREACHABLE", "{explanation}");
    assert!(
        explanation.contains("does not offer STARTTLS"),
        "{explanation}"
    );
    assert!(server.mails().is_empty());
}
