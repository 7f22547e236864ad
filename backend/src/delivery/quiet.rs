//! Whether the service is quiet, so that nothing is sent.

use crate::{
    domain::Settings,
    store::{EngineError, LogPosition, Store, engine::Kind},
};

/// Whether the service is quiet, as the store says.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    pub(super) is_on: bool,
    /// The newest change of the settings that was read, or a later position; none before the first.
    read: Option<LogPosition>,
}

impl Quiet {
    /// Reads it, where the settings have changed; returns whether it is on.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn read(&mut self, store: &Store) -> Result<bool, EngineError> {
        let changed = store.engine().last_changed(&[Kind::Settings]);
        if self.read != Some(changed) {
            let stored = store.get::<Settings>(Settings::NAME.into()).await?;
            self.is_on = stored.is_some_and(|it| it.value.values.is_quiet());
            self.read = Some(changed);
        }
        Ok(self.is_on)
    }
}
