//! The names that can complete a command line.

use std::time::Duration;

use bellwether_tui::api::{Api, ConfigKind};
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use serde_json::{Value, json};

use super::super::{connect, preset};
use crate::{
    cli::{Cli, Flags},
    config::{Part, Settings},
    failure::Failure,
    output, ready,
};

/// Timeout for the calls that list names, so that the shell does not wait longer.
const PATIENCE: Duration = Duration::from_secs(2);
const CLIENTS_MAX: u32 = 1_000;

/// Prints the names that can follow these words, one per line.
pub(super) async fn print_names(words: &[String]) -> Result<(), Failure> {
    let line = ["bellwether"].into_iter();
    let line = line.chain(words.iter().map(String::as_str));
    let command = Cli::command().ignore_errors(true);
    // An invalid command line has no completions.
    let Ok(matches) = command.try_get_matches_from(line) else {
        return Ok(());
    };
    let names = tokio::time::timeout(PATIENCE, completion_names(words, &matches)).await;
    let names = names.unwrap_or_else(|_late| Ok(Vec::new()))?;
    let lines = names.iter().map(|name| format!("{name}\n"));
    output::write_output(&output::escape_controls(&lines.collect::<String>()))
}

async fn completion_names(words: &[String], matches: &ArgMatches) -> Result<Vec<String>, Failure> {
    let flags = Flags::from_arg_matches(matches).unwrap_or_default();
    let settings = || {
        Settings::load(&flags, &crate::environment_variables(), |settings| {
            ready::find_service(settings);
            Part::Client
        })
    };
    if words.last().is_some_and(|it| it == "--context") {
        let contexts = settings()?.contexts.into_iter();
        return Ok(contexts.map(|it| it.name).collect());
    }
    let mut path = Vec::new();
    let mut last = matches;
    while let Some((name, inner)) = last.subcommand() {
        path.push(name);
        last = inner;
    }
    let is_complete = last.try_contains_id("name").unwrap_or(true);
    if is_complete {
        return Ok(Vec::new());
    }
    match path.as_slice() {
        ["preset", "show" | "apply"] => Ok(preset::preset_names().map(str::to_owned).collect()),
        ["client", "update" | "rotate" | "revoke"] => {
            let mut api = connect(&settings()?).await?;
            let request = json!({"pageSize": CLIENTS_MAX});
            let found = api.call("ClientService", "ListClients", &request).await;
            Ok(resource_names(found?["clients"].as_array()))
        }
        path => match kind(path, last) {
            Some(kind) => {
                let mut api: Api = connect(&settings()?).await?;
                Ok(resource_names(Some(&api.list(kind).await?)))
            }
            None => Ok(Vec::new()),
        },
    }
}

fn kind(path: &[&str], last: &ArgMatches) -> Option<ConfigKind> {
    match path {
        ["get" | "delete"] => last.get_one::<ConfigKind>("kind").copied(),
        ["test"] => ConfigKind::find("destination"),
        ["try"] => ConfigKind::find("trigger"),
        ["preview"] => ConfigKind::find("rule"),
        _ => None,
    }
}

fn resource_names(resources: Option<&Vec<Value>>) -> Vec<String> {
    let resources = resources.into_iter().flatten();
    let names = resources.filter_map(|it| it["name"].as_str());
    names.map(str::to_owned).collect()
}
