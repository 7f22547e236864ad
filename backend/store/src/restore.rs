//! Restores a backup into a data folder or a database. The store becomes usable only after the
//! whole backup was verified.

mod fill;
mod rehearsal;

use futures_util::future::BoxFuture;
use std::{
    io,
    path::{Path, PathBuf},
};

use bellwether_process::plain_file;

use self::rehearsal::Rehearsal;
use super::{
    backup::{BackupError, Source, Trust},
    domain::{Name, RecordId, Settings},
    engine::{EngineError, Kind, Lane, LogPosition},
    open::{Checks, DatabaseDraft, Draft, KEY_FILE_BYTES_MAX, OpenError},
    record::Store,
    seal::Sealer,
    verify::{Findings, Progress, verify},
};
use crate::location::Location;

#[derive(Debug, Clone)]
pub struct Restore<'a> {
    pub from: &'a Path,
    /// File with the keys, for a backup without them.
    pub key_file: Option<&'a Path>,
    /// Whether to accept a backup of an earlier version, which does not prove its origin.
    pub accept_unproven: bool,
    /// Holds deliveries due by this time, in milliseconds since 1970, until a user sends them,
    /// because they may have been sent after the backup. The service then starts in quiet mode, in
    /// which no other messages are sent either. `None` sends all deliveries, with the same ids.
    pub hold_due_by_ms: Option<i64>,
    pub now_ms: i64,
}

#[derive(Debug, Clone)]
pub struct RestoreReport {
    pub findings: Findings,
    /// Time at which the backup was finished, as RFC 3339 in UTC.
    pub end_time: String,
    /// Number of unfinished deliveries that continue automatically.
    pub waiting: u64,
    pub held: u64,
    pub is_quiet: bool,
    pub has_admin_key: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{} contains {found:?}; a backup can be restored only into an empty or new folder", .folder.display())]
    NotEmpty { folder: PathBuf, found: String },
    #[error(
        "the backup lacks the keys for its secrets; pass the `secret.key` file of its service with --secret-key"
    )]
    NoKey,
    #[error(
        "the backup is from an earlier version and is not authenticated; if you trust everyone who could write to it, use --accept-unproven"
    )]
    Unproven,
    #[error("the backup is not a complete store: {0}")]
    NotWhole(String),
    #[error("failed to write the contents of the backup: {0}")]
    Unwritten(EngineError),
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Verifying the checksums of the backup.
    Reading,
    Filling,
    Checking,
}

#[derive(Debug)]
enum RestoreTarget {
    Folder(Draft),
    Database(Box<DatabaseDraft>),
    Memory(Rehearsal),
}

impl RestoreTarget {
    async fn start(
        config: &Location,
        key: &[u8],
        first_position: LogPosition,
    ) -> Result<Self, RestoreError> {
        if let Some(database) = &config.database {
            let begun = DatabaseDraft::start(database, key, first_position).await;
            return Ok(Self::Database(Box::new(begun?)));
        }
        let cache_bytes = config.options.cache_bytes;
        let begun = Draft::start(&config.data_dir, key, cache_bytes, first_position).await;
        Ok(Self::Folder(begun?))
    }

    fn store(&self) -> &Store {
        match self {
            Self::Folder(draft) => draft.store(),
            Self::Database(draft) => draft.store(),
            Self::Memory(rehearsal) => rehearsal.store(),
        }
    }

    async fn check_keys(&self) -> Result<Checks, OpenError> {
        match self {
            Self::Folder(draft) => draft.check_keys().await,
            Self::Database(draft) => draft.check_keys().await,
            Self::Memory(rehearsal) => rehearsal.check_keys().await,
        }
    }

    /// Reopens the store of a folder, so that it is read from disk. A database confirms every
    /// commit, so its store stays open.
    async fn reopen(&mut self) -> Result<(), OpenError> {
        match self {
            Self::Folder(draft) => draft.reopen().await,
            Self::Database(_) | Self::Memory(_) => Ok(()),
        }
    }

    /// Completes the store; the first client's key is written only to a folder.
    async fn finish(self, admin_key: Option<&[u8]>) -> Result<(), OpenError> {
        match self {
            Self::Folder(draft) => draft.finish(admin_key),
            Self::Database(draft) => draft.finish().await,
            Self::Memory(_) => Ok(()),
        }
    }

    async fn discard(self) {
        match self {
            Self::Folder(draft) => draft.discard(),
            Self::Database(draft) => draft.discard().await,
            Self::Memory(_) => {}
        }
    }
}

struct OpenBackup {
    source: Source,
    key: Vec<u8>,
    sealer: Sealer,
}

impl OpenBackup {
    fn open(how: &Restore<'_>) -> Result<Self, RestoreError> {
        let source = Source::open(how.from)?;
        let keys = source.read_keys(how.key_file)?;
        let (key, sealer) = keys.ok_or(RestoreError::NoKey)?;
        if !source.manifest().has_proofs() && !how.accept_unproven {
            return Err(RestoreError::Unproven);
        }
        Ok(Self {
            source,
            key,
            sealer,
        })
    }

    fn verify(&mut self, progress: &(dyn Fn(Stage, u64, u64) + Sync)) -> Result<(), RestoreError> {
        let trust = if self.source.manifest().has_proofs() {
            Trust::Keys(&self.sealer)
        } else {
            Trust::Checksums
        };
        let bytes = self.source.manifest().bytes();
        let reading = |read| progress(Stage::Reading, read, bytes);
        Ok(self.source.verify(trust, &reading)?)
    }
}

/// Restores a backup into the configured database, or into the data folder, which must be empty or
/// missing.
///
/// After a crash, neither a service nor another restore accepts the incomplete store.
///
/// # Errors
/// Returns a [`RestoreError`]; no store is left in that case.
pub fn restore<'a>(
    config: &'a Location,
    how: &'a Restore<'_>,
    progress: &'a (dyn Fn(Stage, u64, u64) + Sync),
) -> BoxFuture<'a, Result<RestoreReport, RestoreError>> {
    Box::pin(async move {
        let mut found = OpenBackup::open(how)?;
        if config.database.is_none()
            && let Some(found) = Draft::find_obstacle(&config.data_dir)?
        {
            return Err(RestoreError::NotEmpty {
                folder: config.data_dir.clone(),
                found,
            });
        }
        found.verify(progress)?;
        let source = &found.source;
        let admin_key = source
            .key_file("admin.key")
            .map(read_key_file)
            .transpose()?;

        let first_position = source.manifest().end.place.first_after_restore(how.now_ms);
        let mut target = RestoreTarget::start(config, &found.key, first_position).await?;
        match fill_target(&mut target, source, how, progress).await {
            Ok(mut restored) => {
                target.finish(admin_key.as_deref()).await?;
                restored.has_admin_key = admin_key.is_some();
                Ok(restored)
            }
            Err(error) => {
                target.discard().await;
                Err(error)
            }
        }
    })
}

/// Restores a backup into memory and discards it, to check that it can be restored.
pub fn rehearse<'a>(
    how: &'a Restore<'_>,
    progress: &'a (dyn Fn(Stage, u64, u64) + Sync),
) -> BoxFuture<'a, Result<RestoreReport, RestoreError>> {
    Box::pin(async move {
        let mut found = OpenBackup::open(how)?;
        found.verify(progress)?;
        let OpenBackup { source, sealer, .. } = found;
        let mut target = RestoreTarget::Memory(Rehearsal::new(how.from, sealer));
        fill_target(&mut target, &source, how, progress).await
    })
}

async fn fill_target(
    target: &mut RestoreTarget,
    source: &Source,
    how: &Restore<'_>,
    progress: &(dyn Fn(Stage, u64, u64) + Sync),
) -> Result<RestoreReport, RestoreError> {
    let bytes = source.manifest().bytes();
    let filling = |read| progress(Stage::Filling, read, bytes);
    let filled = fill::fill_store(source, target.store(), how.hold_due_by_ms, &filling).await;
    // The keys are checked before `filled`: wrong keys also make secrets unreadable, and their
    // error is more helpful.
    let checks = target.check_keys().await?;
    let mut filled = filled?;
    if filled.unproven > 0 && checks.proves_definitions() {
        return Err(RestoreError::NotWhole(format!(
            "{} definitions were not written by its service",
            filled.unproven
        )));
    }
    if let Some(now_ms) = how.hold_due_by_ms {
        let made_quiet = set_quiet_since(target.store(), now_ms).await;
        made_quiet.map_err(|error| RestoreError::NotWhole(error.to_string()))?;
        // A backup without settings gets its only settings record here.
        filled.records.insert(Kind::Settings.as_str(), 1);
    }
    target.reopen().await?;
    if target.check_keys().await?.is_empty() != checks.is_empty() {
        return Err(RestoreError::NotWhole("its key check is missing".into()));
    }
    let checking = |at: Progress| progress(Stage::Checking, at.done, at.total);
    let findings = verify(target.store(), &checking).await;
    if findings.errors > 0 {
        return Err(RestoreError::NotWhole(findings.descriptions.join("; ")));
    }
    filled.check_counts(&findings)?;
    Ok(RestoreReport {
        findings,
        end_time: source.manifest().end_time.clone(),
        waiting: filled.waiting,
        held: filled.held,
        is_quiet: how.hold_due_by_ms.is_some(),
        has_admin_key: false,
    })
}

async fn set_quiet_since(store: &Store, now_ms: i64) -> Result<(), EngineError> {
    let stored = store.get::<Settings>(Settings::NAME.into()).await?;
    let mut changes = store.new_past_changes();
    if let Some(stored) = &stored {
        let mut next = stored.value.clone();
        next.values.quiet_since_ms = Some(now_ms);
        next.revision += 1;
        next.update_ms = now_ms;
        changes.update(stored, &next);
    } else {
        let name = Name::parse(Settings::NAME);
        let name = name.map_err(|why| EngineError::Corrupt((*why).to_owned()))?;
        let id = RecordId::from_parts(now_ms.unsigned_abs(), rand::random::<u64>().into());
        let mut settings = Settings::new_initial(id, name, now_ms);
        settings.values.quiet_since_ms = Some(now_ms);
        changes.insert(&settings);
    }
    store.apply(Lane::Bulk, changes).await?;
    Ok(())
}

fn read_key_file(path: PathBuf) -> Result<Vec<u8>, RestoreError> {
    plain_file::read_no_link(&path, KEY_FILE_BYTES_MAX).map_err(|source| RestoreError::Io {
        action: "read",
        path,
        source,
    })
}

#[cfg(test)]
mod tests;
