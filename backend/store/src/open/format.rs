//! The layout version, stored when a store is created.

use std::path::Path;

use bellwether_process::plain_file;

use super::{error::OpenError, folder::Folder, reorder};
use crate::{
    engine::{Action, Change, EngineError, Expect, Kind, Lane},
    record::Store,
};

/// File with the same version, so that an older program can reject a newer store without opening
/// it.
const FILE: &str = "format";
const FILE_BYTES_MAX: u64 = 64;

const KEY: &[u8] = b"format";
/// The layout of this version. Layout 2 added a log in front of the store's file, and runs of index
/// entries in the file. In layout 3, occurrences with equal sort keys are ordered by start and id.
/// In layout 4, clients and destinations are authenticated by the keys; in layout 5, all
/// definitions are. Stores of an older layout are upgraded when opened.
pub(super) const NEWEST: u32 = 5;
pub(super) const IN_DATABASE: u32 = 4;
const ORDERED: u32 = 3;

pub(super) async fn write_version(store: &Store) -> Result<(), EngineError> {
    put_newest_version(store, Expect::Absent).await
}

async fn put_newest_version(store: &Store, expect: Expect) -> Result<(), EngineError> {
    let put = Action::Put(NEWEST.to_be_bytes().into());
    let change = Change {
        is_logged: false,
        ..Change::new(Kind::Meta, KEY, expect, put)
    };
    store
        .engine()
        .apply(Lane::Admin, vec![change].into())
        .await?;
    Ok(())
}

pub(super) async fn ensure_newest_version(store: &Store) -> Result<(), EngineError> {
    let rows = store.engine().get(Kind::Meta, &[KEY.into()]).await?;
    match rows.into_iter().flatten().next() {
        None => put_newest_version(store, Expect::Absent).await,
        Some(row) if row.value == NEWEST.to_be_bytes() => Ok(()),
        Some(row) => put_newest_version(store, Expect::Version(row.version)).await,
    }
}

pub(super) fn write_file(folder: &Folder) -> Result<(), OpenError> {
    folder.write_private(FILE, format!("{NEWEST}\n").as_bytes())
}

fn read_version(folder: &Path) -> Option<String> {
    plain_file::read_text(&folder.join(FILE), FILE_BYTES_MAX).ok()
}

pub(super) fn check_file(folder: &Path) -> Result<(), OpenError> {
    let text = read_version(folder).unwrap_or_default();
    match text.trim().parse() {
        Ok(found) if found > NEWEST => Err(newer_error(folder, found)),
        _ => Ok(()),
    }
}

pub(super) fn older_version(folder: &Path) -> Option<u32> {
    let text = read_version(folder)?;
    text.trim().parse().ok().filter(|found| *found < NEWEST)
}

pub(super) fn upgrade_file(folder: &Folder) -> Result<(), OpenError> {
    let text = read_version(folder.path()).unwrap_or_default();
    if text.trim().parse() == Ok(NEWEST) {
        return Ok(());
    }
    write_file(folder)?;
    folder.sync()
}

pub(super) async fn upgrade_store(store: &Store, folder: &Folder) -> Result<(), OpenError> {
    let (version, found) = read_version_row(store, folder).await?;
    if found == NEWEST {
        return Ok(());
    }
    if found < ORDERED {
        let reordered = reorder::reorder_entries(store).await;
        reordered.map_err(|source| folder.store_error(source))?;
    }
    let raised = put_newest_version(store, Expect::Version(version)).await;
    raised.map_err(|source| folder.store_error(source))?;
    tracing::info!(
        from = found,
        to = NEWEST,
        "the store was migrated to the latest layout"
    );
    Ok(())
}

pub(super) async fn check_layout_written(store: &Store, folder: &Folder) -> Result<(), OpenError> {
    match stored_version(store).await {
        Ok(Some(NEWEST)) => Ok(()),
        Ok(_) => Err(folder.write_error(&"its layout version is missing or outdated")),
        Err(error) => Err(folder.write_error(&error)),
    }
}

async fn read_version_row(store: &Store, folder: &Folder) -> Result<(u64, u32), OpenError> {
    let rows = store.engine().get(Kind::Meta, &[KEY.into()]).await;
    let mut rows = rows.map_err(|source| folder.store_error(source))?;
    let Some(row) = rows.pop().flatten() else {
        return Err(OpenError::NotOurs {
            folder: folder.path().into(),
            why: "the store was created by another program".into(),
        });
    };
    Ok((row.version, check_version(&row.value, folder)?))
}

pub(super) async fn stored_version(store: &Store) -> Result<Option<u32>, EngineError> {
    let rows = store.engine().get(Kind::Meta, &[KEY.into()]).await?;
    let Some(row) = rows.into_iter().flatten().next() else {
        return Ok(None);
    };
    let version = row.value.try_into().map(u32::from_be_bytes);
    let unread = |_value| EngineError::Corrupt("its version cannot be read".into());
    version.map(Some).map_err(unread)
}

fn check_version(value: &[u8], folder: &Folder) -> Result<u32, OpenError> {
    let found = value.try_into().map(u32::from_be_bytes);
    match found {
        Ok(found @ 1..=NEWEST) => Ok(found),
        Ok(found) if found > NEWEST => Err(newer_error(folder.path(), found)),
        _ => Err(OpenError::Damaged {
            file: folder.store_path(),
            why: "its version cannot be read".into(),
        }),
    }
}

fn newer_error(folder: &Path, found: u32) -> OpenError {
    OpenError::Newer {
        folder: folder.into(),
        found,
        known: NEWEST,
    }
}
