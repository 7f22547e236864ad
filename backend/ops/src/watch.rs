//! Streams of changed occurrences, based on the change log.

use std::{collections::HashSet, time::Duration};

use tokio::{sync::watch::Receiver, time};

use crate::{
    domain::{Occurrence, OccurrenceId},
    error::Error,
    limits::WATCH_MESSAGE_BYTES,
    page::TokenScope,
    scan,
    search::Filter,
    store::{Kind, LogPosition, Store},
};

const COMMITS_READ: usize = 64;
/// Number of buffered occurrences at which reading of the log stops.
const WAITING_FULL: usize = 10_000;
const OCCURRENCES_READ: usize = 4;
const OCCURRENCES_MAX: usize = 500;
/// Maximum time between two messages.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Time to gather changes, so that a busy service sends few large messages.
const GATHER: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Default)]
pub struct WatchUpdate {
    /// Current versions of changed occurrences that match the filter.
    pub changed: Vec<Occurrence>,
    /// Changed occurrences that do not match, or no longer match.
    pub left: Vec<OccurrenceId>,
    pub resume_token: String,
    pub gap: bool,
}

/// The only state is the position in the log. A slow caller gets fewer, newer messages. A caller
/// that falls behind the retention of the log gets an error.
#[derive(Debug)]
pub struct Watch {
    store: Store,
    filter: Filter,
    position: LogPosition,
    signal: Receiver<LogPosition>,
    waiting: Vec<Vec<u8>>,
    gap: bool,
    begun: bool,
}

impl Watch {
    /// Begins after the position of a token, or now if the token is empty.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the token is invalid, or an error if the store fails.
    pub async fn start(store: Store, filter: Filter, resume_token: &str) -> Result<Self, Error> {
        let token = watch_scope().last_key(resume_token).map_err(|_foreign| {
            Error::invalid("resumeToken", "is not a token from an earlier message")
        })?;
        let head = store.engine().log_head().await?;
        let resumed = token.and_then(|bytes| {
            Some(LogPosition::from_number(u64::from_be_bytes(
                bytes.try_into().ok()?,
            )))
        });
        let mut watch = Self {
            signal: store.engine().log_signal(),
            position: resumed.unwrap_or(head),
            store,
            filter,
            waiting: Vec::new(),
            gap: false,
            begun: false,
        };
        if watch
            .store
            .engine()
            .log_after(watch.position, 1)
            .await?
            .is_none()
        {
            watch.position = head;
            watch.gap = true;
        }
        Ok(watch)
    }

    /// Waits for changes. The first call returns immediately. Later calls return after at most 15
    /// seconds, with only a newer token if there are no changes.
    ///
    /// # Errors
    /// Returns [`Error::Exhausted`] if the caller has fallen behind the retention of the log, or an
    /// error if the store fails.
    pub async fn next(&mut self) -> Result<WatchUpdate, Error> {
        if self.waiting.is_empty() && self.begun {
            let has_news = time::timeout(
                HEARTBEAT,
                self.signal.wait_for(|head| *head > self.position),
            );
            // A closed signal means that the store is closing. Reading the log below reports this.
            if has_news.await.is_ok() {
                time::sleep(GATHER).await;
            }
        }
        self.begun = true;
        let _place = scan::wait_for_step().await;
        self.read_log().await?;
        let mut news = WatchUpdate {
            gap: std::mem::take(&mut self.gap),
            ..WatchUpdate::default()
        };
        let mut bytes = 0;
        while bytes < WATCH_MESSAGE_BYTES
            && news.changed.len() + news.left.len() < OCCURRENCES_MAX
            && !self.waiting.is_empty()
        {
            let step = self.waiting.len().min(OCCURRENCES_READ);
            let keys: Vec<_> = self.waiting.drain(..step).collect();
            let found = self.store.get_many::<Occurrence>(keys).await?;
            for found in found.into_iter().flatten() {
                if self.filter.matches(&found.value) {
                    bytes += found.value.estimated_bytes();
                    news.changed.push(found.value);
                } else {
                    news.left.push(found.value.id());
                }
                scan::yield_if_needed().await;
            }
        }
        // Omit the token while occurrences are buffered, because resuming from it would skip them.
        if self.waiting.is_empty() {
            news.resume_token =
                watch_scope().encode_token(&self.position.to_number().to_be_bytes());
        }
        Ok(news)
    }

    async fn read_log(&mut self) -> Result<(), Error> {
        if !self.waiting.is_empty() {
            return Ok(());
        }
        let mut seen = HashSet::new();
        while seen.len() < WAITING_FULL {
            let engine = self.store.engine();
            let Some(commits) = engine.log_after(self.position, COMMITS_READ).await? else {
                return Err(Error::Exhausted {
                    message: "changes arrived faster than they were read; restart without a token"
                        .into(),
                    retry_after: Some(Duration::ZERO),
                });
            };
            let is_last = commits.len() < COMMITS_READ;
            for commit in commits {
                self.position = commit.position;
                for (kind, key) in commit.changed {
                    if kind == Kind::Occurrence && seen.insert(key.clone()) {
                        self.waiting.push(key);
                    }
                }
            }
            if is_last {
                break;
            }
        }
        Ok(())
    }
}

fn watch_scope() -> TokenScope {
    TokenScope::new("watch")
}
