//! Checks that the keys match the store, and seals the store again after a key was added.
//!
//! For every key that sealed or authenticated a record, the store contains a known text sealed with
//! that key.

use super::{LocationErrors, error::OpenError};
use crate::{
    domain::{AuditEntry, Delivery, RecordId, Secret},
    engine::{Action, Change, Direction, EngineError, Expect, Kind, Lane, Range, Row},
    record::{ProofLevel, Record, Store, renew_proof, upgrade_proof, with_record},
    seal::{SealContext, Sealer},
};

const PREFIX: &[u8] = b"seal/";
/// The current text. Only the owner of the keys can seal a text that claims fewer authenticated
/// records.
const TEXT: &str = "bellwether, definitions proven";
/// Current and former plaintexts, and the records that are authenticated in a store that contains
/// them.
const TEXTS: [(&str, ProofLevel); 3] = [
    ("bellwether", ProofLevel::Nothing),
    ("bellwether, proven", ProofLevel::Access),
    (TEXT, ProofLevel::Definitions),
];
const CONTEXT: SealContext<'_> = SealContext {
    record: RecordId::from_bytes([0; 16]),
    field: "check",
};
const STEP: usize = 100;

/// Checks all keys of the store. Records that used another key are sealed and authenticated again
/// with the newest one. Records of earlier versions are authenticated.
pub(super) async fn check_keys(
    store: &Store,
    sealer: &Sealer,
    location: &impl LocationErrors,
) -> Result<(), OpenError> {
    let checks = verify_keys(store, sealer, location).await?;
    if checks.uses_only_newest(sealer) {
        return Ok(());
    }
    let Checks { texts, proven } = checks;
    let newest = check_key(sealer.newest_number());
    let adopted = async {
        for kind in Kind::ALL {
            // If a kind already had proofs, its records without a proof were not written by this
            // service, and are not adopted.
            if ProofLevel::oldest_for_kind(kind).is_some_and(|first| first > proven) {
                prove_records(store, kind, sealer).await?;
            }
        }
        adopt_newest_key(store, sealer, &newest, &texts).await
    };
    adopted.await.map_err(|source| location.store_error(source))
}

#[derive(Debug)]
pub(crate) struct Checks {
    texts: Vec<(Vec<u8>, Row)>,
    proven: ProofLevel,
}

impl Checks {
    pub(super) fn uses_only_newest(&self, sealer: &Sealer) -> bool {
        let newest = check_key(sealer.newest_number());
        let is_newest = |(key, _): &(Vec<u8>, Row)| *key == newest;
        self.proves_definitions() && self.texts.len() == 1 && self.texts.iter().all(is_newest)
    }

    pub(crate) fn proves_definitions(&self) -> bool {
        self.proven == ProofLevel::Definitions
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

pub(crate) async fn verify_keys(
    store: &Store,
    sealer: &Sealer,
    location: &impl LocationErrors,
) -> Result<Checks, OpenError> {
    let range = Range::with_prefix(PREFIX);
    let checks = store
        .engine()
        .read_page(Kind::Meta, range, Direction::Ascending, usize::MAX)
        .await
        .map_err(|source| location.store_error(source))?;
    // A store without checks was created by this version. The text of the newest key decides:
    // adding an older text has no effect.
    let mut proven = ProofLevel::Definitions;
    for (key, row) in &checks {
        let number = key_number(key);
        let is_of_key = Sealer::key_number(&row.value) == Some(number);
        let text = sealer.open(CONTEXT, &row.value).ok().filter(|_| is_of_key);
        let found = text.and_then(|text| {
            let mut known = TEXTS.into_iter();
            known.find(|(known, _)| *known == text.reveal())
        });
        let Some((_, found)) = found else {
            return Err(location.key_error(format!(
                "the store is encrypted with key {number}, which is missing or different"
            )));
        };
        proven = found;
    }
    Ok(Checks {
        texts: checks,
        proven,
    })
}

async fn prove_records(store: &Store, kind: Kind, sealer: &Sealer) -> Result<(), EngineError> {
    let mut range = Range::with_prefix(&[]);
    loop {
        let engine = store.engine();
        let page = engine
            .read_page(kind, range.clone(), Direction::Ascending, STEP)
            .await?;
        let Some((last, _)) = page.last() else {
            return Ok(());
        };
        range.exclude_through(last);
        let changes = page.iter().filter_map(|(key, row)| {
            let put = Action::Put(upgrade_proof(kind, &row.value, sealer)?);
            Some(check_change(kind, key, Expect::Version(row.version), put))
        });
        let changes: Vec<_> = changes.collect();
        if !changes.is_empty() {
            engine.apply(Lane::Admin, changes.into()).await?;
        }
    }
}

/// Seals all records with the newest key, then removes the checks of other keys.
async fn adopt_newest_key(
    store: &Store,
    sealer: &Sealer,
    newest: &[u8],
    checks: &[(Vec<u8>, Row)],
) -> Result<(), EngineError> {
    let own = checks.iter().find(|(key, _)| key == newest);
    let expect = own.map_or(Expect::Absent, |(_, row)| Expect::Version(row.version));
    let put = Action::Put(sealer.seal(CONTEXT, &Secret::new(TEXT)));
    let put = check_change(Kind::Meta, newest, expect, put);
    store.engine().apply(Lane::Admin, vec![put].into()).await?;
    let old = checks.iter().filter(|(key, _)| key != newest);
    let forget = old.map(|(key, row)| {
        let expect = Expect::Version(row.version);
        check_change(Kind::Meta, key, expect, Action::Delete)
    });
    let forget: Vec<_> = forget.collect();
    if forget.is_empty() {
        return Ok(());
    }
    for kind in Kind::ALL {
        if ProofLevel::oldest_for_kind(kind).is_some() {
            with_record!(kind, Of => rewrite_records::<Of>(store).await?, else {});
        }
    }
    rewrite_kept_secrets(store).await?;
    prove_end_of_audit_log(store).await?;
    store.engine().apply(Lane::Admin, forget.into()).await?;
    Ok(())
}

/// Renews the proof of the last audit entry, and thereby of the whole chain.
async fn prove_end_of_audit_log(store: &Store) -> Result<(), EngineError> {
    let engine = store.engine();
    let newest = engine.read_page(
        Kind::Audit,
        Range::with_prefix(&[]),
        Direction::Descending,
        1,
    );
    let Some((key, row)) = newest.await?.pop() else {
        return Ok(());
    };
    if !store.decode::<AuditEntry>(&row.value)?.is_proven {
        return Ok(());
    }
    let put = Action::Put(renew_proof(&row.value, store.sealer())?);
    let put = check_change(Kind::Audit, &key, Expect::Version(row.version), put);
    engine.apply(Lane::Admin, vec![put].into()).await?;
    Ok(())
}

async fn rewrite_records<T: Record>(store: &Store) -> Result<(), EngineError> {
    let mut range = Range::with_prefix(&[]);
    loop {
        let page = store.page::<T>(range.clone(), Direction::Ascending, STEP);
        let page = page.await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        range.exclude_through(&last.value.key());
        let mut changes = store.new_changes();
        for stored in &page {
            changes.update(stored, &stored.value);
        }
        store.apply(Lane::Admin, changes).await?;
    }
}

/// Seals the secrets that deliveries keep from responses. Unreadable deliveries stay as they are.
async fn rewrite_kept_secrets(store: &Store) -> Result<(), EngineError> {
    let mut range = Range::with_prefix(&[]);
    loop {
        let (engine, ascending) = (store.engine(), Direction::Ascending);
        let page = engine.read_page(Kind::Delivery, range.clone(), ascending, STEP);
        let page = page.await?;
        let Some((last, _)) = page.last() else {
            return Ok(());
        };
        range.exclude_through(last);
        let keys = page.into_iter().filter_map(|(key, row)| {
            let delivery = store.decode::<Delivery>(&row.value).ok()?;
            delivery.kept.secrets().next().map(|_sealed| key)
        });
        let (found, _) = store.get_readable::<Delivery>(keys.collect()).await?;
        let mut changes = store.new_changes();
        for stored in found.iter().flatten() {
            changes.update(stored, &stored.value);
        }
        if !changes.is_empty() {
            store.apply(Lane::Admin, changes).await?;
        }
    }
}

fn check_change(kind: Kind, key: &[u8], expect: Expect, action: Action) -> Change {
    Change {
        is_logged: false,
        ..Change::new(kind, key, expect, action)
    }
}

fn check_key(number: u32) -> Vec<u8> {
    [PREFIX, &number.to_be_bytes()].concat()
}

pub(crate) fn is_key_check(key: &[u8]) -> bool {
    key.starts_with(PREFIX)
}

fn key_number(key: &[u8]) -> u32 {
    let number = key
        .strip_prefix(PREFIX)
        .and_then(|number| number.try_into().ok());
    number.map_or(0, u32::from_be_bytes)
}
