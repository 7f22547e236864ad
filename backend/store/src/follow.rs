//! Follows the change log: what changed since the last look, or that no one can tell.

use std::sync::Arc;

use super::engine::{Engine, EngineError, Kind, LogPosition, Logged};

/// Commits that are read at a time.
const PAGE: usize = 256;

/// A position in the change log that moves along.
#[derive(Debug)]
pub struct LogFollower {
    engine: Arc<dyn Engine>,
    /// The kinds whose changes matter; others may be reported as well.
    kinds: &'static [Kind],
    /// How far the log was followed; none where everything has to be looked at first.
    position: Option<LogPosition>,
    /// How far the last news go.
    through: LogPosition,
}

/// What a look at the change log tells.
#[derive(Debug)]
pub enum News {
    /// These commits came after those that were reported before, oldest first.
    Changed(Vec<Logged>),
    /// What changed is not remembered: look at everything. What is committed meanwhile is reported
    /// afterwards.
    Gap,
}

impl LogFollower {
    /// A follower of these kinds that knows nothing yet: its first news are a gap.
    pub fn new(engine: Arc<dyn Engine>, kinds: &'static [Kind]) -> Self {
        Self {
            engine,
            kinds,
            position: None,
            through: LogPosition::START,
        }
    }

    /// What comes next; none when there is no news. The same is reported again until
    /// [`LogFollower::done`].
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn next(&mut self) -> Result<Option<News>, EngineError> {
        if let Some(position) = self.position {
            // What this process knows, and before it is asked what changed: a newer head says nothing
            // of what lies before it.
            let head = *self.engine.log_signal().borrow();
            if self.engine.last_changed(self.kinds) <= position {
                self.position = Some(position.later_of(head));
                return Ok(None);
            }
            if let Some(commits) = self.engine.log_after(position, PAGE).await? {
                let last = commits.last().map(|commit| commit.position);
                self.through = last.unwrap_or(position);
                return Ok(last.map(|_| News::Changed(commits)));
            }
            self.position = None;
        }
        self.through = self.engine.log_head().await?;
        Ok(Some(News::Gap))
    }

    /// Continues after the last news; answers how far they went.
    pub fn done(&mut self) -> LogPosition {
        self.position = Some(self.through);
        self.through
    }

    /// How far the log was followed; the start before the first look.
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
        let engine = Arc::new(FaultyEngine::slow(MemoryEngine::new(), 7));
        let shared = Arc::clone(&engine);
        let store = Store::new(shared, Arc::new(Sealer::ephemeral()));
        let mut follower = LogFollower::new(Arc::clone(store.engine()), &[Kind::Trigger]);
        assert!(matches!(follower.next().await.unwrap(), Some(News::Gap)));
        follower.done();
        engine.announce_next();
        assert!(follower.next().await.unwrap().is_none());
        let mut changes = store.changes();
        changes.insert(&samples::trigger("disk"));
        store.apply(Lane::Admin, changes).await.unwrap();
        let news = follower.next().await.unwrap();
        assert!(matches!(news, Some(News::Changed(commits)) if commits.len() == 1));
    }

    #[tokio::test]
    async fn the_first_news_are_a_gap_and_then_each_commit_is_told_until_it_is_done() {
        let store = Store::in_memory();
        let save = async |name: &str| {
            let mut changes = store.changes();
            changes.insert(&samples::trigger(name));
            store.apply(Lane::Admin, changes).await.unwrap().position
        };
        let before = save("before").await;
        let mut follower = LogFollower::new(Arc::clone(store.engine()), &[Kind::Trigger]);
        for _ in 0..2 {
            assert!(matches!(follower.next().await.unwrap(), Some(News::Gap)));
        }
        let meanwhile = save("meanwhile").await;
        assert_eq!(follower.done(), before);
        for _ in 0..2 {
            let Some(News::Changed(commits)) = follower.next().await.unwrap() else {
                panic!("no news")
            };
            let changed = vec![(Kind::Trigger, b"meanwhile".to_vec())];
            assert_eq!((commits.len(), &commits[0].changed), (1, &changed));
        }
        assert_eq!(follower.done(), meanwhile);
        assert!(follower.next().await.unwrap().is_none());
        assert_eq!(follower.position(), meanwhile);
    }
}
