//! Calendar feeds: their URLs and shifts.

use std::collections::HashSet;

use bellwether_proto::v1;

use super::{Schedules, load_schedule, shifts::ShownShift};
use crate::{
    commit::commit,
    domain::{AuditAction, AuditEntry, Contact, Name, RecordId, Schedule},
    error::Error,
    limits::SHIFTS_MAX,
    references::References,
    resource,
    store::{Kind, Lane, audit},
    wire::time::timestamp,
};

const DAY_MS: i64 = 86_400_000;
/// Time ranges that a feed covers in the past and in the future, in milliseconds.
const BACK_MS: i64 = 30 * DAY_MS;
const AHEAD_MS: i64 = 90 * DAY_MS;
/// Time beyond the range of the feed in which the start of the first shift and the end of the last
/// one are searched for, in milliseconds.
const BEYOND_MS: i64 = 400 * DAY_MS;

impl Schedules {
    /// Returns a schedule whose feed URL is issued to the caller, and records that in the audit
    /// log.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if there is none, [`Error::PermissionDenied`] if it is outside
    /// the caller's tags, or an error if the store fails.
    pub async fn issue_feed(&self, name: &str) -> Result<Schedule, Error> {
        let schedule = self.find_in_scope(name).await?;
        if let Some(by) = audit::current_actor() {
            let entry = AuditEntry {
                kind: Kind::Schedule.as_str().into(),
                names: vec![schedule.name.to_string()],
                reason: "issued its feed URL".into(),
                ..by.audit_entry(AuditAction::Read)
            };
            self.store.write_audit(vec![entry]).await?;
        }
        Ok(schedule)
    }

    /// Revokes the feed URL of a schedule and replaces it.
    pub async fn rotate_feed(&self, name: &str) -> Result<Schedule, Error> {
        let now_ms = self.clock.now_ms();
        let decide = async || {
            let found = resource::find::<Schedule>(&self.store, name).await?;
            let next = Schedule {
                feed_number: found.value.feed_number.saturating_add(1),
                ..found.value.clone()
            };
            let mut changes = self.store.new_changes();
            let next = self
                .update_overrides(&found, next, now_ms, &mut changes)
                .await?;
            Ok((changes, next))
        };
        Ok(commit(&self.store, Lane::Admin, decide).await?.0)
    }

    /// Returns the shifts of the past 30 days and the next 90 days for the feed of a schedule.
    pub async fn open_schedule_feed(
        &self,
        schedule: Schedule,
    ) -> Result<v1::OpenFeedResponse, Error> {
        let time_zone = schedule.time_zone.clone();
        let gaps_allowed = schedule.gaps_allowed;
        let mut shifts = self.feed_shifts(schedule).await?;
        shifts.retain(|it| !(gaps_allowed && shift_contacts(it).is_empty()));
        Ok(v1::OpenFeedResponse { shifts, time_zone })
    }

    /// Returns the shifts of a contact in all schedules that name the contact.
    pub async fn open_contact_feed(
        &self,
        contact: &Contact,
    ) -> Result<v1::OpenFeedResponse, Error> {
        let mut all = Vec::new();
        let users = References::find(&self.store, Kind::Contact, &contact.name).await?;
        let schedules = users
            .iter()
            .filter(|(word, _)| *word == Kind::Schedule.as_str());
        let names: Vec<Name> = schedules.map(|(_, name)| name.clone()).collect();
        let mut time_zone = contact.time_zone.clone();
        for name in names {
            let key = name.as_str().into();
            let Some(stored) = self.store.get::<Schedule>(key).await? else {
                continue;
            };
            if time_zone.is_empty() {
                time_zone.clone_from(&stored.value.time_zone);
            }
            let mut shifts = self.feed_shifts(stored.value).await?;
            let is_own = |it: &String| it == contact.name.as_str();
            shifts.retain(|it| shift_contacts(it).iter().any(is_own));
            all.extend(shifts);
        }
        let start = |it: &v1::FeedShift| {
            it.shift
                .as_ref()?
                .start_time
                .map(|it| (it.seconds, it.nanos))
        };
        all.sort_by_key(start);
        all.truncate(SHIFTS_MAX);
        if time_zone.is_empty() {
            "UTC".clone_into(&mut time_zone);
        }
        Ok(v1::OpenFeedResponse {
            shifts: all,
            time_zone,
        })
    }

    async fn feed_shifts(&self, schedule: Schedule) -> Result<Vec<v1::FeedShift>, Error> {
        let current = load_schedule(&self.store, schedule.clone()).await?;
        let update_ms = current.map_or(schedule.update_ms, |it| it.update_ms());
        let update_time = Some(timestamp(update_ms));
        let (id, revision) = (schedule.id, schedule.revision);
        let schedule_name = schedule.name.to_string();
        let shifts = self.compute_feed(schedule).await?;
        let uids = shift_uids(id, &shifts);
        let all = shifts.iter().zip(uids);
        Ok(all
            .map(|(shift, uid)| v1::FeedShift {
                shift: Some(shift.into()),
                uid,
                schedule_name: schedule_name.clone(),
                update_time,
                revision,
            })
            .collect())
    }

    /// Computes the shifts of a feed. The first and the last shift are not truncated to the range
    /// of the feed, because the range moves every day.
    async fn compute_feed(&self, schedule: Schedule) -> Result<Vec<ShownShift>, Error> {
        let now_ms = self.clock.now_ms();
        let day_ms = now_ms - now_ms.rem_euclid(DAY_MS);
        let start_ms = day_ms.saturating_sub(BACK_MS);
        let end_ms = day_ms.saturating_add(AHEAD_MS);
        let found = self
            .compute_shifts(schedule.clone(), (start_ms, end_ms), SHIFTS_MAX)
            .await?;
        let mut shifts = found.shifts;
        if let Some(first) = shifts.first_mut().filter(|it| it.start_ms == start_ms) {
            let range = (start_ms.saturating_sub(BEYOND_MS), start_ms);
            let before = self
                .compute_shifts(schedule.clone(), range, usize::MAX)
                .await?;
            let before = before.shifts.last();
            if let Some(before) =
                before.filter(|it| it.end_ms == start_ms && it.is_continued(first))
            {
                first.begin_ms = before.begin_ms;
                first.start_ms = if before.start_ms == range.0 {
                    before.begin_ms.min(range.0)
                } else {
                    before.start_ms
                };
            }
        }
        if let Some(last) = shifts.last_mut().filter(|it| it.end_ms == end_ms) {
            let range = (end_ms, end_ms.saturating_add(BEYOND_MS));
            let after = self.compute_shifts(schedule, range, usize::MAX).await?;
            if let Some(after) = after.shifts.first().filter(|it| last.is_continued(it)) {
                last.end_ms = if after.end_ms == range.1 {
                    // The end of this shift is unknown. The end shown moves once in 30 days.
                    range.1 - range.1.rem_euclid(BACK_MS)
                } else {
                    after.end_ms
                };
            }
        }
        // The resolution of calendars is one second.
        shifts.retain(|it| it.start_ms.div_euclid(1_000) < it.end_ms.div_euclid(1_000));
        Ok(shifts)
    }
}

fn shift_contacts(entry: &v1::FeedShift) -> &[String] {
    entry.shift.as_ref().map_or(&[], |it| &it.contact_names)
}

/// Returns the UIDs of shifts. A UID consists of schedule, layer and hand-off, and for later parts
/// of the same turn, also of the start.
fn shift_uids(schedule: RecordId, shifts: &[ShownShift]) -> Vec<String> {
    let mut used = HashSet::new();
    let stamp = |ms: i64| {
        let at = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
        at.strftime("%Y%m%dT%H%M%SZ").to_string()
    };
    let uid = |it: &ShownShift| {
        let plain = |c: char| if c.is_alphanumeric() { c } else { '-' };
        let source: String = match it.source.as_str() {
            "" => "gap".into(),
            source => source.chars().map(plain).collect(),
        };
        let turn = format!("{}-{source}-{schedule}", stamp(it.begin_ms));
        let uid = if used.insert(turn.clone()) {
            turn
        } else {
            format!("{turn}-{}", stamp(it.start_ms))
        };
        format!("{uid}@bellwether")
    };
    shifts.iter().map(uid).collect()
}
