//! Secrets omitted from an edit, taken from the stored resource.

use std::collections::{BTreeMap, HashSet};

use crate::{
    domain::{
        DestinationKind, Secret, TemplateLanguage,
        destination::{Header, HeaderValue, Webhook},
        secret::MASK,
    },
    send::receivers,
    validate::Violations,
};

/// Fills in stored secrets where the draft omits them or contains the mask. A secret that is not
/// stored becomes empty; a mask for it is a violation. If a stored secret would be sent to a
/// different address, it is left out, and a violation is added.
pub(super) fn fill_stored_secrets(
    (mut draft, language): (DestinationKind, TemplateLanguage),
    stored: Option<(&DestinationKind, TemplateLanguage)>,
    violations: &mut Violations,
) -> DestinationKind {
    let stored_language = stored.map_or(language, |(_, language)| language);
    let stored = stored.map(|(kind, _)| kind);
    if let (DestinationKind::Webhook(draft), Some(DestinationKind::Webhook(stored))) =
        (&mut draft, stored)
    {
        add_secret_headers(draft, stored);
    }
    // Header names are case-insensitive.
    let mut remaining = BTreeMap::new();
    if let Some(stored) = stored {
        stored.clone().for_each_secret(|place, secret| {
            if !secret.is_empty() {
                remaining.insert(place.name().to_ascii_lowercase(), secret.clone());
            }
        });
    }
    if let DestinationKind::Webhook(Webhook { url, .. }) = &draft
        && !url.is_empty()
    {
        // A public URL replaces a secret one.
        remaining.remove("webhook.secret_url");
    }
    let mut reused = Vec::new();
    draft.for_each_secret(|place, secret| {
        let is_mask = secret.reveal() == MASK;
        if !is_mask && !secret.is_empty() {
            return;
        }
        let stored = remaining.remove(&place.name().to_ascii_lowercase());
        match &stored {
            Some(_) => reused.push((place.path(), place.field())),
            None if is_mask => {
                violations.add(place.path(), "is the mask, but no secret is stored");
            }
            None => {}
        }
        *secret = stored.unwrap_or_default();
    });
    if let Some(stored) = stored {
        remove_secrets_for_other_address(
            (&mut draft, language),
            (stored, stored_language),
            reused,
            violations,
        );
    }
    draft
}

/// Removes secrets that would be sent to a URL other than the one they are stored for. The full URL
/// is compared, since another path on the same host can belong to someone else.
fn remove_secrets_for_other_address(
    (draft, language): (&mut DestinationKind, TemplateLanguage),
    (stored, stored_language): (&DestinationKind, TemplateLanguage),
    reused: Vec<(String, &'static str)>,
    violations: &mut Violations,
) {
    let mut moved = HashSet::new();
    for (path, field) in reused {
        let from = receivers(stored, stored_language, field);
        let elsewhere = receivers(draft, language, field)
            .into_iter()
            .find(|(receiver, to)| {
                // A receiver that had no address of its own used the first one.
                let same = from.iter().find(|(other, _)| other == receiver);
                same.or(from.first()).is_none_or(|(_, from)| from != to)
            });
        if let Some((receiver, _)) = elsewhere {
            violations.add(
                &path,
                format!(
                    "was entered for an address other than `{receiver}`; enter it again for the \
                     new address"
                ),
            );
            moved.insert(path);
        }
    }
    draft.for_each_secret(|place, secret| {
        if moved.contains(&place.path()) {
            *secret = Secret::default();
        }
    });
}

/// Adds the stored secret headers to a draft without any headers. A draft with headers drops those
/// it does not mention.
fn add_secret_headers(draft: &mut Webhook, stored: &Webhook) {
    if draft.headers.is_empty() {
        let is_secret = |header: &&Header| matches!(header.value, HeaderValue::Secret(_));
        let secret = stored.headers.iter().filter(is_secret);
        let named = secret.map(|header| Header {
            name: header.name.clone(),
            value: HeaderValue::Secret(Secret::default()),
        });
        draft.headers = named.collect();
    }
}
