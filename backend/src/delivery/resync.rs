//! Reconciliation of the reports about destinations with the state in the store.

use futures_util::future::{try_join, try_join3};

use crate::{
    clock::Clock,
    delivery::{health, notice, notices::Notices},
    domain::{
        Destination, EventId, Health, HealthState, IncomingEvent, RecordId,
        own_event::{DEAD_LETTERS_GROWING, DESTINATION_PAUSED, RECIPIENTS_REFUSED},
    },
    ops::find,
    store::{EngineError, Lane, Store, Stored, engine::Range},
};

/// A check of destinations that may have changed while no process followed the change log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resync<'a> {
    pub(crate) store: &'a Store,
    pub(crate) clock: &'a dyn Clock,
}

/// The health of a destination, and the open reports about it.
#[derive(Debug)]
pub(crate) struct DestinationStatus {
    /// `None` if no health is stored, or if it is unreadable.
    pub(crate) health: Option<Stored<Health>>,
    pub(crate) is_pause_reported: bool,
    is_rejection_reported: bool,
    are_dead_letters_reported: bool,
}

impl DestinationStatus {
    pub(crate) fn is_paused(&self) -> bool {
        let mut health = self.health.iter();
        health.any(|health| health.value.state == HealthState::Paused)
    }
}

impl Resync<'_> {
    /// Checks all matching destinations. Records that destinations edited in the meantime are
    /// resumed, makes the reports that are missing since a restart, and closes outdated reports.
    /// Returns whether all destinations are readable.
    pub(crate) async fn check_destinations(
        self,
        notices: &mut Notices,
        mut holds: impl FnMut(&Destination) -> bool,
    ) -> Result<bool, EngineError> {
        let mut pages = self.store.pages::<Destination>(Range::with_prefix(&[]));
        loop {
            let page = match pages.next().await {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(true),
                Err(EngineError::Corrupt(why)) => {
                    tracing::error!(why, "failed to check some destinations");
                    return Ok(false);
                }
                Err(error) => return Err(error),
            };
            let page = page.into_iter().map(|it| it.value);
            let page: Vec<_> = page.filter(|it| holds(it)).collect();
            let statuses = self.statuses(page.iter()).await?;
            for (destination, status) in page.iter().zip(statuses) {
                self.check_destination(destination, &status, notices)
                    .await?;
                if status.are_dead_letters_reported {
                    notices.resume(destination.id, destination.name.as_str());
                }
            }
        }
    }

    pub(crate) async fn statuses<'b>(
        self,
        destinations: impl Iterator<Item = &'b Destination>,
    ) -> Result<Vec<DestinationStatus>, EngineError> {
        let reports = |destination: &Destination| {
            let reports = [DESTINATION_PAUSED, RECIPIENTS_REFUSED, DEAD_LETTERS_GROWING];
            (
                destination.id,
                reports.map(|it| it.id([destination.name.as_str()])),
            )
        };
        let read = |store: Store, (id, [pause, rejection, letters]): (_, [EventId; 3])| async move {
            let open = try_join3(
                is_event_open(&store, pause),
                is_event_open(&store, rejection),
                is_event_open(&store, letters),
            );
            let (health, open) = try_join(read_health(&store, id), open).await?;
            Ok(DestinationStatus {
                health,
                is_pause_reported: open.0,
                is_rejection_reported: open.1,
                are_dead_letters_reported: open.2,
            })
        };
        self.store.read_each(destinations.map(reports), read).await
    }

    /// Records that an edited destination is resumed. Makes or closes two reports: that the
    /// destination is paused, and that some of its addresses are rejected.
    pub(crate) async fn check_destination(
        self,
        destination: &Destination,
        status: &DestinationStatus,
        notices: &Notices,
    ) -> Result<(), EngineError> {
        let name = destination.name.as_str();
        let mut health = status.health.as_ref();
        if self.resume(destination, health, notices).await? {
            health = None;
        } else if status.is_paused() != status.is_pause_reported {
            match health.filter(|_| status.is_paused()) {
                Some(health) => notices.report_paused(name, &health.value.last_error),
                None => notices.report_resumed(name),
            }
        }
        let refused = health.map_or(&[][..], |health| &health.value.refused);
        if status.is_rejection_reported == refused.is_empty() {
            notices.report_refused(name, refused);
        }
        Ok(())
    }

    /// Records that a paused destination is resumed if it was edited. Returns whether it was
    /// edited.
    pub(crate) async fn resume(
        self,
        destination: &Destination,
        health: Option<&Stored<Health>>,
        notices: &Notices,
    ) -> Result<bool, EngineError> {
        let paused = health.filter(|it| it.value.state == HealthState::Paused);
        let Some(paused) = paused.filter(|it| !health::is_paused_health(&it.value, destination))
        else {
            return Ok(false);
        };
        let mut changes = self.store.new_changes();
        let resumed = paused.value.clone().into_resumed(self.clock.now_ms());
        changes.update(paused, &resumed);
        match self.store.apply(Lane::Admin, changes).await {
            // A conflict means that another change followed the edit.
            Ok(_) | Err(EngineError::Conflict(_)) => {
                notices.report_resumed(destination.name.as_str());
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn close_for_deleted(
        self,
        names: impl Iterator<Item = &[u8]>,
        notices: &Notices,
    ) -> Result<(), EngineError> {
        let now_ms = self.clock.now_ms();
        let closings =
            |name| notice::closing_events_on_delete(&String::from_utf8_lossy(name), now_ms);
        let read = |store: Store, closing: IncomingEvent| async move {
            let is_open = is_event_open(&store, closing.id()).await?;
            Ok::<_, EngineError>(is_open.then_some(closing))
        };
        let open = self.store.read_each(names.flat_map(closings), read).await?;
        for closing in open.into_iter().flatten() {
            notices.report(closing);
        }
        Ok(())
    }
}

/// Returns the health of a destination; `None` if it is unreadable.
pub(crate) async fn read_health(
    store: &Store,
    id: RecordId,
) -> Result<Option<Stored<Health>>, EngineError> {
    let key = id.to_bytes().into();
    let (mut found, _) = store.get_readable::<Health>(vec![key]).await?;
    Ok(found.pop().flatten())
}

/// Returns the name of a destination by id, or `None` if it was deleted.
pub(crate) async fn destination_name(
    store: &Store,
    id: RecordId,
) -> Result<Option<String>, EngineError> {
    let mut pages = store.pages::<Destination>(Range::with_prefix(&[]));
    loop {
        let page = match pages.next().await {
            Err(EngineError::Corrupt(_)) => return Ok(None),
            page => page?,
        };
        let Some(page) = page else {
            return Ok(None);
        };
        let mut page = page.into_iter();
        if let Some(found) = page.find(|destination| destination.value.id == id) {
            return Ok(Some(found.value.name.as_str().into()));
        }
    }
}

async fn is_event_open(store: &Store, event: EventId) -> Result<bool, EngineError> {
    match find::is_event_open(store, event).await {
        Err(EngineError::Corrupt(_)) => Ok(false),
        found => found,
    }
}
