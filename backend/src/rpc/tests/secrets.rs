//! Tests of secrets over the wire: they are stored and never returned.

use bellwether_proto::v1::destination_type::Type;

use super::{
    destinations::{
        CANARY, SIGNING, every_kind, header, msteams, servicenow, slack, stored, update, webhook,
    },
    *,
};
use crate::domain::{
    DestinationKind,
    destination::{Header, HeaderValue},
    secret::MASK,
};

#[tokio::test]
async fn no_response_reveals_a_secret_of_any_kind() {
    let world = World::start().await;
    for (name, kind) in every_kind() {
        let draft = destination_of(name, kind);
        let made = world.create_destination(draft.clone()).await.unwrap();
        // A definition can be read and written back.
        let edited = update(&world, made.clone()).await.unwrap();
        assert_eq!(edited.r#type, made.r#type);
        let again = world.create_destination(draft.clone()).await.unwrap_err();
        let mut wrong = draft;
        wrong.name = "a/b".into();
        let refused = world.create_destination(wrong).await.unwrap_err();
        let request = v1::ListDestinationsRequest::default();
        let listed = inner(
            world
                .destinations()
                .list_destinations(request)
                .await
                .unwrap(),
        );
        let shown = format!("{made:?} {edited:?} {again:?} {refused:?} {listed:?}");
        assert!(
            !shown.contains(CANARY) && !shown.contains(SIGNING),
            "{name}: {shown}"
        );
        let health = made.health.unwrap();
        assert_eq!(health.state(), v1::destination_health::State::Untried);
        let in_store = format!("{:?}", stored(&world, name).await);
        assert!(!in_store.contains(CANARY), "{name}: {in_store}");
    }
    let DestinationKind::Webhook(webhook) = stored(&world, "webhook").await.kind else {
        panic!("it is no longer a webhook");
    };
    assert_eq!(webhook.signing_secret.reveal(), SIGNING);
    let DestinationKind::MsTeams(teams) = stored(&world, "msteams").await.kind else {
        panic!("it is no longer a Teams address");
    };
    assert!(teams.url.reveal().contains(CANARY));
}

#[tokio::test]
async fn omitted_or_masked_secrets_are_retained_on_update() {
    let world = World::start().await;
    for (name, kind) in every_kind() {
        world
            .create_destination(destination_of(name, kind))
            .await
            .unwrap();
    }
    for given in ["", MASK] {
        let edits = [
            (
                "slack",
                Type::Slack(v1::Slack {
                    channel: "#new".into(),
                    token: given.into(),
                    ..v1::Slack::default()
                }),
            ),
            ("msteams", msteams(given)),
            (
                "pagerduty",
                Type::Pagerduty(v1::PagerDuty {
                    routing_key: given.into(),
                    ..v1::PagerDuty::default()
                }),
            ),
            (
                "servicenow",
                servicenow(|servicenow| {
                    servicenow.client_secret = given.into();
                    servicenow.refresh_token = given.into();
                }),
            ),
        ];
        for (name, kind) in edits {
            let before = stored(&world, name).await.kind;
            update(&world, destination_of(name, kind)).await.unwrap();
            let after = stored(&world, name).await.kind;
            let secret = |kind| match kind {
                DestinationKind::Slack(slack) => slack.token,
                DestinationKind::MsTeams(teams) => teams.url,
                DestinationKind::PagerDuty(pagerduty) => pagerduty.routing_key,
                DestinationKind::ServiceNow(servicenow) => {
                    assert_eq!(servicenow.refresh_token.reveal(), CANARY);
                    servicenow.client_secret
                }
                other => panic!("{other:?}"),
            };
            assert!(secret(after) == secret(before), "{name} {given:?}");
        }
    }
    // The secret of one destination type is not used for another type.
    let other = Type::Pagerduty(v1::PagerDuty {
        routing_key: MASK.into(),
        ..v1::PagerDuty::default()
    });
    let refused = update(&world, destination_of("slack", other)).await;
    assert_eq!(fields(refused), ["type.pagerduty.routingKey"]);
}

#[tokio::test]
async fn secret_headers_are_retained_when_masked_or_omitted() {
    let world = World::start().await;
    let secrets = async || {
        let DestinationKind::Webhook(webhook) = stored(&world, "a").await.kind else {
            panic!("it is no longer a webhook");
        };
        assert_eq!(webhook.signing_secret.reveal(), SIGNING);
        let secret = |header: Header| match header.value {
            HeaderValue::Secret(secret) => Some((header.name, secret.reveal().to_owned())),
            HeaderValue::Plain(_) => None,
        };
        webhook
            .headers
            .into_iter()
            .filter_map(secret)
            .collect::<Vec<_>>()
    };
    let signed = webhook(|webhook| {
        webhook.headers.insert("X-Api-Key".into(), CANARY.into());
        webhook.headers.insert("x-env".into(), "lab".into());
        webhook.headers.insert("x-team".into(), "ops".into());
        webhook
            .headers
            .insert("Content-Type".into(), "text/plain".into());
        webhook.plain_headers = vec!["X-Env".into()];
        webhook.signing_secret = SIGNING.into();
    });
    let made = world
        .create_destination(destination_of("a", signed))
        .await
        .unwrap();
    let Some(Type::Webhook(shown)) = made.r#type.unwrap().r#type else {
        panic!("it is no longer a webhook");
    };
    assert_eq!(shown.headers["X-Api-Key"], MASK);
    assert_eq!(shown.headers["x-env"], "lab");
    assert_eq!(shown.headers["x-team"], MASK, "not marked as plain");
    assert_eq!(shown.headers["Content-Type"], "text/plain");
    let mut plain = shown.plain_headers.clone();
    plain.sort();
    assert_eq!(plain, ["Content-Type", "x-env"]);
    update(&world, destination_of("a", header("X-Api-Key", MASK)))
        .await
        .unwrap();
    let unchanged = |name: &str| vec![(name.to_owned(), CANARY.to_owned())];

    update(&world, destination_of("a", webhook(|_| {})))
        .await
        .unwrap();
    assert_eq!(secrets().await, unchanged("X-Api-Key"));
    update(&world, destination_of("a", header("x-api-key", MASK)))
        .await
        .unwrap();
    assert_eq!(secrets().await, unchanged("x-api-key"));
    update(&world, destination_of("a", header("x-env", "live")))
        .await
        .unwrap();
    assert_eq!(
        secrets().await,
        [("x-env".to_owned(), "live".to_owned())],
        "another value is not marked as plain"
    );
}

/// Tests a draft of the stored destination `name`, as the client with `key`.
async fn try_draft(
    world: &World,
    key: &Bearer,
    name: &str,
    kind: Type,
) -> Result<Response<v1::TestDestinationResponse>, Status> {
    let request = v1::TestDestinationRequest {
        name: name.into(),
        r#type: Some(v1::DestinationType { r#type: Some(kind) }),
        ..v1::TestDestinationRequest::default()
    };
    DestinationServiceClient::with_interceptor(world.channel.clone(), key.clone())
        .test_destination(request)
        .await
}

fn signed_webhook(url: &str, secret: &str) -> Type {
    webhook(|webhook| {
        webhook.url = url.into();
        webhook.signing_secret = secret.into();
    })
}

const HOME: &str = "http://127.0.0.1:9";
const AWAY: &str = "http://127.0.0.2:9";

/// Tests and stores drafts of destinations with and without stored secrets. Checks that each draft
/// is rejected for exactly the fields of its case.
async fn try_all_drafts(cases: Vec<(&str, Type, &[&str])>) {
    let world = World::start().await;
    let stored = [
        ("hook", signed_webhook(&format!("{HOME}/a"), SIGNING)),
        ("bare", signed_webhook(&format!("{HOME}/a"), "")),
        ("now", instance(HOME, "", CANARY)),
        ("slack", slack()),
    ];
    for (name, kind) in stored {
        let destination = destination_of(name, kind);
        world.create_destination(destination).await.unwrap();
    }
    let operator = world.key("olga", Role::Operator).await;
    let editor = world.key("edda", Role::Editor).await;
    for (name, kind, expected) in cases {
        let described = format!("{name} {kind:?}");
        let edit = v1::UpdateDestinationRequest {
            destination: Some(destination_of(name, kind.clone())),
            validate_only: true,
        };
        let edited = world.destinations().update_destination(edit).await;
        let edited = edited.map(drop);
        let by_operator = try_draft(&world, &operator, name, kind.clone()).await;
        let by_editor = try_draft(&world, &editor, name, kind).await;
        let answers = [edited, by_operator.map(drop), by_editor.map(drop)];
        for answer in answers.into_iter().skip(usize::from(name == "new")) {
            if expected.is_empty() {
                assert!(answer.is_ok(), "{described}: {answer:?}");
            } else {
                let said = format!("{answer:?}");
                assert!(!said.contains(SIGNING) && !said.contains(CANARY), "{said}");
                assert_eq!(fields(answer), expected, "{described}");
            }
        }
    }
}

#[tokio::test]
async fn webhook_draft_uses_stored_secrets_only_for_the_same_url() {
    let url: &[&str] = &["type.webhook.signingSecret"];
    let header = webhook(|webhook| {
        webhook.url = AWAY.into();
        webhook.headers.insert("x-token".into(), CANARY.into());
    });
    Box::pin(try_all_drafts(vec![
        (
            "hook",
            signed_webhook("http://127.0.0.1:9/a#there", ""),
            &[],
        ),
        ("hook", signed_webhook("HTTP://127.0.0.1:9/./a", MASK), &[]),
        ("hook", signed_webhook("http://127.0.0.1:9/b", ""), url),
        ("hook", signed_webhook("http://127.0.0.1:9/a?c", ""), url),
        ("hook", signed_webhook(AWAY, ""), url),
        ("hook", signed_webhook(AWAY, MASK), url),
        ("hook", signed_webhook("https://127.0.0.1:9/", ""), url),
        ("hook", signed_webhook("http://127.0.0.1:90/", ""), url),
        ("hook", signed_webhook("http://127.0.0.1/", ""), url),
        ("hook", signed_webhook(AWAY, SIGNING), &[]),
        // These destinations have no stored secret.
        ("bare", signed_webhook(AWAY, ""), &[]),
        ("bare", header, &[]),
        ("new", signed_webhook(AWAY, ""), &[]),
    ]))
    .await;
}

fn instance(url: &str, token_url: &str, secret: &str) -> Type {
    servicenow(|servicenow| {
        servicenow.instance_url = url.into();
        servicenow.token_url = token_url.into();
        servicenow.client_secret = secret.into();
        servicenow.refresh_token = secret.into();
    })
}

#[tokio::test]
async fn servicenow_and_slack_drafts_use_stored_secrets_only_for_the_same_url() {
    let both: &[&str] = &[
        "type.servicenow.clientSecret",
        "type.servicenow.refreshToken",
    ];
    let channel = Type::Slack(v1::Slack {
        channel: "#elsewhere".into(),
        token: String::new(),
        ..v1::Slack::default()
    });
    Box::pin(try_all_drafts(vec![
        ("now", instance(HOME, "", ""), &[]),
        ("now", instance(HOME, HOME, MASK), &[]),
        ("now", instance(HOME, AWAY, ""), both),
        ("now", instance(AWAY, HOME, ""), both),
        ("now", instance(AWAY, AWAY, CANARY), &[]),
        // Destinations of this type have no address that a draft can set.
        ("slack", channel, &[]),
    ]))
    .await;
}
