//! Which texts of a destination nobody may see.

use url::{Position, Url};

use crate::{
    config::SmtpConfig,
    delivery::transcript::Masker,
    domain::{DestinationKind, destination::HeaderValue},
};

/// Masks every secret of a destination, and the mail server's password.
pub(super) fn masker(kind: &DestinationKind, smtp: Option<&SmtpConfig>) -> Masker {
    let mut masker = Masker::default();
    match kind {
        DestinationKind::Webhook(webhook) => {
            for header in &webhook.headers {
                if let HeaderValue::Secret(secret) = &header.value {
                    masker.add(secret.reveal());
                }
            }
            if let Some(secrets) = &webhook.signing_secret {
                masker.add(secrets.reveal());
            }
        }
        DestinationKind::Slack(slack) => masker.add(slack.token.reveal()),
        DestinationKind::MsTeams(teams) => {
            masker.add(teams.url.reveal());
            // The host alone is no secret; what tells the channel is.
            if let Ok(url) = Url::parse(teams.url.reveal()) {
                masker.add(url.as_str());
                let path = &url[Position::BeforePath..Position::AfterQuery];
                if path.len() > 1 {
                    masker.add(path);
                }
            }
        }
        DestinationKind::PagerDuty(pagerduty) => masker.add(pagerduty.routing_key.reveal()),
        DestinationKind::ServiceNow(servicenow) => {
            masker.add(servicenow.client_secret.reveal());
            if let Some(refresh_token) = &servicenow.refresh_token {
                masker.add(refresh_token.reveal());
            }
        }
        DestinationKind::Email(_) => {
            if let Some((_, password)) = smtp.and_then(|smtp| smtp.credentials.as_ref()) {
                masker.add(password.reveal());
            }
        }
        DestinationKind::Event(_) => {}
    }
    masker
}
