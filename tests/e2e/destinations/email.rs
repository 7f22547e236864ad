//! Mail over STARTTLS and TLS, to an authenticating server, verified with an independent parser.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bellwether_tests::{
    eventually::eventually,
    providers::{
        certificates::Authority,
        mail::{Mail, MailMischief, MailRules, MailSecurity, StrictMailServer},
    },
    receiver::{Received, Receiver, Reply},
    world::World,
};
use mail_parser::{Message, MessageParser, MimeHeaders};
use serde_json::{Value, json};

use super::stage::{SUMMARY, Stage};

pub(super) const PASSWORD: &str = "canary-mail-password";

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
async fn mail_is_sent_to_a_server_with_a_private_ca() {
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
        let subject = read.subject().expect("a subject");
        let start = format!("[bellwether] error: {SUMMARY} (");
        assert!(subject.starts_with(&start), "{subject}");
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
        // All mails belong to one conversation, whatever the severity.
        let subject = format!("Re: {subject}");
        assert_eq!(parsed(&acknowledged).subject(), Some(subject.as_str()));
        assert_eq!(parsed(&closing).subject(), Some(subject.as_str()));
        let deliveries = stage.delivered(3).await;
        assert!(!format!("{deliveries:?}").contains(PASSWORD));
    }
}

const THREE: &str = "a@example.net, b@example.net, Cee <c@example.net>";
const LIST: &str = "/v1/notification/deliveries";

async fn staged(to: &str, settings: &str) -> (StrictMailServer, Stage) {
    let server = StrictMailServer::start(MailRules::default()).await;
    let world = World::with_settings(&format!("{}{settings}", server.settings()));
    let stage = Stage::new(world, json!({"email": {"to": to}}), "").await;
    (server, stage)
}

async fn destination(stage: &Stage) -> Value {
    let answer = stage
        .rest
        .get("/v1/notification/destinations/place")
        .await
        .ok();
    answer["destination"].clone()
}

async fn delivery(stage: &Stage, wanted: &str, holds: impl Fn(&Value) -> bool) -> Value {
    eventually(wanted, async || {
        let list = stage.rest.get(LIST).await.ok();
        let id = list["deliveries"][0]["id"].as_str()?.to_owned();
        let one = stage.rest.get(&format!("{LIST}/{id}")).await.ok();
        holds(&one["delivery"]).then(|| one["delivery"].clone())
    })
    .await
}

/// Returns the status and the summary of the service's own event about rejected recipients.
async fn own_event(stage: &Stage) -> Option<(String, String)> {
    let clause = json!({"equals": {"field": "name", "stringVal": "recipients refused"}});
    let query = json!({"query": {"clause": clause}});
    let found = stage.rest.post("/v1/events:search", &query).await.ok();
    let newest = found["results"].get(0)?["occurrences"][0].clone();
    let text = |field: &str| newest[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("summary")))
}

#[tokio::test]
async fn rejected_recipient_is_reported_and_others_get_the_mail() {
    for answer in [
        "550 5.1.1 no such user",
        "553 5.1.3 bad address",
        "554 5.7.1 relay access denied",
        "450 4.2.0 greylisted",
        "452 4.2.2 mailbox full",
    ] {
        let (server, stage) =
            staged(THREE, "[delivery]\nschedule = [\"0s\", \"2s\", \"1h\"]\n").await;
        server.misbehave(MailMischief::Refuses("b@example.net", answer));
        stage.opens().await;
        let first = mail(&server, 1).await;
        assert_eq!(first.to, ["a@example.net", "c@example.net"], "{answer}");

        // The attempt, the destination's health and an event name the recipient.
        let one = delivery(&stage, "an attempt", |one| {
            one["attempts"][0]["explanation"].is_string()
        })
        .await;
        let explanation = one["attempts"][0]["explanation"].as_str().expect("a text");
        assert!(explanation.contains("`b@example.net`"), "{explanation}");
        assert!(explanation.contains(&answer[4..]), "{explanation}");
        let health = eventually("the address in the health", async || {
            let health = destination(&stage).await["health"].clone();
            health["refusedRecipients"][0]["address"]
                .is_string()
                .then_some(health)
        })
        .await;
        assert_eq!(health["state"], "HEALTHY", "{health}");
        let refused = &health["refusedRecipients"];
        assert_eq!(refused.as_array().map(Vec::len), Some(1), "{refused}");
        assert_eq!(refused[0]["address"], "b@example.net");
        assert_eq!(refused[0]["answer"], answer);
        assert_eq!(refused[0]["permanent"], answer.starts_with('5'));
        let event = eventually("an event", async || own_event(&stage).await).await;
        assert_eq!(event.0, "STATUS_OPEN");
        assert!(event.1.contains("b@example.net"), "{event:?}");

        // A temporary rejection is retried, for this address only.
        server.misbehave(None);
        let ended = delivery(&stage, "the end", |one| one["endTime"].is_string()).await;
        assert_eq!(ended["state"], "DELIVERED", "{ended}");
        if answer.starts_with('4') {
            let again = mail(&server, 2).await;
            assert_eq!(again.to, ["b@example.net"]);
            let ids = [&first, &again].map(|it| parsed(it).message_id().map(str::to_owned));
            assert_eq!(ids[0], ids[1], "it is the same mail");
            assert_eq!(parsed(&again).to().map(|to| to.iter().count()), Some(3));
        } else {
            // The next mail reaches all recipients.
            stage.closes().await;
            assert_eq!(mail(&server, 2).await.to.len(), 3);
        }
        eventually("the event to close", async || {
            let (status, _) = own_event(&stage).await?;
            (status == "STATUS_CLOSED").then_some(())
        })
        .await;
        let health = destination(&stage).await["health"].clone();
        assert_eq!(health["refusedRecipients"], Value::Null, "{health}");
    }
}

#[tokio::test]
async fn rejection_before_the_mail_body_is_retried() {
    for (command, answer) in [
        ("EHLO", "504 5.5.2 need a fully-qualified name"),
        ("MAIL", "554 5.7.1 relay access denied"),
        ("MAIL", "521 5.3.2 this host accepts no mail"),
        ("RCPT", "554 5.7.1 relay access denied"),
    ] {
        let settings = "[delivery]\nschedule = [\"0s\", \"1ms\", \"1ms\", \"1ms\", \"1h\"]\n";
        let (server, stage) = staged("a@example.net", settings).await;
        server.misbehave(MailMischief::Says(command, answer));
        stage.opens().await;
        let one = delivery(&stage, "four attempts", |one| {
            one["attemptCount"] == 4 && one["state"] == "RETRY"
        })
        .await;
        let error = one["lastError"].as_str().expect("an error");
        assert!(error.contains(&answer[..3]), "{command} {answer}: {error}");
        let health = destination(&stage).await["health"].clone();
        assert_eq!(health["state"], "FAILING", "{command} {answer}: {health}");
        server.misbehave(None);
        let resume = "/v1/notification/destinations/place:resume";
        stage.rest.post(resume, &json!({})).await.ok();
        assert_eq!(mail(&server, 1).await.to, ["a@example.net"]);
        assert!(server.mails().len() == 1, "{command} {answer}");
    }
}

#[tokio::test]
async fn late_response_to_the_mail_body_makes_no_duplicates() {
    let (server, stage) = staged("a@example.net", "[delivery]\ntimeout = \"1s\"\n").await;
    server.misbehave(MailMischief::AnswersLate(Duration::from_millis(2_500)));
    stage.opens().await;
    let deliveries = stage.delivered(1).await;
    assert_eq!(server.mails().len(), 1);
    let attempts = deliveries[0]["attempts"].as_array().expect("attempts");
    assert_eq!(attempts.len(), 1, "{attempts:?}");
}

#[tokio::test]
async fn unanswered_mail_is_resent_with_the_same_id() {
    let settings = "[delivery]\nmail_answer_timeout = \"1s\"\nschedule = [\"0s\", \"10ms\"]\n";
    let (server, stage) = staged("a@example.net", settings).await;
    server.misbehave(MailMischief::AnswersLate(Duration::from_secs(600)));
    stage.opens().await;
    let first = mail(&server, 1).await;
    let one = delivery(&stage, "the end of an attempt", |one| {
        one["attempts"][0]["outcome"] == "OUTCOME_UNKNOWN"
    })
    .await;
    let explanation = &one["attempts"][0]["explanation"];
    assert_eq!(
        *explanation,
        "the mail was sent, but no reply arrived within 1s"
    );
    server.misbehave(None);
    stage.delivered(1).await;
    let copies = server.mails();
    assert!(copies.len() > 1, "it is sent again");
    let id = |mail: &Mail| parsed(mail).message_id().map(str::to_owned);
    assert!(
        copies.iter().all(|copy| id(copy) == id(&first)),
        "{copies:?}"
    );
}

#[tokio::test]
async fn mail_has_the_sender_and_headers_of_its_destination() {
    let server = StrictMailServer::start(MailRules::default()).await;
    let settings = format!("{}hello = \"alerts.example.net\"\n", server.settings());
    let world = World::with_settings(&settings);
    let kind = json!({"email": {
        "to": "\"Doe, Jane\" <jane@example.net>, J\u{fc}rgen <j@m\u{fc}ller.example>",
        "cc": "boss@example.net",
        "bcc": "archive@example.net",
        "from": "Databases <db@example.net>",
        "replyTo": "oncall@example.net",
        "listId": "DB alerts <db.example.net>",
        "priority": "SEVERITY",
        "body": "<p>See <a href=\"https://runbooks.example/disk\">the runbook</a>.</p><p>{{event.name}} &ndash; now</p>",
    }});
    let stage = Stage::new(world, kind.clone(), "").await;
    let stored = destination(&stage).await;
    for (field, value) in kind["email"].as_object().expect("fields") {
        assert_eq!(stored["type"]["email"][field], *value, "{stored}");
    }

    stage.opens().await;
    let opening = mail(&server, 1).await;
    stage.closes().await;
    let closing = mail(&server, 2).await;

    assert_eq!(opening.from, "db@example.net");
    let to = [
        "jane@example.net",
        "j@xn--mller-kva.example",
        "boss@example.net",
        "archive@example.net",
    ];
    assert_eq!(opening.to, to);
    let read = parsed(&opening);
    let address = |address: Option<&mail_parser::Address<'_>>| {
        let first = address.and_then(mail_parser::Address::first).cloned();
        first.map(|it| {
            (
                it.name().map(str::to_owned),
                it.address().map(str::to_owned),
            )
        })
    };
    let named = |name: &str, address: &str| Some((Some(name.to_owned()), Some(address.to_owned())));
    assert_eq!(address(read.from()), named("Databases", "db@example.net"));
    assert_eq!(address(read.to()), named("Doe, Jane", "jane@example.net"));
    let reply_to = address(read.reply_to()).and_then(|(_, address)| address);
    assert_eq!(reply_to.as_deref(), Some("oncall@example.net"));
    let raw = String::from_utf8(opening.data.clone()).expect("ASCII");
    for header in [
        "List-Id: DB alerts <db.example.net>",
        "X-Priority: 1 (Highest)",
    ] {
        assert!(raw.contains(header), "{header} in {raw}");
    }
    assert!(!raw.contains("archive@"), "{raw}");
    let text = read.body_text(0).expect("a text");
    assert_eq!(
        text.replace("\r\n", "\n").trim_end(),
        "See the runbook (https://runbooks.example/disk).\n\nfull \u{2013} now"
    );
    // A closing is not urgent, and refers to its opening.
    let raw = String::from_utf8(closing.data.clone()).expect("ASCII");
    assert!(!raw.contains("X-Priority"), "{raw}");
    let answers = parsed(&closing).in_reply_to().as_text().map(str::to_owned);
    assert_eq!(answers.as_deref(), read.message_id());
}

#[tokio::test]
async fn excess_recipients_get_a_second_mail_in_the_same_session() {
    let all: Vec<_> = (0..7).map(|at| format!("a{at}@example.net")).collect();
    let (server, stage) =
        staged(&all.join(", "), "[delivery]\nschedule = [\"0s\", \"1h\"]\n").await;
    server.misbehave(MailMischief::TakesAtMost(3));
    stage.opens().await;
    let deliveries = stage.delivered(1).await;
    let attempts = deliveries[0]["attempts"].as_array().expect("attempts");
    assert_eq!(attempts.len(), 1, "{attempts:?}");
    let mails = server.mails();
    let sizes: Vec<_> = mails.iter().map(|mail| mail.to.len()).collect();
    assert_eq!(sizes, [3, 3, 1]);
    let reached: Vec<_> = mails.iter().flat_map(|mail| mail.to.clone()).collect();
    assert_eq!(reached, all, "each address once");
    let ids: Vec<_> = mails
        .iter()
        .map(|it| parsed(it).message_id().map(str::to_owned))
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let health = destination(&stage).await["health"].clone();
    assert_eq!(health["refusedRecipients"], Value::Null, "{health}");
}

#[tokio::test]
async fn excess_recipients_are_retried_without_duplicates() {
    // The second mail of the session is rejected: only its recipients get another attempt.
    let (server, stage) =
        staged(THREE, "[delivery]\nschedule = [\"0s\", \"10ms\", \"1h\"]\n").await;
    server.misbehave(MailMischief::TakesOneMail(2));
    stage.opens().await;
    let ended = delivery(&stage, "the end", |one| one["endTime"].is_string()).await;
    assert_eq!(ended["state"], "DELIVERED", "{ended}");
    let mails = server.mails();
    let reached: Vec<_> = mails.iter().flat_map(|mail| mail.to.clone()).collect();
    assert_eq!(reached, ["a@example.net", "b@example.net", "c@example.net"]);
    assert_eq!(ended["attemptCount"], 2, "{ended}");
}

#[tokio::test]
async fn xoauth2_token_is_renewed_after_a_rejection() {
    let user = "alerts@example.net";
    let server = StrictMailServer::start(MailRules {
        login: Some((user.into(), "canary-fresh-token".into())),
        mechanisms: "LOGIN PLAIN XOAUTH2",
        ..MailRules::default()
    })
    .await;
    let requests = AtomicUsize::new(0);
    let tokens = Receiver::with_rule(move |request: &Received| {
        let form = request.text();
        let is_right = ["grant_type=refresh_token", "refresh_token=canary-refresh"];
        if !is_right.iter().all(|part| form.contains(part)) {
            return Reply::answer(400, Vec::new(), "{\"error\": \"invalid_request\"}".into());
        }
        // The mail server no longer accepts the first token.
        let token = match requests.fetch_add(1, Ordering::SeqCst) {
            0 => "canary-stale-token",
            _ => "canary-fresh-token",
        };
        Reply::json(&json!({"access_token": token, "token_type": "Bearer", "expires_in": 3599}))
    })
    .await;
    let settings = format!(
        "{}user = {user:?}\noauth_token_url = {:?}\noauth_client_id = \"bellwether\"\n\
         oauth_client_secret = \"canary-client\"\noauth_refresh_token = \"canary-refresh\"\n\
         [delivery]\nschedule = [\"0s\", \"10ms\", \"1h\"]\n",
        server.settings(),
        tokens.url("/token"),
    );
    let world = World::with_settings(&settings);
    let stage = Stage::new(world, json!({"email": {"to": "a@example.net"}}), "").await;
    stage.opens().await;
    let first = mail(&server, 1).await;
    assert_eq!(first.mechanism, "XOAUTH2");
    stage.closes().await;
    mail(&server, 2).await;
    let deliveries = stage.delivered(2).await;
    assert_eq!(tokens.count(), 2, "a token is reused while it is valid");
    let attempts = deliveries[1]["attempts"].as_array().expect("attempts");
    assert_eq!(attempts.len(), 2, "{attempts:?}");
    let said = attempts[0]["explanation"].as_str().expect("a text");
    assert!(said.contains("535") && said.contains("AUTH"), "{said}");
    assert!(
        !format!("{deliveries:?}").contains("canary"),
        "{deliveries:?}"
    );
}
