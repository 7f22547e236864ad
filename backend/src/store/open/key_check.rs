//! Whether the keys fit the store, and sealing anew when a key was added.
//!
//! The store holds one known text sealed with every key that sealed something in it.

use super::{error::OpenError, folder::Folder, key_file::KeyFile};
use crate::{
    domain::{Destination, RecordId, Secret},
    store::{
        Direction, EngineError, Kind, Lane, Range, Sealer, Store,
        engine::{Action, Change, Expect, Row},
        seal::Place,
    },
};

const PREFIX: &[u8] = b"seal/";
const TEXT: &str = "bellwether";
const PLACE: Place<'_> = Place {
    record: RecordId::from_bytes([0; 16]),
    field: "check",
};
/// Destinations sealed anew at a time.
const STEP: usize = 100;

/// Checks every key that the store needs; seals with the newest what is sealed with another.
pub(super) async fn check(
    store: &Store,
    sealer: &Sealer,
    folder: &Folder,
) -> Result<(), OpenError> {
    let checks = judge(store, sealer, folder).await?;
    let newest = key_of(sealer.newest());
    if checks.iter().any(|(key, _)| *key == newest) && checks.len() == 1 {
        return Ok(());
    }
    let adopted = adopt(store, sealer, &newest, &checks).await;
    adopted.map_err(|source| folder.fault(source))
}

/// Checks every key that the store needs; answers the texts that it holds for that.
pub(super) async fn judge(
    store: &Store,
    sealer: &Sealer,
    folder: &Folder,
) -> Result<Vec<(Vec<u8>, Row)>, OpenError> {
    let range = Range::under(PREFIX);
    let checks = store
        .engine()
        .page(Kind::Meta, range, Direction::Ascending, usize::MAX)
        .await
        .map_err(|source| folder.fault(source))?;
    for (key, row) in &checks {
        if !sealer
            .open(PLACE, &row.value)
            .is_ok_and(|text| text.reveal() == TEXT)
        {
            let number = number_of(key);
            return Err(KeyFile::of(folder).fault(format!(
                "the store is sealed with key {number}, which is not in it or is another one"
            )));
        }
    }
    Ok(checks)
}

/// Seals everything with the newest key, then forgets that others were needed.
async fn adopt(
    store: &Store,
    sealer: &Sealer,
    newest: &[u8],
    checks: &[(Vec<u8>, Row)],
) -> Result<(), EngineError> {
    if checks.iter().all(|(key, _)| key != newest) {
        let value = sealer.seal(PLACE, &Secret::new(TEXT));
        let put = change(newest, Expect::Absent, Action::Put(value));
        store.engine().apply(Lane::Admin, vec![put]).await?;
    }
    if checks.is_empty() {
        return Ok(());
    }
    let mut range = Range::under(&[]);
    loop {
        let page = store
            .page::<Destination>(range.clone(), Direction::Ascending, STEP)
            .await?;
        let Some(last) = page.last() else {
            break;
        };
        range.start = [last.value.name.as_str().as_bytes(), &[0]].concat();
        let mut changes = store.changes();
        for destination in &page {
            changes.update(destination, &destination.value);
        }
        store.apply(Lane::Admin, changes).await?;
    }
    let old = checks.iter().filter(|(key, _)| key != newest);
    let forget = old.map(|(key, row)| change(key, Expect::Version(row.version), Action::Delete));
    store.engine().apply(Lane::Admin, forget.collect()).await?;
    Ok(())
}

fn change(key: &[u8], expect: Expect, action: Action) -> Change {
    Change {
        is_logged: false,
        ..Change::new(Kind::Meta, key, expect, action)
    }
}

fn key_of(number: u32) -> Vec<u8> {
    [PREFIX, &number.to_be_bytes()].concat()
}

/// Whether a fact is one of those that are checked here.
pub(in crate::store) fn is_of_keys(key: &[u8]) -> bool {
    key.starts_with(PREFIX)
}

fn number_of(key: &[u8]) -> u32 {
    let number = key
        .strip_prefix(PREFIX)
        .and_then(|number| number.try_into().ok());
    number.map_or(0, u32::from_be_bytes)
}
