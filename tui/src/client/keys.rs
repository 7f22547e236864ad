//! The API key of calls, which may change while the console runs.

use std::sync::{Arc, Mutex, PoisonError};

use tonic::metadata::{Ascii, MetadataValue};

use crate::{
    data::{Failure, FailureKind},
    options::{Key, Options, Renewal},
};

#[derive(Clone)]
pub(crate) struct Keys {
    held: Arc<Mutex<CurrentKey>>,
    renewal: Option<Renewal>,
    pub(super) agent: Option<MetadataValue<Ascii>>,
}

#[derive(Default)]
struct CurrentKey {
    key: Option<MetadataValue<Ascii>>,
    changes: u64,
}

impl Keys {
    pub(crate) fn from_options(options: &mut Options) -> Self {
        let key = options.key.take().map(Key::into_value);
        Self {
            held: Arc::new(Mutex::new(CurrentKey { key, changes: 0 })),
            renewal: options.renewal.take(),
            agent: options.agent.take(),
        }
    }

    pub(super) fn key(&self) -> Option<MetadataValue<Ascii>> {
        self.lock().key.clone()
    }

    pub(super) fn change_count(&self) -> u64 {
        self.lock().changes
    }

    pub(super) fn can_change(&self) -> bool {
        self.renewal.is_some()
    }

    pub(super) async fn renew(&self) -> Result<(), Failure> {
        let Some(renewal) = &self.renewal else {
            return Ok(());
        };
        let renewed = renewal.renew().await;
        let key = renewed.map_err(|why| Failure::new(FailureKind::NotSignedIn, why))?;
        let key = key.map(Key::into_value);
        let mut held = self.lock();
        if held.key != key {
            held.key = key;
            held.changes += 1;
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CurrentKey> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
