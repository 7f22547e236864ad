//! `report`: the share of noise among sent messages.

use std::time::Duration;

use bellwether_proto::{csv, json};
use serde_json::{Value, json};

use super::{Api, format};
use crate::{
    cli::script::{NoiseArguments, ReportArguments, ReportCommand},
    failure::Failure,
    output,
};

/// Timeout of a report by event name, which reads every delivery stored in the period.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run_report(arguments: ReportArguments, api: Api) -> Result<(), Failure> {
    let ReportCommand::Noise(arguments) = arguments.report;
    run_noise(arguments, &mut api.with_call_timeout(PATIENCE)).await
}

async fn run_noise(arguments: NoiseArguments, api: &mut Api) -> Result<(), Failure> {
    let now_ms = jiff::Timestamp::now().as_millisecond();
    let start = jiff::Timestamp::from_millisecond(now_ms.saturating_sub(arguments.since));
    let start = start.map_err(|_far| Failure::usage_error("--since reaches back too far"))?;
    let request = json!({
        "start": start.to_string(),
        "by": arguments.by.as_str(),
        "timeZone": arguments.time_zone.unwrap_or_default(),
    });
    let answer = api.call("InsightService", "GetNoise", &request).await;
    let answer = answer?;
    if !arguments.table.csv {
        return format::write_formatted(&answer, arguments.table.output.output, report_text);
    }
    let plan = json::shared_plan();
    let message = plan.by_name.get("bellwether.v1.GetNoiseResponse").copied();
    let table = message.and_then(|it| csv::render_table(plan, it, "rows", &answer));
    output::write_output(&output::escape_controls(&table.unwrap_or_default()))
}

fn report_text(answer: &Value) -> String {
    let time = |field: &str| format::inline_value(&answer[field]);
    let (start, end) = (time("startTime"), time("endTime"));
    let rows = answer["rows"].as_array().into_iter().flatten();
    let head = format!("noise from {start} to {end}\n");
    std::iter::once(head).chain(rows.map(format_row)).collect()
}

fn format_row(row: &Value) -> String {
    let number = |field: &str| row[field].as_u64().unwrap_or_default();
    let name = match format::inline_value(&row["name"]) {
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
