//! Notifications about all open occurrences, requested when a rule or trigger is stored.

use std::collections::HashSet;

use crate::{
    cause_lookup::load_missing,
    commit::commit,
    decide::{Causes, Snapshot, Step, StepKind, Transition, notify},
    decision_context::{DecisionContext, new_id},
    domain::{Delivery, Name, Notified, Occurrence, RecordId, Rule, Status, Trigger},
    error::Error,
    intake::Intake,
    limits::REVIEW_BATCH,
    loop_guard::{RecordedReports, Reports},
    resource::find,
    revision, scan,
    search::{Filter, IndexWalk, NEWEST_FIRST},
    store::{Lane, Stored},
    tag_scope::check_owner,
};

#[derive(Debug, Clone)]
pub enum StoredDefinition {
    Rule(Rule),
    /// A trigger, which represents all enabled rules that use it.
    Trigger(Trigger),
}

#[derive(Debug, Clone)]
pub struct OpenNotifier {
    deciding: DecisionContext,
    intake: Intake,
}

impl OpenNotifier {
    pub fn new(deciding: DecisionContext, intake: Intake) -> Self {
        Self { deciding, intake }
    }

    /// Notifies if requested; with `validate_only`, only counts. Returns the number of
    /// notifications.
    pub async fn notify_or_count(
        &self,
        is_requested: bool,
        validate_only: bool,
        stores: StoredDefinition,
    ) -> Result<Option<usize>, Error> {
        if !is_requested {
            return Ok(None);
        }
        let count = if validate_only {
            self.count_affected(stores).await?
        } else {
            self.notify_all(&stores).await?
        };
        Ok(Some(count))
    }

    /// Returns the number of notifications that the definition would cause, without making changes.
    pub async fn count_affected(&self, stores: StoredDefinition) -> Result<usize, Error> {
        let current = self.deciding.ruleset.refresh().await?;
        let (snapshot, rules) = match stores {
            StoredDefinition::Rule(rule) => {
                let id = rule.id;
                (current.with_rule(rule), HashSet::from([id]))
            }
            StoredDefinition::Trigger(trigger) => {
                let rules = rules_using(&current, &trigger.name);
                (current.with_trigger(trigger), rules)
            }
        };
        let mut count = 0;
        let mut walk = self.start_walk();
        while let Some(keys) = next_keys(&mut walk).await? {
            for stored in self.read_open(keys).await? {
                scan::yield_if_needed().await;
                let mut occurrence = stored.value;
                let decided = self.decide(&snapshot, &rules, &mut occurrence).await?;
                count += decided.notifications;
            }
        }
        Ok(count)
    }

    /// Notifies with the stored definition, a few occurrences per commit, and returns the number of
    /// notifications. Already notified occurrences are skipped.
    ///
    /// # Errors
    /// Returns an error if the store fails. Earlier notifications stay in effect, and the other
    /// occurrences are evaluated at their next change.
    ///
    /// # Cancel safety
    /// If the future is dropped, some notifications may have been sent.
    pub async fn notify_all(&self, stores: &StoredDefinition) -> Result<usize, Error> {
        let mut count = 0;
        let mut walk = self.start_walk();
        while let Some(keys) = next_keys(&mut walk).await? {
            let (step_count, reports) = self.process_batch(stores, keys).await?;
            self.intake.report_all(reports);
            count += step_count;
        }
        Ok(count)
    }

    async fn process_batch(
        &self,
        stores: &StoredDefinition,
        keys: Vec<Vec<u8>>,
    ) -> Result<(usize, RecordedReports), Error> {
        let store = &self.deciding.store;
        let decide = async || {
            let snapshot = self.deciding.ruleset.refresh().await?;
            let rules = match stores {
                StoredDefinition::Rule(rule) => HashSet::from([rule.id]),
                StoredDefinition::Trigger(trigger) => rules_using(&snapshot, &trigger.name),
            };
            let mut changes = store.new_changes();
            changes.depend_on(&snapshot);
            match stores {
                StoredDefinition::Rule(rule) => {
                    check_owner(
                        &mut changes,
                        "rule",
                        &find::<Rule>(store, rule.name.as_str()).await?,
                    )?;
                }
                StoredDefinition::Trigger(trigger) => {
                    let name = trigger.name.as_str();
                    check_owner(
                        &mut changes,
                        "trigger",
                        &find::<Trigger>(store, name).await?,
                    )?;
                }
            }
            let mut reports = Reports::default();
            let mut count = 0;
            for stored in self.read_open(keys.clone()).await? {
                scan::yield_if_needed().await;
                let mut next = stored.value.clone();
                let decided = self.decide(&snapshot, &rules, &mut next).await?;
                reports.append(decided.reports);
                let is_same = next.notified == stored.value.notified;
                if !is_same || next.pending != stored.value.pending {
                    count += decided.notifications;
                    changes.update(&stored, &next);
                }
                for delivery in &decided.deliveries {
                    changes.insert(delivery);
                }
            }
            let reports = reports.record(&mut changes);
            Ok((changes, (count, reports)))
        };
        Ok(commit(store, Lane::Admin, decide).await?.0)
    }

    async fn decide(
        &self,
        snapshot: &Snapshot,
        rules: &HashSet<RecordId>,
        occurrence: &mut Occurrence,
    ) -> Result<BatchDecision, Error> {
        let mut matches = snapshot.matching_triggers(occurrence);
        let is_known = |it: &&Notified| !it.is_outdated(snapshot.rule(it.rule));
        let known = occurrence.notified.iter().filter(is_known);
        let known: HashSet<_> = known.map(|it| it.rule).collect();
        matches.retain(|it| rules.contains(&it.rule.id) && !known.contains(&it.rule.id));
        if matches.is_empty() {
            return Ok(BatchDecision::default());
        }
        let past = revision::read_past_definitions(
            &self.deciding.store,
            snapshot,
            std::iter::once(&*occurrence),
        );
        let causes = Causes::default();
        let past = past.await?.with_causes(&causes);
        let now_ms = self.deciding.clock.now_ms();
        let step = Step {
            kind: StepKind::Open,
            transition: Transition::default(),
            matches: &matches,
            now_ms,
            past: &past,
        };
        let before = occurrence.clone();
        let notices = loop {
            let notices = notify(occurrence, &step, snapshot, &mut || new_id(now_ms));
            if load_missing(&self.deciding.store, &causes).await? {
                break notices;
            }
            occurrence.clone_from(&before);
        };
        let mut reports = Reports::default();
        reports.add_reports(&notices, occurrence, now_ms);
        Ok(BatchDecision {
            notifications: {
                let notified = occurrence.notified.iter().filter(|it| !it.shadow);
                notified.filter(|it| !known.contains(&it.rule)).count()
            },
            deliveries: notices.deliveries,
            reports,
        })
    }

    fn start_walk(&self) -> IndexWalk<'_> {
        let open = Filter {
            statuses: vec![Status::Open],
            ..Filter::default()
        };
        IndexWalk::new(&self.deciding.store, &open, NEWEST_FIRST, None)
    }

    async fn read_open(&self, keys: Vec<Vec<u8>>) -> Result<Vec<Stored<Occurrence>>, Error> {
        let found = self.deciding.store.get_many::<Occurrence>(keys).await?;
        let mut found: Vec<_> = found.into_iter().flatten().collect();
        found.retain(|it| it.value.status == Status::Open);
        Ok(found)
    }
}

#[derive(Debug, Default)]
struct BatchDecision {
    notifications: usize,
    deliveries: Vec<Delivery>,
    reports: Reports,
}

fn rules_using(snapshot: &Snapshot, trigger: &Name) -> HashSet<RecordId> {
    let rules = snapshot.rules().iter();
    let rules = rules.filter(|rule| rule.trigger_names.contains(trigger));
    rules.map(|rule| rule.id).collect()
}

/// Returns the keys of the next occurrences of a walk; `None` at its end. An occurrence that moves
/// during the walk was changed, and was therefore evaluated then.
async fn next_keys(walk: &mut IndexWalk<'_>) -> Result<Option<Vec<Vec<u8>>>, Error> {
    let places = walk.next_positions(REVIEW_BATCH).await?;
    let keys: Vec<_> = places.into_iter().map(|(_, key)| key).collect();
    Ok((!keys.is_empty()).then_some(keys))
}

#[cfg(test)]
mod tests;
