//! Templates and mappings: limits of their cost over REST and gRPC, and positions of variables in a
//! webhook.

use std::time::{Duration, Instant};

use bellwether_tests::{
    eventually::eventually, receiver::Receiver, rest::Rest, wire::Wire, world::World,
};
use serde_json::{Value, json};
use tonic::Code;

use crate::samples;

/// A short template with quadratic cost.
const SQUARE: &str =
    "{{#event.metadata.m}}{{#event.metadata.m}}{{/event.metadata.m}}{{/event.metadata.m}}";

/// Time limit for a call: longer than any bounded rendering takes while other tests run, and far
/// shorter than an unbounded one.
const PATIENCE: Duration = Duration::from_secs(60);

fn long_event() -> Value {
    let mut event = samples::event("full", "db-1", "SEVERITY_ERROR", "disk full");
    event["metadataFields"] = json!({"m": vec![1; 30_000]});
    event
}

async fn stored_event(rest: &Rest) -> String {
    let body = samples::events(&[long_event()]);
    rest.post("/v1/data-receiver/events", &body).await.ok();
    let query = json!({"query": {"clause": {"equals": {"field": "name", "stringVal": "full"}}}});
    let found = rest.post("/v1/events:search", &query).await.ok();
    found["results"][0]["id"].as_str().unwrap().to_owned()
}

/// Asserts that a call is rejected quickly, with an error that names the template and the limit.
async fn too_much(wire: &Wire, method: &str, request: &Value, named: &str) {
    let begun = Instant::now();
    let refusal = wire.refused(method, request).await;
    let place = format!("{} over {}: {}", method, wire.name(), refusal.message);
    assert_eq!(refusal.code, Code::InvalidArgument, "{place}");
    let is_named = refusal.message.contains(named) && refusal.message.contains("100000 steps");
    assert!(is_named, "{place}");
    assert!(begun.elapsed() < PATIENCE, "{place}");
}

#[tokio::test]
async fn costly_template_is_rejected_with_its_name_and_limit() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    let event = stored_event(&rest).await;
    samples::disks_to_hook(&rest, &receiver).await;
    let mut costly = samples::webhook("costly", &receiver.url("/"));
    costly["type"]["webhook"]["payload"] = json!(SQUARE);
    rest.post("/v1/notification/destinations", &costly)
        .await
        .ok();
    let names = ["n."; 255].concat() + "nn";
    let long = format!(
        "{{{{#event.metadata.m}}}}{{{{#event.metadata.m}}}}{{{{{names}}}}}\
         {{{{/event.metadata.m}}}}{{{{/event.metadata.m}}}}"
    );
    let document = json!({"m": vec![1; 60_000]}).to_string();
    let nested = "{{#m}}{{#m}}{{/m}}{{/m}}";
    let mapping = json!({"event": {"name": "x", "summary": nested, "dimensions": {"host": "a"}}});
    for wire in world.wires() {
        for message in [SQUARE, &long] {
            let preview =
                json!({"eventId": event, "message": message, "destinationNames": ["hook"]});
            too_much(
                &wire,
                "RuleService/PreviewRule",
                &preview,
                "the rule's message",
            )
            .await;
        }
        let preview = json!({"eventId": event, "destinationNames": ["hook", "costly"]});
        let named = "`costly`: the webhook's payload";
        too_much(&wire, "RuleService/PreviewRule", &preview, named).await;
        let test = json!({"type": costly["type"], "eventId": event});
        let named = "the webhook's payload";
        too_much(&wire, "DestinationService/TestDestination", &test, named).await;
        let test = json!({"mapping": mapping, "body": document});
        too_much(
            &wire,
            "IntakeMappingService/TestIntakeMapping",
            &test,
            "event.summary",
        )
        .await;
    }
    assert_eq!(receiver.count(), 0, "a rejected test sends nothing");

    // The same applies to webhooks with a stored mapping.
    let mut stored = mapping;
    stored["name"] = json!("square");
    rest.post("/v1/intake/mappings", &stored).await.ok();
    let begun = Instant::now();
    let sent = rest
        .send(http::Method::POST, "/v1/intake/webhooks/square", document)
        .await;
    assert_eq!(sent.status, 400, "{}", sent.text());
    assert!(sent.text().contains("100000 steps"), "{}", sent.text());
    assert!(begun.elapsed() < PATIENCE);
}

#[tokio::test]
async fn costly_previews_delay_no_calls_and_lose_no_message() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    samples::disks_to_hook(&rest, &receiver).await;
    let rule = samples::rule("square", "disk", "hook", SQUARE);
    rest.post("/v1/notification/rules", &rule).await.ok();
    let event = stored_event(&rest).await;
    let preview = json!({"eventId": event, "message": SQUARE, "destinationNames": ["hook"]});
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..24 {
        let (rest, preview) = (rest.clone(), preview.clone());
        calls.spawn(async move {
            let path = "/v1/notification/rules:preview";
            rest.post(path, &preview).await.status
        });
    }
    let begun = Instant::now();
    assert_eq!(rest.get("/healthz").await.status, 200);
    assert!(begun.elapsed() < PATIENCE);
    while let Some(status) = calls.join_next().await {
        let status = status.unwrap().as_u16();
        assert!([400, 429, 503].contains(&status), "{status}");
    }
    // The message of the rule fails, so the default document is sent without it.
    receiver.wait_for(1).await;
    let document = receiver.received()[0].json();
    assert_eq!(document["rule"]["message"], "");
    assert_eq!(document["event"]["summary"], "disk full");
    let list = "/v1/notification/deliveries";
    let why = eventually("the delivery to end", async || {
        let listed = rest.get(list).await.ok();
        let id = listed["deliveries"][0]["id"].as_str()?.to_owned();
        let one = rest.get(&format!("{list}/{id}")).await.ok();
        let why = one["delivery"]["attempts"][0]["explanation"].as_str()?;
        Some(why.to_owned())
    })
    .await;
    assert!(
        why.contains("the rule's message: rendering exceeds"),
        "{why}"
    );
}

/// Attempts to break out of a header and of an address.
const HOSTILE: &str = "a\r\nx-evil: 1\u{0}/../b?c=d&e#f \u{e4}";

#[tokio::test]
async fn variables_are_escaped_for_headers_paths_and_queries() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    let token = "canary-token-77";
    for (at, address) in ["url", "secretUrl"].into_iter().enumerate() {
        let template = format!("/in/{token}/{{{{event.summary}}}}?q={{{{event.summary}}}}");
        let mut destination = samples::webhook("hook", "");
        destination["type"]["webhook"] = json!({
            address: receiver.url(&template),
            "headers": {
                "X-Severity": "{{event.severity}}",
                "X-Title": "{{event.summary}} of {{entity.name}}",
                "Authorization": "Bearer canary-bearer-9 {{event.severity}}",
                "X-Same": "plain",
            },
            "plainHeaders": ["X-Severity", "X-Title", "X-Same"],
        });
        let event = samples::event("full", "db-1", "SEVERITY_ERROR", HOSTILE);
        let test = json!({"type": destination["type"], "event": event});
        let path = "/v1/notification/destinations:test";
        let tested = rest.post(path, &test).await.ok();
        assert_eq!(tested["outcome"], "OUTCOME_DELIVERED", "{tested}");
        let received = receiver.received().swap_remove(at);
        assert_eq!(received.header("x-severity"), "error");
        assert_eq!(
            received.header("authorization"),
            "Bearer canary-bearer-9 error"
        );
        assert_eq!(received.header("x-same"), "plain");
        assert_eq!(received.header("x-evil"), "");
        let title = received.header("x-title");
        assert!(
            title.starts_with('a') && title.ends_with("of db-1"),
            "{title:?}"
        );
        let escaped = received
            .path
            .strip_prefix(&format!("/in/{token}/"))
            .unwrap();
        let (segment, query) = escaped.split_once("?q=").unwrap();
        assert_eq!(segment, query);
        assert!(
            segment.contains("%2F..%2Fb%3Fc%3Dd%26e%23f%20%C3%A4"),
            "{segment}"
        );
        // Values inserted into a secret address or header are not displayed.
        let shown = tested.to_string();
        assert!(!shown.contains("canary-bearer-9"), "{shown}");
        assert_eq!(shown.contains(token), address == "url", "{shown}");
    }
}

#[tokio::test]
async fn invalid_header_templates_are_rejected_on_save() {
    let world = World::start();
    let rest = world.rest();
    for (header, value, expected) in [
        ("X-A", "{{#open}}", "not closed"),
        (
            "X-A",
            "{{> part}}",
            "there is no template `part` to include",
        ),
        ("X-A", "{{values.gone}}", "`values.gone`"),
        (
            "Content-Type",
            "text/{{event.name}}",
            "not allowed in `content-type`",
        ),
    ] {
        let mut destination = samples::webhook("hook", "https://example.com/");
        destination["type"]["webhook"]["headers"] = json!({header: value});
        let answer = rest
            .post("/v1/notification/destinations", &destination)
            .await;
        assert_eq!(answer.status, 400, "{value}");
        let text = answer.text();
        assert!(
            text.contains(expected) && text.contains(header),
            "{value}: {text}"
        );
    }
    for (address, expected) in [
        ("https://{{event.name}}.example.com/", "before its path"),
        ("{{event.name}}", "before its path"),
        ("https://example.com:{{event.name}}/", "before its path"),
        ("https://user{{tenant}}@example.com/", "before its path"),
        (
            "https://example.com/{{{event.name}}}",
            "only escaped values",
        ),
    ] {
        for field in ["url", "secretUrl"] {
            let destination = json!({"name": "hook", "type": {"webhook": {field: address}}});
            let answer = rest
                .post("/v1/notification/destinations", &destination)
                .await;
            assert_eq!(answer.status, 400, "{address}");
            assert!(
                answer.text().contains(expected),
                "{address}: {}",
                answer.text()
            );
        }
    }
}

#[tokio::test]
async fn jinja_rule_and_destination_render_as_expected() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    let trigger = samples::trigger("disk", "disk");
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    let payload = "{\"text\": \"{{ rule.message }}\", \"high\": {% if event.severity in ['error', 'critical'] %}true{% else %}false{% endif %}, \"labels\": \"{% for k, v in event.dimensions|items %}{{ k }}={{ v }} {% endfor %}\"}";
    let destination = json!({
        "name": "hook",
        "templateLanguage": "JINJA",
        "type": {"webhook": {
            "url": receiver.url("/in/{{ event.name|upper }}"),
            "headers": {"X-Title": "{{ event.severity|upper }}"},
            "plainHeaders": ["X-Title"],
            "payload": payload,
        }},
    });
    let path = "/v1/notification/destinations";
    let stored = rest.post(path, &destination).await.ok();
    assert_eq!(
        stored["destination"]["templateLanguage"], "JINJA",
        "{stored}"
    );
    let mut rule = samples::rule("tell", "disk", "hook", "{{ event.summary|upper }}");
    rule["templateLanguage"] = json!("JINJA");
    let stored = rest.post("/v1/notification/rules", &rule).await.ok();
    assert_eq!(stored["rule"]["templateLanguage"], "JINJA", "{stored}");

    let preview = json!({"message": "{{ event.severity|upper }}", "templateLanguage": "JINJA", "destinationNames": ["hook"]});
    let shown = rest
        .post("/v1/notification/rules:preview", &preview)
        .await
        .ok();
    let body = shown["previews"][0]["rendered"]["body"].as_str().unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["text"], "ERROR");

    let event = samples::event("full", "db-1", "SEVERITY_ERROR", "disk \"full\"");
    rest.post("/v1/data-receiver/events", &samples::events(&[event]))
        .await
        .ok();
    receiver.wait_for(1).await;
    let received = receiver.received().remove(0);
    assert_eq!(received.path, "/in/FULL");
    assert_eq!(received.header("x-title"), "ERROR");
    let expected = json!({"text": "DISK \"FULL\"", "high": true, "labels": "host=db-1 "});
    assert_eq!(received.json(), expected);
}

#[tokio::test]
async fn messages_previews_and_tests_include_templates_of_the_settings() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    let settings = "/v1/settings";
    let mut values = rest.get(settings).await.ok()["settings"].clone();
    values["templates"] = json!({"header": "{{event.severity}}: {{event.name}}"});
    let stored = rest.put(settings, &values).await.ok();
    assert_eq!(stored["settings"]["templates"], values["templates"]);
    samples::disks_to_hook(&rest, &receiver).await;
    let mut rule = samples::rule("header", "disk", "hook", "{{> header}}!");
    rest.post("/v1/notification/rules", &rule).await.ok();

    let preview = json!({
        "message": "{% include 'header' %}?",
        "templateLanguage": "JINJA",
        "destinationNames": ["hook"],
    });
    let path = "/v1/notification/rules:preview";
    let shown = rest.post(path, &preview).await.ok();
    let body = shown["previews"][0]["rendered"]["body"].as_str().unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["rule"]["message"], "error: disk-full?");
    let render = json!({"name": "hook", "message": "{{> header}}."});
    let path = "/v1/notification/destinations:render";
    let shown = rest.post(path, &render).await.text();
    assert!(shown.contains("error: disk-full."), "{shown}");

    let event = samples::event("full", "db-1", "SEVERITY_ERROR", "disk full");
    rest.post("/v1/data-receiver/events", &samples::events(&[event]))
        .await
        .ok();
    eventually("the message with the template", async || {
        let received = receiver.received();
        let mut messages = received
            .iter()
            .map(|it| it.json()["rule"]["message"].clone());
        messages.find(|it| it == "error: full!")
    })
    .await;

    let named = values["templates"].take();
    values["etag"] = json!("");
    for wire in world.wires() {
        let refusal = wire
            .refused(
                "SettingsService/UpdateSettings",
                &json!({"settings": values}),
            )
            .await;
        assert_eq!(refusal.code, Code::InvalidArgument);
        let why = "breaks rule `header`: message: line 1, column 1: there is no template `header`";
        assert!(refusal.message.contains(why), "{}", refusal.message);
    }
    rule["name"] = json!("other");
    rule["message"] = json!("{{> haeder}}");
    let refused = rest.post("/v1/notification/rules", &rule).await.refused();
    assert!(
        refused.to_string().contains("did you mean `header`?"),
        "{refused}"
    );
    let values = rest.get(settings).await.ok()["settings"].clone();
    assert_eq!(values["templates"], named);
}

#[tokio::test]
async fn invalid_jinja_template_is_rejected_with_line_and_column() {
    let world = World::start();
    for wire in world.wires() {
        for (message, place) in [
            ("a\n{{ event.summary|nope }}", "line 2, column 18"),
            ("{% if x %}", "line 1, column 9"),
            ("{% include 'x' %}", "line 1, column 4"),
            (
                "a\n{% macro f(x) %}{% endmacro %}",
                "line 2, column 4: `macro` is not supported; write the text where it is used",
            ),
            (
                "{% set x = namespace(n=0) %}",
                "`namespace` is not supported; to count, sum or join, use filters",
            ),
            (
                "{% set x = [1] %}",
                "line 1, column 12: a variable can be set to a string",
            ),
            (
                "{% for x in range(101) %}{% endfor %}",
                "more than 100 numbers",
            ),
        ] {
            let rule =
                json!({"rule": {"name": "r", "message": message, "templateLanguage": "JINJA"}});
            let refusal = wire.refused("RuleService/CreateRule", &rule).await;
            assert!(refusal.message.contains(place), "{}", refusal.message);
            let preview = json!({"message": message, "templateLanguage": "JINJA"});
            let refusal = wire.refused("RuleService/PreviewRule", &preview).await;
            assert!(refusal.message.contains(place), "{}", refusal.message);
        }
        let costly = "{% for a in range(100) %}{% for b in range(100) %}{% for c in range(100) %}{% endfor %}{% endfor %}{% endfor %}";
        let test = json!({"type": {"webhook": {"url": "http://127.0.0.1:9/", "payload": costly}}, "templateLanguage": "JINJA"});
        too_much(
            &wire,
            "DestinationService/TestDestination",
            &test,
            "payload",
        )
        .await;
    }
}

/// Returns templates that could crash the process, never end, or keep a processor busy.
fn hostile() -> Vec<(&'static str, String)> {
    let doubled = (0..40).map(|at| format!("{{% for x{} in [[x{at}, x{at}]] %}}", at + 1));
    let doubled: String = doubled.collect();
    vec![
        (
            "a deep value",
            format!("{{{{ {}{} }}}}", "[".repeat(9_000), "]".repeat(9_000)),
        ),
        (
            "alternatives",
            format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(5_000)),
        ),
        ("operators", format!("{{{{ {}1 }}}}", "not ".repeat(15_000))),
        ("members", format!("{{{{ event{} }}}}", ".a".repeat(30_000))),
        (
            "a list twice in itself",
            format!(
                "{{% for x0 in [[1]] %}}{doubled}{{{{ x40 == x40 }}}}{}",
                "{% endfor %}".repeat(41)
            ),
        ),
        (
            "a list twice in itself, as far as tags go",
            format!(
                "{{% for x in [[1]] %}}{}{{{{ x }}}}{}",
                "{% for x in [[x, x]] %}".repeat(12),
                "{% endfor %}".repeat(13)
            ),
        ),
        (
            "a quadratic search",
            "{{ event.metadata.t|regex_replace('.*[^A-Z]|[A-Z]', '') }}".to_owned(),
        ),
        (
            "a text that doubles",
            "{% set x = event.metadata.t %}{% for a in event.metadata.m %}{% set x = x ~ x %}{% endfor %}{{ x }}"
                .to_owned(),
        ),
    ]
}

#[tokio::test]
async fn hostile_templates_are_rejected_without_delaying_other_calls() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    samples::disks_to_hook(&rest, &receiver).await;
    let mut event = long_event();
    event["metadataFields"]["t"] = json!("A".repeat(50_000));
    event["metadataFields"]["m"] = json!(vec![1; 5_000]);
    let events = samples::events(&[event]);
    let sent = rest.post("/v1/data-receiver/events", &events).await.ok();
    assert_eq!(sent["succeeded"], 1, "{sent}");
    let query = json!({"query": {"clause": {"equals": {"field": "name", "stringVal": "full"}}}});
    let found = rest.post("/v1/events:search", &query).await.ok();
    let event = found["results"][0]["id"].as_str().unwrap().to_owned();
    let mut calls = tokio::task::JoinSet::new();
    for (what, template) in hostile() {
        let preview = json!({"message": template, "templateLanguage": "JINJA", "eventId": event, "destinationNames": ["hook"]});
        let hook = json!({"webhook": {"url": "http://127.0.0.1:9/", "payload": template}});
        let render = json!({"type": hook, "templateLanguage": "JINJA", "eventId": event});
        for (path, body) in [
            ("/v1/notification/rules:preview", preview),
            ("/v1/notification/destinations:render", render),
        ] {
            let rest = rest.clone();
            calls.spawn(async move { (what, path, rest.post(path, &body).await) });
        }
    }
    let begun = Instant::now();
    assert_eq!(rest.get("/healthz").await.status, 200);
    assert!(begun.elapsed() < PATIENCE);
    while let Some(ended) = calls.join_next().await {
        let (what, path, answer) = ended.unwrap();
        let place = format!("{what}, {path}: {}", answer.text());
        // The status depends on the template and on the limit that it reaches first.
        let is_expected = [200, 400, 429, 503].contains(&answer.status.as_u16());
        assert!(is_expected, "{}: {place}", answer.status);
        let is_accepted = what == "a quadratic search" && answer.status == 200;
        assert!(is_accepted || answer.status != 200, "{place}");
    }
    assert_eq!(rest.get("/readyz").await.status, 200);
    let page = rest.get("/metrics").await.text();
    assert!(
        page.contains("bellwether_renders_total{purpose=\"preview\""),
        "{page}"
    );
}

/// Returns the explanations of the first attempts of all delivered messages to a destination.
async fn explanations(rest: &Rest, destination: &str) -> Option<Vec<String>> {
    let list = "/v1/notification/deliveries";
    let path = format!("{list}?destinationNames={destination}&states=DELIVERED&pageSize=10");
    let listed = rest.get(&path).await.ok();
    let mut said = Vec::new();
    for one in listed["deliveries"].as_array()? {
        let one = rest.get(&format!("{list}/{}", one["id"].as_str()?)).await;
        let explanation = one.ok()["delivery"]["attempts"][0]["explanation"].clone();
        said.push(explanation.as_str()?.to_owned());
    }
    Some(said)
}

#[tokio::test]
async fn payload_failing_at_delivery_falls_back_to_its_simplest_form() {
    let payloads = [
        ("mustache", "MUSTACHE", SQUARE.to_owned()),
        (
            "jinja",
            "JINJA",
            "{% for a in event.metadata.m %}{% for b in event.metadata.m %}{{ a }}{% endfor %}\
             {% endfor %}"
                .to_owned(),
        ),
    ];
    let world = World::start();
    let rest = world.rest();
    let trigger = samples::trigger("disk", "disk");
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    let mut receivers = Vec::new();
    for (name, language, square) in &payloads {
        let receiver = Receiver::start().await;
        let mut destination = samples::webhook(name, &receiver.url("/"));
        destination["templateLanguage"] = json!(language);
        destination["type"]["webhook"]["payload"] = json!(format!(
            "{{\"alias\": \"{{{{event.id}}}}\", \"text\": \"{{{{event.summary}}}}\", \
             \"list\": \"{square}\"}}"
        ));
        rest.post("/v1/notification/destinations", &destination)
            .await
            .ok();
        let rule = samples::rule(name, "disk", name, "");
        rest.post("/v1/notification/rules", &rule).await.ok();
        receivers.push(receiver);
    }
    // For a small event, the payload is rendered as written.
    let mut small = samples::event("full", "db-0", "SEVERITY_ERROR", "disk full");
    small["metadataFields"] = json!({"m": [1, 2]});
    let long_summary = format!("disk full {}", "x".repeat(900));
    let mut big = samples::event("full", "db-1", "SEVERITY_ERROR", &long_summary);
    big["metadataFields"] = json!({"m": vec![1; 30_000]});
    for (count, event) in [(1, small), (2, big)] {
        rest.post("/v1/data-receiver/events", &samples::events(&[event]))
            .await
            .ok();
        for receiver in &receivers {
            receiver.wait_for(count).await;
        }
    }
    for ((name, ..), receiver) in payloads.iter().zip(&receivers) {
        let [small, big] = &receiver.received()[..] else {
            panic!("{name}: {:?}", receiver.received());
        };
        let listed = if *name == "jinja" { "1122" } else { "" };
        assert_eq!(small.json()["list"], listed, "{name}");
        let document = big.json();
        let fields: Vec<_> = document.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["alias", "list", "text"], "{name}: {document}");
        assert_eq!(document["list"], "", "{name}");
        assert_eq!(document["alias"].as_str().map(str::len), Some(28), "{name}");
        let text = document["text"].as_str().unwrap();
        assert!(text.starts_with("disk full xxx"), "{name}: {text}");
        assert!(text.chars().count() <= 200, "{name}: {text}");
        let why = eventually("the attempt to be recorded", async || {
            let said = explanations(&rest, name).await?;
            said.into_iter().find(|it| it.contains("reduced form"))
        })
        .await;
        assert!(
            why.contains("the webhook's payload: rendering exceeds"),
            "{why}"
        );
    }
}
