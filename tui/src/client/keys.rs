//! The key that calls carry, which may become another one while the console runs.

use std::sync::{Arc, Mutex, PoisonError};

use tonic::metadata::{Ascii, MetadataValue};

use crate::{
    data::{Failure, FailureKind},
    options::{Key, Options, Renewal},
};

/// The key, and how it is renewed.
#[derive(Clone)]
pub(crate) struct Keys {
    held: Arc<Mutex<CurrentKey>>,
    renewal: Option<Renewal>,
}

#[derive(Default)]
struct CurrentKey {
    key: Option<MetadataValue<Ascii>>,
    /// How often it became another one.
    changes: u64,
}

impl Keys {
    /// Those that a console is started with.
    pub(crate) fn of(options: &mut Options) -> Self {
        let key = options.key.take().map(Key::into_value);
        Self {
            held: Arc::new(Mutex::new(CurrentKey { key, changes: 0 })),
            renewal: options.renewal.take(),
        }
    }

    /// The key as it is now.
    pub(super) fn key(&self) -> Option<MetadataValue<Ascii>> {
        self.held().key.clone()
    }

    /// How often it became another one.
    pub(super) fn changes(&self) -> u64 {
        self.held().changes
    }

    /// Whether it can become another one.
    pub(super) fn can_change(&self) -> bool {
        self.renewal.is_some()
    }

    /// Asks for it again, where it can become another one.
    pub(super) async fn renew(&self) -> Result<(), Failure> {
        let Some(renewal) = &self.renewal else {
            return Ok(());
        };
        let asked = renewal.ask().await;
        let key = asked.map_err(|why| Failure::new(FailureKind::NotSignedIn, why))?;
        let key = key.map(Key::into_value);
        let mut held = self.held();
        if held.key != key {
            held.key = key;
            held.changes += 1;
        }
        Ok(())
    }

    fn held(&self) -> std::sync::MutexGuard<'_, CurrentKey> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
