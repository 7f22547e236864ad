//! `events` and `watch`: searches and follows events.

use std::{
    io::{self, Write as _},
    path::Path,
};

use serde_json::{Value, json};

use super::{Api, CallErrorKind, connect, format};
use crate::{
    cli::script::{EventsArguments, StatusChoice, WatchArguments},
    config::Settings,
    failure::Failure,
    output,
};

const PAGE: u32 = 1_000;

fn event_query(filter: Option<&str>, status: StatusChoice) -> Value {
    let filter = filter.unwrap_or_default();
    match status {
        StatusChoice::Current if !filter.contains("status") => {
            json!({"filter": filter, "statuses": ["STATUS_OPEN", "STATUS_SUPPRESSED"]})
        }
        _ => json!({"filter": filter}),
    }
}

pub(super) async fn run_events(arguments: EventsArguments, mut api: Api) -> Result<(), Failure> {
    let mut query = event_query(arguments.filter.as_deref(), arguments.status);
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let left = arguments.limit.saturating_sub(to_count(&found));
        query["pageInput"] = json!({"limit": left.min(PAGE), "cursor": cursor});
        let request = json!({"query": query});
        let page = api
            .call("EventQueryService", "SearchEvents", &request)
            .await;
        let mut page = page?;
        if cursor.is_empty() {
            let warnings = page["warnings"].as_array().into_iter().flatten();
            for warning in warnings.map(format::inline_value) {
                // Warnings go to standard error, because standard output contains only events.
                drop(writeln!(io::stderr(), "warning: {warning}"));
            }
        }
        if let Value::Array(results) = page["results"].take() {
            found.extend(results);
        }
        let info = &page["pageInfo"];
        if info["hasNext"] != true || to_count(&found) >= arguments.limit {
            break;
        }
        info["endCursor"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut cursor);
    }
    let is_empty = found.is_empty();
    let found = json!({"results": found});
    format::write_formatted(&found, arguments.output.output, |found| {
        let events = found["results"].as_array().into_iter().flatten();
        events.map(format::event_line).collect()
    })?;
    if is_empty {
        return Err(Failure::new("no event found"));
    }
    Ok(())
}

fn to_count(found: &[Value]) -> u32 {
    u32::try_from(found.len()).unwrap_or(u32::MAX)
}

/// Follows changes. If the stream ends because the token of a sign-in expired, the stream is
/// resumed with the renewed token.
pub(super) async fn run_watch(
    arguments: WatchArguments,
    settings: &Settings,
) -> Result<(), Failure> {
    let file = arguments.token_file.as_deref();
    let mut token = file.map(read_token).transpose()?.unwrap_or_default();
    let query = event_query(arguments.filter.as_deref(), StatusChoice::All);
    let mut received = true;
    loop {
        let mut api = connect(settings).await?;
        let request = json!({"query": query, "resumeToken": token});
        let mut watch = api.watch(&request).await?;
        let ended = loop {
            let message = match watch.next().await {
                Ok(Some(message)) => message,
                Ok(None) => return Err(Failure::unreachable("the service closed the stream")),
                Err(error) => break error,
            };
            received = true;
            let says_something = ["events", "leftOccurrenceIds", "gap"]
                .into_iter()
                .any(|field| !message[field].is_null());
            if says_something {
                output::write_output(&output::escape_controls(&format!("{message}\n")))?;
            }
            let newer = message["resumeToken"].as_str().unwrap_or_default();
            if newer != token {
                newer.clone_into(&mut token);
                if let Some(file) = file {
                    write_token(file, &token)?;
                }
            }
        };
        // Stops if the service sent nothing since the last attempt: reconnecting would not help.
        if ended.kind != CallErrorKind::NotAllowed || !std::mem::take(&mut received) {
            return Err(ended.into());
        }
    }
}

fn read_token(file: &Path) -> Result<String, Failure> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(token_file_failure(file, &error)),
    }
}

/// Replaces the file atomically, so that an interruption leaves the old token.
fn write_token(file: &Path, token: &str) -> Result<(), Failure> {
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let write = || {
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        io::Write::write_all(&mut new, format!("{token}\n").as_bytes())?;
        new.persist(file)?;
        Ok(())
    };
    write().map_err(|error: io::Error| token_file_failure(file, &error))
}

fn token_file_failure(file: &Path, error: &io::Error) -> Failure {
    let shown = file.display();
    Failure::usage_error(format!("--token-file: {shown} is unusable: {error}"))
}
