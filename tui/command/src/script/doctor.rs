//! `doctor`: a description for bug reports, without secrets.

use std::{
    collections::BTreeMap,
    env::{self, consts},
    fmt::Write,
    fs,
    path::Path,
    thread,
    time::Instant,
};

use bellwether_tui::api::ConfigKind;
use serde_json::{Value, json};

use super::format;
use crate::{
    config::{SettingSource, Settings},
    failure::Failure,
    output, version,
};

pub(super) async fn run_doctor(settings: &Settings) -> Result<(), Failure> {
    let mut text = String::new();
    let parts = [
        ("bellwether", version::long_version().to_owned()),
        ("system", describe_system()),
        ("terminal", describe_terminal()),
        ("settings", describe_settings_sources(settings)),
        ("data folder", describe_folder(&settings.data_dir)),
        ("service", describe_service(settings).await),
    ];
    for (name, part) in parts {
        let _ = writeln!(text, "{name}: {part}");
    }
    output::write_output(&output::escape_controls(&text))
}

fn describe_system() -> String {
    let processors = thread::available_parallelism().map_or(0, usize::from);
    format!("{} {}, {processors} processors", consts::OS, consts::ARCH)
}

fn describe_terminal() -> String {
    let names = ["TERM", "COLORTERM", "LANG", "LC_ALL", "NO_COLOR", "TMUX"];
    let found = names.iter().filter_map(|name| {
        let value = env::var_os(name)?;
        // The path of the socket identifies the user.
        Some(match *name {
            "TMUX" => "TMUX".to_owned(),
            _ => format!("{name}={}", value.to_string_lossy()),
        })
    });
    join_list(&found.collect::<Vec<_>>())
}

fn describe_settings_sources(settings: &Settings) -> String {
    let in_force = settings.effective();
    let named = in_force.values().map(|given| {
        let source = match given.source {
            SettingSource::File(_) => "file",
            SettingSource::Variable(_) => "variable",
            SettingSource::Flag(_) => "flag",
        };
        format!("{} ({source})", given.key)
    });
    join_list(&named.collect::<Vec<_>>())
}

fn describe_folder(path: &Path) -> String {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return format!("cannot be read: {error}"),
    };
    let files: BTreeMap<_, _> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            Some((name, entry.metadata().ok()?.len()))
        })
        .collect();
    let files = files
        .iter()
        .map(|(name, bytes)| format!("{name} {bytes} bytes"));
    join_list(&files.collect::<Vec<_>>())
}

async fn describe_service(settings: &Settings) -> String {
    let start = Instant::now();
    // The error message contains the address.
    let Ok(mut api) = super::connect(settings).await else {
        return "does not respond or rejects the key".to_owned();
    };
    let mut lines = vec![format!("responded in {} ms", start.elapsed().as_millis())];
    for kind in ConfigKind::iter() {
        lines.push(match api.list(kind).await {
            Ok(all) => format_counts(kind, &all),
            Err(error) => format!("{}: {:?}", kind.plural(), error.kind),
        });
    }
    lines.push(
        match api.call("OverviewService", "GetOverview", &json!({})).await {
            Ok(overview) => format_status(&overview),
            Err(error) => format!("overview: {:?}", error.kind),
        },
    );
    lines.join("; ")
}

fn format_counts(kind: ConfigKind, all: &[Value]) -> String {
    let mut types = BTreeMap::<&str, usize>::new();
    for resource in all {
        for name in resource["type"].as_object().into_iter().flatten() {
            *types.entry(name.0).or_default() += 1;
        }
    }
    let counted = format!("{} {}", all.len(), kind.plural());
    if types.is_empty() {
        return counted;
    }
    let types: Vec<_> = types
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    format!("{counted} ({})", types.join(", "))
}

fn format_status(overview: &Value) -> String {
    let mut parts: Vec<_> = format::open_counts(overview).collect();
    let mut states = BTreeMap::<String, usize>::new();
    for destination in overview["destinations"].as_array().into_iter().flatten() {
        let state = format::health_state(destination);
        *states.entry(state).or_default() += 1;
    }
    parts.extend(
        states
            .iter()
            .map(|(state, count)| format!("{count} destinations {state}")),
    );
    let destinations = overview["destinations"].as_array().into_iter().flatten();
    let unreported = destinations
        .filter(|it| it["failureUnheard"] == true)
        .count();
    if unreported > 0 {
        parts.push(format!(
            "warning: {unreported} failing destinations are reported only to failing destinations"
        ));
    }
    if overview["store"]["acceptsEvents"] == false {
        let state = overview["store"]["state"].as_str().unwrap_or_default();
        parts.push(format!("events refused: store {}", state.to_lowercase()));
    }
    if overview["quietSinceTime"].is_string() {
        parts.push("quiet: nothing is sent".to_owned());
    }
    join_list(&parts)
}

fn join_list(parts: &[String]) -> String {
    if parts.is_empty() {
        return "none".to_owned();
    }
    parts.join(", ")
}
