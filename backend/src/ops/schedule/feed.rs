//! The addresses of feeds: issued, rotated, and recorded each time.

use super::Schedules;
use crate::{
    domain::{AuditAction, AuditEntry, Schedule},
    error::Error,
    ops::{commit::commit, resource},
    store::{Kind, Lane, audit},
};

impl Schedules {
    /// Returns a schedule whose address is issued to the caller, and records that.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::PermissionDenied`] outside of the caller's tags, and those of the store.
    pub async fn issue_feed(&self, name: &str) -> Result<Schedule, Error> {
        let schedule = self.find_own(name).await?;
        if let Some(by) = audit::current() {
            let entry = AuditEntry {
                kind: Kind::Schedule.word().into(),
                names: vec![schedule.name.to_string()],
                reason: "the address of its feed was issued".into(),
                ..by.entry(AuditAction::Read)
            };
            self.store.write_audit(vec![entry]).await?;
        }
        Ok(schedule)
    }

    /// Gives the feed of a schedule another address; the one before is no longer accepted.
    ///
    /// # Errors
    /// [`Error::NotFound`], and those of the store.
    pub async fn rotate_feed(&self, name: &str) -> Result<Schedule, Error> {
        let now_ms = self.clock.now_ms();
        let decide = async || {
            let found = resource::find::<Schedule>(&self.store, name).await?;
            let next = Schedule {
                feed_number: found.value.feed_number.saturating_add(1),
                ..found.value.clone()
            };
            let mut changes = self.store.changes();
            let next = self.revise(&found, next, now_ms, &mut changes).await?;
            Ok((changes, next))
        };
        Ok(commit(&self.store, Lane::Admin, decide).await?.0)
    }
}
