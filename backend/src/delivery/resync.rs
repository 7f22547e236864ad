//! Reconciliation of the reports about destinations with the state in the store.

use crate::{
    clock::Clock,
    delivery::{health, notice, notices::Notices},
    domain::{Destination, EventId, Health, HealthState, RecordId},
    ops::find,
    store::{EngineError, Lane, Store, Stored, engine::Range},
};

/// A check of destinations whose changes no process followed for a while.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resync<'a> {
    pub(crate) store: &'a Store,
    pub(crate) clock: &'a dyn Clock,
}

impl Resync<'_> {
    /// Checks all matching destinations. Records that destinations edited in the meantime are
    /// resumed, makes the reports that are missing since a restart, and closes outdated reports.
    pub(crate) async fn check_all(
        self,
        notices: &mut Notices,
        mut holds: impl FnMut(&Destination) -> bool,
    ) -> Result<(), EngineError> {
        let mut pages = self.store.pages::<Destination>(Range::with_prefix(&[]));
        while let Some(page) = require_readable(pages.next().await)? {
            for destination in page.into_iter().filter(|it| holds(&it.value)) {
                self.check_one(&destination.value, notices).await?;
            }
        }
        Ok(())
    }

    /// Returns the name of a destination by id, or `None` if it was deleted.
    pub(crate) async fn name_of(self, id: RecordId) -> Result<Option<String>, EngineError> {
        let mut pages = self.store.pages::<Destination>(Range::with_prefix(&[]));
        while let Some(page) = require_readable(pages.next().await)? {
            let mut page = page.into_iter();
            if let Some(found) = page.find(|destination| destination.value.id == id) {
                return Ok(Some(found.value.name.as_str().into()));
            }
        }
        Ok(None)
    }

    async fn check_one(
        self,
        destination: &Destination,
        notices: &mut Notices,
    ) -> Result<(), EngineError> {
        self.pause(destination, notices).await?;
        self.check_rejected(destination, notices).await?;
        let name = destination.name.as_str();
        let letters = notice::no_dead_letters(name, self.clock.now_ms());
        if self.is_open(letters.id()).await? {
            notices.resume(destination.id, name);
        }
        Ok(())
    }

    /// Reports the rejected addresses of a destination unless they are already reported, and closes
    /// the report if there are none.
    pub(crate) async fn check_rejected(
        self,
        destination: &Destination,
        notices: &Notices,
    ) -> Result<(), EngineError> {
        let name = destination.name.as_str();
        let health = self.health(destination.id).await?;
        let refused = health
            .map(|health| health.value.refused)
            .unwrap_or_default();
        let said = notice::refused_recipients_event(name, &[], self.clock.now_ms());
        if self.is_open(said.id()).await? == refused.is_empty() {
            notices.report_refused(name, &refused);
        }
        Ok(())
    }

    /// Records that an edited destination is resumed, and reports a paused destination unless it is
    /// already reported.
    pub(crate) async fn pause(
        self,
        destination: &Destination,
        notices: &Notices,
    ) -> Result<(), EngineError> {
        let name = destination.name.as_str();
        let now_ms = self.clock.now_ms();
        let health = self
            .health(destination.id)
            .await?
            .map(|health| health.value);
        let paused = health.filter(|health| health.state == HealthState::Paused);
        let is_said = self
            .is_open(notice::resumed_event(name, now_ms).id())
            .await?;
        match paused {
            Some(health) if !health::is_paused(&health, destination) => {
                self.resume(destination, notices).await?;
            }
            Some(health) if !is_said => notices.report_paused(name, &health.last_error),
            None if is_said => notices.report_resumed(name),
            _ => {}
        }
        Ok(())
    }

    /// Returns the health of a destination; `None` if it is unreadable.
    pub(crate) async fn health(self, id: RecordId) -> Result<Option<Stored<Health>>, EngineError> {
        let key = id.to_bytes().into();
        let (mut found, _) = self.store.get_readable::<Health>(vec![key]).await?;
        Ok(found.pop().flatten())
    }

    /// Records that a paused destination is resumed if it was edited.
    pub(crate) async fn resume(
        self,
        destination: &Destination,
        notices: &Notices,
    ) -> Result<(), EngineError> {
        let Some(health) = self.health(destination.id).await? else {
            return Ok(());
        };
        let was_paused = health.value.state == HealthState::Paused;
        if !was_paused || health::is_paused(&health.value, destination) {
            return Ok(());
        }
        let mut changes = self.store.changes();
        let resumed = health.value.clone().into_resumed(self.clock.now_ms());
        changes.update(&health, &resumed);
        match self.store.apply(Lane::Admin, changes).await {
            // A conflicting change was also made after the edit.
            Ok(_) | Err(EngineError::Conflict(_)) => {
                notices.report_resumed(destination.name.as_str());
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn close_for_deleted(
        self,
        name: &[u8],
        notices: &Notices,
    ) -> Result<(), EngineError> {
        let name = String::from_utf8_lossy(name);
        for closing in notice::closings_on_delete(&name, self.clock.now_ms()) {
            if self.is_open(closing.id()).await? {
                notices.report(closing);
            }
        }
        Ok(())
    }

    async fn is_open(self, event: EventId) -> Result<bool, EngineError> {
        match find::is_open(self.store, event).await {
            Err(EngineError::Corrupt(_)) => Ok(false),
            found => found,
        }
    }
}

/// Returns a page of destinations. Fails if one of them is unreadable.
fn require_readable(
    page: Result<Option<Vec<Stored<Destination>>>, EngineError>,
) -> Result<Option<Vec<Stored<Destination>>>, EngineError> {
    if let Err(EngineError::Corrupt(why)) = &page {
        tracing::error!(why, "failed to check some destinations");
        return Ok(None);
    }
    page
}
