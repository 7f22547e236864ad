//! `report`: noise among notifications, and suggestions to reduce it.

use std::time::Duration;

use bellwether_proto::{csv, json};
use bellwether_tui::api::ConfigKind;
use serde_json::{Value, json};

use super::{Api, answer, document, failed};
use crate::{
    cli::script::{
        NoiseArguments, Output, ReportArguments, ReportOf, SuggestionsArguments, TableArguments,
    },
    failure::Failure,
    output,
};

/// Timeout of replaying suggestions.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(arguments: ReportArguments, api: Api) -> Result<(), Failure> {
    let mut api = api.patient(PATIENCE);
    match arguments.report {
        ReportOf::Noise(arguments) => noise(arguments, &mut api).await,
        ReportOf::Suggestions(arguments) => suggestions(arguments, &mut api).await,
    }
}

async fn noise(arguments: NoiseArguments, api: &mut Api) -> Result<(), Failure> {
    let now_ms = jiff::Timestamp::now().as_millisecond();
    let start = jiff::Timestamp::from_millisecond(now_ms.saturating_sub(arguments.since));
    let start = start.map_err(|_far| Failure::usage("--since reaches back too far"))?;
    let asked = json!({
        "start": start.to_string(),
        "by": arguments.by.word(),
        "timeZone": arguments.time_zone.unwrap_or_default(),
    });
    let answer = api.call("InsightService", "GetNoise", &asked).await;
    let answer = answer.map_err(failed)?;
    let table = (&arguments.table, "bellwether.v1.GetNoiseResponse", "rows");
    write(&answer, table, |answer| {
        let time = |field: &str| answer::inline(&answer[field]);
        let (start, end) = (time("startTime"), time("endTime"));
        let head = format!("noise from {start} to {end}\n");
        std::iter::once(head)
            .chain(lines(answer, "rows", row))
            .collect()
    })
}

async fn suggestions(arguments: SuggestionsArguments, api: &mut Api) -> Result<(), Failure> {
    let answer = api
        .call("InsightService", "GetSuggestions", &json!({}))
        .await;
    let answer = answer.map_err(failed)?;
    if arguments.drafts {
        return drafts(&answer);
    }
    let message = "bellwether.v1.GetSuggestionsResponse";
    write(
        &answer,
        (&arguments.table, message, "suggestions"),
        |answer| {
            lines(answer, "suggestions", |it| {
                let text = |field: &str| answer::inline(&it[field]);
                let (name, evidence, effect) = (text("name"), text("evidence"), text("effect"));
                let kind = text("kind")
                    .trim_start_matches("SUGGESTION_KIND_")
                    .to_lowercase();
                format!("{kind}\t{name}\t{evidence}\t{effect}\n")
            })
            .collect()
        },
    )
}

fn drafts(answer: &Value) -> Result<(), Failure> {
    let found = answer["suggestions"].as_array().into_iter().flatten();
    let documents = found.filter_map(|suggestion| {
        let draft = suggestion["draft"].as_object()?;
        let draft = draft.iter().find(|(word, _)| *word != "mustBeNew")?;
        let kind = ConfigKind::find(draft.0)?;
        Some((kind.word(), kind.authored(draft.1.clone())))
    });
    document::write(documents.collect(), Output::Yaml)
}

fn lines(
    answer: &Value,
    list: &str,
    line: impl Fn(&Value) -> String,
) -> impl Iterator<Item = String> {
    let entries = answer[list].as_array().into_iter().flatten();
    entries.map(line).collect::<Vec<_>>().into_iter()
}

fn row(row: &Value) -> String {
    let number = |field: &str| row[field].as_u64().unwrap_or_default();
    let name = match answer::inline(&row["name"]) {
        name if name.is_empty() => "(deleted)".to_owned(),
        name => name,
    };
    let share = row["acknowledgedShare"].as_f64();
    let share = share.map_or_else(|| "-".to_owned(), |it| format!("{:.0} %", it * 100.0));
    format!(
        "{name}\t{} notifications\t{} deliveries\t{share} acknowledged\t{} closed soon\t{} never acted \
         on\t{} at night\t{} skipped\n",
        number("notificationCount"),
        number("deliveryCount"),
        number("closedSoonCount"),
        number("neverActedOnCount"),
        number("nightCount"),
        number("skippedCount"),
    )
}

/// Prints a response, or its list as CSV.
fn write(
    answer: &Value,
    (how, message, list): (&TableArguments, &str, &str),
    text: impl FnOnce(&Value) -> String,
) -> Result<(), Failure> {
    if !how.csv {
        return answer::write(answer, how.output.output, text);
    }
    let plan = json::plan();
    let message = plan.by_name.get(message).copied();
    let table = message.and_then(|it| csv::table(plan, it, list, answer));
    output::write(&output::escaped(&table.unwrap_or_default()))
}
