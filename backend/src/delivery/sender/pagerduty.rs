//! PagerDuty: Events API v2.

use http::StatusCode;
use serde_json::Value;

use super::mission::{Ending, Mission};
use crate::{
    delivery::{
        http::Answer,
        verdict::{Advice, Verdict},
    },
    domain::destination::PagerDuty,
};

pub(super) async fn send(
    mission: &Mission<'_>,
    base: &str,
    pagerduty: &PagerDuty,
    mut body: Value,
) -> Ending {
    body["routing_key"] = pagerduty.routing_key.reveal().into();
    let url = format!("{}/v2/enqueue", base.trim_end_matches('/'));
    let (result, transcript) = mission.post_json(url, None, body.to_string()).await;
    let verdict = match &result {
        Ok(answer) => judge(mission, answer),
        other => mission.judge(other),
    };
    (verdict, transcript)
}

fn judge(mission: &Mission<'_>, answer: &Answer) -> Verdict {
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let taken = match said["status"].as_str() {
        Some(status) => status == "success",
        None => answer.status == StatusCode::ACCEPTED,
    };
    if answer.status.is_success() && taken {
        return Verdict::delivered("PagerDuty took the event");
    }
    let Some(message) = said["message"].as_str() else {
        return mission.judge_foreign(answer, "PagerDuty");
    };
    let errors = said["errors"].as_array().into_iter().flatten();
    let errors = errors
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join("; ");
    let explanation = format!(
        "PagerDuty answered {}: {message}{}{errors}",
        answer.status,
        if errors.is_empty() { "" } else { ": " }
    );
    let advice = if answer.status.is_success() {
        Advice::FewMore
    } else {
        answer.advice(mission.start_ms)
    };
    Verdict::rejected(mission.explain(&explanation), advice)
}
