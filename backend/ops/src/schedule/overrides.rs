//! Overrides, which temporarily put other contacts on call.

use bellwether_proto::v1;

use super::{Schedules, layers::contacts};
use crate::{
    clock::to_millis,
    commit::commit,
    domain::{Name, RecordId, RevisedResource, Schedule, schedule::Override},
    error::Error,
    from_domain::FromDomain as _,
    limits::{
        OVERRIDE_LENGTH_MAX, OVERRIDE_REASON_CHARACTERS_MAX, OVERRIDE_RETENTION, OVERRIDES_MAX,
    },
    refers::ReferenceChecker,
    resource, revision,
    store::{Changes, Lane, Stored, audit},
    validate::Violations,
    wire::time,
};

impl Schedules {
    /// # Errors
    /// Returns [`Error::NotFound`] if there is no such schedule, [`Error::Invalid`] with all
    /// violations, and [`Error::Exhausted`] if the schedule has too many current overrides.
    pub async fn create_override(
        &self,
        name: &str,
        draft: &v1::ScheduleOverride,
    ) -> Result<v1::ScheduleOverride, Error> {
        let now_ms = self.clock.now_ms();
        let id = RecordId::from_parts(now_ms.unsigned_abs(), rand::random());
        let decide = async || {
            let found = resource::find::<Schedule>(&self.store, name).await?;
            let (mut violations, mut changes) = (Violations::default(), self.store.new_changes());
            let mut refers =
                ReferenceChecker::new(self, Some(&found.value), (&mut violations, &mut changes));
            let path = "override.contactNames";
            let contacts = contacts(&mut refers, path, &draft.contact_names).await?;
            let (start_ms, end_ms) = check_span(draft, now_ms, &mut violations);
            let reason = draft.reason.chars().count();
            if reason > OVERRIDE_REASON_CHARACTERS_MAX {
                let most = OVERRIDE_REASON_CHARACTERS_MAX;
                let message = format!("has {reason} characters; the limit is {most}");
                violations.add("override.reason", message);
            }
            let new = violations.into_result(Some(Override {
                id,
                contacts,
                start_ms,
                end_ms,
                reason: draft.reason.clone(),
                author: audit::current_actor().and_then(|it| Name::parse(&it.client).ok()),
            }))?;
            let mut overrides = retained_overrides(&found.value, now_ms);
            if overrides.iter().filter(|it| it.end_ms > now_ms).count() >= OVERRIDES_MAX {
                return Err(Error::Exhausted {
                    message: format!(
                        "limit of {OVERRIDES_MAX} overrides reached; delete some first"
                    ),
                    retry_after: None,
                });
            }
            overrides.push(new.clone());
            let next = Schedule {
                overrides,
                ..found.value.clone()
            };
            self.update_overrides(&found, next, now_ms, &mut changes)
                .await?;
            Ok((changes, new))
        };
        let (new, _) = commit(&self.store, Lane::Admin, decide).await?;
        Ok(v1::ScheduleOverride::from_domain(new))
    }

    /// Deletes an override. If it has already begun, ends it now.
    pub async fn delete_override(&self, name: &str, id: &str) -> Result<(), Error> {
        let now_ms = self.clock.now_ms();
        let decide = async || {
            let found = resource::find::<Schedule>(&self.store, name).await?;
            let mut overrides = retained_overrides(&found.value, now_ms);
            let at = overrides.iter().position(|it| it.id.to_string() == id);
            let at = at.ok_or_else(|| {
                let id: String = id.chars().take(40).collect();
                Error::NotFound(format!("schedule `{name}` has no override `{id}`"))
            })?;
            if overrides[at].start_ms >= now_ms {
                overrides.remove(at);
            } else {
                overrides[at].end_ms = overrides[at].end_ms.min(now_ms);
            }
            let mut changes = self.store.new_changes();
            let next = Schedule {
                overrides,
                ..found.value.clone()
            };
            self.update_overrides(&found, next, now_ms, &mut changes)
                .await?;
            Ok((changes, ()))
        };
        commit(&self.store, Lane::Admin, decide).await?;
        Ok(())
    }

    pub(super) async fn update_overrides(
        &self,
        found: &Stored<Schedule>,
        next: Schedule,
        now_ms: i64,
        changes: &mut Changes,
    ) -> Result<Schedule, Error> {
        let next = Schedule {
            revision: found.value.revision + 1,
            update_ms: now_ms,
            ..next
        };
        let was = RevisedResource::Schedule(found.value.clone());
        revision::store_revision(&self.store, was, now_ms, false, changes).await?;
        changes.update(found, &next);
        Ok(next)
    }
}

fn retained_overrides(schedule: &Schedule, now_ms: i64) -> Vec<Override> {
    let since_ms = now_ms.saturating_sub(to_millis(OVERRIDE_RETENTION));
    let all = schedule.overrides.iter();
    all.filter(|it| it.end_ms > since_ms).cloned().collect()
}

fn check_span(
    draft: &v1::ScheduleOverride,
    now_ms: i64,
    violations: &mut Violations,
) -> (i64, i64) {
    let start_ms = draft.start_time.as_ref().map_or(now_ms, time::to_millis);
    let start_ms = start_ms.max(now_ms);
    let Some(end_ms) = draft.end_time.as_ref().map(time::to_millis) else {
        violations.add("override.endTime", "is required");
        return (start_ms, start_ms);
    };
    if end_ms <= start_ms {
        let message = "must be after its start and after now";
        violations.add("override.endTime", message);
    } else if end_ms.saturating_sub(start_ms) > to_millis(OVERRIDE_LENGTH_MAX) {
        let days = OVERRIDE_LENGTH_MAX.as_secs() / 86_400;
        let message = format!("is more than {days} d after its start");
        violations.add("override.endTime", message);
    }
    (start_ms, end_ms)
}
