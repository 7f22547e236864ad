//! Microsoft Teams: a card posted to an incoming webhook.

use serde_json::Value;

use super::mission::{Ending, Mission};
use crate::{
    delivery::verdict::{Advice, Verdict},
    domain::destination::MsTeams,
};

/// How an incoming webhook says with status 200 that it failed.
const FAILED: &str = "endpoint returned HTTP error";

pub(super) async fn send(mission: &Mission<'_>, teams: &MsTeams, body: &Value) -> Ending {
    let url = teams.url.reveal().to_owned();
    let (result, transcript) = mission.post_json(url, None, body.to_string()).await;
    let verdict = match &result {
        Ok(answer) if answer.status.is_success() => {
            let said = String::from_utf8_lossy(&answer.body);
            if said.contains(FAILED) {
                let said = mission.explain(&format!("Teams refused the message: {said}"));
                Verdict::rejected(said, Advice::Again)
            } else {
                Verdict::delivered("Teams took the message")
            }
        }
        other => mission.judge(other),
    };
    (verdict, transcript)
}
