//! The keys of a provider: kept while it is away, and asked for again when another one is needed, though
//! never without limit.

use std::sync::{Arc, Mutex, PoisonError};

use bellwether_process::oidc::{Fault, Provider};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    refused,
    token::{Algorithm, Key},
};
use crate::{
    error::Error,
    limits::{PROVIDER_KEYS_INTERVAL, PROVIDER_KEYS_MAX, PROVIDER_KEYS_PAUSE},
};

/// The keys of a provider.
#[derive(Debug)]
pub(super) struct Keyring {
    provider: Provider,
    keys: Mutex<Option<Arc<[Key]>>>,
    /// When it was asked last; held while it is, so that who waits finds its outcome.
    asked: tokio::sync::Mutex<Option<Instant>>,
}

impl Keyring {
    pub(super) fn new(provider: Provider) -> Self {
        Self {
            provider,
            keys: Mutex::default(),
            asked: tokio::sync::Mutex::default(),
        }
    }

    /// The key of that id that can have signed by that algorithm; of a token without an id the only one.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] when there is none, [`Error::Unavailable`] when no key is known at all.
    pub(super) async fn find(&self, id: &str, algorithm: Algorithm) -> Result<Key, Error> {
        if let Some(found) = self.known(id, algorithm) {
            return Ok(found);
        }
        self.ask().await;
        match self.known(id, algorithm) {
            Some(found) => Ok(found),
            None if self.keys().is_none() => Err(Error::Unavailable(
                "the identity provider does not answer, so tokens cannot be verified; API keys \
                 still work"
                    .into(),
            )),
            None => Err(refused("no key of the provider has signed it")),
        }
    }

    /// Asks for the keys now and then.
    pub(super) async fn follow(&self) {
        loop {
            self.ask().await;
            tokio::time::sleep(PROVIDER_KEYS_INTERVAL).await;
        }
    }

    fn known(&self, id: &str, algorithm: Algorithm) -> Option<Key> {
        let keys = self.keys()?;
        let mut fitting = keys.iter().filter(|key| key.fits(algorithm));
        if id.is_empty() {
            let only = fitting.next()?;
            return fitting.next().is_none().then(|| only.clone());
        }
        fitting.find(|key| key.id == id).cloned()
    }

    fn keys(&self) -> Option<Arc<[Key]>> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.clone()
    }

    /// Asks the provider, unless it was asked a moment ago. What was known stays when it is away.
    async fn ask(&self) {
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|at| at.elapsed() < PROVIDER_KEYS_PAUSE) {
            return;
        }
        let read = self.read().await;
        *asked = Some(Instant::now());
        match read {
            Ok(keys) => {
                let mut known = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
                *known = Some(keys);
            }
            Err(error) => tracing::warn!(%error, "cannot read the keys of the provider"),
        }
    }

    async fn read(&self) -> Result<Arc<[Key]>, Fault> {
        let description = self.provider.describe().await?;
        let text = self.provider.keys(&description).await?;
        let unfit = || Fault::Unfit("it publishes no key that signs tokens".into());
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
