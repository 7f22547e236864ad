//! The quiet mode of the service, in which no messages are sent.

use crate::{
    domain::Settings,
    store::{EngineError, LogPosition, Store, engine::Kind},
};

#[derive(Debug, Default)]
pub(super) struct QuietModeCache {
    pub(super) is_on: bool,
    /// The readable log position before the settings were last read; `None` before the first read.
    read: Option<LogPosition>,
}

impl QuietModeCache {
    /// Reads the quiet mode if the settings have changed. Returns whether it is on.
    pub(super) async fn read(&mut self, store: &Store) -> Result<bool, EngineError> {
        let engine = store.engine();
        let changed = engine.last_changed(&[Kind::Settings]);
        let is_read = self.read.is_some_and(|read| changed <= read);
        if !is_read {
            // `changed` may refer to a commit that is not readable yet.
            let readable = *engine.log_signal().borrow();
            let stored = store.get::<Settings>(Settings::NAME.into()).await?;
            self.is_on = stored.is_some_and(|it| it.value.values.is_quiet_mode());
            self.read = Some(readable);
        }
        Ok(self.is_on)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::QuietModeCache;
    use crate::{
        store::{
            Sealer, Store,
            engine::{Lane, memory::MemoryEngine},
        },
        testing::{faulty_engine::FaultyEngine, samples},
    };

    #[tokio::test]
    async fn change_announced_before_it_is_readable_is_read_later() {
        let engine = Arc::new(FaultyEngine::with_delays(MemoryEngine::new(), 7));
        let shared = Arc::clone(&engine);
        let store = Store::new(shared, Arc::new(Sealer::with_random_key()));
        let mut quiet = QuietModeCache::default();
        engine.announce_next();
        assert!(!quiet.read(&store).await.unwrap());
        let mut changes = store.new_changes();
        let mut settings = samples::settings();
        settings.values.quiet_since_ms = Some(1);
        changes.insert(&settings);
        store.apply(Lane::Admin, changes).await.unwrap();
        assert!(quiet.read(&store).await.unwrap());
    }
}
