//! Clients.

use std::net::IpAddr;

use crate::{
    domain::{Client, KeyScope, PreviousKey, Rates, Role},
    record::table::{Secrets, numbers, record},
};

record! {
    Client as it, secrets {
        1 id, 2 name, 3 role,
        4 key_hash = secrets.unless_omitted(Some(it.key_hash)),
        5 create_ms, 6 last_used_ms,
        7 requests_per_second = it.rates.requests_per_second,
        8 events_per_second = it.rates.events_per_second,
        9 dialects, 10 expire_ms,
        11 address = it.last_used_from.map_or_else(String::new, |it| it.to_string()),
        12 previous_hash as OptionalForm = secrets.unless_omitted(it.previous.as_ref().map(|it| it.hash)),
        13 previous_until_ms = it.previous.as_ref().map_or(0, |it| it.until_ms),
        14 tags = it.scope.tags,
        15 sources = it.scope.sources,
        16 certificates,
    } with {
        key_hash: hash(secrets, key_hash)?,
        rates: Rates { requests_per_second, events_per_second },
        last_used_from: parse_address(address),
        previous: previous_key(secrets, previous_hash, previous_until_ms),
        scope: KeyScope { tags, sources },
    }
}

/// Returns the hash by which a key is found; zeros if secrets are omitted.
fn hash(secrets: Secrets<'_>, hash: Option<[u8; 32]>) -> Option<[u8; 32]> {
    match secrets {
        Secrets::LeftOut => Some([0; 32]),
        Secrets::Of(..) => hash,
    }
}

/// Returns the previous key. If secrets are omitted, only its expiry is stored.
fn previous_key(
    secrets: Secrets<'_>,
    found: Option<[u8; 32]>,
    until_ms: i64,
) -> Option<PreviousKey> {
    let found = found.or_else(|| hash(secrets, None).filter(|_| until_ms != 0));
    found.map(|hash| PreviousKey { hash, until_ms })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the type determines the column type"
)]
pub(super) fn parse_address(text: String) -> Option<IpAddr> {
    text.parse().ok()
}

numbers! { Role { 1 Ingest, 2 Viewer, 3 Operator, 4 Editor, 5 Admin } }
