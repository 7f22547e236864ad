//! The audit log: listing, recording calls that make no changes, and retention.

pub mod wire;

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use crate::{
    clock::{Clock, to_millis},
    domain::{AnyResource, AuditAction, AuditEntry},
    error::{Error, log_failure},
    limits::{AUDIT_REFUSALS_MAX, LIST_PAGE_BYTES, PAGE_TIME_MAX},
    page::{PageRequest, TokenScope},
    scan, settings,
    store::{Direction, Index, Lane, Range, Store, audit::Actor, record::bytes::Key},
};

/// Delay before the first of several similar refused calls is written.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which further similar refused calls are written.
const REFUSALS_WINDOW: Duration = Duration::from_secs(60);
const FORGET_INTERVAL: Duration = Duration::from_secs(3600);
const STEP: usize = 500;
/// Client name for all callers beyond the number that are counted separately.
pub(super) const OTHERS: &str = "others";

/// A filter for audit entries. Empty lists match all entries.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub clients: Vec<String>,
    pub kinds: Vec<String>,
    pub names: Vec<String>,
    pub actions: Vec<AuditAction>,
    /// Start of the time range (inclusive), in milliseconds since the epoch.
    pub start_ms: Option<i64>,
    /// End of the time range (exclusive), in milliseconds since the epoch.
    pub end_ms: Option<i64>,
    /// Whether to omit entries that only admins may see.
    pub without_clients: bool,
}

impl AuditFilter {
    fn matches(&self, entry: &AuditEntry) -> bool {
        let among = |list: &[String], text: &String| list.is_empty() || list.contains(text);
        let is_named =
            self.names.is_empty() || entry.names.iter().any(|it| self.names.contains(it));
        let concerns_clients = entry.action == AuditAction::Refused || entry.kind == "client";
        among(&self.clients, &entry.client)
            && among(&self.kinds, &entry.kind)
            && is_named
            && (self.actions.is_empty() || self.actions.contains(&entry.action))
            && self
                .start_ms
                .is_none_or(|start_ms| entry.time_ms >= start_ms)
            && self.end_ms.is_none_or(|end_ms| entry.time_ms < end_ms)
            && !(self.without_clients && concerns_clients)
    }

    fn scope(&self) -> TokenScope {
        let moment = |at_ms: Option<i64>| at_ms.map(|at_ms| at_ms.to_string());
        TokenScope::new("audit")
            .with_field("clients", &self.clients)
            .with_field("kinds", &self.kinds)
            .with_field("names", &self.names)
            .with_field("actions", self.actions.iter().map(|it| format!("{it:?}")))
            .with_field("start", moment(self.start_ms))
            .with_field("end", moment(self.end_ms))
            .with_field("without clients", self.without_clients.then_some("true"))
    }
}

/// Identifies similar calls that are counted: refused ones, and reads without an API key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CountedCall {
    client: String,
    address: Option<IpAddr>,
    method: &'static str,
    action: AuditAction,
    /// Kind and name of the resource; `None` for refused calls.
    about: Option<(&'static str, String)>,
    reason: String,
}

#[derive(Debug, Default)]
struct CallCounts {
    since_ms: i64,
    /// Number of calls since the last write, and whether an entry was written in the current
    /// window.
    counts: HashMap<CountedCall, (u32, bool)>,
}

#[derive(Debug)]
pub struct AuditLog {
    store: Store,
    clock: Arc<dyn Clock>,
    counts: Mutex<CallCounts>,
}

impl AuditLog {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            counts: Mutex::default(),
        }
    }

    /// Records that all data is about to be read.
    ///
    /// # Errors
    /// Returns an error if the store fails; the data must not be read in that case.
    pub async fn record_read(&self, by: &Actor, what: &str) -> Result<(), Error> {
        let entry = AuditEntry {
            kind: what.into(),
            ..by.audit_entry(AuditAction::Read)
        };
        Ok(self.store.write_audit(vec![entry]).await?)
    }

    /// Counts a refused call. It is written soon, together with similar calls.
    pub fn record_refused(&self, by: Actor, reason: &str) {
        self.count_call(CountedCall {
            client: by.client,
            address: by.address,
            method: by.method,
            action: AuditAction::Refused,
            about: None,
            reason: reason.into(),
        });
    }

    /// Counts a read without an API key, through a link or feed URL that grants it, or the issuing
    /// of such a link. Written like [`Self::record_refused`].
    pub fn record_granted_read(&self, by: Actor, kind: &'static str, name: &str, reason: &str) {
        self.count_call(CountedCall {
            client: by.client,
            address: by.address,
            method: by.method,
            action: AuditAction::Read,
            about: Some((kind, name.to_owned())),
            reason: reason.into(),
        });
    }

    fn count_call(&self, call: CountedCall) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = &mut counts.counts;
        let call = if counts.len() < AUDIT_REFUSALS_MAX || counts.contains_key(&call) {
            call
        } else {
            CountedCall {
                client: OTHERS.into(),
                address: None,
                method: "",
                about: None,
                reason: "too many callers were refused, or read without a key, to count each \
                         separately"
                    .into(),
                ..call
            }
        };
        let (count, _) = counts.entry(call).or_default();
        *count = count.saturating_add(1);
    }

    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let mut forget_at_ms = self.clock.now_ms();
        loop {
            let next_ms = self
                .clock
                .now_ms()
                .saturating_add(to_millis(FLUSH_INTERVAL));
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.clock.wait_until(next_ms) => {}
            }
            self.flush(false).await;
            if self.clock.now_ms() >= forget_at_ms {
                forget_at_ms = self
                    .clock
                    .now_ms()
                    .saturating_add(to_millis(FORGET_INTERVAL));
                match self.delete_expired().await {
                    Ok(0) => {}
                    Ok(forgotten) => tracing::info!(forgotten, "deleted expired audit entries"),
                    Err(error) => log_failure("failed to delete expired audit entries", &error),
                }
            }
        }
        self.flush(true).await;
    }

    async fn flush(&self, all: bool) {
        let entries = self.due_entries(all);
        if entries.is_empty() {
            return;
        }
        let count = entries.len();
        if let Err(error) = self.store.write_audit(entries).await {
            tracing::warn!(%error, count, "failed to write call counts to the audit log");
        }
    }

    fn due_entries(&self, all: bool) -> Vec<AuditEntry> {
        let now_ms = self.clock.now_ms();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = now_ms.saturating_sub(counts.since_ms) >= to_millis(REFUSALS_WINDOW);
        let mut entries = Vec::new();
        for (call, (count, is_reported)) in &mut counts.counts {
            if *count == 0 || (*is_reported && !is_over && !all) {
                continue;
            }
            let by = Actor {
                scope: Arc::default(),
                client: call.client.clone(),
                address: call.address,
                agent: String::new(),
                method: call.method,
                time_ms: now_ms,
            };
            let (kind, name) = call.about.clone().unzip();
            entries.push(AuditEntry {
                count: std::mem::take(count),
                kind: kind.unwrap_or_default().to_owned(),
                names: name.into_iter().collect(),
                reason: call.reason.clone(),
                ..by.audit_entry(call.action)
            });
            *is_reported = true;
        }
        if is_over {
            counts.since_ms = now_ms;
            counts.counts.clear();
        }
        entries
    }

    /// Deletes expired entries and returns their number. The newest entry is kept, so that the hash
    /// chain can continue from it.
    ///
    /// # Errors
    /// Returns an error if the store fails; earlier batches stay deleted.
    pub async fn delete_expired(&self) -> Result<usize, Error> {
        let mut forgotten = 0;
        loop {
            let settings = settings::read_stored(&self.store).await?;
            let keep = settings::values_or_defaults(settings.as_ref()).audit_retention;
            let until_ms = self.clock.now_ms().saturating_sub(to_millis(keep));
            let page = self.store.page::<AuditEntry>(
                Range::with_prefix(&[]),
                Direction::Ascending,
                STEP + 1,
            );
            let page = page.await?;
            let count = page.len().saturating_sub(1);
            let old = page.iter().take(count);
            let old: Vec<_> = old.take_while(|it| it.value.time_ms < until_ms).collect();
            if old.is_empty() {
                return Ok(forgotten);
            }
            let mut changes = self.store.new_changes();
            for entry in &old {
                changes.delete(entry);
            }
            if let Some(settings) = &settings {
                changes.check(settings);
            }
            self.store.apply(Lane::Bulk, changes).await?;
            forgotten += old.len();
        }
    }

    /// Lists entries, newest first, and returns the token of the next page. A page may be short if
    /// filling it takes longer than [`PAGE_TIME_MAX`].
    pub async fn list(
        &self,
        filter: &AuditFilter,
        page: &PageRequest,
    ) -> Result<(Vec<AuditEntry>, String), Error> {
        let (limit, scope) = (page.limit()?, filter.scope());
        let mut before = scope.last_key(&page.token)?;
        let stop = self.clock.elapsed() + PAGE_TIME_MAX;
        let (mut found, mut bytes) = (Vec::new(), 0);
        loop {
            let step = self.read_batch(filter, before.as_deref()).await?;
            let is_last = step.len() < STEP;
            for (entry, size) in step {
                let key = entry.number.to_be_bytes().to_vec();
                scan::yield_if_needed().await;
                if filter
                    .start_ms
                    .is_some_and(|start_ms| entry.time_ms < start_ms - SLACK_MS)
                {
                    return Ok((found, String::new()));
                }
                if filter.matches(&entry) {
                    bytes += size;
                    found.push(entry);
                }
                before = Some(key);
                if found.len() == limit || bytes > LIST_PAGE_BYTES || self.clock.elapsed() >= stop {
                    let token = before.as_deref().map(|key| scope.encode_token(key));
                    return Ok((found, token.unwrap_or_default()));
                }
            }
            if is_last {
                return Ok((found, String::new()));
            }
        }
    }

    /// Reads the next batch of entries below a sequence number, newest first, each with its size in
    /// bytes. Entries about a single resource are looked up in the name index.
    async fn read_batch(
        &self,
        filter: &AuditFilter,
        before: Option<&[u8]>,
    ) -> Result<Vec<(AuditEntry, usize)>, Error> {
        let prefix = match (&*filter.kinds, &*filter.names) {
            // Actions on other kinds are not indexed.
            ([kind], [name]) if AnyResource::WORDS.contains(&kind.as_str()) => {
                Some(Key::new().name(kind).name(name).build())
            }
            _ => None,
        };
        let mut range = Range::with_prefix(prefix.as_deref().unwrap_or_default());
        if let Some(before) = before {
            range.end = Some([prefix.as_deref().unwrap_or_default(), before].concat());
        }
        let stored = if prefix.is_some() {
            let index = Index::AuditByName;
            let page =
                self.store
                    .page_by_index::<AuditEntry>(index, range, Direction::Descending, STEP);
            page.await?.into_iter().map(|(_, stored)| stored).collect()
        } else {
            let page = self.store.page(range, Direction::Descending, STEP);
            page.await?
        };
        let sized = stored.into_iter().map(|it| (it.value, it.bytes));
        Ok(sized.collect())
    }
}

/// Maximum difference by which the times of entries may be out of order.
const SLACK_MS: i64 = 10 * 60_000;

#[cfg(test)]
mod tests;
