//! Secrets that an edit leaves out, taken from what is stored.

use url::Url;

use crate::{
    domain::{
        DestinationKind, Secret,
        destination::{Header, HeaderValue, Webhook},
        secret::MASK,
    },
    ops::validate::Faults,
};

/// Puts the stored secrets where a draft leaves them out or repeats the mask. What is not stored
/// either becomes empty.
pub(super) fn keep(draft: &mut DestinationKind, stored: Option<&DestinationKind>) {
    use DestinationKind as Kind;
    match (draft, stored) {
        (Kind::Webhook(draft), stored) => {
            let stored = match stored {
                Some(Kind::Webhook(stored)) => Some(stored),
                _ => None,
            };
            keep_optional(
                &mut draft.signing_secret,
                stored.and_then(|stored| stored.signing_secret.as_ref()),
            );
            keep_headers(draft, stored);
        }
        (Kind::Slack(draft), Some(Kind::Slack(stored))) => {
            keep_required(&mut draft.token, Some(&stored.token));
        }
        (Kind::Slack(draft), _) => keep_required(&mut draft.token, None),
        (Kind::MsTeams(draft), Some(Kind::MsTeams(stored))) => {
            keep_required(&mut draft.url, Some(&stored.url));
        }
        (Kind::MsTeams(draft), _) => keep_required(&mut draft.url, None),
        (Kind::PagerDuty(draft), Some(Kind::PagerDuty(stored))) => {
            keep_required(&mut draft.routing_key, Some(&stored.routing_key));
        }
        (Kind::PagerDuty(draft), _) => keep_required(&mut draft.routing_key, None),
        (Kind::ServiceNow(draft), stored) => {
            let stored = match stored {
                Some(Kind::ServiceNow(stored)) => Some(stored),
                _ => None,
            };
            keep_required(
                &mut draft.client_secret,
                stored.map(|stored| &stored.client_secret),
            );
            keep_optional(
                &mut draft.refresh_token,
                stored.and_then(|stored| stored.refresh_token.as_ref()),
            );
        }
        (Kind::Email(_) | Kind::Event(_), _) => {}
    }
}

/// Refuses a draft that would send a stored secret elsewhere than to the scheme, host and port that
/// it is stored for. `draft` is as its author wrote it, `kept` with the stored secrets in it.
pub(super) fn hold_to_address(
    draft: &DestinationKind,
    kept: &DestinationKind,
    stored: &DestinationKind,
    faults: &mut Faults,
) {
    // Only a stored secret makes a difference.
    let mut alone = draft.clone();
    keep(&mut alone, None);
    if alone == *kept {
        return;
    }
    for ((field, to), (_, from)) in receivers(kept).into_iter().zip(receivers(stored)) {
        // What is no address is refused as such.
        if let (Some(to), Some(from)) = (origin(&to), origin(&from))
            && to != from
        {
            let fault = format!(
                "leads to {to}, and the draft leaves out secrets that are stored for {from}; give \
                 the secrets too, keep that address, or ask somebody with the role `editor`"
            );
            faults.add(field, fault);
        }
    }
}

/// Who gets to see the secrets of a destination, as fields and addresses; nobody where the settings
/// of the service say where to, or where the address is the secret.
fn receivers(kind: &DestinationKind) -> Vec<(&'static str, String)> {
    match kind {
        DestinationKind::Webhook(webhook) => vec![("type.webhook.url", webhook.url.clone())],
        DestinationKind::ServiceNow(servicenow) => {
            let instance_url = servicenow.instance_url.clone();
            let token_url = match servicenow.token_url.as_str() {
                "" => instance_url.clone(),
                other => other.to_owned(),
            };
            vec![
                ("type.servicenow.instanceUrl", instance_url),
                ("type.servicenow.tokenUrl", token_url),
            ]
        }
        DestinationKind::Email(_)
        | DestinationKind::Slack(_)
        | DestinationKind::MsTeams(_)
        | DestinationKind::PagerDuty(_)
        | DestinationKind::Event(_) => Vec::new(),
    }
}

/// Scheme, host and port.
fn origin(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    Some(url.origin().ascii_serialization())
}

fn is_left_out(secret: &Secret) -> bool {
    matches!(secret.reveal(), "" | MASK)
}

fn keep_required(draft: &mut Secret, stored: Option<&Secret>) {
    if is_left_out(draft) {
        *draft = stored.cloned().unwrap_or_else(|| Secret::new(""));
    }
}

fn keep_optional(draft: &mut Option<Secret>, stored: Option<&Secret>) {
    if draft.as_ref().is_none_or(is_left_out) {
        *draft = stored.cloned();
    }
}

/// A secret header keeps its value when it is given without one. A draft without any headers keeps
/// the secret ones; one that names other headers drops those it does not name.
fn keep_headers(draft: &mut Webhook, stored: Option<&Webhook>) {
    let stored = stored.map_or(&[][..], |stored| &stored.headers);
    if draft.headers.is_empty() {
        let is_secret = |header: &&Header| matches!(header.value, HeaderValue::Secret(_));
        draft.headers = stored.iter().filter(is_secret).cloned().collect();
        return;
    }
    for header in &mut draft.headers {
        let HeaderValue::Secret(secret) = &mut header.value else {
            continue;
        };
        let of_that_name = stored
            .iter()
            .find(|stored| stored.name.eq_ignore_ascii_case(&header.name));
        let stored = of_that_name.and_then(|stored| match &stored.value {
            HeaderValue::Secret(secret) => Some(secret),
            HeaderValue::Plain(_) => None,
        });
        keep_required(secret, stored);
    }
}
