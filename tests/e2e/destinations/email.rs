//! Mail: over STARTTLS and over TLS, to a server that asks who sends, read by a stranger's parser.

use bellwether_tests::{
    eventually::eventually,
    providers::{
        certificates::Authority,
        mail::{Mail, MailRules, MailSecurity, StrictMailServer},
    },
    world::World,
};
use mail_parser::{Message, MessageParser, MimeHeaders};
use serde_json::json;

use super::stage::{SUMMARY, Stage};

pub(super) const PASSWORD: &str = "canary-mail-password";

/// The settings of a server that this service logs in to.
pub(super) fn settings(server: &StrictMailServer) -> String {
    format!(
        "{}user = \"bell\"\npassword = \"{PASSWORD}\"\n",
        server.settings()
    )
}

pub(super) fn rules(security: MailSecurity, mechanisms: &'static str) -> MailRules {
    MailRules {
        security,
        login: Some(("bell".into(), PASSWORD.into())),
        mechanisms,
    }
}

async fn mail(server: &StrictMailServer, count: usize) -> Mail {
    eventually("a mail", async || {
        let mails = server.mails();
        (mails.len() == count).then(|| mails[count - 1].clone())
    })
    .await
}

fn parsed(mail: &Mail) -> Message<'_> {
    MessageParser::default().parse(&mail.data).expect("a mail")
}

#[tokio::test]
async fn a_mail_server_with_a_certificate_of_our_own_takes_every_change() {
    let authority = Authority::new("ours");
    let folder = tempfile::tempdir().expect("a folder");
    let ca_file = folder.path().join("ca.pem");
    authority.write(&ca_file);
    let tls = authority.server("localhost");
    let cases = [
        (MailSecurity::StartTls(tls.clone()), "PLAIN LOGIN", "PLAIN"),
        (MailSecurity::Tls(tls), "LOGIN", "LOGIN"),
    ];
    for (security, offered, used) in cases {
        let server = StrictMailServer::start(rules(security, offered)).await;
        let world = World::with_authorities(&settings(&server), &ca_file);
        let kind = json!({"email": {"to": "duty@example.net"}});
        let stage = Stage::new(world, kind, "").await;

        stage.opens().await;
        let opening = mail(&server, 1).await;
        stage.is_acknowledged().await;
        let acknowledged = mail(&server, 2).await;
        stage.closes().await;
        let closing = mail(&server, 3).await;

        assert!(opening.is_secure);
        assert_eq!(opening.mechanism, used);
        assert_eq!(opening.from, "bellwether@example.net");
        assert_eq!(opening.to, ["duty@example.net"]);
        let read = parsed(&opening);
        let subject = format!("[bellwether] error: {SUMMARY}");
        assert_eq!(read.subject(), Some(subject.as_str()));
        assert!(
            read.content_type()
                .is_some_and(|of| of.c_subtype.as_deref() == Some("alternative"))
        );
        let text = read.body_text(0).expect("a text");
        assert!(
            text.contains("usedPercent: 97.5") && text.contains(SUMMARY),
            "{text}"
        );
        let html = read.body_html(0).expect("an HTML part");
        assert!(html.contains("&lt;!channel&gt;"), "{html}");
        let subject = format!("[bellwether] error: {SUMMARY} (acknowledged)");
        assert_eq!(parsed(&acknowledged).subject(), Some(subject.as_str()));
        let subject = format!("[bellwether] critical: {SUMMARY} (closed)");
        assert_eq!(parsed(&closing).subject(), Some(subject.as_str()));
        let deliveries = stage.delivered(3).await;
        assert!(!format!("{deliveries:?}").contains(PASSWORD));
    }
}
