//! The keys of all clients in memory, kept up to date by the change log, so that an unknown key
//! requires no read.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;

use super::{Meter, certificate_hash, key_hash};
use crate::{
    clock::{Clock, MINUTE_MS},
    domain::{CertificateName, Client, Dialect, KeyScope, Name, RecordId, Role},
    error::{Error, log_failure},
    limits::{PAGE_SIZE_MAX, STORE_NODES_FOLLOW_TIME_MAX},
    store::{
        Direction, EngineError, Kind, Lane, LogPosition, Record, Store, Stored, engine::Range,
    },
};

const USE_WRITE_INTERVAL: Duration = Duration::from_secs(60);
const LOG_PAGE: usize = 256;

#[derive(Debug, Clone)]
pub struct Caller {
    /// Id of the client; differs from that of an earlier client with the same name.
    pub id: RecordId,
    pub name: Name,
    pub role: Role,
    /// Dialects allowed in addition to the native API. An admin may use all.
    pub dialects: BTreeSet<Dialect>,
    pub scope: Arc<KeyScope>,
    pub meter: Arc<Meter>,
    /// Cancelled when the key is revoked. The guard ends the call itself; only work that outlives
    /// the call has to check this token.
    pub revoked: CancellationToken,
    /// End of the session of a caller with a token; `None` for a caller with a client key.
    pub signed_in_until_ms: Option<i64>,
}

/// The keys and certificates of all clients, kept up to date so that revoked keys are detected.
#[derive(Debug)]
pub struct Keys {
    store: Store,
    clock: Arc<dyn Clock>,
    table: Mutex<KeyTable>,
    /// Held while the change log is read, so that waiting calls find an up-to-date table.
    following: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct KeyTable {
    followed: LogPosition,
    known: HashMap<[u8; 32], Arc<CachedKey>>,
    /// The hashes of each client's keys and certificates, by the key of its record.
    hashes: HashMap<Vec<u8>, Vec<[u8; 32]>>,
}

#[derive(Debug)]
struct CachedKey {
    client: Client,
    scope: Arc<KeyScope>,
    hash: [u8; 32],
    ends_ms: Option<i64>,
    revoked: CancellationToken,
    meter: Arc<Meter>,
    /// Time of the last use, rounded to minutes.
    used_ms: AtomicI64,
    used_from: Mutex<Option<IpAddr>>,
}

impl CachedKey {
    /// Creates the cached form of a key. `before` is its previous cached form. All keys of a client
    /// share the meter.
    fn new(
        client: Client,
        (hash, ends_ms): ([u8; 32], Option<i64>),
        before: Option<&Self>,
        meter: Arc<Meter>,
    ) -> Self {
        let used_ms = before.map(|it| it.used_ms.load(Ordering::Relaxed));
        let used_ms = used_ms.or(client.last_used_ms).unwrap_or(0);
        let used_from = before
            .and_then(Self::last_address)
            .or(client.last_used_from);
        Self {
            hash,
            ends_ms,
            // An expired key is valid again if its expiry was postponed.
            revoked: before
                .map(|it| it.revoked.clone())
                .filter(|revoked| !revoked.is_cancelled())
                .unwrap_or_default(),
            used_ms: AtomicI64::new(used_ms),
            used_from: Mutex::new(used_from),
            meter,
            scope: Arc::new(client.scope.clone()),
            client,
        }
    }

    fn has_expired(&self, now_ms: i64) -> bool {
        self.ends_ms.is_some_and(|ends_ms| ends_ms <= now_ms)
    }

    fn last_address(&self) -> Option<IpAddr> {
        *self
            .used_from
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn caller(&self) -> Caller {
        Caller {
            id: self.client.id,
            name: self.client.name.clone(),
            role: self.client.role,
            dialects: self.client.dialects.clone(),
            scope: Arc::clone(&self.scope),
            meter: Arc::clone(&self.meter),
            revoked: self.revoked.clone(),
            signed_in_until_ms: None,
        }
    }
}

fn client_hashes(client: &Client) -> impl Iterator<Item = ([u8; 32], Option<i64>)> {
    let certificates = client.certificates.iter();
    let certificates = certificates.map(|name| (certificate_hash(name), client.expire_ms));
    client.key_hashes().chain(certificates)
}

impl Keys {
    /// Reads the clients of a store and starts following their changes.
    pub async fn open(store: Store, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let keys = Self {
            store,
            clock,
            table: Mutex::default(),
            following: tokio::sync::Mutex::new(()),
        };
        keys.read_all().await?;
        Ok(keys)
    }

    /// Returns the client of a key and records its use from an address; `None` if the key is
    /// unknown.
    ///
    /// # Errors
    /// Returns [`Error::Unauthenticated`] if the key has expired, and an error if the store fails.
    /// The store is only read if clients have changed.
    pub async fn find(&self, key: &str, from: Option<IpAddr>) -> Result<Option<Caller>, Error> {
        self.find_by_hash(key_hash(key), from).await
    }

    /// Returns the client of one of these certificates.
    ///
    /// # Errors
    /// Returns the same errors as [`Keys::find`], and [`Error::Unauthenticated`] if the
    /// certificates belong to several clients.
    pub async fn find_certificate(
        &self,
        shown: &[CertificateName],
        from: Option<IpAddr>,
    ) -> Result<Option<Caller>, Error> {
        let mut found: Option<Caller> = None;
        for name in shown {
            let next = self.find_by_hash(certificate_hash(name), from).await?;
            if let (Some(one), Some(other)) = (&found, &next)
                && one.id != other.id
            {
                return Err(Error::Unauthenticated(format!(
                    "the certificate matches the clients `{}` and `{}`; it must match only one",
                    one.name, other.name
                )));
            }
            found = found.or(next);
        }
        Ok(found)
    }

    async fn find_by_hash(
        &self,
        hash: [u8; 32],
        from: Option<IpAddr>,
    ) -> Result<Option<Caller>, Error> {
        let engine = self.store.engine();
        let (found, followed) = {
            let table = self.lock_table();
            (self.lookup(&table, hash, from)?, table.followed)
        };
        // With a shared store, another node may have revoked the key.
        if found.is_some() && !engine.is_shared() {
            return Ok(found);
        }
        if engine.last_changed(&[Kind::Client]) <= followed {
            return Ok(found);
        }
        self.catch_up().await?;
        self.lookup(&self.lock_table(), hash, from)
    }

    fn lookup(
        &self,
        table: &KeyTable,
        hash: [u8; 32],
        from: Option<IpAddr>,
    ) -> Result<Option<Caller>, Error> {
        let Some(known) = table.known.get(&hash) else {
            return Ok(None);
        };
        // The table lookup is not constant-time; access depends on this comparison.
        let is_same: bool = known.hash.ct_eq(&hash).into();
        if !is_same {
            return Ok(None);
        }
        if known.has_expired(self.clock.now_ms()) {
            let why = "the key has expired; request a new one";
            return Err(Error::Unauthenticated(why.into()));
        }
        self.record_use(known, from);
        Ok(Some(known.caller()))
    }

    /// Ends the calls of expired keys and returns the time of the next expiry.
    fn end_expired_keys(&self) -> i64 {
        let (now_ms, table) = (self.clock.now_ms(), self.lock_table());
        let mut next_ms = i64::MAX;
        for known in table.known.values() {
            if known.has_expired(now_ms) {
                known.revoked.cancel();
            } else if let Some(ends_ms) = known.ends_ms {
                next_ms = next_ms.min(ends_ms);
            }
        }
        next_ms
    }

    /// Applies all changes up to now. A client that was revoked before this call is not accepted
    /// after it, and its calls in flight are ended.
    ///
    /// # Errors
    /// Returns an error if the store fails; the call should be repeated.
    pub async fn catch_up(&self) -> Result<(), Error> {
        let _following = self.following.lock().await;
        loop {
            let from = self.lock_table().followed;
            let engine = self.store.engine();
            let head = *engine.log_signal().borrow();
            if engine.last_changed(&[Kind::Client]) <= from {
                self.lock_table().followed = from.later(head);
                return Ok(());
            }
            let Some(steps) = engine.log_after(from, LOG_PAGE).await? else {
                self.read_all().await?;
                continue;
            };
            let Some(last) = steps.last().map(|step| step.position) else {
                return Ok(());
            };
            let changed: HashSet<_> = steps
                .into_iter()
                .flat_map(|step| step.changed)
                .filter_map(|(kind, key)| (kind == Kind::Client).then_some(key))
                .collect();
            self.apply_stored(last, changed).await?;
        }
    }

    /// Like [`Keys::catch_up`], on every node that shares the store: after this call, no node
    /// accepts a client that was revoked before the call.
    pub async fn catch_up_on_all_nodes(&self) -> Result<(), Error> {
        self.catch_up().await?;
        let engine = self.store.engine();
        let position = *engine.log_signal().borrow();
        // Nodes that have not caught up by then are considered dead.
        engine
            .cluster()
            .wait_until_followed(position, STORE_NODES_FOLLOW_TIME_MAX)
            .await?;
        Ok(())
    }

    /// Follows the change log and writes the times of last use, until shutdown.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let mut signal = self.store.engine().log_signal();
        let interval_ms = i64::try_from(USE_WRITE_INTERVAL.as_millis()).unwrap_or(i64::MAX);
        let mut write_at_ms = self.clock.now_ms() + interval_ms;
        loop {
            let next_end_ms = self.end_expired_keys();
            let result = tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.clock.wait_until(next_end_ms), if next_end_ms != i64::MAX => Ok(()),
                changed = signal.changed() => match changed {
                    Ok(()) => self.catch_up().await,
                    Err(_) => break,
                },
                () = self.clock.wait_until(write_at_ms) => {
                    write_at_ms = self.clock.now_ms() + interval_ms;
                    self.store_last_uses().await
                }
            };
            if let Err(error) = result {
                log_failure("failed to watch clients for changes", &error);
            }
        }
        if let Err(error) = self.store_last_uses().await {
            log_failure(
                "failed to store the times at which keys were last used",
                &error,
            );
        }
    }

    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Re-reads all clients, including those in the table that no longer exist.
    async fn read_all(&self) -> Result<(), Error> {
        let head = self.store.engine().log_head().await?;
        let mut keys: HashSet<Vec<u8>> = self.lock_table().hashes.keys().cloned().collect();
        let mut start = Vec::new();
        loop {
            let range = Range { start, end: None };
            let page: Vec<Stored<Client>> = self
                .store
                .page(range, Direction::Ascending, PAGE_SIZE_MAX)
                .await?;
            let is_last = page.len() < PAGE_SIZE_MAX;
            start = page
                .last()
                .map_or_else(Vec::new, |last| [&*last.value.key(), &[0]].concat());
            keys.extend(page.iter().map(|stored| stored.value.key()));
            if is_last {
                return self.apply_stored(head, keys).await;
            }
        }
    }

    /// Applies the stored state of these clients, read at a position in the log. Keys that were
    /// deleted or replaced are no longer accepted, and their calls are ended.
    async fn apply_stored(&self, at: LogPosition, keys: HashSet<Vec<u8>>) -> Result<(), Error> {
        let keys: Vec<_> = keys.into_iter().collect();
        let stored = self.store.get_many::<Client>(keys.clone()).await?;
        let mut table = self.lock_table();
        for (key, stored) in keys.into_iter().zip(stored) {
            let hashes = table.hashes.remove(&key).unwrap_or_default();
            let earlier = hashes.iter().filter_map(|hash| table.known.remove(hash));
            let earlier: Vec<_> = earlier.collect();
            let client = stored.map(|stored| stored.value);
            let keys: Vec<_> = client.iter().flat_map(client_hashes).collect();
            let stays = |known: &CachedKey| keys.iter().any(|(hash, _)| *hash == known.hash);
            for gone in earlier.iter().filter(|known| !stays(known)) {
                gone.revoked.cancel();
            }
            let Some(client) = client else { continue };
            let meter = earlier.iter().map(|known| &known.meter);
            let mut meter = meter.filter(|meter| meter.rates() == client.rates);
            let meter = meter.next().map_or_else(
                || Arc::new(Meter::new(client.rates, self.clock.now_ms())),
                Arc::clone,
            );
            let hashes = keys.iter().map(|(hash, _)| *hash).collect();
            table.hashes.insert(key, hashes);
            for of in keys {
                let before = earlier.iter().find(|known| known.hash == of.0);
                let known = CachedKey::new(
                    client.clone(),
                    of,
                    before.map(Arc::as_ref),
                    Arc::clone(&meter),
                );
                table.known.insert(of.0, Arc::new(known));
            }
        }
        table.followed = at;
        Ok(())
    }

    fn record_use(&self, known: &CachedKey, from: Option<IpAddr>) {
        let now_ms = self.clock.now_ms();
        let minute_ms = now_ms - now_ms.rem_euclid(MINUTE_MS);
        // The address is updated once a minute at most.
        if known.used_ms.fetch_max(minute_ms, Ordering::Relaxed) < minute_ms && from.is_some() {
            *known
                .used_from
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = from;
        }
    }

    async fn store_last_uses(&self) -> Result<(), Error> {
        let mut used: Vec<_> = self.lock_table().known.values().cloned().collect();
        // For a client with several keys, the latest use counts.
        used.sort_by_key(|known| std::cmp::Reverse(known.used_ms.load(Ordering::Relaxed)));
        let mut clients = HashSet::new();
        used.retain(|known| clients.insert(known.client.id));
        let keys = used.iter().map(|known| known.client.key()).collect();
        let stored = self.store.get_many::<Client>(keys).await?;
        let mut changes = self.store.new_changes();
        for (known, stored) in used.iter().zip(stored) {
            let used_ms = known.used_ms.load(Ordering::Relaxed);
            let Some(stored) = stored else { continue };
            if stored.value.id == known.client.id
                && used_ms > stored.value.last_used_ms.unwrap_or(0)
            {
                let mut client = stored.value.clone();
                client.last_used_ms = Some(used_ms);
                client.last_used_from = known.last_address();
                changes.update(&stored, &client);
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        match self.store.apply(Lane::Bulk, changes).await {
            // Another client was revoked concurrently. The remaining times are written next time.
            Ok(_) | Err(EngineError::Conflict(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn lock_table(&self) -> MutexGuard<'_, KeyTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
