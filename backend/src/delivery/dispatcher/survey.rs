//! What the service says of its destinations, held against what earlier lives said.

use super::Dispatcher;
use crate::{
    delivery::{health, notice},
    domain::{Destination, EventId, Health, HealthState, RecordId, Status},
    ops::find,
    store::{Direction, EngineError, Stored, engine::Range},
};

/// Destinations that are looked at together.
const PAGE: usize = 256;

impl Dispatcher {
    /// Looks at all destinations: records that those that were edited while nobody followed the
    /// change log are resumed, says what an earlier life did not get to say, and takes back what
    /// does not hold any more.
    pub(super) async fn survey(&mut self) -> Result<(), EngineError> {
        let mut range = Range::under(&[]);
        while let Some(page) = self.destinations(&mut range).await? {
            for destination in page {
                self.survey_one(&destination.value).await?;
            }
        }
        Ok(())
    }

    /// The name of a destination that is only known by its identity; none when it is gone.
    pub(super) async fn name_of(&self, id: RecordId) -> Result<Option<String>, EngineError> {
        let mut range = Range::under(&[]);
        while let Some(page) = self.destinations(&mut range).await? {
            let mut page = page.into_iter();
            if let Some(found) = page.find(|destination| destination.value.id == id) {
                return Ok(Some(found.value.name.as_str().into()));
            }
        }
        Ok(None)
    }

    /// The next page of all destinations; none at the end, and after one that cannot be read.
    async fn destinations(
        &self,
        range: &mut Range,
    ) -> Result<Option<Vec<Stored<Destination>>>, EngineError> {
        let page = self
            .store
            .page::<Destination>(range.clone(), Direction::Ascending, PAGE)
            .await;
        let page = match page {
            Err(EngineError::Corrupt(why)) => {
                tracing::error!(why, "not all destinations could be looked at");
                return Ok(None);
            }
            page => page?,
        };
        if let Some(last) = page.last() {
            range.start = [last.value.name.as_str().as_bytes(), &[0]].concat();
        }
        Ok((!page.is_empty()).then_some(page))
    }

    async fn survey_one(&mut self, destination: &Destination) -> Result<(), EngineError> {
        let name = destination.name.as_str();
        let now_ms = self.clock.now_ms();
        let key = destination.id.to_bytes().into();
        let (mut health, _) = self.store.get_readable::<Health>(vec![key]).await?;
        let health = health.pop().flatten().map(|health| health.value);
        let paused = health.filter(|health| health.state == HealthState::Paused);
        let resumed = notice::resumed(name, now_ms);
        let is_told = self.is_open(resumed.id()).await?;
        match paused {
            Some(health) if !health::is_paused(&health, destination) => {
                self.resume(destination).await?;
            }
            Some(health) if !is_told => {
                let paused = notice::paused(name, &health.last_error, now_ms);
                self.sender.report(paused);
            }
            None if is_told => self.sender.report(resumed),
            _ => {}
        }
        let letters = notice::no_dead_letters(name, now_ms);
        if self.is_open(letters.id()).await? {
            self.dead_letters.take_up(destination.id, name, now_ms);
        }
        Ok(())
    }

    /// Takes back what was said of a destination that is deleted.
    pub(super) async fn close_for_deleted(&self, name: &[u8]) -> Result<(), EngineError> {
        let name = String::from_utf8_lossy(name);
        for closing in notice::deleted(&name, self.clock.now_ms()) {
            if self.is_open(closing.id()).await? {
                self.sender.report(closing);
            }
        }
        Ok(())
    }

    /// Takes note of a delivery that died, and says so when there are many.
    pub(super) fn tell_dead(&mut self, destination: RecordId, last_error: &str) {
        let Some(lane) = self.lanes.get(&destination) else {
            return;
        };
        let now_ms = self.clock.now_ms();
        let count = self.dead_letters.note(destination, &lane.name, now_ms);
        if let Some(count) = count {
            let grown = notice::dead_letters(&lane.name, count, last_error, now_ms);
            self.sender.report(grown);
        }
    }

    /// Takes back that dead letters grow where they do not any more.
    pub(super) fn tell_what_is_over(&mut self) {
        let now_ms = self.clock.now_ms();
        for name in self.dead_letters.over(now_ms) {
            self.sender.report(notice::no_dead_letters(&name, now_ms));
        }
    }

    /// Whether the newest occurrence of an event is not closed.
    async fn is_open(&self, event: EventId) -> Result<bool, EngineError> {
        let newest = match find::newest(&self.store, event).await {
            Err(EngineError::Corrupt(_)) => return Ok(false),
            newest => newest?,
        };
        Ok(newest.is_some_and(|newest| newest.status != Status::Closed))
    }
}
