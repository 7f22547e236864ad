//! Destinations paused and resumed by hand.

use bellwether_proto::v1;

use super::Destinations;
use crate::{
    domain::{Delivery, Destination, Health, HealthState, Name},
    error::Error,
    ops::{commit::commit, delivery::hastened, tag_scope::own},
    store::{Changes, Direction, Index, Lane, Range, Stored, record::bytes::moment_at},
};

/// Deliveries that one commit makes due.
const STEP: usize = 500;
/// Where the time is in an entry by due time.
const DUE_AT: usize = 16;

impl Destinations {
    /// Has nothing sent to a destination until it is resumed or edited. One that is paused stays
    /// so.
    ///
    /// # Errors
    /// [`Error::NotFound`]; those of the store.
    pub async fn pause(&self, name: &str, author: &Name) -> Result<v1::Destination, Error> {
        let decide = || async {
            let mut changes = self.store.changes();
            let (destination, health) = self.found(name, &mut changes).await?;
            // A later edit resumes it.
            let now_ms = self.clock.now_ms().max(destination.value.update_ms);
            match health {
                Some(health) if health.value.state == HealthState::Paused => {
                    return Ok((changes, ()));
                }
                Some(old) => {
                    let next = old.value.clone().paused_by(author, now_ms);
                    changes.update(&old, &next);
                }
                None => {
                    let untried = Health::untried(destination.value.id, now_ms);
                    changes.insert(&untried.paused_by(author, now_ms));
                }
            }
            // The change log does not report on health: that of its destination does.
            changes.act_on(&destination);
            Ok((changes, ()))
        };
        commit(&self.store, Lane::Admin, decide).await?;
        self.get(name).await
    }

    /// Has what waits for a destination sent now, paused or not, whatever was held against it before.
    ///
    /// # Errors
    /// [`Error::NotFound`]; those of the store.
    pub async fn resume(&self, name: &str) -> Result<v1::Destination, Error> {
        let decide = || async {
            let mut changes = self.store.changes();
            let (destination, health) = self.found(name, &mut changes).await?;
            if let Some(old) = health.filter(|it| holds_something(&it.value)) {
                changes.update(&old, &old.value.clone().resumed(self.clock.now_ms()));
                changes.act_on(&destination);
            }
            Ok((changes, destination))
        };
        let (destination, _) = commit(&self.store, Lane::Admin, decide).await?;
        self.hasten(&destination).await?;
        self.get(name).await
    }

    /// Makes everything due that waits for a further attempt.
    async fn hasten(&self, destination: &Stored<Destination>) -> Result<(), Error> {
        let now_ms = self.clock.now_ms();
        let decide = || async {
            let range = Range::under(&destination.value.id.to_bytes());
            let engine = self.store.engine();
            let last = engine.entries(Index::DeliveryByDue, range, Direction::Descending, STEP);
            let later = last.await?.into_iter();
            let later = later.filter(|(entry, _)| moment_at(entry, DUE_AT) > Some(now_ms));
            let keys: Vec<_> = later.map(|(_, key)| key).collect();
            let (found, _) = self.store.get_readable::<Delivery>(keys).await?;
            let mut changes = self.store.changes();
            own(&mut changes, "name", destination)?;
            for old in found.into_iter().flatten() {
                if let Some(next) = hastened(&old.value, now_ms) {
                    changes.update(&old, &next);
                }
            }
            let count = changes.len();
            Ok((changes, count))
        };
        while commit(&self.store, Lane::Bulk, decide).await?.0 > 0 {}
        Ok(())
    }

    async fn found(
        &self,
        name: &str,
        changes: &mut Changes,
    ) -> Result<(Stored<Destination>, Option<Stored<Health>>), Error> {
        let found = self.store.get::<Destination>(name.into()).await?;
        let found =
            found.ok_or_else(|| Error::NotFound(format!("there is no destination `{name}`")))?;
        own(changes, "name", &found)?;
        let health = found.value.id.to_bytes().into();
        Ok((found, self.store.get::<Health>(health).await?))
    }
}

/// Whether anything is held against a destination: also by failures before a test that passed, which the circuit
/// breaker does not know of.
fn holds_something(health: &Health) -> bool {
    let has_failed = || health.tried.iter().any(|it| !it.is_delivered);
    let is_well = health.state == HealthState::Healthy && health.asked_until_ms.is_none();
    !health.is_resumed() && (!is_well || has_failed())
}
