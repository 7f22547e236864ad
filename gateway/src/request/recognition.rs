//! Checks the key of a request before reading its body.
//!
//! The gateway queries the backend for the key, and caches the result for a minute. The result only
//! determines shares of the gateway's resources. The backend authorizes each call.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, Hasher, RandomState},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tonic::{Status, metadata::MetadataMap};

use super::{Exchange, Handler};
use crate::owner::Owner;

const REMEMBERED: Duration = Duration::from_secs(60);
const REMEMBERED_MAX: usize = 10_000;

const KEYS: [&str; 3] = ["authorization", "zenoss-api-key", "x-client-certificate"];

#[derive(Debug, Default)]
pub(crate) struct RecentKeys {
    secret: RandomState,
    until: Mutex<HashMap<u64, Instant>>,
}

impl RecentKeys {
    fn hash(&self, metadata: &MetadataMap) -> u64 {
        let mut hasher = self.secret.build_hasher();
        for name in KEYS {
            for value in metadata.get_all(name) {
                value.as_encoded_bytes().hash(&mut hasher);
            }
            hasher.write_u8(0xff);
        }
        hasher.finish()
    }

    fn contains_recent(&self, key: u64, now: Instant) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.get(&key).is_some_and(|until| now < *until)
    }

    fn insert(&self, key: u64, now: Instant) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.len() >= REMEMBERED_MAX {
            until.retain(|_, until| now < *until);
        }
        if until.len() >= REMEMBERED_MAX {
            until.clear();
        }
        until.insert(key, now + REMEMBERED);
    }
}

impl Handler {
    pub(super) async fn identify_client(
        &self,
        metadata: &MetadataMap,
        exchange: Exchange<'_>,
    ) -> Result<Owner, Status> {
        let (key, now) = (self.recognised.hash(metadata), Instant::now());
        if !self.recognised.contains_recent(key, now) {
            let left = exchange.deadline.saturating_duration_since(now);
            self.upstream.identify(metadata.clone(), left).await?;
            self.recognised.insert(key, now);
        }
        exchange.activity.mark_authenticated(&format!("{key:016x}"));
        Ok(Owner::Key(key))
    }
}
