//! A backup becomes a data folder, or a store in a database: everything is verified before it is one.

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

/// How to restore.
#[derive(Debug, Clone)]
pub struct Restore<'a> {
    /// The folder of the backup.
    pub from: &'a Path,
    /// The file with the keys that open what is sealed, for a backup that was made without.
    pub key_file: Option<&'a Path>,
    /// Whether a backup of an earlier version is taken, which nothing proves to be its service's.
    pub accept_unproven: bool,
    /// Deliveries that were due by this time, in milliseconds since 1970, are not sent until a user
    /// asks for them: it may have happened after the backup. The service starts quiet, so that nothing else
    /// is sent either before that is ended. None sends all under the same ids.
    pub hold_due_by_ms: Option<i64>,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
}

/// What was restored.
#[derive(Debug, Clone)]
pub struct Restored {
    /// What the store holds.
    pub findings: Findings,
    /// When the backup was finished, as RFC 3339 in UTC.
    pub end_time: String,
    /// Deliveries that have not ended and continue by themselves.
    pub waiting: u64,
    /// Deliveries that are held.
    pub held: u64,
    /// Whether the service starts quiet.
    pub is_quiet: bool,
    /// Whether the first client's key was in the backup.
    pub has_admin_key: bool,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup cannot be used.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The data folder cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The folder is in use or holds something.
    #[error("{} holds {found:?}; a backup is restored into an empty or new folder only", .folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
        /// What was found in it.
        found: String,
    },
    /// There is no key to open what is sealed.
    #[error(
        "the backup was made without its keys, and its secrets do not open without; name the file `secret.key` of its service with --secret-key"
    )]
    NoKey,
    /// An earlier version made it, and nothing proves that it is unmodified.
    #[error(
        "the backup was made by an earlier version and is not authenticated; if you trust everyone who could write to it, use --accept-unproven"
    )]
    Unproven,
    /// What came out is not whole.
    #[error("the backup does not make a whole store: {0}")]
    NotWhole(String),
    /// What is in it could not be written.
    #[error("cannot write what is in the backup: {0}")]
    Unwritten(EngineError),
    /// The system does not let us.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What is being done, for who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The backup is compared with its checksums.
    Reading,
    /// The records are put into the store.
    Filling,
    /// The store is scanned.
    Checking,
}

/// What is being filled.
#[derive(Debug)]
enum RestoreTarget {
    Folder(Draft),
    Database(Box<DatabaseDraft>),
    Memory(Rehearsal),
}

impl RestoreTarget {
    async fn begin(
        config: &Location,
        key: &[u8],
        first_position: LogPosition,
    ) -> Result<Self, RestoreError> {
        if let Some(database) = &config.database {
            let begun = DatabaseDraft::begin(database, key, first_position).await;
            return Ok(Self::Database(Box::new(begun?)));
        }
        let cache_bytes = config.options.cache_bytes;
        let begun = Draft::begin(&config.data_dir, key, cache_bytes, first_position).await;
        Ok(Self::Folder(begun?))
    }

    fn store(&self) -> &Store {
        match self {
            Self::Folder(draft) => draft.store(),
            Self::Database(draft) => draft.store(),
            Self::Memory(rehearsal) => rehearsal.store(),
        }
    }

    async fn judge(&self) -> Result<Checks, OpenError> {
        match self {
            Self::Folder(draft) => draft.judge().await,
            Self::Database(draft) => draft.judge().await,
            Self::Memory(rehearsal) => rehearsal.judge().await,
        }
    }

    /// Has what was filled in be read from where it will be read later: of a folder from its disk. A
    /// database says of each commit that it is there.
    async fn reopen(&mut self) -> Result<(), OpenError> {
        match self {
            Self::Folder(draft) => draft.reopen().await,
            Self::Database(_) | Self::Memory(_) => Ok(()),
        }
    }

    /// Lets it be a store; the first client's key goes into a folder alone.
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

/// A backup and the keys that open it.
struct Found {
    source: Source,
    /// The content of the key file.
    key: Vec<u8>,
    sealer: Sealer,
}

impl Found {
    fn open(how: &Restore<'_>) -> Result<Self, RestoreError> {
        let source = Source::open(how.from)?;
        let keys = source.keys(how.key_file)?;
        let (key, sealer) = keys.ok_or(RestoreError::NoKey)?;
        if !source.manifest().is_proven() && !how.accept_unproven {
            return Err(RestoreError::Unproven);
        }
        Ok(Self {
            source,
            key,
            sealer,
        })
    }

    fn verify(&mut self, progress: &(dyn Fn(Stage, u64, u64) + Sync)) -> Result<(), RestoreError> {
        let trust = if self.source.manifest().is_proven() {
            Trust::Keys(&self.sealer)
        } else {
            Trust::Checksums
        };
        let bytes = self.source.manifest().bytes();
        let reading = |read| progress(Stage::Reading, read, bytes);
        Ok(self.source.verify(trust, &reading)?)
    }
}

/// Restores a backup into the database of the settings, or into their data folder, which must be empty
/// or not there.
///
/// What a crash leaves is taken for no store, by a service and by another restore alike.
///
/// # Errors
/// See [`RestoreError`]; there is no store then.
pub fn restore<'a>(
    config: &'a Location,
    how: &'a Restore<'_>,
    progress: &'a (dyn Fn(Stage, u64, u64) + Sync),
) -> BoxFuture<'a, Result<Restored, RestoreError>> {
    Box::pin(async move {
        let mut found = Found::open(how)?;
        if config.database.is_none()
            && let Some(found) = Draft::in_the_way(&config.data_dir)?
        {
            return Err(RestoreError::NotEmpty {
                folder: config.data_dir.clone(),
                found,
            });
        }
        found.verify(progress)?;
        let source = &found.source;
        let admin_key = source.key_file("admin.key").map(read).transpose()?;

        let first_position = source.manifest().end.place.of_a_later_life(how.now_ms);
        let mut target = RestoreTarget::begin(config, &found.key, first_position).await?;
        match fill(&mut target, source, how, progress).await {
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

/// Restores a backup into memory and forgets it: whether it can be restored.
///
/// # Errors
/// See [`RestoreError`]: those that a restore of this backup ends with.
pub fn rehearse<'a>(
    how: &'a Restore<'_>,
    progress: &'a (dyn Fn(Stage, u64, u64) + Sync),
) -> BoxFuture<'a, Result<Restored, RestoreError>> {
    Box::pin(async move {
        let mut found = Found::open(how)?;
        found.verify(progress)?;
        let Found { source, sealer, .. } = found;
        let mut target = RestoreTarget::Memory(Rehearsal::new(how.from, sealer));
        fill(&mut target, &source, how, progress).await
    })
}

async fn fill(
    target: &mut RestoreTarget,
    source: &Source,
    how: &Restore<'_>,
    progress: &(dyn Fn(Stage, u64, u64) + Sync),
) -> Result<Restored, RestoreError> {
    let bytes = source.manifest().bytes();
    let filling = |read| progress(Stage::Filling, read, bytes);
    let filled = fill::fill(source, target.store(), how.hold_due_by_ms, &filling).await;
    // With other keys no secret can be read: that is the better reason.
    let checks = target.judge().await?;
    let mut filled = filled?;
    if filled.unproven > 0 && checks.proves_definitions() {
        return Err(RestoreError::NotWhole(format!(
            "{} definitions in it were not written by its service",
            filled.unproven
        )));
    }
    if let Some(now_ms) = how.hold_due_by_ms {
        let made_quiet = make_quiet(target.store(), now_ms).await;
        made_quiet.map_err(|error| RestoreError::NotWhole(error.to_string()))?;
        // A backup without settings gets its only record of them here.
        filled.records.insert(Kind::Settings.word(), 1);
    }
    target.reopen().await?;
    if target.judge().await?.is_empty() != checks.is_empty() {
        return Err(RestoreError::NotWhole(
            "the check of its keys is missing".into(),
        ));
    }
    let checking = |at: Progress| progress(Stage::Checking, at.done, at.total);
    let findings = verify(target.store(), &checking).await;
    if findings.faults > 0 {
        return Err(RestoreError::NotWhole(findings.descriptions.join("; ")));
    }
    filled.compare(&findings)?;
    Ok(Restored {
        findings,
        end_time: source.manifest().end_time.clone(),
        waiting: filled.waiting,
        held: filled.held,
        is_quiet: how.hold_due_by_ms.is_some(),
        has_admin_key: false,
    })
}

/// Has the service start quiet, so that nothing is sent before that is ended.
async fn make_quiet(store: &Store, now_ms: i64) -> Result<(), EngineError> {
    let stored = store.get::<Settings>(Settings::NAME.into()).await?;
    let mut changes = store.changes_of_the_past();
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
        let mut settings = Settings::first(id, name, now_ms);
        settings.values.quiet_since_ms = Some(now_ms);
        changes.insert(&settings);
    }
    store.apply(Lane::Bulk, changes).await?;
    Ok(())
}

fn read(path: PathBuf) -> Result<Vec<u8>, RestoreError> {
    plain_file::read_no_link(&path, KEY_FILE_BYTES_MAX).map_err(|source| RestoreError::Io {
        action: "read",
        path,
        source,
    })
}

#[cfg(test)]
mod tests;
