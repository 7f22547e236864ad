//! The result of testing a destination for every possible outcome: a table for each type.

use std::time::Duration;

use bellwether_tests::{
    providers::{
        Mischief, Rules, StandIn,
        mail::{MailMischief, MailRules, MailSecurity, StrictMailServer},
        servicenow::ServiceNow,
        stand_in::FLOOD_BYTES,
    },
    receiver::Reply,
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};

use super::{email, msteams, pagerduty, servicenow, slack};

/// The behaviour of the server, the outcome, and parts of the explanation.
type Row<M> = (M, &'static str, &'static str);

const DELIVERED: &str = "DELIVERED";
const REJECTED: &str = "REJECTED";
const UNREACHABLE: &str = "UNREACHABLE";
const UNKNOWN: &str = "UNKNOWN";

#[expect(clippy::unnecessary_wraps, reason = "table rows contain an `Option`")]
fn respond_with(status: u16, headers: &[(&'static str, &str)], body: &str) -> Option<Mischief> {
    let headers = headers
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()));
    Some(Mischief::Answers(Reply {
        headers: headers.collect(),
        body: body.into(),
        ..Reply::status(status)
    }))
}

/// Returns the rows that apply to all HTTP types.
fn common() -> Vec<Row<Option<Mischief>>> {
    let to = [("location", "http://127.0.0.1:1/elsewhere")];
    vec![
        (None, DELIVERED, "accepted|returned 204"),
        (
            respond_with(302, &to, ""),
            REJECTED,
            "redirects are not followed",
        ),
        (
            respond_with(429, &[("retry-after", "7")], ""),
            REJECTED,
            "429 Too Many Requests (retry after 7 s)",
        ),
        (
            respond_with(503, &[], "\n down for repairs\n"),
            REJECTED,
            "503 Service Unavailable: down for repairs",
        ),
        (
            respond_with(403, &[], "canary-token canary-secret"),
            REJECTED,
            "403 Forbidden",
        ),
        (
            Some(Mischief::HangsUp),
            UNKNOWN,
            "closed without a response",
        ),
        (Some(Mischief::Hangs), UNKNOWN, "no response within 1s"),
    ]
}

/// Tests an unsaved destination of this type. The response must not contain a secret.
async fn test(rest: &Rest, kind: &Value, what: &str) -> Value {
    let destination = json!({"name": "place", "type": kind, "delivery": {"timeout": "1s"}});
    let answer = rest
        .post("/v1/notification/destinations:test", &destination)
        .await;
    let tested = answer.ok();
    let secrets = kind.to_string();
    let secrets = secrets.split('"').filter(|text| text.contains("canary"));
    for secret in secrets.chain(["canary-signature", email::PASSWORD]) {
        assert!(
            !answer.text().contains(secret),
            "{what}: a secret shows in {tested}"
        );
    }
    tested
}

fn check(tested: &Value, outcome: &str, says: &str, what: &str) {
    assert_eq!(
        tested["outcome"],
        format!("OUTCOME_{outcome}"),
        "{what}: {tested}"
    );
    let explanation = tested["explanation"].as_str().expect("a sentence");
    let said = says.split('|').any(|words| explanation.contains(words));
    assert!(said, "{what}: {explanation}");
    let duration = tested["duration"].as_str().expect("a duration");
    let seconds: f64 = duration.trim_end_matches('s').parse().expect("seconds");
    // The destination has a timeout of a second; the test machine may be busy.
    assert!(seconds < 4.0, "{what} took {duration}");
}

/// Checks the rows of a type: the common ones and its own.
async fn table(
    world: &World,
    provider: &StandIn,
    kind: &Value,
    own: impl IntoIterator<Item = Row<Option<Mischief>>>,
) {
    let rest = world.rest();
    for (mischief, outcome, says) in common().into_iter().chain(own) {
        let what = format!("{mischief:?}");
        provider.misbehave(mischief);
        let requests = provider.requests();
        let tested = test(&rest, kind, &what).await;
        check(&tested, outcome, says, &what);
        assert!(provider.requests() > requests, "{what}: nothing was sent");
    }
    let flooded_bytes = provider.flooded_bytes();
    assert!(
        flooded_bytes < FLOOD_BYTES / 4,
        "{flooded_bytes} bytes of a flood were accepted"
    );
}

fn world(settings: &str) -> World {
    World::with_settings(settings)
}

async fn provider(rules: impl Rules) -> StandIn {
    StandIn::start(rules).await
}

#[tokio::test]
async fn webhook_outcome_follows_its_status() {
    use bellwether_tests::providers::standard_webhooks::Verifier;
    let secret = "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5";
    let secrets = vec![secret.to_owned()];
    let receiver = provider(Verifier { secrets }).await;
    let kind = json!({"webhook": {
        "url": receiver.url("/"),
        "headers": {"authorization": "Bearer canary-token"},
        "signingSecret": secret,
    }});
    let own = [
        (respond_with(410, &[], ""), REJECTED, "410 Gone"),
        (respond_with(200, &[], "whatever"), DELIVERED, "200 OK"),
        (Some(Mischief::Floods), DELIVERED, "200 OK"),
    ];
    table(&world(""), &receiver, &kind, own).await;
}

#[tokio::test]
async fn slack_outcome_follows_its_response() {
    let slack = provider(slack::rules()).await;
    let world = world(&format!("[providers]\nslack = {:?}\n", slack.url("")));
    let kind = json!({"slack": {"channel": "#ops", "token": slack::TOKEN}});
    let limited = r#"{"ok":false,"error":"ratelimited"}"#;
    let own = [
        (
            respond_with(200, &[], limited),
            REJECTED,
            "Slack rejected the message: ratelimited",
        ),
        (
            respond_with(200, &[], "<html>log in</html>"),
            REJECTED,
            "is not from Slack",
        ),
        (Some(Mischief::Floods), REJECTED, "is not from Slack"),
    ];
    table(&world, &slack, &kind, own).await;

    slack.misbehave(None);
    let refused = [
        (
            json!({"channel": "#ops", "token": "xoxb-canary-other"}),
            "invalid_auth; [ERROR] the token",
        ),
        (
            json!({"channel": "#nowhere", "token": slack::TOKEN}),
            "channel_not_found",
        ),
    ];
    for (kind, says) in refused {
        let tested = test(&world.rest(), &json!({"slack": kind}), says).await;
        check(&tested, REJECTED, says, says);
    }
}

#[tokio::test]
async fn teams_outcome_follows_its_response() {
    let teams = provider(msteams::rules(true)).await;
    let kind = json!({"msteams": {"url": teams.url(msteams::PATH)}});
    let failed = "Webhook message delivery failed with error: Microsoft Teams endpoint returned \
                  HTTP error 429 with ContextId tcid=0";
    let html = [("content-type", "text/html; charset=utf-8")];
    let own = [
        (
            respond_with(200, &[], "1"),
            DELIVERED,
            "Teams accepted the message",
        ),
        (
            respond_with(200, &[], failed),
            REJECTED,
            "endpoint returned HTTP error 429",
        ),
        (
            respond_with(200, &html, "<html>sign in</html>"),
            REJECTED,
            "is not from Teams",
        ),
        (
            respond_with(400, &[], "Bad payload"),
            REJECTED,
            "400 Bad Request: Bad payload",
        ),
        (Some(Mischief::Floods), DELIVERED, "accepted"),
    ];
    table(&world(""), &teams, &kind, own).await;
}

#[tokio::test]
async fn teams_connector_delivery_requires_response_body_1() {
    const CONNECTOR: &str = "/webhookb2/canary-connector/IncomingWebhook/canary-signature";
    let teams = provider(msteams::rules(false)).await;
    let world = world("");
    let kind = json!({"msteams": {"url": teams.url(CONNECTOR)}});
    let refused = "Webhook message delivery failed with error: Microsoft Teams endpoint returned \
                   HTTP error 413 with ContextId tcid=0.";
    for (status, body, outcome, says) in [
        (200, "1", DELIVERED, "Teams accepted the message"),
        (200, "1\n", DELIVERED, "Teams accepted the message"),
        (202, "", REJECTED, "Teams rejected the message"),
        (204, "", REJECTED, "Teams rejected the message"),
        (200, "", REJECTED, "Teams rejected the message"),
        (
            200,
            "Summary or Text is required.",
            REJECTED,
            "Text is required",
        ),
        (200, refused, REJECTED, "HTTP error 413"),
        (200, "Connector is disabled", REJECTED, "is disabled"),
    ] {
        teams.misbehave(respond_with(status, &[], body));
        let tested = test(&world.rest(), &kind, body).await;
        check(&tested, outcome, says, body);
    }
}

#[tokio::test]
async fn pagerduty_outcome_follows_its_response() {
    let pagerduty = provider(pagerduty::rules()).await;
    let world = world(&format!(
        "[providers]\npagerduty = {:?}\n",
        pagerduty.url("")
    ));
    let kind = json!({"pagerduty": {"routingKey": pagerduty::ROUTING_KEY}});
    let odd =
        r#"{"status":"throttled","message":"Requests for this service are arriving too quickly"}"#;
    let own = [
        (
            respond_with(200, &[], odd),
            REJECTED,
            "arriving too quickly",
        ),
        (
            respond_with(200, &[], "<html>log in</html>"),
            REJECTED,
            "is not from PagerDuty",
        ),
        (
            respond_with(202, &[], "{"),
            DELIVERED,
            "PagerDuty accepted the event",
        ),
        (Some(Mischief::Floods), REJECTED, "is not from PagerDuty"),
    ];
    table(&world, &pagerduty, &kind, own).await;

    pagerduty.misbehave(None);
    let kind = json!({"pagerduty": {"routingKey": "canary-too-short"}});
    let tested = test(&world.rest(), &kind, "a wrong key").await;
    let says = "Length of 'routing_key' is incorrect (should be 32 characters)";
    check(&tested, REJECTED, says, "a wrong key");
}

#[tokio::test]
async fn servicenow_outcome_follows_its_response() {
    let mut rules = ServiceNow::new(servicenow::SECRET, None, 1_000);
    rules.token_delay = Duration::from_millis(500);
    let instance = provider(rules).await;
    let kind = |secret: &str| {
        json!({"servicenow": {
            "instanceUrl": instance.url(""), "clientId": "bellwether", "clientSecret": secret,
        }})
    };
    let world = world("");
    let rest = world.rest();

    // The duration covers all requests of an attempt.
    instance.misbehave(Mischief::HangsAt("/api/"));
    let tested = test(&rest, &kind(servicenow::SECRET), "slow, then hanging").await;
    check(
        &tested,
        UNKNOWN,
        "no response within 1s",
        "slow, then hanging",
    );
    let duration = tested["duration"].as_str().expect("a duration");
    assert!(
        duration < "1.4",
        "two waits of one second each took {duration}"
    );
    instance.misbehave(Mischief::HangsAt("/oauth_token.do"));
    let tested = test(&rest, &kind("canary-other"), "no token").await;
    check(
        &tested,
        UNREACHABLE,
        "no token: no response within 1s",
        "no token",
    );
    instance.misbehave(None);
    let tested = test(&rest, &kind("canary-other"), "a wrong secret").await;
    check(
        &tested,
        REJECTED,
        "no token: the receiver returned 401 Unauthorized (server_error)",
        "a wrong secret",
    );

    let denied = r#"{"error":{"message":"Operation Failed","detail":"ACL Exception"}}"#;
    let own = [
        (respond_with(403, &[], denied), REJECTED, "ACL Exception"),
        (
            respond_with(200, &[], "<html>Your instance is hibernating</html>"),
            REJECTED,
            "is not from ServiceNow",
        ),
        (Some(Mischief::Floods), REJECTED, "is not from ServiceNow"),
    ];
    table(&world, &instance, &kind(servicenow::SECRET), own).await;
}

#[tokio::test]
async fn mail_outcome_follows_the_server_response() {
    let rules = MailRules {
        login: Some(("bell".into(), email::PASSWORD.into())),
        mechanisms: "PLAIN",
        security: MailSecurity::None,
    };
    let server = StrictMailServer::start(rules).await;
    let world = world(&email::settings(&server));
    let kind = json!({"email": {"to": "duty@example.net"}});
    let says = |verb, answer| Some(MailMischief::Says(verb, answer));
    let rows: [Row<Option<MailMischief>>; 10] = [
        (None, DELIVERED, "the mail server accepted the mail"),
        (
            says("RCPT", "550 5.1.1 no such user here"),
            REJECTED,
            "550: 5.1.1 no such user here",
        ),
        (
            says("RCPT", "450 4.2.0 greylisted"),
            REJECTED,
            "450: 4.2.0 greylisted",
        ),
        (
            says("AUTH", "535 5.7.8 wrong: canary-mail-password"),
            REJECTED,
            "535: 5.7.8 wrong: ********",
        ),
        (
            says(".", "554 5.7.1 looks like spam"),
            REJECTED,
            "554: 5.7.1 looks like spam",
        ),
        (
            says("MAIL", "gibberish"),
            UNREACHABLE,
            "invalid reply from the mail server",
        ),
        (
            Some(MailMischief::HangsUp("MAIL")),
            UNREACHABLE,
            "communication with the mail server failed",
        ),
        (
            Some(MailMischief::HangsUp(".")),
            UNKNOWN,
            "the mail was sent, but no reply arrived",
        ),
        (
            Some(MailMischief::Floods),
            UNREACHABLE,
            "invalid reply from the mail server",
        ),
        (
            Some(MailMischief::Hangs),
            UNREACHABLE,
            "the mail server timed out after 1s",
        ),
    ];
    for (mischief, outcome, says) in rows {
        let what = format!("{mischief:?}");
        server.misbehave(mischief);
        let tested = test(&world.rest(), &kind, &what).await;
        check(&tested, outcome, says, &what);
    }
}

#[tokio::test]
async fn event_destination_names_the_created_event() {
    let world = world("");
    let kind = json!({"event": {
        "nameTemplate": "{{event.name}}-again", "typeTemplate": "again",
        "summaryTemplate": "again: {{event.summary}}", "severity": "SEVERITY_INFO",
    }});
    let tested = test(&world.rest(), &kind, "an event").await;
    check(&tested, DELIVERED, "accepted as event ", "an event");
    let body = tested["response"]["body"].as_str().expect("a body");
    let made: Value = serde_json::from_str(body).expect("JSON");
    let path = format!("/v1/events/{}", made["eventId"].as_str().expect("an id"));
    let event = world.rest().get(&path).await.ok();
    assert_eq!(event["result"]["name"], "disk-full-again");
}

/// Tests a destination of every external type, with its provider at this host and port.
async fn everywhere(host: &str, port: u16, outcome: &str, says: &str) {
    let base = format!("http://{host}:{port}");
    let world = world(&format!(
        "[providers]\nslack = {base:?}\npagerduty = {base:?}\n\
         [smtp]\nhost = {host:?}\nport = {port}\nsecurity = \"none\"\nfrom = \"a@example.net\"\n"
    ));
    let kinds = [
        json!({"webhook": {"url": format!("{base}/")}}),
        json!({"email": {"to": "duty@example.net"}}),
        json!({"slack": {"channel": "#ops", "token": slack::TOKEN}}),
        json!({"msteams": {"url": format!("{base}/canary-workflow")}}),
        json!({"pagerduty": {"routingKey": pagerduty::ROUTING_KEY}}),
        json!({"servicenow": {
            "instanceUrl": base, "clientId": "bellwether", "clientSecret": servicenow::SECRET,
        }}),
    ];
    for kind in kinds {
        let tested = test(&world.rest(), &kind, says).await;
        check(&tested, outcome, says, &kind.to_string());
        assert_eq!(tested["request"], Value::Null, "nothing was sent: {tested}");
    }
}

#[tokio::test]
async fn closed_port_is_unreachable() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    };
    everywhere("127.0.0.1", closed, UNREACHABLE, "connection refused").await;
}

#[tokio::test]
async fn unresolvable_name_is_unreachable() {
    everywhere(
        "name.invalid",
        8080,
        UNREACHABLE,
        "`name.invalid` cannot be resolved",
    )
    .await;
}

#[tokio::test]
async fn address_denied_by_egress_rules_is_blocked() {
    let says =
        "10.0.0.1: it is in 10.0.0.0/8 (private network), which `egress.allow` does not list";
    everywhere("10.0.0.1", 8080, "BLOCKED", says).await;
}
