//! A store in memory for checking that a backup can be restored.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    engine::{EngineError, memory::MemoryEngine},
    open::{Checks, LocationErrors, OpenError, verify_keys},
    record::Store,
    seal::Sealer,
};

#[derive(Debug)]
pub(super) struct Rehearsal {
    backup: PathBuf,
    store: Store,
}

impl Rehearsal {
    pub(super) fn new(backup: &Path, sealer: Sealer) -> Self {
        Self {
            backup: backup.into(),
            store: Store::new(Arc::new(MemoryEngine::new()), Arc::new(sealer)),
        }
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) async fn check_keys(&self) -> Result<Checks, OpenError> {
        verify_keys(&self.store, self.store.sealer(), self).await
    }
}

impl LocationErrors for Rehearsal {
    fn store_error(&self, source: EngineError) -> OpenError {
        let file = self.backup.clone();
        match source {
            EngineError::Corrupt(why) => OpenError::Damaged { file, why },
            source => OpenError::Store { file, source },
        }
    }

    fn key_error(&self, why: String) -> OpenError {
        OpenError::Key {
            file: self.backup.join("secret.key"),
            why,
        }
    }
}
