//! Secrets that an edit leaves out, taken from what is stored.

use std::collections::{BTreeMap, HashSet};

use crate::{
    destination::receivers,
    domain::{
        DestinationKind, Secret, TemplateLanguage,
        destination::{Header, HeaderValue, Webhook},
        secret::MASK,
    },
    ops::validate::Faults,
};

/// The draft with the stored secrets where it leaves them out or repeats the mask. What is not
/// stored either becomes empty; for a mask that is a fault. A stored secret that would be sent to
/// another address than until now is a fault as well, and stays out of the draft.
pub(super) fn keep(
    (mut draft, language): (DestinationKind, TemplateLanguage),
    stored: Option<(&DestinationKind, TemplateLanguage)>,
    faults: &mut Faults,
) -> DestinationKind {
    let stored_language = stored.map_or(language, |(_, language)| language);
    let stored = stored.map(|(kind, _)| kind);
    if let (DestinationKind::Webhook(draft), Some(DestinationKind::Webhook(stored))) =
        (&mut draft, stored)
    {
        name_headers(draft, stored);
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
    let mut taken = Vec::new();
    draft.each_secret(|place, secret| {
        let is_mask = secret.reveal() == MASK;
        if !is_mask && !secret.is_empty() {
            return;
        }
        let stored = kept.remove(&place.name().to_ascii_lowercase());
        match &stored {
            Some(_) => taken.push((place.path(), place.field())),
            None if is_mask => {
                faults.add(place.path(), "is the mask, and no secret is stored for it");
            }
            None => {}
        }
        *secret = stored.unwrap_or_default();
    });
    if let Some(stored) = stored {
        leave_at_address(
            (&mut draft, language),
            (stored, stored_language),
            taken,
            faults,
        );
    }
    draft
}

/// Takes out the secrets that would be sent elsewhere than to the whole address that they are
/// stored for: on the same host, another path can belong to another client.
fn leave_at_address(
    (draft, language): (&mut DestinationKind, TemplateLanguage),
    (stored, stored_language): (&DestinationKind, TemplateLanguage),
    taken: Vec<(String, &'static str)>,
    faults: &mut Faults,
) {
    let mut moved = HashSet::new();
    for (path, field) in taken {
        let from = receivers(stored, stored_language, field);
        let elsewhere = receivers(draft, language, field)
            .into_iter()
            .find(|(receiver, to)| {
                // What has no own address is sent to the first one.
                let same = from.iter().find(|(other, _)| other == receiver);
                same.or(from.first()).is_none_or(|(_, from)| from != to)
            });
        if let Some((receiver, _)) = elsewhere {
            faults.add(
                &path,
                format!(
                    "was entered for another address than `{receiver}`; enter it again for the \
                     new address"
                ),
            );
            moved.insert(path);
        }
    }
    draft.each_secret(|place, secret| {
        if moved.contains(&place.path()) {
            *secret = Secret::default();
        }
    });
}

/// Has a draft without any headers name the secret ones that are stored; one that names other headers
/// drops those that it does not name.
fn name_headers(draft: &mut Webhook, stored: &Webhook) {
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
