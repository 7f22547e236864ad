//! Mail against a mail server that refuses on demand.

use super::{CANARY, NOW_MS, World, id, request};
use crate::{
    config::{SmtpConfig, SmtpSecurity},
    destination::{Advice, SendRequest, smtp_receiver::SmtpReceiver},
    domain::{DestinationKind, Outcome, RecordId, Secret, destination::Email},
    message::sample,
};

fn smtp(receiver: &SmtpReceiver) -> SmtpConfig {
    SmtpConfig {
        host: "localhost".into(),
        port: receiver.addr.port(),
        security: SmtpSecurity::None,
        from: "Bellwether <bell@example.com>".into(),
        credentials: Some(("bell".into(), Secret::new(CANARY))),
    }
}

fn email() -> DestinationKind {
    DestinationKind::Email(Email {
        to: "ops@example.com".into(),
        cc: String::new(),
        subject: String::new(),
        body: String::new(),
    })
}

#[tokio::test]
async fn a_mail_has_two_parts_and_one_identity_over_all_attempts() {
    let receiver = SmtpReceiver::start(&[]).await;
    let mut world = World::new();
    world.config.smtp = Some(smtp(&receiver));
    for _ in 0..2 {
        let report = world.send(&email()).await;
        assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
        assert_eq!(report.transcript.response.unwrap().status, 250);
    }
    for mail in receiver.mails() {
        let said = mail.commands.join("\n");
        assert!(said.contains("MAIL FROM:<bell@example.com>"), "{said}");
        assert!(said.contains("RCPT TO:<ops@example.com>"), "{said}");
        assert!(
            mail.data
                .contains(&format!("Message-ID: <{}@example.com>", id())),
            "{}",
            mail.data
        );
        for part in [
            "text/plain",
            "text/html",
            "Auto-Submitted: auto-generated",
            "Subject: ",
        ] {
            assert!(
                mail.data.contains(part),
                "{part} is missing in {}",
                mail.data
            );
        }
    }
}

#[tokio::test]
async fn a_mail_about_a_change_belongs_to_the_one_that_told_first() {
    let receiver = SmtpReceiver::start(&[]).await;
    let mut world = World::new();
    world.config.smtp = Some(smtp(&receiver));
    let kind = email();
    let content = sample::content(sample::occurrence(NOW_MS), kind.clone(), String::new());
    let opening = RecordId::from_parts(7, 7);
    for opening in [None, Some(opening)] {
        let request = SendRequest {
            opening,
            ..request(&kind, &content, None)
        };
        let report = world.sender().send(request).await;
        assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    }
    let [first, change] = receiver.mails().try_into().unwrap();
    for header in ["In-Reply-To", "References"] {
        assert!(!first.data.contains(header), "{}", first.data);
        let line = format!("{header}: <{opening}@example.com>");
        assert!(change.data.contains(&line), "{line} in {}", change.data);
    }
}

#[tokio::test]
async fn a_mail_servers_answer_has_its_verdict() {
    use Outcome::{Rejected, Unknown, Unreachable};
    let cases: [(&'static [_], _, _, _); 6] = [
        (
            &[("RCPT", "550 no such user")],
            Rejected,
            "no such user",
            Advice::Mend,
        ),
        (
            &[("RCPT", "450 try later")],
            Rejected,
            "try later",
            Advice::Again,
        ),
        (
            &[("AUTH", "535 wrong password")],
            Rejected,
            "wrong password",
            Advice::Mend,
        ),
        (
            &[(".", "554 looks like spam")],
            Rejected,
            "looks like spam",
            Advice::FewMore,
        ),
        (&[(".", "")], Unknown, "no answer came", Advice::Again),
        (&[("MAIL", "")], Unreachable, "cannot talk", Advice::Again),
    ];
    for (refuse, outcome, text, advice) in cases {
        let receiver = SmtpReceiver::start(refuse).await;
        let mut world = World::new();
        world.config.smtp = Some(smtp(&receiver));
        let report = world.send(&email()).await;
        assert_eq!(report.verdict.outcome, outcome, "{refuse:?}: {report:?}");
        assert_eq!(report.verdict.advice, advice, "{refuse:?}: {report:?}");
        assert!(
            report.verdict.explanation.contains(text),
            "{refuse:?}: {report:?}"
        );
    }
}

#[tokio::test]
async fn a_mail_that_cannot_go_out_says_why() {
    let receiver = SmtpReceiver::start(&[]).await;
    let mut world = World::new();
    let report = world.send(&email()).await;
    assert!(
        report
            .verdict
            .explanation
            .contains("no mail server is configured"),
        "{report:?}"
    );
    world.config.smtp = Some(SmtpConfig {
        security: SmtpSecurity::StartTls,
        ..smtp(&receiver)
    });
    let report = world.send(&email()).await;
    assert!(
        report.verdict.explanation.contains("STARTTLS"),
        "{report:?}"
    );
    world.config.egress.allow.clear();
    let report = world.send(&email()).await;
    assert_eq!(report.verdict.outcome, Outcome::Blocked, "{report:?}");
    assert_eq!(report.transcript.request, None);
}
