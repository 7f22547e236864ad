//! `status` and `health`, for monitoring and probes.

use std::time::Duration;

use bellwether_language::text::enum_word;
use serde_json::{Value, json};
use tonic::transport::Endpoint;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::{Api, format, unreachable_failure};
use crate::{
    cli::script::{QuietArguments, QuietChoice, StatusArguments},
    config::Settings,
    failure::{Failure, to_sentence},
    output, ready, tls,
};

const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn run_status(arguments: StatusArguments, mut api: Api) -> Result<(), Failure> {
    let overview = api.call("OverviewService", "GetOverview", &json!({})).await;
    let overview = overview?;
    let troubles = list_problems(&overview);
    format::write_formatted(&overview, arguments.output.output, |overview| {
        let lines = format::open_counts(overview).chain(troubles.iter().cloned());
        let text: String = lines.map(|line| line + "\n").collect();
        match &*text {
            "" => "nothing is open\n".to_owned(),
            _ => text,
        }
    })?;
    if troubles.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        "events are refused, nothing is sent, a destination is failing, or dead letters exist",
    ))
}

fn list_problems(overview: &Value) -> Vec<String> {
    let destinations = overview["destinations"].as_array().into_iter().flatten();
    let store = &overview["store"];
    let refusal = store["reason"].as_str().filter(|it| !it.is_empty());
    let refusal = refusal.map(|_| {
        let state = enum_word(store["state"].as_str().unwrap_or_default(), "");
        let reason = format::inline_value(&store["reason"]);
        match &*state {
            "short" | "full" => reason + " [DISK_FULL]",
            _ => reason,
        }
    });
    let quiet = overview["quietSinceTime"].as_str();
    let quiet = quiet.map(|since| {
        format!("quiet since {since}: nothing is sent; `bellwether quiet off` resumes [QUIET]")
    });
    let of_destinations = destinations.filter_map(|destination| {
        let state = format::health_state(destination);
        let number = |field: &str| destination[field].as_u64().unwrap_or_default();
        let (waiting, dead) = (number("waitingCount"), number("deadCount"));
        let is_unwell = matches!(&*state, "failing" | "paused");
        let name = format::inline_value(&destination["destinationName"]);
        let unreported = match destination["failureUnheard"].as_bool() {
            Some(true) => "; reported only to failing destinations",
            _ => "",
        };
        let code = if is_unwell {
            "DESTINATION_FAILING"
        } else {
            "DEAD_LETTER"
        };
        (is_unwell || dead > 0).then(|| {
            format!("{name}: {state}, {waiting} waiting, {dead} dead letters{unreported} [{code}]")
        })
    });
    refusal
        .into_iter()
        .chain(quiet)
        .chain(of_destinations)
        .collect()
}

pub(super) async fn run_quiet(arguments: &QuietArguments, mut api: Api) -> Result<(), Failure> {
    let is_quiet = arguments.switch == QuietChoice::On;
    let request = json!({ "quiet": is_quiet });
    let answer = api.call("SettingsService", "SetQuiet", &request).await;
    answer?;
    output::write_output(if is_quiet {
        "nothing is sent until `bellwether quiet off`\n"
    } else {
        "everything is sent\n"
    })
}

/// Calls the gRPC health service, which requires no key.
pub(super) async fn run_health(settings: &Settings) -> Result<(), Failure> {
    let address = ready::grpc_address(settings);
    let endpoint = Endpoint::from_shared(address.clone())
        .map_err(|error| Failure::usage_error(format!("--connect: {}", to_sentence(&error))))?;
    let endpoint = tls::without_key(endpoint, settings)?
        .connect_timeout(PATIENCE)
        .timeout(PATIENCE);
    let channel = endpoint.connect().await;
    let channel = channel.map_err(|error| unreachable_failure(&address, error))?;
    let answer = HealthClient::new(channel)
        .check(HealthCheckRequest::default())
        .await;
    let answer = answer.map_err(|status| unreachable_failure(&address, status))?;
    match answer.into_inner().status() {
        ServingStatus::Serving => output::write_output("serving\n"),
        _ => Err(Failure::unreachable(format!("{address} is not serving"))),
    }
}
