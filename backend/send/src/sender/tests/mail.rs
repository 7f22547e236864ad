//! Tests of mail with a mail server that refuses commands on demand.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    task::JoinSet,
};

use super::{CANARY, NOW_MS, id, request, send_with, sending};
use crate::{
    config::{SmtpConfig, SmtpLogin, SmtpSecurity},
    domain::{
        DestinationKind, Outcome, RecordId, Secret, Severity,
        delivery::Recipients,
        destination::{Email, MailPriority},
    },
    message::sample,
    sender::SendRequest,
    sending::receiver::{Receiver, Reply},
    smtp_receiver::SmtpReceiver,
    verdict::Advice,
};

fn smtp(receiver: &SmtpReceiver) -> SmtpConfig {
    SmtpConfig {
        host: "localhost".into(),
        port: receiver.addr.port(),
        security: SmtpSecurity::None,
        from: "Bellwether <bell@example.com>".parse().unwrap(),
        hello: String::new(),
        login: Some(SmtpLogin::Password {
            user: "bell".into(),
            password: Secret::new(CANARY),
        }),
    }
}

fn email() -> DestinationKind {
    DestinationKind::Email(Email {
        to: "ops@example.com".into(),
        ..Email::default()
    })
}

#[tokio::test]
async fn mail_has_two_parts_and_a_stable_message_id() {
    let receiver = SmtpReceiver::start(&[]).await;
    let mut world = sending();
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
async fn update_mail_replies_to_the_first_mail() {
    let receiver = SmtpReceiver::start(&[]).await;
    let mut world = sending();
    world.config.smtp = Some(smtp(&receiver));
    let kind = email();
    let content = sample::sample_content(
        sample::sample_occurrence(NOW_MS),
        kind.clone(),
        String::new(),
    );
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

/// Replies of real servers: command, reply, outcome and advice. The command `.` is the end of the
/// text, and `HI` the greeting. An empty reply closes the connection; `...` is no reply at all.
#[rustfmt::skip]
const ANSWERS: &[(&str, &str, Outcome, Advice)] = {
    use Advice::{Again, FewMore, Later, Fix, Reduce};
    use Outcome::{Delivered, Rejected, Unknown, Unreachable};
    &[
    // Before the text, any refusal concerns the destination.
    ("HI", "554 5.7.1 mx.example.net ESMTP service not accepting messages", Rejected, Fix),
    ("HI", "554-gmx.net (mxgmx015) Nemesis ESMTP Service not available\r\n554 No SMTP service", Rejected, Fix),
    ("HI", "521 5.3.2 mail.example.net does not accept mail", Rejected, Fix),
    ("HI", "550 5.7.1 Service unavailable, Client host [192.0.2.1] blocked using Spamhaus", Rejected, Fix),
    ("HI", "421 4.3.2 Service not available, closing transmission channel", Rejected, Again),
    ("HI", "421 4.7.0 [TSS04] Messages temporarily deferred due to user complaints", Rejected, Again),
    ("HI", "450 4.7.1 too many connections", Rejected, Again),
    ("HI", "SSH-2.0-OpenSSH_9.6", Unreachable, Again),
    ("HI", "", Unreachable, Again),
    ("HI", "...", Unreachable, Again),
    ("EHLO", "504 5.5.2 <localhost>: Helo command rejected: need fully-qualified hostname", Rejected, Fix),
    ("EHLO", "550 5.7.1 Access denied - Invalid HELO name (See RFC2821 4.1.1.1)", Rejected, Fix),
    ("EHLO", "501 5.5.4 Invalid domain name", Delivered, Again),
    ("EHLO", "502 5.5.1 command not implemented", Delivered, Again),
    ("EHLO", "421 4.4.2 timeout", Rejected, Again),
    ("AUTH", "535 5.7.3 Authentication unsuccessful [FR0P281CA0001.DEUP281.PROD.OUTLOOK.COM]", Rejected, Fix),
    ("AUTH", "535-5.7.8 Username and Password not accepted. For more information, go to\r\n535 5.7.8 https://support.google.com/mail/?p=BadCredentials", Rejected, Fix),
    ("AUTH", "535 5.7.139 Authentication unsuccessful, basic authentication is disabled.", Rejected, Fix),
    ("AUTH", "534 5.7.9 Application-specific password required", Rejected, Fix),
    ("AUTH", "504 5.7.4 Unrecognized authentication type", Rejected, Fix),
    ("AUTH", "454 4.7.0 Temporary authentication failure: Connection lost to authentication server", Rejected, Again),
    ("MAIL", "530 5.7.57 Client not authenticated to send mail", Rejected, Fix),
    ("MAIL", "553 5.7.1 <bell@example.com>: Sender address rejected: not owned by user bell", Rejected, Fix),
    ("MAIL", "554 5.7.1 Relay access denied", Rejected, Fix),
    ("MAIL", "501 5.1.7 Invalid address", Rejected, Fix),
    ("MAIL", "454 Throttling failure: Maximum sending rate exceeded.", Rejected, Again),
    ("MAIL", "452 4.3.1 Insufficient system storage", Rejected, Again),
    ("MAIL", "451 4.7.1 Authentication failed: Maximum credits exceeded", Rejected, Again),
    ("MAIL", "", Unreachable, Again),
    ("DATA", "554 5.5.1 Error: no valid recipients", Rejected, Fix),
    ("DATA", "451 4.3.0 Error: queue file write error", Rejected, Again),
    // A refused recipient is an error of the destination if it is the only recipient.
    ("RCPT", "550 5.1.1 <ops@example.com>: Recipient address rejected: User unknown in virtual mailbox table", Rejected, Fix),
    ("RCPT", "550-5.1.1 The email account that you tried to reach does not exist.\r\n550 5.1.1 https://support.google.com/mail/?p=NoSuchUser", Rejected, Fix),
    ("RCPT", "550 5.7.54 SMTP; Unable to relay recipient in non-accepted domain", Rejected, Fix),
    ("RCPT", "554 5.7.1 <ops@example.com>: Relay access denied", Rejected, Fix),
    ("RCPT", "554 5.7.1 <ops@example.com>: Recipient address rejected: Access denied", Rejected, Fix),
    ("RCPT", "553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)", Rejected, Fix),
    ("RCPT", "521 5.2.1 mailbox does not accept mail", Rejected, Fix),
    ("RCPT", "450 4.7.1 <ops@example.com>: Recipient address rejected: Greylisted, see http://postgrey", Rejected, Again),
    ("RCPT", "451-response to RCPT TO from localhost\r\n451 Temporary local problem - please try later", Rejected, Again),
    ("RCPT", "550 relay not permitted", Rejected, Fix),
    ("RCPT", "550 Unrouteable address", Rejected, Fix),
    ("RCPT", "450 4.2.0 <ops@example.com>: Recipient address rejected: Greylisted by postgrey for 300 s", Rejected, Again),
    ("RCPT", "451 4.7.500 Server busy. Please try again later from [192.0.2.1]. (S77714) [PROD.OUTLOOK.COM]", Rejected, Again),
    ("RCPT", "452 4.5.3 Error: too many recipients", Rejected, Again),
    ("RCPT", "452 4.2.2 The email account that you tried to reach is over quota", Rejected, Again),
    ("RCPT", "421 4.7.1 Too many messages, closing", Rejected, Again),
    ("RCPT", "251 user not local; will forward", Delivered, Again),
    // After the text, a refusal concerns this mail.
    (".", "554 5.7.1 Message rejected as spam by Content Filtering.", Rejected, FewMore),
    (".", "550-5.7.1 [192.0.2.1] Our system has detected that this message is likely unsolicited mail.\r\n550 5.7.1 https://support.google.com/mail/?p=UnsolicitedMessageError", Rejected, FewMore),
    (".", "552 5.3.4 Error: message file too big", Rejected, Reduce),
    (".", "552 message size exceeds fixed maximum message size", Rejected, Reduce),
    (".", "554 5.6.0 Message content not acceptable", Rejected, Reduce),
    (".", "550 5.4.5 Daily user sending limit exceeded.", Rejected, Again),
    (".", "550 5.7.0 Mail sending limit reached, try again later", Rejected, Again),
    (".", "554 5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException", Rejected, Again),
    ("MAIL", "550 5.4.5 Daily sending quota exceeded", Rejected, Again),
    ("MAIL", "552 5.3.4 message size exceeds fixed limit", Rejected, Reduce),
    ("RCPT", "550 5.4.5 Daily sending quota exceeded", Rejected, Again),
    (".", "550 High probability of spam", Rejected, FewMore),
    (".", "451 4.7.650 The mail server has been temporarily rate limited due to IP reputation.", Rejected, Later),
    (".", "452 4.3.1 Out of memory", Rejected, Later),
    (".", "421-4.7.28 Gmail has detected an unusual rate of mail.\r\n421 4.7.28 later", Rejected, Again),
    (".", "250 2.0.0 Ok: queued as 4F3B21", Delivered, Again),
    (".", "250-first\r\n250", Delivered, Again),
    (".", "", Unknown, Again),
    (".", "...", Unknown, Again),
    (".", "queued", Unknown, Again),
    // The mail is delivered regardless of later failures.
    ("QUIT", "...", Delivered, Again),
    ("QUIT", "", Delivered, Again),
    ("QUIT", "500 what?", Delivered, Again),
    ]
};

#[tokio::test]
async fn smtp_replies_are_classified_by_phase() {
    let rows = ANSWERS
        .iter()
        .map(async |row @ (command, answer, outcome, advice)| {
            let refuse = Box::leak(Box::new([(*command, *answer)]));
            let receiver = SmtpReceiver::start(refuse).await;
            let mut world = sending();
            // A server without extensions offers no authentication.
            let login = smtp(&receiver).login.filter(|_| *command != "EHLO");
            world.config.smtp = Some(SmtpConfig {
                login,
                ..smtp(&receiver)
            });
            // The timeout is short if no reply comes, and otherwise long enough for a busy machine.
            let limit = match *answer {
                "..." => Duration::from_secs(5),
                _ => Duration::from_secs(60),
            };
            world.config.delivery.mail_answer_timeout = limit;
            let kind = email();
            let content = sample::sample_content(
                sample::sample_occurrence(NOW_MS),
                kind.clone(),
                String::new(),
            );
            let request = SendRequest {
                timeout: if *command == "HI" {
                    limit
                } else {
                    Duration::from_secs(60)
                },
                ..request(&kind, &content, None)
            };
            let report = world.sender().send(request).await;
            assert_eq!(report.verdict.outcome, *outcome, "{row:?}: {report:?}");
            assert_eq!(report.verdict.advice, *advice, "{row:?}: {report:?}");
            if *outcome == Outcome::Rejected {
                let last = answer.lines().last().expect("a line");
                let (code, said) = last.split_at(3);
                let explanation = &report.verdict.explanation;
                assert!(explanation.contains(code), "{row:?}: {report:?}");
                let said = said.trim().get(..20).unwrap_or_default();
                let is_cut = answer.len() > 120;
                assert!(is_cut || explanation.contains(said), "{row:?}: {report:?}");
            }
        });
    futures_util::future::join_all(rows).await;
}

#[tokio::test]
async fn mail_has_expected_headers() {
    let receiver = SmtpReceiver::start(&[]).await;
    let mut world = sending();
    world.config.smtp = Some(SmtpConfig {
        hello: "alerts.example.net".into(),
        ..smtp(&receiver)
    });
    let kind = DestinationKind::Email(Email {
        to: "\"Doe, Jane\" <jane@example.com>, J\u{fc}rgen <j@m\u{fc}ller.example>".into(),
        cc: "boss@example.com".into(),
        bcc: "archive@example.com, JANE <jane@example.com>".into(),
        from: "Databases <db@m\u{fc}ller.example>".into(),
        reply_to: "oncall@example.com".into(),
        list_id: "DB alerts <db.example.com>".into(),
        priority: MailPriority::BySeverity,
        ..Email::default()
    });
    let report = world.send(&kind).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    let [mail] = receiver.mails().try_into().unwrap();
    let commands = mail.commands.join("\n");
    for command in [
        "EHLO alerts.example.net",
        "MAIL FROM:<db@xn--mller-kva.example>\n",
        "RCPT TO:<jane@example.com>\nRCPT TO:<j@xn--mller-kva.example>\n\
         RCPT TO:<boss@example.com>\nRCPT TO:<archive@example.com>\nDATA",
    ] {
        assert!(commands.contains(command), "{command} in {commands}");
    }
    for header in [
        "From: Databases <db@xn--mller-kva.example>",
        "To: =?utf-8?b?RG9lLCBKYW5l?= <jane@example.com>,\n =?utf-8?b?SsO8cmdlbg==?= <j@xn--mller-kva.example>",
        "Cc: boss@example.com",
        "Reply-To: oncall@example.com",
        "List-Id: DB alerts <db.example.com>",
        "X-Priority: 1 (Highest)",
        "Importance: high",
        // The domain is that of the settings, whatever the address of the sender.
        &format!("Message-ID: <{}@example.com>", id()),
    ] {
        assert!(mail.data.contains(header), "{header} in {}", mail.data);
    }
    assert!(!mail.data.contains("archive@"), "{}", mail.data);
    let header = mail.data.split("\n\n").next().unwrap();
    assert!(header.is_ascii(), "{header}");
}

#[tokio::test]
async fn long_headers_are_folded() {
    let receiver = SmtpReceiver::start(&[]).await;
    let mut world = sending();
    world.config.smtp = Some(smtp(&receiver));
    let address = |at: usize| format!("{}{at:02}@{}.example.com", "a".repeat(60), "b".repeat(60));
    let named = |at: usize| format!("{} <{}>", "Team".repeat(10), address(at));
    for to in [
        (0..20).map(address).collect::<Vec<_>>().join(","),
        (0..20).map(named).collect::<Vec<_>>().join(","),
        format!("\"{}\" <a@example.com>", "n".repeat(200)),
        format!("\"{}\" <a@example.com>", ", ".repeat(100)),
        format!("{} <a@example.com>", "\u{1f514}".repeat(200)),
    ] {
        let kind = DestinationKind::Email(Email {
            reply_to: to.clone(),
            subject: "x".repeat(2_000),
            to,
            ..Email::default()
        });
        let report = world.send(&kind).await;
        assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    }
    for mail in receiver.mails() {
        let longest = mail.data.lines().map(str::len).max();
        assert!(longest <= Some(998), "a line is {longest:?} bytes");
    }
}

#[tokio::test]
async fn server_without_smtputf8_receives_ascii_recipients_only() {
    let receiver = SmtpReceiver::start(&[]).await;
    let mut world = sending();
    world.config.smtp = Some(smtp(&receiver));
    let kind = DestinationKind::Email(Email {
        to: "m\u{fc}ller@example.com, ops@example.com".into(),
        ..Email::default()
    });
    let report = world.send(&kind).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    let explanation = &report.verdict.explanation;
    assert!(
        explanation.contains("`m\u{fc}ller@example.com` (553"),
        "{explanation}"
    );
    let [mail] = receiver.mails().try_into().unwrap();
    assert!(
        mail.data.is_ascii() && mail.commands.join("").is_ascii(),
        "{mail:?}"
    );
    assert!(mail.data.contains("To: ops@example.com"), "{}", mail.data);
}

#[tokio::test]
async fn oauth_token_replaces_the_password() {
    let tokens = Receiver::start(|request| {
        let form = &request.body;
        assert!(form.contains("grant_type=client_credentials"), "{form}");
        assert!(form.contains("scope=mail"), "{form}");
        Reply::json(&json!({"access_token": "canary-token", "expires_in": 3600}))
    })
    .await;
    let error = "334 eyJzdGF0dXMiOiI0MDAifQ==";
    for (auth, outcome, requests) in [
        ("235 welcome", Outcome::Delivered, 1),
        (error, Outcome::Rejected, 2),
    ] {
        let offers = ("EHLO", "250-hello\r\n250 AUTH PLAIN XOAUTH2");
        let answers = Box::leak(Box::new([offers, ("AUTH XOAUTH2 ", auth)]));
        let receiver = SmtpReceiver::start(answers).await;
        let before = tokens.count();
        let mut world = sending();
        world.config.smtp = Some(SmtpConfig {
            login: Some(SmtpLogin::OAuth2 {
                user: "alerts@example.com".into(),
                token_url: tokens.url("/token"),
                client_id: "bellwether".into(),
                client_secret: Secret::new(CANARY),
                refresh_token: Secret::default(),
                scope: "mail".into(),
            }),
            ..smtp(&receiver)
        });
        let sender = world.sender();
        for _ in 0..2 {
            let report = send_with(&sender, &email()).await;
            assert_eq!(report.verdict.outcome, outcome, "{report:?}");
            if outcome == Outcome::Rejected {
                assert_eq!(report.verdict.advice, Advice::Fix, "{report:?}");
            }
        }
        // A valid token is cached. After a refusal, a new one is requested.
        assert_eq!(tokens.count() - before, requests);
        let mails = receiver.mails();
        let said = mails[0]
            .commands
            .iter()
            .find_map(|it| it.strip_prefix("AUTH XOAUTH2 "));
        let said = STANDARD.decode(said.expect("a token")).unwrap();
        let right = b"user=alerts@example.com\x01auth=Bearer canary-token\x01\x01";
        assert_eq!(said, right);
    }
}

#[tokio::test]
async fn non_utf8_reply_is_accepted() {
    let receiver = Receiving::start(b"250 angenommen, sp\xe4ter zugestellt\r\n").await;
    let mut world = sending();
    world.config.smtp = Some(SmtpConfig {
        port: receiver.port,
        ..smtp(&SmtpReceiver::start(&[]).await)
    });
    let report = world.send(&email()).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    let said = report.transcript.response.unwrap().body;
    assert_eq!(said, "angenommen, sp\u{fffd}ter zugestellt");
}

/// Three addresses, the second of which is refused.
fn three() -> DestinationKind {
    DestinationKind::Email(Email {
        to: "a@example.com, b@example.com".into(),
        cc: "Cee <c@example.com>, A <a@example.com>".into(),
        ..Email::default()
    })
}

#[tokio::test]
async fn rejected_recipient_does_not_block_the_others() {
    for (answer, is_permanent) in [
        ("550 5.1.1 no such user", true),
        ("551 5.1.6 user has moved", true),
        ("553 5.1.3 bad address", true),
        ("554 5.7.1 relay access denied", true),
        ("500 what?", true),
        ("450 4.2.0 greylisted", false),
        ("451 4.3.0 local problem", false),
        ("452 4.2.2 over quota", false),
    ] {
        let refuse = Box::leak(Box::new([("RCPT TO:<b@", answer)]));
        let receiver = SmtpReceiver::start(refuse).await;
        let mut world = sending();
        world.config.smtp = Some(smtp(&receiver));
        let report = world.send(&three()).await;
        let verdict = &report.verdict;
        assert!(verdict.has_arrived(), "{answer}: {report:?}");
        let expected = if is_permanent {
            (Outcome::Delivered, Advice::Again)
        } else {
            (Outcome::Rejected, Advice::Later)
        };
        assert_eq!((verdict.outcome, verdict.advice), expected, "{answer}");
        for named in ["2 of 3 addresses", "`b@example.com`", &answer[4..]] {
            assert!(verdict.explanation.contains(named), "{named}: {report:?}");
        }
        let response = report.transcript.response.as_ref().expect("an answer");
        assert_eq!(response.headers["b@example.com"], answer);
        assert_eq!(response.status, 250);
        let settled = verdict.settled_recipients(&Recipients::default());
        assert_eq!(settled.reached, ["a@example.com", "c@example.com"]);
        assert_eq!(settled.is_open("b@example.com"), !is_permanent);
        let mails = receiver.mails();
        let named = mails[0].commands.iter().filter(|it| it.starts_with("RCPT"));
        assert_eq!(named.count(), 3, "each address once: {mails:?}");
    }
}

#[tokio::test]
async fn retry_targets_only_pending_recipients() {
    let receiver = SmtpReceiver::start(&[]).await;
    let mut world = sending();
    world.config.smtp = Some(smtp(&receiver));
    let kind = three();
    let content = sample::sample_content(
        sample::sample_occurrence(NOW_MS),
        kind.clone(),
        String::new(),
    );
    let recipients = Recipients {
        reached: vec!["a@example.com".into()],
        refused: vec!["c@example.com".into()],
    };
    let again = SendRequest {
        recipients: &recipients,
        ..request(&kind, &content, None)
    };
    let report = world.sender().send(again).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    let mails = receiver.mails();
    let commands = mails[0].commands.join("\n");
    assert!(commands.contains("RCPT TO:<b@example.com>"), "{commands}");
    assert!(
        !commands.contains("<a@") && !commands.contains("<c@"),
        "{commands}"
    );
    assert!(mails[0].data.contains("a@example.com"), "{mails:?}");
    assert!(mails[0].data.contains(&id().to_string()), "{mails:?}");
}

#[tokio::test]
async fn rejected_recipient_does_not_fail_the_destination() {
    for (answer, advice) in [
        ("450 4.2.0 greylisted", Advice::Later),
        ("550 5.1.1 no such user", Advice::GiveUp),
    ] {
        let refuse = Box::leak(Box::new([("RCPT TO:<b@", answer)]));
        let receiver = SmtpReceiver::start(refuse).await;
        let mut world = sending();
        world.config.smtp = Some(smtp(&receiver));
        let kind = three();
        let content = sample::sample_content(
            sample::sample_occurrence(NOW_MS),
            kind.clone(),
            String::new(),
        );
        let recipients = Recipients {
            reached: vec!["a@example.com".into(), "c@example.com".into()],
            refused: Vec::new(),
        };
        let again = SendRequest {
            recipients: &recipients,
            ..request(&kind, &content, None)
        };
        let report = world.sender().send(again).await;
        assert_eq!(report.verdict.advice, advice, "{report:?}");
        assert!(report.verdict.is_about_addresses(), "{report:?}");
    }
}

#[tokio::test]
async fn late_reply_to_data_has_a_separate_timeout() {
    let receiver = Receiving::late(b"250 taken\r\n", Duration::from_millis(900)).await;
    let mut world = sending();
    world.config.smtp = Some(SmtpConfig {
        port: receiver.port,
        ..smtp(&SmtpReceiver::start(&[]).await)
    });
    let report = world.send(&email()).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    assert!(report.duration > Duration::from_millis(900), "{report:?}");
}

/// A mail server that replies to the text of a mail with the given bytes.
struct Receiving {
    port: u16,
    _server: JoinSet<()>,
}

impl Receiving {
    async fn start(answer: &'static [u8]) -> Self {
        Self::late(answer, Duration::ZERO).await
    }

    async fn late(answer: &'static [u8], after: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut server = JoinSet::new();
        server.spawn(async move {
            let (stream, _peer) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            stream.write_all(b"220 ready\r\n").await.unwrap();
            let mut line = String::new();
            let mut in_data = false;
            while stream.read_line(&mut line).await.unwrap_or(0) > 0 {
                let answer: &[u8] = match line.trim_end() {
                    "." => {
                        in_data = false;
                        tokio::time::sleep(after).await;
                        answer
                    }
                    _ if in_data => b"",
                    "DATA" => {
                        in_data = true;
                        b"354 go on\r\n"
                    }
                    command if command.starts_with("EHLO") => b"250-hello\r\n250 AUTH=PLAIN\r\n",
                    command if command.starts_with("AUTH") => b"235 welcome\r\n",
                    _ => b"250 ok\r\n",
                };
                stream.write_all(answer).await.unwrap();
                line.clear();
            }
        });
        Self {
            port,
            _server: server,
        }
    }
}

#[tokio::test]
async fn unsendable_mail_reports_the_cause() {
    let receiver = SmtpReceiver::start(&[]).await;
    let mut world = sending();
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

#[tokio::test]
async fn mail_above_the_size_limit_of_the_server_is_reduced() {
    let refuse = Box::leak(Box::new([(
        "EHLO",
        "250-hello\r\n250-SIZE 4000\r\n250 AUTH PLAIN",
    )]));
    let receiver = SmtpReceiver::start(refuse).await;
    let mut world = sending();
    world.config.smtp = Some(smtp(&receiver));
    let kind = email();
    let mut content = sample::sample_content(
        sample::sample_occurrence(NOW_MS),
        kind.clone(),
        String::new(),
    );
    content.occurrence.body = "x".repeat(9_000);
    let full = request(&kind, &content, None);
    let report = world.sender().send(full).await;
    assert_eq!(report.verdict.advice, Advice::Reduce, "{report:?}");
    assert!(
        report.verdict.explanation.contains("at most 4000"),
        "{report:?}"
    );
    let reduced = SendRequest {
        is_reduced: true,
        ..full
    };
    let report = world.sender().send(reduced).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    let sent = receiver
        .mails()
        .into_iter()
        .filter(|it| !it.data.is_empty());
    let [mail] = sent.collect::<Vec<_>>().try_into().unwrap();
    let from = mail.commands.iter().find(|it| it.starts_with("MAIL"));
    assert!(from.unwrap().contains("> SIZE="), "{from:?}");
}

#[tokio::test]
async fn mails_of_a_thread_share_a_subject_with_the_host() {
    let receiver = SmtpReceiver::start(&[]).await;
    let mut world = sending();
    world.config.smtp = Some(smtp(&receiver));
    let kind = email();
    let first = sample::sample_content(
        sample::sample_occurrence(NOW_MS),
        kind.clone(),
        String::new(),
    );
    let mut change = first.clone();
    change.clear = true;
    change.occurrence.summary = "Sample: disk /var is 99 % full\0".into();
    change.occurrence.severity = Severity::Critical;
    for (content, opening) in [(&first, None), (&change, Some(&first))] {
        let request = SendRequest {
            opening: opening.map(|_| RecordId::from_parts(7, 7)),
            opening_content: opening,
            ..request(&kind, content, None)
        };
        let report = world.sender().send(request).await;
        assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    }
    let subjects = receiver.mails().into_iter().map(|mail| {
        assert!(!mail.data.contains('\0'), "{}", mail.data);
        let data = mail.data.replace("\r\n", "\n").replace("\n ", " ");
        let line = data.lines().find_map(|line| line.strip_prefix("Subject: "));
        line.unwrap().trim_end().to_owned()
    });
    let [first, change]: [String; 2] = subjects.collect::<Vec<_>>().try_into().unwrap();
    assert!(first.contains("(db-1.example.com"), "{first}");
    assert_eq!(change, format!("Re: {first}"));
}
