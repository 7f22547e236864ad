//! Certificates: a private authority is trusted if configured, and invalid certificates are
//! rejected.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

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

const DESTINATIONS: &str = "/v1/notification/destinations";
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

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
async fn webhooks_and_providers_with_a_private_ca_are_reachable() {
    let (authority, _folder, file) = authority();
    let (receiver, kind) = webhook(authority.server("localhost")).await;
    let routing_key = pagerduty::ROUTING_KEY.to_owned();
    let pagerduty =
        StandIn::start_tls(PagerDuty { routing_key }, authority.server("localhost")).await;
    let settings = format!("[providers]\npagerduty = {:?}\n", pagerduty.url(""));

    let world = World::with_authorities(&settings, &file);
    let (outcome, explanation) = test(&world, kind.clone()).await;
    assert_eq!(outcome, "OUTCOME_DELIVERED", "{explanation}");
    assert_eq!(receiver.accepted().len(), 1);
    let alert = json!({"pagerduty": {"routingKey": pagerduty::ROUTING_KEY}});
    let (outcome, explanation) = test(&world, alert).await;
    assert_eq!(outcome, "OUTCOME_DELIVERED", "{explanation}");

    let world = World::with_settings(&settings);
    let (outcome, explanation) = test(&world, kind).await;
    assert_eq!(outcome, "OUTCOME_UNREACHABLE", "{explanation}");
    assert!(explanation.contains("`egress.ca_file`"), "{explanation}");
    assert_eq!(
        receiver.requests(),
        1,
        "nothing is sent to an untrusted server"
    );
}

/// Whether the server rejected the client. A client without a certificate sees the error only after
/// its own part of the handshake, when it may already have sent a request.
fn is_refused(outcome: &Value) -> bool {
    outcome == "OUTCOME_UNREACHABLE" || outcome == "OUTCOME_UNKNOWN"
}

#[tokio::test]
async fn client_certificate_is_presented_and_its_key_stays_private() {
    let (authority, _folder, file) = authority();
    let (receiver, kind) = webhook(authority.asking_server("localhost")).await;
    let world = World::with_authorities("", &file);
    let (outcome, explanation) = test(&world, kind.clone()).await;
    assert!(is_refused(&outcome), "{outcome}: {explanation}");
    let own = authority.client("bellwether");
    let untrusted = Authority::new("a stranger's").client("bellwether");
    let (outcome, explanation) = test(&world, showing(&kind, &untrusted)).await;
    assert!(is_refused(&outcome), "{outcome}: {explanation}");
    assert_eq!(receiver.requests(), 0);
    let (outcome, explanation) = test(&world, showing(&kind, &own)).await;
    assert_eq!(outcome, "OUTCOME_DELIVERED", "{explanation}");
    assert_eq!(receiver.accepted().len(), 1);

    let rest = world.rest();
    let stored = json!({"name": "place", "type": showing(&kind, &own)});
    let answered = rest.post(DESTINATIONS, &stored).await.ok().to_string();
    let secret = own.1.lines().nth(1).expect("a key");
    assert!(!answered.contains(secret), "{answered}");
    let found = rest.get(&format!("{DESTINATIONS}/place")).await.ok();
    let auth = &found["destination"]["type"]["webhook"]["auth"]["mtls"];
    assert_eq!(auth["certificate"], own.0.as_str());
    assert_eq!(auth["privateKey"], "********");
}

fn showing(kind: &Value, (certificate, key): &(String, String)) -> Value {
    let mut kind = kind.clone();
    let mtls = json!({"certificate": certificate, "privateKey": key});
    kind["webhook"]["auth"] = json!({"mtls": mtls});
    kind
}

#[tokio::test]
async fn unusable_client_certificate_is_not_stored() {
    let world = World::start();
    let authority = Authority::new("ours");
    let (own, other) = (authority.client("a"), authority.client("b"));
    let kind = json!({"webhook": {"url": "https://receiver.example/"}});
    let mut plain = showing(&kind, &own);
    plain["webhook"]["url"] = json!("http://receiver.example/");
    let of = |certificate: &str, key: &str| showing(&kind, &(certificate.into(), key.into()));
    let secret = own.1.lines().nth(1).expect("a key");
    for (wrong, says) in [
        (of(&own.0, &other.1), "is not the key of the certificate"),
        (of(&own.0, "x"), "no usable private key"),
        (of("x", &own.1), "contains no certificate"),
        (of("", &own.1), "is required"),
        (of(&own.0, &"x".repeat(20_000)), "the limit is 16384"),
        (plain, "can only be used with an `https` address"),
    ] {
        let wrong = json!({"name": "wrong", "type": wrong});
        let refused = world.rest().post(DESTINATIONS, &wrong).await;
        assert_eq!(refused.status, 400, "{says}");
        assert!(refused.text().contains(says), "{says}: {}", refused.text());
        assert!(!refused.text().contains(secret), "{}", refused.text());
    }
}

#[tokio::test]
async fn webhook_with_an_invalid_certificate_receives_no_request() {
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

/// Creates a server certificate with `openssl`, and returns it and its key in PEM; `None` without
/// `openssl`.
pub(crate) fn self_signed(folder: &Path, arguments: &[&str]) -> Option<(String, String)> {
    let (key, certificate) = (folder.join("key.pem"), folder.join("certificate.pem"));
    let mut command = Command::new("openssl");
    command
        .args([
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ])
        .args(["-subj", "/CN=localhost", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .args(arguments);
    let made = match command.output() {
        Ok(made) => made,
        Err(error) => {
            let notice = format!("skipped: openssl cannot be run: {error}\n");
            std::io::stderr().write_all(notice.as_bytes()).unwrap();
            return None;
        }
    };
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let read = |file: &Path| std::fs::read_to_string(file).expect("the output of openssl");
    Some((read(&certificate), read(&key)))
}

#[tokio::test]
async fn self_signed_certificate_is_accepted_if_trusted() {
    const NAMES: &str = "subjectAltName=DNS:localhost";
    // All of these certificates are marked as authorities, as by default, except the last one.
    for (arguments, outcome, says) in [
        (
            &["-x509", "-days", "30", "-addext", NAMES][..],
            "DELIVERED",
            "returned 204",
        ),
        (
            &["-x509", "-days", "30"],
            "UNREACHABLE",
            "it lacks a subject alternative name",
        ),
        (
            &[
                "-x509",
                "-days",
                "30",
                "-addext",
                "subjectAltName=DNS:elsewhere.example",
            ],
            "UNREACHABLE",
            "is for another host name: elsewhere.example",
        ),
        (
            &[
                "-x509",
                "-days",
                "30",
                "-addext",
                NAMES,
                "-addext",
                "basicConstraints=CA:FALSE",
            ],
            "DELIVERED",
            "returned 204",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let Some((certificate, key)) = self_signed(folder.path(), arguments) else {
            return;
        };
        let (_receiver, kind) = webhook(Authority::server_of(&certificate, &key)).await;
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, &certificate).expect("a file");
        let world = World::with_authorities("", &file);
        let (found, explanation) = test(&world, kind.clone()).await;
        assert_eq!(
            found,
            format!("OUTCOME_{outcome}"),
            "{arguments:?}: {explanation}"
        );
        assert!(explanation.contains(says), "{arguments:?}: {explanation}");
        // Another certificate with the same name is not trusted.
        let other = tempfile::tempdir().expect("a folder");
        let other = self_signed(other.path(), arguments).expect("as before");
        std::fs::write(&file, &other.0).expect("a file");
        let world = World::with_authorities("", &file);
        let (found, explanation) = test(&world, kind).await;
        assert_eq!(found, "OUTCOME_UNREACHABLE", "{arguments:?}: {explanation}");
    }
}

#[tokio::test]
async fn version_1_certificate_error_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((request, key)) = self_signed(folder.path(), &["-new"]) else {
        return;
    };
    let (request_file, signed) = (
        folder.path().join("request.pem"),
        folder.path().join("v1.pem"),
    );
    std::fs::write(&request_file, request).expect("a file");
    let made = Command::new("openssl")
        .args(["x509", "-req", "-days", "30", "-in"])
        .arg(&request_file)
        .arg("-signkey")
        .arg(folder.path().join("key.pem"))
        .arg("-out")
        .arg(&signed)
        .output()
        .expect("openssl runs");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let mut show = Command::new("openssl");
    show.args(["x509", "-noout", "-text", "-in"]).arg(&signed);
    let shown = show.output().expect("openssl runs").stdout;
    if !String::from_utf8_lossy(&shown).contains("Version: 1 ") {
        eprintln!("skipped: this openssl makes no certificate of version 1");
        return;
    }
    let certificate = std::fs::read_to_string(&signed).expect("a certificate");
    let (_receiver, kind) = webhook(Authority::server_of(&certificate, &key)).await;
    let world = World::with_authorities("", &signed);
    let (outcome, explanation) = test(&world, kind).await;
    assert_eq!(outcome, "OUTCOME_UNREACHABLE", "{explanation}");
    for words in ["X.509 version 1", "-addext subjectAltName=DNS:"] {
        assert!(explanation.contains(words), "{explanation}");
    }
}

#[tokio::test]
async fn mail_server_with_an_invalid_certificate_receives_no_mail() {
    let (authority, _folder, file) = authority();
    for (tls, says) in wrong(&authority) {
        for security in [
            MailSecurity::StartTls(tls.clone()),
            MailSecurity::Tls(tls.clone()),
        ] {
            receives_no_mail(security, says, &file).await;
        }
    }
}

async fn receives_no_mail(security: MailSecurity, says: &str, file: &Path) {
    let server = StrictMailServer::start(email::rules(security, "PLAIN")).await;
    let world = World::with_authorities(&email::settings(&server), file);
    let kind = json!({"email": {"to": "duty@example.net"}});
    let (outcome, explanation) = test(&world, kind).await;
    assert_eq!(outcome, "OUTCOME_UNREACHABLE", "{explanation}");
    assert!(explanation.contains(says), "{explanation}");
    assert!(server.mails().is_empty());
}

#[tokio::test]
async fn mail_server_without_starttls_receives_no_mail() {
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
