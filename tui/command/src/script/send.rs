//! `send`: sends one event given by flags, or events from JSON lines.

use std::io::{self, BufRead as _};

use bellwether_proto::severity;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::{Api, connect};
use crate::{cli::script::SendArguments, config::Settings, failure::Failure, output};

const BATCH: usize = 1_000;
/// Bytes of events per call, below the service's limit.
const BATCH_BYTES: usize = 2 * 1024 * 1024;

pub(super) async fn run_send(arguments: SendArguments, settings: &Settings) -> Result<(), Failure> {
    let lines = arguments.lines;
    let single = if lines {
        None
    } else {
        Some(build_event(arguments)?)
    };
    let mut sender = Sender {
        api: connect(settings).await?,
        sent: 0,
        refused: Vec::new(),
    };
    match single {
        Some(event) => sender.send_events(vec![("event".into(), event)]).await?,
        None => sender.send_lines().await?,
    }
    sender.finish()
}

fn build_event(arguments: SendArguments) -> Result<Value, Failure> {
    let mut event = Map::new();
    let mut set = |field: &str, value: Option<String>| {
        if let Some(value) = value {
            event.insert(field.into(), value.into());
        }
    };
    set("name", arguments.name);
    set("type", arguments.kind);
    set("summary", arguments.summary);
    set("body", arguments.body);
    if let Some(word) = arguments.severity {
        event.insert("severity".into(), parse_severity(&word)?.into());
    }
    if arguments.close {
        event.insert("status".into(), "STATUS_CLOSED".into());
    }
    let dimensions = arguments.dimensions.into_iter();
    let dimensions: Map<_, _> = dimensions.map(|(key, value)| (key, value.into())).collect();
    event.insert("dimensions".into(), dimensions.into());
    let metadata = arguments.metadata.into_iter().map(|(key, value)| {
        let json = serde_json::from_str(&value);
        (key, json.unwrap_or(Value::String(value)))
    });
    let metadata: Map<_, _> = metadata.collect();
    if !metadata.is_empty() {
        event.insert("metadataFields".into(), metadata.into());
    }
    Ok(event.into())
}

fn parse_severity(word: &str) -> Result<&'static str, Failure> {
    let known = severity::from_name(word).map(|severity| severity.as_str_name());
    known.ok_or_else(|| {
        Failure::usage_error(format!(
            "--severity: unknown severity `{word}`; expected debug, info, warning, error or critical"
        ))
    })
}

struct Sender {
    api: Api,
    sent: u64,
    /// All rejections, of which the first hundred are printed.
    refused: Vec<String>,
}

impl Sender {
    /// Sends lines in batches. A batch is sent when it is full or when the next line is not
    /// available yet.
    async fn send_lines(&mut self) -> Result<(), Failure> {
        let (lines, mut read) = mpsc::channel(BATCH);
        std::thread::spawn(move || {
            let numbered = io::stdin().lock().lines().zip(1_u64..);
            for line in numbered {
                if lines.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some((line, number)) = read.recv().await {
            let line = line.map_err(|error| {
                Failure::usage_error(format!("cannot read standard input: {error}"))
            })?;
            if !line.trim().is_empty() {
                let event: Value = serde_json::from_str(&line).map_err(|error| {
                    self.interruption_failure(&format!("line {number} is not JSON: {error}"))
                })?;
                bytes += line.len();
                batch.push((format!("line {number}"), event));
            }
            if batch.len() == BATCH || bytes >= BATCH_BYTES || read.is_empty() {
                self.send_events(std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
        }
        self.send_events(batch).await
    }

    /// Sends events, each with the name that a rejection reports.
    async fn send_events(&mut self, named: Vec<(String, Value)>) -> Result<(), Failure> {
        if named.is_empty() {
            return Ok(());
        }
        let (names, events): (Vec<_>, Vec<_>) = named.into_iter().unzip();
        let request = json!({"detailedResponse": true, "events": events});
        let answer = self.api.put_events(&request).await;
        let answer = answer.map_err(|error| match self.sent {
            0 => Failure::from(error),
            sent => {
                Failure::from(error).with_clause(&format!("{sent} were accepted before the error"))
            }
        })?;
        self.sent += answer["succeeded"].as_u64().unwrap_or_default();
        for refused in answer["failedEvents"].as_array().into_iter().flatten() {
            let index = usize::try_from(refused["index"].as_u64().unwrap_or_default());
            let name = index.ok().and_then(|index| names.get(index));
            let name = name.map_or("event", String::as_str);
            let why = refused["error"].as_str().unwrap_or_default();
            self.refused.push(format!("{name}: {why}"));
        }
        Ok(())
    }

    fn interruption_failure(&self, why: &str) -> Failure {
        Failure::usage_error(format!(
            "{why}; {} events were accepted before that",
            self.sent
        ))
    }

    fn finish(self) -> Result<(), Failure> {
        if self.refused.is_empty() {
            return output::write_output(&format!("{} accepted\n", self.sent));
        }
        let (sent, refused) = (self.sent, self.refused.len());
        let text = self.refused.into_iter().take(100).collect::<Vec<_>>();
        Err(Failure::rejected(format!(
            "{sent} accepted, {refused} rejected\n{}",
            text.join("\n")
        )))
    }
}
