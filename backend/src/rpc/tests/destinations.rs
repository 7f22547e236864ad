//! Tests of destinations over the wire.

use bellwether_proto::v1::destination_type::Type;
use bellwether_proto::v1::webhook_auth::Auth as WireAuth;

use super::*;
use crate::{
    domain::{Destination, Health, HealthState, secret::MASK},
    store::Lane,
};

pub(super) const CANARY: &str = "canary-4711";
pub(super) const SIGNING: &str = "whsec_Y2FuYXJ5LTQ3MTEtY2FuYXJ5LTQ3MTEt";

pub(super) async fn update(
    world: &World,
    destination: v1::Destination,
) -> Result<v1::Destination, Status> {
    let request = v1::UpdateDestinationRequest {
        destination: Some(destination),
        validate_only: false,
    };
    let answer = world.destinations().update_destination(request).await?;
    Ok(answer.into_inner().destination.unwrap())
}

pub(super) async fn stored(world: &World, name: &str) -> Destination {
    let stored = world.store.get::<Destination>(name.into()).await.unwrap();
    stored.unwrap().value
}

pub(super) fn webhook(change: impl FnOnce(&mut v1::Webhook)) -> Type {
    let mut webhook = v1::Webhook {
        url: "https://hooks.example.com/a".into(),
        ..v1::Webhook::default()
    };
    change(&mut webhook);
    Type::Webhook(webhook)
}

pub(super) fn header(name: &str, value: &str) -> Type {
    webhook(|webhook| {
        webhook.headers.insert(name.into(), value.into());
    })
}

/// Returns a webhook with these headers, of which those in `plain` are not secret.
fn plain(headers: &[&str], plain: &[&str]) -> Type {
    webhook(|webhook| {
        let headers = headers.iter().map(|name| (name.to_string(), "a".into()));
        webhook.headers = headers.collect();
        webhook.plain_headers = plain.iter().map(ToString::to_string).collect();
    })
}

pub(super) fn email(change: impl FnOnce(&mut v1::Email)) -> Type {
    let mut email = v1::Email {
        to: "ops@example.com".into(),
        ..v1::Email::default()
    };
    change(&mut email);
    Type::Email(email)
}

pub(super) fn servicenow(change: impl FnOnce(&mut v1::ServiceNow)) -> Type {
    let mut servicenow = v1::ServiceNow {
        instance_url: "https://acme.service-now.com".into(),
        client_id: "bellwether".into(),
        client_secret: CANARY.into(),
        token_url: String::new(),
        refresh_token: CANARY.into(),
    };
    change(&mut servicenow);
    Type::Servicenow(servicenow)
}

pub(super) fn event(change: impl FnOnce(&mut v1::EventDestination)) -> Type {
    let mut event = v1::EventDestination {
        name_template: "again {{event.name}}".into(),
        type_template: "again".into(),
        summary_template: "{{event.summary}}".into(),
        severity: 4,
    };
    change(&mut event);
    Type::Event(event)
}

pub(super) fn slack() -> Type {
    Type::Slack(v1::Slack {
        channel: "#ops".into(),
        token: CANARY.into(),
        ..v1::Slack::default()
    })
}

pub(super) fn msteams(url: &str) -> Type {
    Type::Msteams(v1::MsTeams { url: url.into() })
}

pub(super) fn pagerduty() -> Type {
    Type::Pagerduty(v1::PagerDuty {
        routing_key: CANARY.into(),
        ..v1::PagerDuty::default()
    })
}

/// Returns a destination of each type, with a canary in every secret.
pub(super) fn every_kind() -> [(&'static str, Type); 7] {
    let all = webhook(|webhook| {
        webhook.method = "PATCH".into();
        webhook
            .headers
            .insert("Authorization".into(), format!("Bearer {CANARY}"));
        webhook.headers.insert("x-env".into(), "lab".into());
        webhook.plain_headers = vec!["x-env".into()];
        webhook.headers.insert("x-team".into(), CANARY.into());
        webhook.payload = "{\"text\": \"{{event.summary}}\"}".into();
        webhook.signing_secret = SIGNING.into();
    });
    [
        ("webhook", all),
        (
            "email",
            email(|email| email.subject = "{{event.name}}".into()),
        ),
        ("slack", slack()),
        (
            "msteams",
            msteams(&format!("https://teams.example.com/{CANARY}")),
        ),
        ("pagerduty", pagerduty()),
        ("servicenow", servicenow(|_| {})),
        ("event", event(|_| {})),
    ]
}

/// Creates each definition, and checks that only its field is rejected; none if it is empty.
async fn try_all(world: &World, cases: Vec<(Type, &str)>) {
    for (kind, field) in cases {
        let described = format!("{kind:?}");
        let request = v1::CreateDestinationRequest {
            destination: Some(destination_of("a", kind)),
            validate_only: true,
        };
        let answer = world.destinations().create_destination(request).await;
        if field.is_empty() {
            assert!(answer.is_ok(), "{described}: {answer:?}");
        } else {
            assert_eq!(fields(answer), [field], "{described}");
        }
    }
}

#[tokio::test]
async fn url_must_be_http_without_credentials() {
    let world = World::start().await;
    let long = format!("https://example.com/{}", "x".repeat(2_048));
    let wrong = [
        "",
        "hooks.example.com",
        "ftp://example.com",
        "https://",
        "https://user@example.com",
        "https://:pass@example.com",
        "https://exa mple.com",
        &long,
    ];
    for url in wrong {
        let secret = (msteams(url), "type.msteams.url");
        let plain = (
            webhook(|webhook| webhook.url = url.into()),
            "type.webhook.url",
        );
        try_all(&world, vec![secret, plain]).await;
    }
    try_all(&world, vec![(msteams(MASK), "type.msteams.url")]).await;
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[tokio::test]
async fn webhook_auth_values_and_expectations_are_validated() {
    let world = World::start().await;
    let auth = |auth| webhook(|it| it.auth = Some(v1::WebhookAuth { auth }));
    let basic = |username: &str, password: &str| {
        auth(Some(WireAuth::Basic(v1::BasicAuth {
            username: username.into(),
            password: password.into(),
        })))
    };
    let oauth = |token_url: &str, secret: &str| {
        auth(Some(WireAuth::Oauth2(v1::OAuth2Auth {
            token_url: token_url.into(),
            client_id: "bellwether".into(),
            client_secret: secret.into(),
            scope: String::new(),
            ..v1::OAuth2Auth::default()
        })))
    };
    let value = |name: &str, from: &str| {
        webhook(|it| {
            let value = v1::ValueMap {
                from: from.into(),
                ..v1::ValueMap::default()
            };
            it.values.insert(name.into(), value);
        })
    };
    let expect = |status: i32, clause| {
        webhook(|it| {
            it.expect = Some(v1::WebhookExpect {
                status: vec![status],
                body_clause: clause,
                destination_clause: None,
            });
        })
    };
    let on_clear = |url: &str, method: &str| {
        webhook(|it| {
            it.on_clear = Some(v1::WebhookOnClear {
                url: url.into(),
                method: method.into(),
                ..v1::WebhookOnClear::default()
            });
        })
    };
    let keep = |names: &[(&str, &str)], payload: &str, secret: &[&str]| {
        webhook(|it| {
            let names = names.iter();
            it.keep = names
                .map(|(name, from)| ((*name).into(), (*from).into()))
                .collect();
            it.keep_secret = secret.iter().map(ToString::to_string).collect();
            it.on_update = Some(v1::WebhookOnClear {
                url: "./{{kept.a}}".into(),
                method: "PATCH".into(),
                payload: payload.into(),
                gone_clause: None,
            });
        })
    };
    let gone_on_clear = webhook(|it| {
        it.on_clear = Some(v1::WebhookOnClear {
            gone_clause: Some(v1::Clause { kind: None }),
            ..v1::WebhookOnClear::default()
        });
    });
    let elsewhere = webhook(|it| {
        it.keep = [("a".into(), "id".into())].into();
        it.keep_secret = vec!["a".into()];
        it.on_update = Some(v1::WebhookOnClear {
            url: "https://other.example.com/{{kept.a}}".into(),
            ..v1::WebhookOnClear::default()
        });
    });
    let many: Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h", "i"]
        .map(|it| (it, "id"))
        .into();
    let both = webhook(|it| {
        it.headers.insert("Authorization".into(), "x".into());
        let token = CANARY.into();
        let auth = Some(WireAuth::Bearer(v1::BearerAuth { token }));
        it.auth = Some(v1::WebhookAuth { auth });
    });
    let unset = v1::Clause { kind: None };
    let cases = vec![
        (auth(None), "type.webhook.auth"),
        (basic("ada", CANARY), ""),
        (basic("a:b", CANARY), "type.webhook.auth.basic.username"),
        (basic("ada", ""), "type.webhook.auth.basic.password"),
        (basic("ada", MASK), "type.webhook.auth.basic.password"),
        (oauth("https://example.com/token", CANARY), ""),
        (
            oauth("nowhere", CANARY),
            "type.webhook.auth.oauth2.tokenUrl",
        ),
        (
            oauth("https://example.com/token", ""),
            "type.webhook.auth.oauth2.clientSecret",
        ),
        (both, "type.webhook.auth"),
        (on_clear("https://example.com/{{event.id}}", "DELETE"), ""),
        (on_clear("", ""), ""),
        (
            on_clear("https://{{event.id}}/", ""),
            "type.webhook.onClear.url",
        ),
        (on_clear("", "GET"), "type.webhook.onClear.method"),
        (keep(&[("a", "id")], "{{kept.a}}", &["a"]), ""),
        (keep(&[("a", "header:etag")], "", &[]), ""),
        (keep(&many[..8], "", &[]), ""),
        (keep(&many, "", &[]), "type.webhook.keep"),
        (
            keep(&[("a", "id")], "{{kept.b}}", &[]),
            "type.webhook.onUpdate.payload",
        ),
        (keep(&[("b", "id")], "", &[]), "type.webhook.onUpdate.url"),
        (
            keep(&[("a", "id"), ("b b", "id")], "", &[]),
            "type.webhook.keep[b b]",
        ),
        (keep(&[("a", "id.")], "", &[]), "type.webhook.keep[a]"),
        (keep(&[("a", "")], "", &[]), "type.webhook.keep[a]"),
        (keep(&[("a", "header:")], "", &[]), "type.webhook.keep[a]"),
        (
            keep(&[("a", "id")], "", &["b"]),
            "type.webhook.keepSecret[b]",
        ),
        (elsewhere, "type.webhook.onUpdate.url"),
        (gone_on_clear, "type.webhook.onClear.goneClause"),
        (value("p", "kept.a"), "type.webhook.values[p].from"),
        (value("p_1", "event.severity"), ""),
        (value("p 1", "event.severity"), "type.webhook.values[p 1]"),
        (value("p", "event.colour"), "type.webhook.values[p].from"),
        (value("p", "values.p"), "type.webhook.values[p].from"),
        (
            webhook(|it| it.payload = "{{values.p}}".into()),
            "type.webhook.payload",
        ),
        (expect(204, None), ""),
        (expect(99, None), "type.webhook.expect.status"),
        (expect(200, Some(unset)), "type.webhook.expect.bodyClause"),
        (expect(200, Some(contains("ok", "x"))), ""),
        (
            expect(200, Some(contains("", "x"))),
            "type.webhook.expect.bodyClause.contains.field",
        ),
    ];
    try_all(&world, cases).await;
}

#[tokio::test]
async fn webhook_secrets_must_be_resent_when_an_address_changes() {
    let world = World::start().await;
    let draft = |token_url: &str, secret: &str, close: &str| {
        destination_of(
            "a",
            webhook(|it| {
                let oauth = v1::OAuth2Auth {
                    token_url: token_url.into(),
                    client_id: "bellwether".into(),
                    client_secret: secret.into(),
                    scope: String::new(),
                    ..v1::OAuth2Auth::default()
                };
                let auth = Some(WireAuth::Oauth2(oauth));
                it.auth = Some(v1::WebhookAuth { auth });
                it.on_clear = Some(v1::WebhookOnClear {
                    url: close.into(),
                    ..v1::WebhookOnClear::default()
                });
            }),
        )
    };
    let token = "https://example.com/token";
    let shown = world.create_destination(draft(token, CANARY, "")).await;
    let shown = format!("{:?}", shown.unwrap());
    assert!(!shown.contains(CANARY) && shown.contains(MASK), "{shown}");
    let update = async |draft: v1::Destination| {
        let request = v1::UpdateDestinationRequest {
            destination: Some(draft),
            validate_only: true,
        };
        world.destinations().update_destination(request).await
    };
    assert!(update(draft(token, MASK, "")).await.is_ok());
    assert_eq!(
        fields(update(draft("https://example.org/token", MASK, "")).await),
        ["type.webhook.auth.oauth2.clientSecret"]
    );
    assert_eq!(
        fields(update(draft(token, "", "https://example.org/close")).await),
        ["type.webhook.auth.oauth2.clientSecret"]
    );
    assert!(
        update(draft("https://example.org/token", CANARY, ""))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn url_templates_are_allowed_only_in_path_and_query() {
    let world = World::start().await;
    let url = |url: &str| webhook(|it| it.url = url.into());
    let at_url = "type.webhook.url";
    let cases = vec![
        (
            url("https://example.com/{{event.name}}?a={{event.summary}}"),
            "",
        ),
        (url("https://{{event.name}}.example.com/"), at_url),
        (url("https://example.com{{event.name}}"), at_url),
        (url("{{event.name}}"), at_url),
        (url("https://example.com/{{{event.name}}}"), at_url),
        (url("https://example.com/{{#clear}}"), at_url),
        (url("https://exa mple.com/{{event.name}}"), at_url),
        (
            webhook(|it| it.secret_url = "https://example.com/".into()),
            "type.webhook.secretUrl",
        ),
        (
            webhook(|it| {
                it.url = String::new();
                it.secret_url = "https://example.com/{{event.name}} x".into();
            }),
            "type.webhook.secretUrl",
        ),
    ];
    try_all(&world, cases).await;

    let secret = webhook(|it| {
        it.url = String::new();
        it.secret_url = "https://example.com/T0/B0/canary".into();
    });
    let made = world
        .create_destination(destination_of("chat", secret))
        .await;
    let shown = format!("{:?}", made.unwrap());
    assert!(!shown.contains("canary") && shown.contains(MASK), "{shown}");
}

#[tokio::test]
async fn refusal_of_an_internal_address_names_the_setting() {
    let world = World::start().await;
    let inner = "http://10.0.0.1/hook";
    let cases = [
        (webhook(|it| it.url = inner.into()), "type.webhook.url"),
        (msteams(inner), "type.msteams.url"),
        (
            servicenow(|it| it.token_url = inner.into()),
            "type.servicenow.tokenUrl",
        ),
    ];
    for (kind, field) in cases {
        let refused = world.create_destination(destination_of("a", kind)).await;
        let said = refused.as_ref().unwrap_err().message().to_owned();
        assert!(
            said.contains("10.0.0.0/8") && said.contains("`egress.allow`"),
            "{said}"
        );
        assert_eq!(fields(refused), [field]);
    }
    let allowed = webhook(|it| it.url = "http://127.0.0.1:9/".into());
    try_all(&world, vec![(allowed, "")]).await;
}

#[tokio::test]
async fn invalid_webhook_fields_are_named_by_path() {
    let world = World::start().await;
    let signed = |secret: &str| webhook(|webhook| webhook.signing_secret = secret.into());
    let with = |name: &str| header(name, "a");
    let cases = vec![
        (
            webhook(|it| it.method = "GET".into()),
            "type.webhook.method",
        ),
        (
            webhook(|it| it.payload = "{{#a}}".into()),
            "type.webhook.payload",
        ),
        (
            with("content-length"),
            "type.webhook.headers[content-length]",
        ),
        (with("Host"), "type.webhook.headers[Host]"),
        (with("Webhook-Id"), "type.webhook.headers[Webhook-Id]"),
        (with("a b"), "type.webhook.headers[a b]"),
        (header("x-a", "a\r\nb: c"), "type.webhook.headers[x-a]"),
        (header("cookie", MASK), "type.webhook.headers[cookie]"),
        (signed("secret"), "type.webhook.signingSecret"),
        (signed("whsec_AAAA"), "type.webhook.signingSecret"),
        (
            signed(&format!("{SIGNING} {SIGNING} {SIGNING}")),
            "type.webhook.signingSecret",
        ),
        (signed(&format!("{SIGNING} {SIGNING}")), ""),
        (signed(MASK), "type.webhook.signingSecret"),
        (header("x-a", MASK), "type.webhook.headers[x-a]"),
        (plain(&["x-a"], &["x-b"]), "type.webhook.plainHeaders[x-b]"),
        (
            plain(&["x-api-key"], &["x-api-key"]),
            "type.webhook.plainHeaders[x-api-key]",
        ),
        (plain(&["x-a", "X-B"], &["X-A", "x-b"]), ""),
    ];
    try_all(&world, cases).await;
    let many = webhook(|webhook| {
        webhook.headers = (0..51).map(|at| (format!("x-{at}"), "a".into())).collect();
    });
    try_all(&world, vec![(many, "type.webhook.headers")]).await;
}

fn many_addresses(count: usize) -> String {
    let each: Vec<_> = (0..count).map(|at| format!("a{at}@example.com")).collect();
    each.join(",")
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of faults")]
async fn invalid_fields_of_other_kinds_are_named_by_path() {
    let world = World::start().await;
    let slack = |channel: &str, token: &str| {
        Type::Slack(v1::Slack {
            channel: channel.into(),
            token: token.into(),
            ..v1::Slack::default()
        })
    };
    let to = |to: &str| email(|email| email.to = to.into());
    let cases = vec![
        (to(""), "type.email.to"),
        (to("ops@example.com, db@example.com"), ""),
        (to("ops@example.com,, db@example.com"), "type.email.to"),
        (
            to("Ops <ops@example.com>, \"Doe, Jane\" <jane@example.com>"),
            "",
        ),
        (to("ops@m\u{fc}ller.example, m\u{fc}ller@example.com"), ""),
        (to("ops@example.com\r\nDATA"), "type.email.to"),
        (
            to("Ops\r\nBcc: x@example.com <ops@example.com>"),
            "type.email.to",
        ),
        (to("ops@example.com; db@example.com"), "type.email.to"),
        (to(&format!("{} <a@example.com>", "n".repeat(200))), ""),
        (
            to(&format!("{} <a@example.com>", "n".repeat(201))),
            "type.email.to",
        ),
        (to(&many_addresses(20)), ""),
        (to(&many_addresses(21)), "type.email.to"),
        (to(&many_addresses(10_000)), "type.email.to"),
        (email(|it| it.cc = many_addresses(20)), "type.email.to"),
        (email(|it| it.bcc = many_addresses(20)), "type.email.to"),
        (
            email(|it| it.bcc = many_addresses(10_000)),
            "type.email.bcc",
        ),
        (
            email(|it| it.bcc = "x\n@example.com".into()),
            "type.email.bcc",
        ),
        (email(|it| it.cc = "x".into()), "type.email.cc"),
        (email(|it| it.from = "DB <db@example.com>".into()), ""),
        (email(|it| it.from = "db".into()), "type.email.from"),
        (email(|it| it.from = many_addresses(2)), "type.email.from"),
        (
            email(|it| it.from = "DB\r\nX: y <db@example.com>".into()),
            "type.email.from",
        ),
        (email(|it| it.reply_to = many_addresses(20)), ""),
        (
            email(|it| it.reply_to = many_addresses(21)),
            "type.email.replyTo",
        ),
        (
            email(|it| it.reply_to = "a@b\r".into()),
            "type.email.replyTo",
        ),
        (
            email(|it| it.list_id = "Alerts <alerts.example.com>".into()),
            "",
        ),
        (
            email(|it| it.list_id = "alerts".into()),
            "type.email.listId",
        ),
        (
            email(|it| it.list_id = "a\r\nX: <alerts.example.com>".into()),
            "type.email.listId",
        ),
        (
            email(|it| it.list_id = format!("a.{}", "b".repeat(254))),
            "type.email.listId",
        ),
        (email(|it| it.priority = "SEVERITY".into()), ""),
        (
            email(|it| it.priority = "urgent".into()),
            "type.email.priority",
        ),
        (email(|it| it.subject = "{{".into()), "type.email.subject"),
        (slack("", CANARY), "type.slack.channel"),
        (slack("#a", MASK), "type.slack.token"),
        (
            Type::Pagerduty(v1::PagerDuty::default()),
            "type.pagerduty.routingKey",
        ),
        (
            servicenow(|it| it.instance_url = "acme".into()),
            "type.servicenow.instanceUrl",
        ),
        (
            servicenow(|it| it.client_id = String::new()),
            "type.servicenow.clientId",
        ),
        (
            servicenow(|it| it.client_secret = "a\nb".into()),
            "type.servicenow.clientSecret",
        ),
        (
            servicenow(|it| it.token_url = "acme".into()),
            "type.servicenow.tokenUrl",
        ),
        (servicenow(|it| it.refresh_token = String::new()), ""),
        (
            servicenow(|it| it.refresh_token = MASK.into()),
            "type.servicenow.refreshToken",
        ),
        (
            event(|it| it.name_template = " ".into()),
            "type.event.nameTemplate",
        ),
        (
            event(|it| it.type_template = String::new()),
            "type.event.typeTemplate",
        ),
        (
            event(|it| it.summary_template = "{{{".into()),
            "type.event.summaryTemplate",
        ),
        (event(|it| it.severity = 0), "type.event.severity"),
        (event(|it| it.severity = 9), "type.event.severity"),
    ];
    try_all(&world, cases).await;
    let mut nothing = destination("a");
    nothing.r#type = None;
    assert_eq!(fields(world.create_destination(nothing).await), ["type"]);
}

#[tokio::test]
async fn delivery_settings_are_range_checked() {
    let world = World::start().await;
    let timeout = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let with = |change: &dyn Fn(&mut v1::DeliverySettings)| {
        let mut settings = v1::DeliverySettings::default();
        change(&mut settings);
        settings
    };
    let cases = [
        (with(&|it| it.timeout = timeout(0)), "timeout"),
        (with(&|it| it.timeout = timeout(31)), "timeout"),
        (with(&|it| it.timeout = timeout(-1)), "timeout"),
        (with(&|it| it.max_in_flight = 65), "maxInFlight"),
        (with(&|it| it.max_in_flight = -1), "maxInFlight"),
        (with(&|it| it.max_per_minute = -1), "maxPerMinute"),
        (with(&|it| it.max_attempts = 9), "maxAttempts"),
    ];
    for (settings, field) in cases {
        let mut draft = destination("a");
        draft.delivery = Some(settings);
        let refused = world.create_destination(draft).await;
        assert_eq!(fields(refused), [format!("delivery.{field}")]);
    }
    let settings = v1::DeliverySettings {
        timeout: timeout(30),
        max_in_flight: 64,
        max_per_minute: 10,
        max_attempts: 8,
        budget: Some(v1::MessageBudget {
            messages: 10,
            per: timeout(600),
            critical_share: Some(30),
        }),
    };
    let mut draft = destination("a");
    draft.delivery = Some(settings);
    let made = world.create_destination(draft).await.unwrap();
    assert_eq!(made.delivery, Some(settings));
}

#[tokio::test]
async fn destination_shows_its_health() {
    let world = World::start().await;
    world.create_destination(destination("a")).await.unwrap();
    let health = Health {
        state: HealthState::Paused,
        failures: 9,
        last_error: "410 Gone".into(),
        ..Health::new_unattempted(stored(&world, "a").await.id, samples::START_MS)
    };
    let mut changes = world.store.new_changes();
    changes.insert(&health);
    world.store.apply(Lane::Bulk, changes).await.unwrap();
    let request = v1::GetDestinationRequest { name: "a".into() };
    let got = inner(world.destinations().get_destination(request).await.unwrap());
    let shown = got.destination.unwrap().health.unwrap();
    assert_eq!(shown.state(), v1::destination_health::State::Paused);
    assert_eq!(shown.last_error, "410 Gone");
    let request = v1::DeleteDestinationRequest {
        name: "a".into(),
        ..v1::DeleteDestinationRequest::default()
    };
    let mut destinations = world.destinations();
    destinations.delete_destination(request).await.unwrap();
    assert_eq!(samples::all::<Health>(&world.store).await, []);
}

#[tokio::test]
async fn destination_in_use_is_deleted_only_by_force() {
    let world = World::start().await;
    for name in ["used", "other"] {
        world.create_destination(destination(name)).await.unwrap();
    }
    world
        .create_rule(rule("r", &[], &["used", "other"]))
        .await
        .unwrap();
    let mut request = v1::DeleteDestinationRequest {
        name: "used".into(),
        ..v1::DeleteDestinationRequest::default()
    };
    let refused = world
        .destinations()
        .delete_destination(request.clone())
        .await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("`r`"), "{refused:?}");
    request.force = true;
    world
        .destinations()
        .delete_destination(request)
        .await
        .unwrap();
    let left = world.get_rule("r").await.unwrap().destination_names;
    assert_eq!(left, ["other"]);
}
