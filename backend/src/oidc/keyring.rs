//! The cache of a provider's keys. Keys are kept while the provider is unreachable. An unknown key
//! causes another fetch, with a rate limit.

use std::sync::{Arc, Mutex, PoisonError};

use bellwether_process::oidc::{Provider, ProviderError};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    invalid_token_error,
    token::{Algorithm, Key},
};
use crate::{
    error::Error,
    limits::{PROVIDER_KEYS_INTERVAL, PROVIDER_KEYS_MAX, PROVIDER_KEYS_PAUSE},
};

#[derive(Debug)]
pub(super) struct Keyring {
    provider: Provider,
    keys: Mutex<Option<Arc<[Key]>>>,
    /// Time of the last fetch. Locked during a fetch, so that waiting tasks find its result.
    requested_at: tokio::sync::Mutex<Option<Instant>>,
}

impl Keyring {
    pub(super) fn new(provider: Provider) -> Self {
        Self {
            provider,
            keys: Mutex::default(),
            requested_at: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the key with this id, if the key can be used with this algorithm. For a token
    /// without an id, returns the only key.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Unauthenticated`] if there is no such key, and [`Error::Unavailable`] if no
    /// keys are known.
    pub(super) async fn find(&self, id: &str, algorithm: Algorithm) -> Result<Key, Error> {
        if let Some(found) = self.cached_key(id, algorithm) {
            return Ok(found);
        }
        self.fetch_keys().await;
        match self.cached_key(id, algorithm) {
            Some(found) => Ok(found),
            None if self.cached_keys().is_none() => Err(Error::Unavailable(
                "the identity provider does not respond, so tokens cannot be verified; API keys \
                 still work"
                    .into(),
            )),
            None => Err(invalid_token_error("not signed with a key of the provider")),
        }
    }

    pub(super) async fn refresh_periodically(&self) {
        loop {
            self.fetch_keys().await;
            tokio::time::sleep(PROVIDER_KEYS_INTERVAL).await;
        }
    }

    fn cached_key(&self, id: &str, algorithm: Algorithm) -> Option<Key> {
        let keys = self.cached_keys()?;
        let mut fitting = keys.iter().filter(|key| key.supports(algorithm));
        if id.is_empty() {
            let only = fitting.next()?;
            return fitting.next().is_none().then(|| only.clone());
        }
        fitting.find(|key| key.id == id).cloned()
    }

    fn cached_keys(&self) -> Option<Arc<[Key]>> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.clone()
    }

    /// Fetches the keys, unless they were fetched a moment ago. Known keys are kept if the provider
    /// is unreachable.
    async fn fetch_keys(&self) {
        let mut requested_at = self.requested_at.lock().await;
        if requested_at.is_some_and(|at| at.elapsed() < PROVIDER_KEYS_PAUSE) {
            return;
        }
        let read = self.read().await;
        *requested_at = Some(Instant::now());
        match read {
            Ok(keys) => {
                let mut known = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
                *known = Some(keys);
            }
            Err(error) => tracing::warn!(%error, "failed to read the keys of the provider"),
        }
    }

    async fn read(&self) -> Result<Arc<[Key]>, ProviderError> {
        let description = self.provider.describe().await?;
        let text = self.provider.fetch_keys(&description).await?;
        let unfit = || ProviderError::Unusable("no published signing keys".into());
        let set: Value = serde_json::from_slice(&text).ok().ok_or_else(unfit)?;
        let keys = set["keys"].as_array().ok_or_else(unfit)?;
        let keys = keys.iter().take(PROVIDER_KEYS_MAX).filter_map(Key::read);
        let keys: Arc<[Key]> = keys.collect();
        if keys.is_empty() {
            return Err(unfit());
        }
        Ok(keys)
    }
}
