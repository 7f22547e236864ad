//! Pauses and resumes destinations.

use bellwether_proto::v1;

use super::Destinations;
use crate::{
    commit::commit,
    delivery::make_due,
    domain::{Delivery, Destination, Health, HealthState, Name},
    error::Error,
    store::{Changes, Direction, Index, Lane, Range, Stored, record::bytes::read_time_ms},
    tag_scope::check_owner,
};

const STEP: usize = 500;
/// Offset of the time in an entry of `DeliveryByDue`.
const DUE_AT: usize = 16;

impl Destinations {
    /// Pauses a destination until it is resumed or edited. Has no effect if it is already paused.
    pub async fn pause(&self, name: &str, author: &Name) -> Result<v1::Destination, Error> {
        let decide = || async {
            let mut changes = self.store.new_changes();
            let (destination, health) = self.find_with_health(name, &mut changes).await?;
            // A later edit must resume the destination.
            let now_ms = self.clock.now_ms().max(destination.value.update_ms);
            match health {
                Some(health) if health.value.state == HealthState::Paused => {
                    return Ok((changes, ()));
                }
                Some(old) => {
                    let next = old.value.clone().into_paused(author, now_ms);
                    changes.update(&old, &next);
                }
                None => {
                    let untried = Health::new_unattempted(destination.value.id, now_ms);
                    changes.insert(&untried.into_paused(author, now_ms));
                }
            }
            // The change log has no entries for health, only for the destination.
            changes.audit_action(&destination);
            Ok((changes, ()))
        };
        commit(&self.store, Lane::Admin, decide).await?;
        self.get(name).await
    }

    /// Resumes a destination and makes its waiting deliveries due now, whether they wait for the
    /// end of a pause, after failures, or for a delay that the receiver requested.
    pub async fn resume(&self, name: &str) -> Result<v1::Destination, Error> {
        let decide = || async {
            let mut changes = self.store.new_changes();
            let (destination, health) = self.find_with_health(name, &mut changes).await?;
            if let Some(old) = health.filter(|it| needs_resume(&it.value)) {
                changes.update(&old, &old.value.clone().into_resumed(self.clock.now_ms()));
                changes.audit_action(&destination);
            }
            Ok((changes, destination))
        };
        let (destination, _) = commit(&self.store, Lane::Admin, decide).await?;
        self.make_deliveries_due(&destination).await?;
        self.get(name).await
    }

    async fn make_deliveries_due(&self, destination: &Stored<Destination>) -> Result<(), Error> {
        let now_ms = self.clock.now_ms();
        let decide = || async {
            let range = Range::with_prefix(&destination.value.id.to_bytes());
            let engine = self.store.engine();
            let last = engine.entries(Index::DeliveryByDue, range, Direction::Descending, STEP);
            let later = last.await?.into_iter();
            let later = later.filter(|(entry, _)| read_time_ms(entry, DUE_AT) > Some(now_ms));
            let keys: Vec<_> = later.map(|(_, key)| key).collect();
            let (found, _) = self.store.get_readable::<Delivery>(keys).await?;
            let mut changes = self.store.new_changes();
            check_owner(&mut changes, "name", destination)?;
            for old in found.into_iter().flatten() {
                if let Some(next) = make_due(&old.value, now_ms) {
                    changes.update(&old, &next);
                }
            }
            let count = changes.len();
            Ok((changes, count))
        };
        while commit(&self.store, Lane::Bulk, decide).await?.0 > 0 {}
        Ok(())
    }

    async fn find_with_health(
        &self,
        name: &str,
        changes: &mut Changes,
    ) -> Result<(Stored<Destination>, Option<Stored<Health>>), Error> {
        let found = self.store.get::<Destination>(name.into()).await?;
        let found =
            found.ok_or_else(|| Error::NotFound(format!("destination `{name}` not found")))?;
        check_owner(changes, "name", &found)?;
        let health = found.value.id.to_bytes().into();
        Ok((found, self.store.get::<Health>(health).await?))
    }
}

/// Returns whether a resume has any effect. Includes failures before a successful test, which the
/// circuit breaker does not know about.
fn needs_resume(health: &Health) -> bool {
    let has_failed = || health.tried.iter().any(|it| !it.is_delivered);
    let is_well = health.state == HealthState::Healthy && health.requested_until_ms.is_none();
    !health.is_resumed() && (!is_well || has_failed())
}
