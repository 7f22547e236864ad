//! Following occurrences live, from the change log.

use std::{collections::HashSet, time::Duration};

use tokio::{sync::watch::Receiver, time};

use crate::{
    domain::{Occurrence, OccurrenceId},
    error::Error,
    ops::{page::Scope, search::Filter},
    store::{Kind, Store},
};

/// Commits read from the log at once.
const COMMITS_MAX: usize = 1_000;
/// Occurrences in one message.
const OCCURRENCES_MAX: usize = 500;
/// How long a silent stream stays silent.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long news is gathered, so that a busy service sends few large messages.
const GATHER: Duration = Duration::from_millis(10);

/// News about occurrences.
#[derive(Debug, Clone, Default)]
pub struct News {
    /// Occurrences that changed and are meant, as they are now.
    pub changed: Vec<Occurrence>,
    /// Occurrences that changed and are not meant, or no longer.
    pub left: Vec<OccurrenceId>,
    /// Where to go on.
    pub resume_token: String,
    /// Whether changes before this may be missing.
    pub gap: bool,
}

/// Follows the occurrences that a filter means.
///
/// It holds nothing but its place in the log: a caller that reads slowly gets fewer, newer
/// messages, and one that falls behind what the log remembers is told so.
#[derive(Debug)]
pub struct Watch {
    store: Store,
    filter: Filter,
    place: u64,
    signal: Receiver<u64>,
    waiting: Vec<Vec<u8>>,
    gap: bool,
    begun: bool,
}

impl Watch {
    /// Begins after the place of a token, or now when it is empty.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a token that was not made here, else those of the store.
    pub async fn begin(store: Store, filter: Filter, resume_token: &str) -> Result<Self, Error> {
        let token = scope().last_key(resume_token).map_err(|_foreign| {
            Error::invalid("resumeToken", "is not a token of an earlier message")
        })?;
        let head = store.engine().log_head().await?;
        let resumed = token.and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)));
        let mut watch = Self {
            signal: store.engine().log_signal(),
            place: resumed.unwrap_or(head),
            store,
            filter,
            waiting: Vec::new(),
            gap: false,
            begun: false,
        };
        if watch
            .store
            .engine()
            .log_after(watch.place, 1)
            .await?
            .is_none()
        {
            watch.place = head;
            watch.gap = true;
        }
        Ok(watch)
    }

    /// Waits for news. The first call answers at once, later ones after at most 15 seconds, with
    /// nothing but a newer token when there is no news.
    ///
    /// # Errors
    /// [`Error::Exhausted`] when the caller has fallen behind what is remembered; else those of
    /// the store.
    pub async fn next(&mut self) -> Result<News, Error> {
        if self.waiting.is_empty() && self.begun {
            let has_news =
                time::timeout(HEARTBEAT, self.signal.wait_for(|head| *head > self.place));
            // A closed signal means that the store is being closed; the log says so below.
            if has_news.await.is_ok() {
                time::sleep(GATHER).await;
            }
        }
        self.begun = true;
        self.read_log().await?;
        let batch = self.waiting.len().min(OCCURRENCES_MAX);
        let keys: Vec<_> = self.waiting.drain(..batch).collect();
        let mut news = News {
            gap: std::mem::take(&mut self.gap),
            ..News::default()
        };
        for found in self
            .store
            .get_many::<Occurrence>(keys)
            .await?
            .into_iter()
            .flatten()
        {
            if self.filter.admits(&found.value) {
                news.changed.push(found.value);
            } else {
                news.left.push(found.value.id());
            }
        }
        // A token handed out between two parts of one stretch of the log would skip the second.
        if self.waiting.is_empty() {
            news.resume_token = scope().token(&self.place.to_be_bytes());
        }
        Ok(news)
    }

    async fn read_log(&mut self) -> Result<(), Error> {
        if !self.waiting.is_empty() {
            return Ok(());
        }
        let Some(commits) = self
            .store
            .engine()
            .log_after(self.place, COMMITS_MAX)
            .await?
        else {
            return Err(Error::Exhausted {
                message: "changes came faster than they were read; begin again without a token"
                    .into(),
                retry_after: Some(Duration::ZERO),
            });
        };
        let mut seen = HashSet::new();
        for commit in commits {
            self.place = commit.sequence;
            for (kind, key) in commit.changed {
                if kind == Kind::Occurrence && seen.insert(key.clone()) {
                    self.waiting.push(key);
                }
            }
        }
        Ok(())
    }
}

fn scope() -> Scope {
    Scope::new("watch")
}
