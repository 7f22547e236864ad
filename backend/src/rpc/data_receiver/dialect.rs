//! Dialects of other products: checks whether the client may send them.

use tonic::metadata::MetadataMap;

use crate::{
    domain::{Dialect, IncomingEvent, RecordId, Role},
    error::Error,
    ops::client::Caller,
    rpc::access::DIALECT_HEADER as DIALECT,
};

/// Metadata that marks a key as part of the path, where it may have been logged.
const KEY_IN_PATH: &str = "bellwether-key-in-path";

pub(super) fn dialect_label(metadata: &MetadataMap) -> &'static str {
    match metadata.get(DIALECT) {
        None => NATIVE,
        Some(word) => {
            Dialect::from_name(word.to_str().unwrap_or_default()).map_or(OTHER, Dialect::as_str)
        }
    }
}

pub(super) const NATIVE: &str = "native";

pub fn labels() -> impl Iterator<Item = &'static str> {
    let dialects = Dialect::ALL.into_iter().map(Dialect::as_str);
    dialects.chain([NATIVE, OTHER])
}

const OTHER: &str = "other";

/// Alert label that earlier versions excluded from the identity.
const SEVERITY: &str = "severity";

/// Adds the reporter to an event of a dialect, and the identity that the event had in earlier
/// versions.
pub(super) fn identify(word: &str, client: RecordId, event: &mut IncomingEvent) {
    let dialect = Dialect::from_name(word);
    let is_label_set = matches!(dialect, Some(Dialect::Alertmanager | Dialect::Prometheus));
    if is_label_set && let Some(label) = event.dimensions.remove(SEVERITY) {
        event.report.folded = Some(event.id());
        event.dimensions.insert(SEVERITY.to_owned(), label);
    }
    if dialect == Some(Dialect::Prometheus) {
        event.report = event.report.with_qualified_reporter(client);
    }
}

/// Checks that a request is native, or in a dialect that its client may send.
///
/// # Errors
/// Returns [`Error::PermissionDenied`] for a dialect that is not granted, and for a key in a path
/// with permissions other than sending.
pub(super) fn admit(metadata: &MetadataMap, caller: &Caller) -> Result<(), Error> {
    let Some(word) = metadata.get(DIALECT) else {
        return Ok(());
    };
    let (name, word) = (&caller.name, word.to_str().unwrap_or_default());
    if metadata.contains_key(KEY_IN_PATH) && caller.role != Role::Ingest {
        let role = caller.role.as_str();
        return Err(Error::PermissionDenied(format!(
            "a key in the path must have the role `ingest`; the key of `{name}` has the role `{role}`"
        )));
    }
    let is_allowed = caller.role == Role::Admin
        || Dialect::from_name(word).is_some_and(|dialect| caller.dialects.contains(&dialect));
    if is_allowed {
        return Ok(());
    }
    Err(Error::PermissionDenied(format!(
        "the client `{name}` may not send the dialect `{word}`; an admin allows it with \
         `bellwether client update {name} --dialect {word}`"
    )))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        domain::{Name, Rates},
        ops::client::Meter,
    };

    fn caller(role: Role, dialects: &[Dialect]) -> Caller {
        Caller {
            id: RecordId::from_parts(0, 1),
            name: Name::parse("sender").unwrap(),
            role,
            dialects: dialects.iter().copied().collect::<BTreeSet<_>>(),
            scope: Arc::default(),
            meter: Arc::new(Meter::new(Rates::default(), 0)),
            revoked: CancellationToken::new(),
            signed_in_until_ms: None,
        }
    }

    #[test]
    fn dialect_is_refused_unless_enabled_for_the_client() {
        use Dialect::{Otlp, Prometheus};
        let table: &[(Role, &[Dialect], Option<&'static str>, bool)] = &[
            (Role::Ingest, &[], None, true),
            (Role::Ingest, &[], Some("otlp"), false),
            (Role::Ingest, &[Prometheus], Some("otlp"), false),
            (Role::Ingest, &[Prometheus, Otlp], Some("otlp"), true),
            (Role::Ingest, &[Prometheus, Otlp], Some("another"), false),
            (Role::Admin, &[], Some("otlp"), true),
        ];
        for (role, dialects, word, is_admitted) in table {
            let mut metadata = MetadataMap::new();
            if let Some(word) = word {
                metadata.insert(DIALECT, word.parse().unwrap());
            }
            let admitted = admit(&metadata, &caller(*role, dialects));
            assert_eq!(admitted.is_ok(), *is_admitted, "{dialects:?} {word:?}");
        }
    }

    #[test]
    fn key_in_path_requires_the_ingest_role() {
        let mut metadata = MetadataMap::new();
        metadata.insert(DIALECT, "otlp".parse().unwrap());
        metadata.insert(KEY_IN_PATH, "true".parse().unwrap());
        assert!(admit(&metadata, &caller(Role::Ingest, &[Dialect::Otlp])).is_ok());
        let refused = admit(&metadata, &caller(Role::Admin, &[])).unwrap_err();
        assert!(
            refused.to_string().contains("must have the role `ingest`"),
            "{refused}"
        );
    }
}
