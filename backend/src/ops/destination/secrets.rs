//! Secrets that an edit leaves out, taken from what is stored.

use std::collections::BTreeMap;

use url::{Position, Url};

use crate::{
    destination::receivers,
    domain::{
        DestinationKind,
        destination::{Header, HeaderValue, Webhook},
        secret::MASK,
    },
    ops::validate::Faults,
};

/// The draft with the stored secrets where it leaves them out or repeats the mask. What is not
/// stored either becomes empty; for a mask that is a fault, and so is leading stored secrets to
/// another address.
pub(super) fn keep(
    mut draft: DestinationKind,
    stored: Option<&DestinationKind>,
    faults: &mut Faults,
) -> DestinationKind {
    if let (DestinationKind::Webhook(draft), Some(DestinationKind::Webhook(stored))) =
        (&mut draft, stored)
    {
        keep_headers(draft, stored);
    }
    // Names of headers are the same in any letter case.
    let mut kept = BTreeMap::new();
    if let Some(stored) = stored {
        stored.clone().each_secret(|place, secret| {
            if !secret.is_empty() {
                kept.insert(place.name().to_ascii_lowercase(), secret.clone());
            }
        });
    }
    if let DestinationKind::Webhook(Webhook { url, .. }) = &draft
        && !url.is_empty()
    {
        // An address that everybody may read takes the place of a secret one.
        kept.remove("webhook.secret_url");
    }
    let mut holds_stored = false;
    draft.each_secret(|place, secret| {
        let is_mask = secret.reveal() == MASK;
        if !is_mask && !secret.is_empty() {
            return;
        }
        let stored = kept.remove(&place.name().to_ascii_lowercase());
        holds_stored |= stored.is_some();
        if is_mask && stored.is_none() {
            faults.add(place.path(), "is the mask, and no secret is stored for it");
        }
        *secret = stored.unwrap_or_default();
    });
    if let (true, Some(stored)) = (holds_stored, stored) {
        hold_to_address(&draft, stored, faults);
    }
    draft
}

/// Refuses to lead stored secrets elsewhere than to the whole address that they are stored for: on
/// the same host, another path can belong to somebody else.
fn hold_to_address(draft: &DestinationKind, stored: &DestinationKind, faults: &mut Faults) {
    let stored = receivers(stored);
    for (field, to) in receivers(draft) {
        let same = stored.iter().find(|(stored, _)| *stored == field);
        // What led nowhere of its own went to the one address; a way to tokens had no secret.
        let before = same.or(stored.first().filter(|_| field.ends_with(".onClear.url")));
        let Some((_, from)) = before else {
            continue;
        };
        // What is no address is refused as such.
        if let (Some(to), Some(from)) = (address(to), address(from))
            && to != from
        {
            faults.add(
                field,
                "is another address than the one that secrets are stored for, and they are left \
                 out; give the secrets too, or keep the address",
            );
        }
    }
}

/// Scheme, host, port, path and query.
fn address(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    Some(url[..Position::AfterQuery].to_owned())
}

/// A draft without any headers keeps the secret ones; one that names other headers drops those it
/// does not name. A header that everybody could read stays so as long as its value does.
fn keep_headers(draft: &mut Webhook, stored: &Webhook) {
    if draft.headers.is_empty() {
        let is_secret = |header: &&Header| matches!(header.value, HeaderValue::Secret(_));
        let secret = stored.headers.iter().filter(is_secret);
        draft.headers = secret.cloned().collect();
    }
    for header in &mut draft.headers {
        let was_plain = stored.headers.iter().find_map(|stored| {
            let is_same = stored.name.eq_ignore_ascii_case(&header.name);
            match (&stored.value, &header.value) {
                (HeaderValue::Plain(text), HeaderValue::Secret(given))
                    if is_same && given.reveal() == text =>
                {
                    Some(stored.value.clone())
                }
                _ => None,
            }
        });
        header.value = was_plain.unwrap_or_else(|| header.value.clone());
    }
}
