//! Actions on heartbeats: deleting expectations, and rotating the key of the address.

use bellwether_proto::v1;
use serde_json::{Value, json};

use crate::{
    client::{Call, CallResult, WriteOutcome, message, parse_empty},
    data::{Failure, Kind, Object},
    kind::expectation_words,
    model::{
        Model,
        field::TextField,
        overlay::{Confirm, Consequence, Overlay, Prompt, PromptPurpose},
        write::Write,
    },
    theme::Token,
};

fn current_heartbeat(model: &Model) -> Option<&Object> {
    let name = model.resource_name()?;
    model.store.object(Kind::Heartbeat, &name)
}

fn shown_expectations(heartbeat: &Object) -> impl Iterator<Item = &Value> {
    let all = heartbeat.value_at("expectations").and_then(Value::as_array);
    all.into_iter().flatten()
}

fn parse_address(answer: CallResult) -> Result<WriteOutcome, Failure> {
    let made: v1::RotateHeartbeatKeyResponse = message(answer)?;
    Ok(WriteOutcome::Key {
        name: "the heartbeat".to_owned(),
        key: made.path,
    })
}

pub(super) fn confirm_rotate(model: &mut Model) {
    let Some(heartbeat) = current_heartbeat(model) else {
        return;
    };
    let (name, has_key) = (heartbeat.name().to_owned(), heartbeat.flag("hasKey"));
    let request = v1::RotateHeartbeatKeyRequest { name: name.clone() };
    let call = Call::from_request("HeartbeatService", &request).into_write(parse_address);
    let write = Write::new(format!("created a new URL with a key for {name}"));
    let then = Consequence::Write(Box::new(call), Box::new(write));
    let confirm = Confirm::new(format!("Create a new URL for {name}?"), "Rotate", then);
    let words = if has_key {
        "The current URL stops working, and jobs that use it fail until they are updated."
    } else {
        "For cron jobs and scripts: `curl -fsS URL` sends a beat."
    };
    let confirm = confirm.line(Token::Text, words);
    let words = "The path with the key is shown only once.";
    model.overlay = Some(Overlay::Confirm(confirm.line(Token::Text, words)));
}

pub(super) fn prompt_forget(model: &mut Model) {
    let Some(heartbeat) = current_heartbeat(model) else {
        return;
    };
    let name = heartbeat.name().to_owned();
    let offers: Vec<_> = shown_expectations(heartbeat)
        .map(expectation_words)
        .collect();
    let Some(first) = offers.first() else {
        model.show_notice(Token::Dim, "nothing is expected");
        return;
    };
    model.overlay = Some(Overlay::Prompt(Prompt {
        title: format!("Forget an expectation of {name}"),
        help: "its values or key; Tab completes, Enter forgets it",
        field: TextField::new(first.clone()),
        offers,
        then: PromptPurpose::Forget(name),
    }));
}

pub(super) fn forget_expectation(
    model: &Model,
    name: &str,
    typed: &str,
) -> Result<Consequence, String> {
    let heartbeat = model.store.object(Kind::Heartbeat, name);
    let mut all = heartbeat.into_iter().flat_map(shown_expectations);
    let found = all.find(|it| it["key"] == typed || expectation_words(it) == typed);
    let found = found.ok_or_else(|| format!("`{typed}`: type the values as shown on the page"))?;
    let request = json!({"name": name, "key": found["key"]});
    let call = Call::new("HeartbeatService", "ForgetExpectation", request).into_write(parse_empty);
    let write = Write::new(format!(
        "{name} no longer expects {}",
        expectation_words(found)
    ));
    Ok(Consequence::Write(Box::new(call), Box::new(write)))
}
