//! The keys that were used lately, kept up to date by the change log.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;

use super::{Meter, key_hash};
use crate::{
    clock::Clock,
    domain::{Client, Dialect, Name, RecordId, Role},
    error::Error,
    store::{Direction, EngineError, Index, Kind, Lane, Record, Store, Stored, engine::Range},
};

/// How often the times of last use are written.
const USE_WRITE_INTERVAL: Duration = Duration::from_secs(60);
const MINUTE_MS: i64 = 60_000;
/// Steps of the change log that are read at once.
const LOG_PAGE: usize = 256;
/// How often a key is looked for again because clients changed meanwhile.
const FIND_TRIES_MAX: usize = 16;

/// The client whose key a call carries.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Tells it from an earlier client of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// What it may do.
    pub role: Role,
    /// What it may speak besides the native interface; an admin may all.
    pub dialects: BTreeSet<Dialect>,
    /// What it may still ask for.
    pub meter: Arc<Meter>,
    /// Cancelled when the key is revoked. Calls are ended by the guard then; only work that
    /// outlives its call has to look at it.
    pub revoked: CancellationToken,
}

/// Finds the client of a key, and notices when a key is revoked.
#[derive(Debug)]
pub struct Keys {
    store: Store,
    clock: Arc<dyn Clock>,
    table: Mutex<Table>,
    /// Held while the change log is read, so that who waits for it finds the table up to date.
    following: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Table {
    /// The place in the change log up to which `known` is right.
    followed: u64,
    /// Rises when a client changed; what was read before that is not to be relied on.
    generation: u64,
    /// The clients whose keys were used, by the hash of the key. As many as there are clients.
    known: HashMap<[u8; 32], Arc<Known>>,
}

#[derive(Debug)]
struct Known {
    client: Client,
    revoked: CancellationToken,
    meter: Arc<Meter>,
    /// The minute of the last use.
    used_ms: AtomicI64,
}

impl Known {
    fn caller(&self) -> Caller {
        Caller {
            id: self.client.id,
            name: self.client.name.clone(),
            role: self.client.role,
            dialects: self.client.dialects.clone(),
            meter: Arc::clone(&self.meter),
            revoked: self.revoked.clone(),
        }
    }
}

impl Keys {
    /// Begins to follow the clients in a store.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn open(store: Store, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let table = Table {
            followed: store.engine().log_head().await?,
            generation: 0,
            known: HashMap::new(),
        };
        Ok(Self {
            store,
            clock,
            table: Mutex::new(table),
            following: tokio::sync::Mutex::new(()),
        })
    }

    /// The client that a key belongs to; none when there is no such key.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn find(&self, key: &str) -> Result<Option<Caller>, Error> {
        let hash = key_hash(key);
        for _ in 0..FIND_TRIES_MAX {
            let generation = {
                let table = self.table();
                if let Some(known) = table.known.get(&hash) {
                    self.note_use(known);
                    return Ok(Some(known.caller()));
                }
                table.generation
            };
            let Some(client) = self.read(hash).await? else {
                return Ok(None);
            };
            let mut table = self.table();
            if table.generation == generation {
                let known = table.known.entry(hash).or_insert_with(|| {
                    Arc::new(Known {
                        used_ms: AtomicI64::new(client.last_used_ms.unwrap_or(0)),
                        revoked: CancellationToken::new(),
                        meter: Arc::new(Meter::new(client.rates, self.clock.now_ms())),
                        client,
                    })
                });
                self.note_use(known);
                return Ok(Some(known.caller()));
            }
        }
        Err(Error::Unavailable(
            "the clients are being changed; try again".into(),
        ))
    }

    /// Takes in what changed in the store until now: who was revoked before this call is not
    /// accepted after it, and their calls under way are ended.
    ///
    /// # Errors
    /// Those of the store; call it again then.
    pub async fn catch_up(&self) -> Result<(), Error> {
        let _following = self.following.lock().await;
        loop {
            let from = self.table().followed;
            let engine = self.store.engine();
            let head = engine.log_head().await?;
            if engine.last_changed(&[Kind::Client]) <= from {
                self.table().followed = from.max(head);
                return Ok(());
            }
            let Some(steps) = engine.log_after(from, LOG_PAGE).await? else {
                let head = engine.log_head().await?;
                self.recheck(head, |_| true).await?;
                continue;
            };
            let Some(last) = steps.last().map(|step| step.sequence) else {
                return Ok(());
            };
            let changed: HashSet<_> = steps
                .into_iter()
                .flat_map(|step| step.changed)
                .filter_map(|(kind, key)| (kind == Kind::Client).then_some(key))
                .collect();
            if changed.is_empty() {
                self.table().followed = last;
            } else {
                self.recheck(last, |client| changed.contains(&client.key()))
                    .await?;
            }
        }
    }

    /// Follows the change log and writes the times of last use, until the service stops.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let mut signal = self.store.engine().log_signal();
        let interval_ms = i64::try_from(USE_WRITE_INTERVAL.as_millis()).unwrap_or(i64::MAX);
        let mut write_at_ms = self.clock.now_ms() + interval_ms;
        loop {
            let result = tokio::select! {
                () = shutdown.cancelled() => break,
                changed = signal.changed() => match changed {
                    Ok(()) => self.catch_up().await,
                    Err(_) => break,
                },
                () = self.clock.wait_until(write_at_ms) => {
                    write_at_ms = self.clock.now_ms() + interval_ms;
                    self.write_uses().await
                }
            };
            if let Err(error) = result {
                tracing::warn!(%error, "failed to follow the clients");
            }
        }
        if let Err(error) = self.write_uses().await {
            tracing::warn!(%error, "failed to write when keys were last used");
        }
    }

    /// The time by the clock that calls are admitted by.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Drops those of the chosen clients that are gone, and ends their calls; gives the others the
    /// rates and dialects they have now.
    async fn recheck(&self, at: u64, chosen: impl Fn(&Client) -> bool) -> Result<(), Error> {
        let suspects: Vec<_> = {
            let mut table = self.table();
            // From here on nobody adds what was read before the change.
            table.generation += 1;
            let chosen = |known: &&Arc<Known>| chosen(&known.client);
            table.known.values().filter(chosen).cloned().collect()
        };
        let keys = suspects.iter().map(|known| known.client.key()).collect();
        let stored = self.store.get_many::<Client>(keys).await?;
        let mut table = self.table();
        for (known, stored) in suspects.iter().zip(stored) {
            let is_same = |stored: &Stored<Client>| stored.value.key_hash == known.client.key_hash;
            let Some(stored) = stored.filter(is_same) else {
                table.known.remove(&known.client.key_hash);
                known.revoked.cancel();
                continue;
            };
            let has_other_rates = stored.value.rates != known.meter.rates();
            if has_other_rates || stored.value.dialects != known.client.dialects {
                let now_ms = self.clock.now_ms();
                let changed = Known {
                    meter: if has_other_rates {
                        Arc::new(Meter::new(stored.value.rates, now_ms))
                    } else {
                        Arc::clone(&known.meter)
                    },
                    revoked: known.revoked.clone(),
                    used_ms: AtomicI64::new(known.used_ms.load(Ordering::Relaxed)),
                    client: stored.value,
                };
                table
                    .known
                    .insert(changed.client.key_hash, Arc::new(changed));
            }
        }
        table.followed = at;
        Ok(())
    }

    async fn read(&self, hash: [u8; 32]) -> Result<Option<Client>, EngineError> {
        let range = Range {
            start: hash.to_vec(),
            end: Some([&hash[..], &[0]].concat()),
        };
        let found = self
            .store
            .page_by::<Client>(Index::ClientByKey, range, Direction::Ascending, 1)
            .await?;
        let client = found.into_iter().next().map(|(_, stored)| stored.value);
        Ok(client.filter(|client| client.key_hash.ct_eq(&hash).into()))
    }

    fn note_use(&self, known: &Known) {
        let now_ms = self.clock.now_ms();
        let minute_ms = now_ms - now_ms.rem_euclid(MINUTE_MS);
        known.used_ms.fetch_max(minute_ms, Ordering::Relaxed);
    }

    /// Writes the times of last use that changed, in one commit.
    async fn write_uses(&self) -> Result<(), Error> {
        let used: Vec<_> = self.table().known.values().cloned().collect();
        let keys = used.iter().map(|known| known.client.key()).collect();
        let stored = self.store.get_many::<Client>(keys).await?;
        let mut changes = self.store.changes();
        for (known, stored) in used.iter().zip(stored) {
            let used_ms = known.used_ms.load(Ordering::Relaxed);
            let Some(stored) = stored else { continue };
            if stored.value.id == known.client.id && stored.value.last_used_ms < Some(used_ms) {
                let mut client = stored.value.clone();
                client.last_used_ms = Some(used_ms);
                changes.update(&stored, &client);
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        match self.store.apply(Lane::Bulk, changes).await {
            // Somebody was revoked meanwhile; the others are written the next time.
            Ok(_) | Err(EngineError::Conflict) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // The table is whole between any two statements, so a panic elsewhere does not spoil it.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
