//! Text beyond a provider's limits: truncated where possible, with a warning in the preview.

use bellwether_tests::{
    providers::{StandIn, servicenow::ServiceNow},
    receiver::Received,
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};

use super::{msteams, pagerduty, servicenow, slack};

/// Returns a text longer than any provider accepts, and longer than the part of Slack's response
/// that is read, in which each non-ASCII character takes six bytes.
fn long_message() -> String {
    "\u{fc}".repeat(20_000) + &"x".repeat(25_000)
}

fn big_event() -> Value {
    let many: serde_json::Map<_, _> = (0..60)
        .map(|at| (format!("dimension-{at}"), Value::from("\"x\n".repeat(300))))
        .collect();
    json!({
        "name": "n".repeat(256),
        "type": "t".repeat(256),
        "dimensions": many,
        "severity": "SEVERITY_CRITICAL",
        "summary": "\u{fc}".repeat(512),
        "body": "\\".repeat(64_000),
        "metadataFields": {"dump": "\"".repeat(30_000)},
    })
}

struct Providers {
    slack: StandIn,
    pagerduty: StandIn,
    teams: StandIn,
    servicenow: StandIn,
    world: World,
}

impl Providers {
    async fn start() -> Self {
        let slack = StandIn::start(slack::rules()).await;
        let pagerduty = StandIn::start(pagerduty::rules()).await;
        let world = World::with_settings(&format!(
            "link_base = \"https://bell.example\"\n[providers]\nslack = {:?}\npagerduty = {:?}\n",
            slack.url(""),
            pagerduty.url("")
        ));
        Self {
            slack,
            pagerduty,
            teams: StandIn::start(msteams::rules(false)).await,
            servicenow: StandIn::start(ServiceNow::new(servicenow::SECRET, None, 9)).await,
            world,
        }
    }

    fn kinds(&self) -> [(&'static str, Value, &StandIn); 4] {
        [
            (
                "slack",
                json!({"channel": "#ops", "token": slack::TOKEN}),
                &self.slack,
            ),
            (
                "pagerduty",
                json!({"routingKey": pagerduty::ROUTING_KEY}),
                &self.pagerduty,
            ),
            (
                "msteams",
                json!({"url": self.teams.url(msteams::PATH)}),
                &self.teams,
            ),
            (
                "servicenow",
                json!({
                    "instanceUrl": self.servicenow.url(""),
                    "clientId": "bellwether",
                    "clientSecret": servicenow::SECRET,
                }),
                &self.servicenow,
            ),
        ]
    }
}

async fn test_and_receive(
    rest: &Rest,
    name: &str,
    kind: &Value,
    provider: &StandIn,
    more: Value,
) -> Received {
    let mut body = more;
    body["name"] = json!(name);
    body["type"] = json!({name: kind});
    let tested = rest
        .post("/v1/notification/destinations:test", &body)
        .await
        .ok();
    assert_eq!(
        tested["outcome"], "OUTCOME_DELIVERED",
        "{name}: {:?}",
        tested["explanation"]
    );
    provider.accepted().pop().expect("a message")
}

#[tokio::test]
async fn long_messages_are_truncated_for_every_provider() {
    let providers = Providers::start().await;
    let rest = providers.world.rest();
    for (name, kind, provider) in providers.kinds() {
        let message = json!({"message": long_message()});
        let got = test_and_receive(&rest, name, &kind, provider, message)
            .await
            .json();
        let text = match name {
            "slack" => &got["text"],
            "pagerduty" => &got["payload"]["summary"],
            "msteams" => &got["attachments"][0]["content"]["body"][0]["text"],
            _ => &got["description"],
        };
        let text = text.as_str().expect("a text");
        assert!(text.starts_with("\u{fc}\u{fc}"), "{name}: {text}");
        assert!(text.ends_with('\u{2026}'), "{name} shows that it was cut");
    }
}

#[tokio::test]
async fn every_provider_accepts_the_largest_possible_event() {
    let providers = Providers::start().await;
    let rest = providers.world.rest();
    for (name, kind, provider) in providers.kinds() {
        for message in ["", "{{event.body}}", "{{event.severity}}"] {
            let more = json!({"event": big_event(), "message": message});
            test_and_receive(&rest, name, &kind, provider, more).await;
        }
    }
}

#[tokio::test]
async fn preview_warns_of_truncation_by_provider_limits() {
    let providers = Providers::start().await;
    let rest = providers.world.rest();
    let kinds = providers.kinds();
    for (name, kind, _) in &kinds {
        let destination = json!({"name": name, "type": {*name: kind}});
        rest.post("/v1/notification/destinations", &destination)
            .await
            .ok();
    }
    let names: Vec<_> = kinds.iter().map(|(name, ..)| *name).collect();
    let preview = async |message: &str| {
        let rule = json!({"name": "r", "destinationNames": names, "message": message});
        rest.post("/v1/notification/rules:preview", &rule)
            .await
            .ok()["previews"]
            .clone()
    };

    for one in preview("short").await.as_array().expect("previews") {
        assert_eq!(one["warnings"], Value::Null, "{one}");
    }
    let cuts = [
        ("slack", "40000 characters"),
        ("pagerduty", "1024 characters"),
        ("msteams", "28000 bytes"),
        ("servicenow", "4000 characters"),
    ];
    let previews = preview(&long_message()).await;
    for (name, limit) in cuts {
        let all = previews.as_array().expect("previews").iter();
        let one = all
            .clone()
            .find(|one| one["destinationName"] == name)
            .expect("a preview");
        let warning = one["warnings"][0].as_str().unwrap_or_default();
        assert!(
            warning.contains("truncated") && warning.contains(limit),
            "{name}: {warning:?}"
        );
    }
}
