//! `test`, `try` and `preview`: test messages, matches of a trigger, and messages of a rule.

use bellwether_language::text::enum_word;
use bellwether_tui::api::ConfigKind;
use serde_json::{Value, json};

use super::{Api, document, format};
use crate::{
    cli::script::{PreviewArguments, TestArguments, TryArguments},
    failure::Failure,
};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

pub(super) async fn run_test(arguments: TestArguments, api: Api) -> Result<(), Failure> {
    let mut api = api.with_call_timeout(PATIENCE);
    let request = json!({
        "name": arguments.name,
        "eventId": arguments.event.unwrap_or_default(),
    });
    let answer = api
        .call("DestinationService", "TestDestination", &request)
        .await;
    let answer = answer?;
    format::write_formatted(&answer, arguments.output.output, |answer| {
        let outcome = format_outcome(answer);
        let why = format::inline_value(&answer["explanation"]);
        let duration = format::inline_value(&answer["duration"]);
        format!("{outcome}\t{duration}\t{why}\n")
    })?;
    let code = match &*format_outcome(&answer) {
        "delivered" => return Ok(()),
        "blocked" => "EGRESS_BLOCKED",
        _ => "DESTINATION_FAILING",
    };
    Err(Failure::new("the test message was not delivered").with_code(code))
}

fn format_outcome(answer: &Value) -> String {
    enum_word(answer["outcome"].as_str().unwrap_or_default(), "OUTCOME_")
}

pub(super) async fn try_trigger(arguments: TryArguments, api: Api) -> Result<(), Failure> {
    let mut api = api.with_call_timeout(PATIENCE);
    let kind = ConfigKind::find("trigger").expect("triggers are configuration");
    let trigger = match (arguments.name, arguments.file) {
        (Some(name), _) => kind.to_authored_form(api.get(kind, &name).await?),
        (None, Some(file)) => {
            let documents = document::read_documents(&[file])?;
            match &documents[..] {
                [only] if only.kind == kind => only.resolve_secrets()?["trigger"].take(),
                _ => {
                    return Err(Failure::usage_error(
                        "--file: expected one document with a trigger",
                    ));
                }
            }
        }
        (None, None) => return Err(Failure::usage_error("expected a trigger name or --file")),
    };
    let now_ms = jiff::Timestamp::now().as_millisecond();
    let mut request = json!({"timeRange": {"start": now_ms - arguments.since}});
    for field in ["name", "type"] {
        request[field] = trigger[field].clone();
    }
    let answer = api.call("TriggerService", "TestTrigger", &request).await;
    let answer = answer?;
    format::write_formatted(&answer, arguments.output.output, format_matches)
}

fn format_matches(answer: &Value) -> String {
    let number = |field: &str| answer[field].as_u64().unwrap_or_default();
    let (matched, scanned) = (number("matched"), number("scanned"));
    let mut lines = vec![format!("{matched} of {scanned} matched\n")];
    if answer["stoppedEarly"] == true {
        lines[0].insert_str(0, "stopped early; there may be more: ");
    }
    let events = answer["occurrences"].as_array().into_iter().flatten();
    lines.extend(events.map(format::event_line));
    lines.extend(response_warnings(answer));
    lines.concat()
}

fn response_warnings(answer: &Value) -> impl Iterator<Item = String> {
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    warnings.map(|warning| format!("warning: {}\n", format::inline_value(warning)))
}

pub(super) async fn run_preview(arguments: PreviewArguments, mut api: Api) -> Result<(), Failure> {
    let kind = ConfigKind::find("rule").expect("rules are configuration");
    let rule = api.get(kind, &arguments.name).await?;
    let mut request = kind.to_authored_form(rule);
    request["eventId"] = arguments.event.unwrap_or_default().into();
    let answer = api.call("RuleService", "PreviewRule", &request).await;
    let answer = answer?;
    format::write_formatted(&answer, arguments.output.output, |answer| {
        let mut lines = Vec::new();
        for preview in answer["previews"].as_array().into_iter().flatten() {
            let destination = format::inline_value(&preview["destinationName"]);
            lines.push(format!("== {destination}\n"));
            lines.push(format::to_json(&preview["rendered"]));
            lines.extend(response_warnings(preview));
        }
        lines.extend(response_warnings(answer));
        lines.concat()
    })
}
