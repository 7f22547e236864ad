//! Microsoft Teams: a card posted to an incoming webhook.

use http::{HeaderValue, header};
use serde_json::Value;

use super::mission::{Ending, Mission};
use crate::{
    delivery::{
        http::Answer,
        verdict::{Advice, Verdict},
    },
    domain::destination::MsTeams,
};

/// How an incoming webhook says with status 200 that it failed.
const FAILED: &str = "endpoint returned HTTP error";

pub(super) async fn send(mission: &Mission<'_>, teams: &MsTeams, body: &Value) -> Ending {
    let url = teams.url.reveal().to_owned();
    let (result, transcript) = mission.post_json(url, None, body.to_string()).await;
    let verdict = match &result {
        Ok(answer) if answer.status.is_success() => judge(mission, answer),
        other => mission.judge(other),
    };
    (verdict, transcript)
}

fn judge(mission: &Mission<'_>, answer: &Answer) -> Verdict {
    let said = String::from_utf8_lossy(&answer.body);
    if said.contains(FAILED) {
        let said = mission.explain(&format!("Teams refused the message: {said}"));
        return Verdict::rejected(said, Advice::Again);
    }
    // Workflows may answer what they like, but not with a page for people.
    let content_type = answer.headers.get(header::CONTENT_TYPE);
    let content_type = content_type.map_or(&[][..], HeaderValue::as_bytes);
    if content_type.starts_with(b"text/html") && said.trim_start().starts_with('<') {
        return mission.judge_foreign(answer, "Teams");
    }
    Verdict::delivered("Teams took the message")
}
