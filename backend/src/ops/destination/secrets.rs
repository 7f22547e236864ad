//! Secrets that an edit leaves out, taken from what is stored.

use std::collections::BTreeMap;

use url::Url;

use crate::{
    destination::receivers,
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
    if let (DestinationKind::Webhook(draft), Some(DestinationKind::Webhook(stored))) =
        (&mut *draft, stored)
    {
        keep_headers(draft, stored);
    }
    // Names of headers are the same in any letter case.
    let mut kept = BTreeMap::new();
    if let Some(stored) = stored {
        stored.clone().each_secret(|place, secret| {
            kept.insert(place.name().to_ascii_lowercase(), secret.clone());
        });
    }
    draft.each_secret(|place, secret| {
        if is_left_out(secret) {
            *secret = kept
                .remove(&place.name().to_ascii_lowercase())
                .unwrap_or_default();
        }
    });
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
        if let (Some(to), Some(from)) = (origin(to), origin(from))
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

/// Scheme, host and port.
fn origin(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    Some(url.origin().ascii_serialization())
}

fn is_left_out(secret: &Secret) -> bool {
    matches!(secret.reveal(), "" | MASK)
}

/// A draft without any headers keeps the secret ones; one that names other headers drops those it
/// does not name.
fn keep_headers(draft: &mut Webhook, stored: &Webhook) {
    if draft.headers.is_empty() {
        let is_secret = |header: &&Header| matches!(header.value, HeaderValue::Secret(_));
        let secret = stored.headers.iter().filter(is_secret);
        draft.headers = secret.cloned().collect();
    }
}
