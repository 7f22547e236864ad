//! Follows the change log and returns the changes since the last call, or reports that they are
//! unknown.

use std::sync::Arc;

use super::engine::{Engine, EngineError, Kind, LogPosition, LogStep};

const PAGE: usize = 256;

#[derive(Debug)]
pub struct LogFollower {
    engine: Arc<dyn Engine>,
    /// The relevant kinds. Changes of other kinds may be returned as well.
    kinds: &'static [Kind],
    /// Position up to which the log was followed; `None` at the start, or if changes were missed.
    position: Option<LogPosition>,
    through: LogPosition,
}

#[derive(Debug)]
pub enum LogUpdate {
    /// Commits since the last result, oldest first.
    Changed(Vec<LogStep>),
    /// The changes are no longer in the log, so all records have to be read again. Later commits
    /// are returned afterwards.
    Gap,
}

impl LogFollower {
    /// Creates a follower of these kinds, whose first result is a gap.
    pub fn new(engine: Arc<dyn Engine>, kinds: &'static [Kind]) -> Self {
        Self {
            engine,
            kinds,
            position: None,
            through: LogPosition::START,
        }
    }

    /// Returns the next result; `None` if there are no changes. The same result is returned until
    /// [`LogFollower::advance`].
    pub async fn next(&mut self) -> Result<Option<LogUpdate>, EngineError> {
        if let Some(position) = self.position {
            // Read before checking which kinds changed: a newer head would cover changes that were
            // not checked.
            let head = *self.engine.log_signal().borrow();
            if self.engine.last_changed(self.kinds) <= position {
                self.position = Some(position.later(head));
                return Ok(None);
            }
            if let Some(commits) = self.engine.log_after(position, PAGE).await? {
                let last = commits.last().map(|commit| commit.position);
                self.through = last.unwrap_or(position);
                return Ok(last.map(|_| LogUpdate::Changed(commits)));
            }
            self.position = None;
        }
        self.through = self.engine.log_head().await?;
        Ok(Some(LogUpdate::Gap))
    }

    /// Continues after the last result. Returns its end position.
    pub fn advance(&mut self) -> LogPosition {
        self.position = Some(self.through);
        self.through
    }

    /// Returns the position up to which the log was followed, or the start of the log before the
    /// first result.
    pub fn position(&self) -> LogPosition {
        self.position.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        engine::{Lane, memory::MemoryEngine},
        record::Store,
        samples,
        seal::Sealer,
        testing::faulty_engine::FaultyEngine,
    };

    #[tokio::test]
    async fn change_announced_before_it_is_readable_is_reported_later() {
        let engine = Arc::new(FaultyEngine::with_delays(MemoryEngine::new(), 7));
        let shared = Arc::clone(&engine);
        let store = Store::new(shared, Arc::new(Sealer::with_random_key()));
        let mut follower = LogFollower::new(Arc::clone(store.engine()), &[Kind::Trigger]);
        assert!(matches!(
            follower.next().await.unwrap(),
            Some(LogUpdate::Gap)
        ));
        follower.advance();
        engine.announce_next();
        assert!(follower.next().await.unwrap().is_none());
        let mut changes = store.new_changes();
        changes.insert(&samples::trigger("disk"));
        store.apply(Lane::Admin, changes).await.unwrap();
        let news = follower.next().await.unwrap();
        assert!(matches!(news, Some(LogUpdate::Changed(commits)) if commits.len() == 1));
    }

    #[tokio::test]
    async fn follower_starts_with_gap_and_repeats_commits_until_done() {
        let store = Store::in_memory();
        let save = async |name: &str| {
            let mut changes = store.new_changes();
            changes.insert(&samples::trigger(name));
            store.apply(Lane::Admin, changes).await.unwrap().position
        };
        let before = save("before").await;
        let mut follower = LogFollower::new(Arc::clone(store.engine()), &[Kind::Trigger]);
        for _ in 0..2 {
            assert!(matches!(
                follower.next().await.unwrap(),
                Some(LogUpdate::Gap)
            ));
        }
        let meanwhile = save("meanwhile").await;
        assert_eq!(follower.advance(), before);
        for _ in 0..2 {
            let Some(LogUpdate::Changed(commits)) = follower.next().await.unwrap() else {
                panic!("no change")
            };
            let changed = vec![(Kind::Trigger, b"meanwhile".to_vec())];
            assert_eq!((commits.len(), &commits[0].changed), (1, &changed));
        }
        assert_eq!(follower.advance(), meanwhile);
        assert!(follower.next().await.unwrap().is_none());
        assert_eq!(follower.position(), meanwhile);
    }
}
