//! Creates the due message of a group: reads its members, evaluates each, and commits them together
//! with the group and the deliveries.
//!
//! Only a message writes the group; an occurrence that joins the group writes only itself. If two
//! tasks create the same message, they conflict, and the second one finds no changes to report.

use std::collections::BTreeSet;

use futures_util::future::{try_join, try_join3};

use crate::{
    cause_lookup::{
        decide_with_causes,
        group::{joinable_group, membership_range},
    },
    commit::commit,
    decide::{
        Causes, GroupDecision, GroupMembers, GroupMessage, PastDefinitions, Snapshot,
        shown_members_max,
    },
    decision_context::{DecisionContext, new_id},
    domain::{Group, GroupRef, Occurrence, Pending, RecordId, Status},
    error::Error,
    intake::Intake,
    limits::{GROUP_JOINING_MAX, NOTIFY_MEMBERS},
    loop_guard::{RecordedReports, Reports},
    revision,
    store::{
        Changes, Direction, EngineError, Index, Lane, Membership, Store, Stored,
        record::bytes::read_id,
    },
};

pub type DueGroup = (RecordId, GroupRef);

/// Normalizes group references, so that occurrences that join a group and those that wait for its
/// update are in the same message.
pub async fn find_due_groups(
    store: &Store,
    due: BTreeSet<DueGroup>,
) -> Result<BTreeSet<DueGroup>, EngineError> {
    let by_id = |(_, group): &DueGroup| match group {
        GroupRef::Id(id) => Some(id.to_bytes().into()),
        GroupRef::Key(_) => None,
    };
    let ids = due.iter().filter_map(by_id).collect();
    let groups = store.get_many::<Group>(ids).await?;
    let groups = groups.into_iter().flatten().map(|it| it.value);
    let joined: Vec<_> = groups.filter(Group::accepts_members).collect();
    let named = due.into_iter().map(|(rule, group)| {
        let is_it = |it: &&Group| group == GroupRef::Id(it.id);
        let key = joined.iter().find(is_it).map(|it| GroupRef::Key(it.key));
        (rule, key.unwrap_or(group))
    });
    Ok(named.collect())
}

fn is_due(occurrence: &Occurrence, rule: RecordId, now_ms: i64) -> bool {
    let mut pending = occurrence.pending.iter().filter(|it| it.rule == rule);
    let is_due = |it: &Pending| it.due_ms().is_some_and(|due_ms| due_ms <= now_ms);
    occurrence.status != Status::Suppressed && pending.any(is_due)
}

#[derive(Debug, Default)]
pub struct Outcome {
    /// Keys of occurrences that still wait. They are evaluated again, because the time of the next
    /// message is now known.
    pub rest: Vec<Vec<u8>>,
    /// Occurrences that no longer wait for any of these groups.
    pub settled: Vec<RecordId>,
    reports: RecordedReports,
}

/// Creates the due messages of groups of one rule, many per commit. An occurrence waits for only
/// one group per rule, so these messages never share an occurrence.
///
/// # Errors
/// Returns an error if the store fails; some messages may then be missing.
pub async fn notify_group(
    (deciding, intake): (&DecisionContext, &Intake),
    due_groups: &[DueGroup],
) -> Result<Outcome, Error> {
    let store = &deciding.store;
    let mut all = Outcome::default();
    let now_ms = deciding.clock.now_ms();
    let due_groups = due_groups.iter().map(|it| (*it, new_id(now_ms)));
    let due_groups: Vec<_> = due_groups.collect();
    let mut due_groups = &due_groups[..];
    while !due_groups.is_empty() {
        let decide = async || {
            let causes = Causes::default();
            for (_, new) in due_groups {
                causes.set_group(GroupRef::Id(*new), None);
            }
            decide_with_causes(store, &causes, || {
                decide_groups(deciding, due_groups, &causes)
            })
            .await
        };
        let ((outcome, decided), _) = commit(store, Lane::Bulk, decide).await?;
        intake.report_all(outcome.reports);
        all.rest.extend(outcome.rest);
        all.settled.extend(outcome.settled);
        due_groups = &due_groups[decided..];
    }
    Ok(all)
}

/// Decides as many of the groups as fit in one commit. Returns the changes and the number of
/// groups. Each group comes with an id, which is used if there is no group to join.
async fn decide_groups(
    deciding: &DecisionContext,
    due_groups: &[(DueGroup, RecordId)],
    causes: &Causes,
) -> Result<(Changes, (Outcome, usize)), Error> {
    let snapshot = deciding.ruleset.refresh().await?;
    let mut changes = deciding.store.new_changes();
    changes.depend_on(&snapshot);
    let (mut outcome, mut reports) = (Outcome::default(), Reports::default());
    let store = &deciding.store;
    let read = |store: Store, group| async move { CurrentGroup::read(&store, group).await };
    let groups = due_groups.iter().map(|((_, group), _)| *group);
    let found = store.read_each(groups, read).await?;
    // As many groups as have about this many members in total, but at least one.
    let sizes = found.iter().map(|it| it.joining.len() + it.news.len());
    let sums = sizes.scan(0, |sum, size| Some(std::mem::replace(sum, *sum + size)));
    let decided = sums.take_while(|before| *before < NOTIFY_MEMBERS).count();
    let all = due_groups.iter().zip(found).take(decided);
    let all = all.map(|(((rule, _), new), found)| (*rule, *new, found));
    let (now_ms, in_force) = (deciding.clock.now_ms(), &*snapshot);
    let read = |store: Store, (rule, new, found)| async move {
        let members = read_members(&store, (rule, &found), in_force, now_ms).await?;
        Ok::<_, Error>((rule, new, found, members))
    };
    for (rule, new, found, members) in store.read_each(all, read).await? {
        let to = (&mut changes, &mut outcome, &mut reports);
        match members {
            GroupReadOutcome::Settled => {}
            GroupReadOutcome::TooEarly(waiting) => outcome.rest.extend(waiting),
            GroupReadOutcome::Members(members) => {
                decide_group(now_ms, (rule, new, found, *members), (in_force, causes), to);
            }
        }
    }
    outcome.reports = reports.record(&mut changes);
    Ok((changes, (outcome, decided)))
}

struct CurrentGroup {
    stored: Option<Stored<Group>>,
    /// Id of the group to join; `None` if the group accepts no members.
    key: Option<RecordId>,
    /// Open members except those that are joining, most severe first.
    open: Vec<Vec<u8>>,
    unacknowledged: BTreeSet<RecordId>,
    joining: Vec<Vec<u8>>,
    news: Vec<Vec<u8>>,
    /// Whether more members are joining or changed than fit in one message.
    is_more: bool,
}

/// Member keys read at a time; keys are small.
const KEYS_AT_ONCE: usize = 5_000;

pub(super) async fn member_keys(
    store: &Store,
    how: Membership,
    id: RecordId,
    limit: usize,
) -> Result<Vec<Vec<u8>>, EngineError> {
    let mut range = membership_range(how, id);
    let mut found = Vec::new();
    while found.len() < limit {
        let (index, count) = (
            Index::OccurrenceByGroup,
            (limit - found.len()).min(KEYS_AT_ONCE),
        );
        let engine = store.engine();
        let page = engine.entries(index, range.clone(), Direction::Ascending, count);
        let page = page.await?;
        let Some((last, _)) = page.last() else { break };
        range.exclude_through(last);
        found.extend(page.into_iter().map(|(_, record)| record));
    }
    Ok(found)
}

impl CurrentGroup {
    async fn read(store: &Store, group: GroupRef) -> Result<Self, EngineError> {
        let stored = match group {
            GroupRef::Key(key) => joinable_group(store, key).await?,
            GroupRef::Id(id) => store.get::<Group>(id.to_bytes().into()).await?,
        };
        let joins = stored.as_ref().filter(|it| it.value.accepts_members());
        let key = match group {
            GroupRef::Key(key) => Some(key),
            GroupRef::Id(_) => joins.map(|it| it.value.key),
        };
        let mut found = Self {
            stored,
            key,
            open: Vec::new(),
            unacknowledged: BTreeSet::new(),
            joining: Vec::new(),
            news: Vec::new(),
            is_more: false,
        };
        let all = usize::MAX;
        let id = found.stored.as_ref().map(|it| it.value.id);
        if let Some(id) = id {
            let (open, others) = try_join(
                member_keys(store, Membership::Open, id, all),
                member_keys(store, Membership::Unacknowledged, id, all),
            )
            .await?;
            found.open = open;
            found.unacknowledged = others.iter().filter_map(|key| read_id(key, 0)).collect();
        }
        if let Some(key) = key {
            found.joining =
                member_keys(store, Membership::Joining, key, GROUP_JOINING_MAX + 1).await?;
        }
        // A group is closed with a single message, regardless of its size.
        let is_last = found.open.is_empty() && found.joining.is_empty();
        let most = if is_last { all } else { GROUP_JOINING_MAX };
        if let Some(id) = id {
            found.news =
                member_keys(store, Membership::Updated, id, most.saturating_add(1)).await?;
        }
        for (waiting, most) in [
            (&mut found.joining, GROUP_JOINING_MAX),
            (&mut found.news, most),
        ] {
            found.is_more |= waiting.len() > most;
            waiting.truncate(most);
        }
        Ok(found)
    }

    /// Returns whether the group ended silently: no member is open and there is no one to notify.
    fn ended_silently(&self) -> bool {
        self.open.is_empty() && self.news.is_empty()
    }

    /// Returns whether joining occurrences were released together by a rule without grouping. Such
    /// occurrences do not wait for an interval.
    fn has_ungrouped_release(&self, rule: RecordId, snapshot: &Snapshot) -> bool {
        let groups = snapshot.rule(rule).is_none_or(|it| it.group.is_some());
        !groups && !self.joining.is_empty()
    }
}

enum GroupReadOutcome {
    /// No occurrence waits for a message.
    Settled,
    /// The next message is not due yet; these occurrences wait for it.
    TooEarly(Vec<Vec<u8>>),
    Members(Box<ReadMembers>),
}

struct ReadMembers {
    waiting: Vec<Stored<Occurrence>>,
    others: Vec<Occurrence>,
    responder: Option<Stored<Occurrence>>,
    past: PastDefinitions,
    /// The keys of occurrences that wait but do not fit in the message.
    rest: Vec<Vec<u8>>,
}

async fn read_members(
    store: &Store,
    (rule, found): (RecordId, &CurrentGroup),
    snapshot: &Snapshot,
    now_ms: i64,
) -> Result<GroupReadOutcome, Error> {
    let waiting: Vec<_> = found.joining.iter().chain(&found.news).cloned().collect();
    // The closing message does not wait for the interval.
    let is_last = found.open.is_empty() && found.joining.is_empty();
    let waits = !found.ended_silently() && !is_last && !found.has_ungrouped_release(rule, snapshot);
    if let Some(group) = found.stored.as_ref().filter(|_| waits) {
        let next_ms = group.value.last_ms.saturating_add(group.value.interval_ms);
        if next_ms > now_ms {
            return Ok(GroupReadOutcome::TooEarly(waiting));
        }
    }
    let group = found.stored.as_ref().map(|it| &it.value);
    let shown = found
        .open
        .iter()
        .take(shown_members_max(rule, group, snapshot));
    let shown = shown.filter(|key| !waiting.contains(key)).cloned();
    let responder = group.and_then(|it| it.responder);
    let responder = responder.map(|key| key.to_bytes().into());
    let responder = responder.filter(|key| !waiting.contains(key));
    let (read, others, responder) = try_join3(
        store.get_many::<Occurrence>(waiting.clone()),
        store.get_many::<Occurrence>(shown.collect()),
        store.get_many::<Occurrence>(responder.into_iter().collect()),
    )
    .await?;
    let read: Vec<_> = read.into_iter().flatten().collect();
    if !read.iter().any(|it| is_due(&it.value, rule, now_ms)) {
        return Ok(GroupReadOutcome::Settled);
    }
    let others: Vec<_> = others.into_iter().flatten().map(|it| it.value).collect();
    let all = read.iter().map(|it| &it.value).chain(&others);
    let past = revision::read_past_definitions(store, snapshot, all).await?;
    // Members whose holds ended are due in their current state, and are reported by the next
    // message.
    let mut rest = Vec::new();
    if found.is_more && !found.has_ungrouped_release(rule, snapshot) {
        let waiting: BTreeSet<_> = waiting.into_iter().collect();
        rest = found.waiting_keys(store).await?;
        rest.retain(|it| !waiting.contains(it));
    }
    Ok(GroupReadOutcome::Members(Box::new(ReadMembers {
        waiting: read,
        others,
        responder: responder.into_iter().flatten().next(),
        past,
        rest,
    })))
}

fn decide_group(
    now_ms: i64,
    (rule, new, found, read): (RecordId, RecordId, CurrentGroup, ReadMembers),
    (snapshot, causes): (&Snapshot, &Causes),
    (changes, outcome, reports): (&mut Changes, &mut Outcome, &mut Reports),
) {
    let past = read.past.with_causes(causes);
    let is_dead = found.ended_silently();
    let stored = found.stored.as_ref();
    let alive = stored.filter(|_| !is_dead);
    let open: Vec<_> = found
        .open
        .iter()
        .filter_map(|key| read_id(key, 0))
        .collect();
    let message = GroupMessage {
        rule,
        key: found.key.or(stored.map(|it| it.value.key)).unwrap_or(new),
        id: alive.map_or(new, |it| it.value.id),
        group: alive.map(|it| &it.value),
        open: &open,
        unacknowledged: &found.unacknowledged,
        is_more: found.is_more,
        snapshot,
        past: &past,
        now_ms,
    };
    let members = GroupMembers {
        waiting: read.waiting.iter().map(|it| it.value.clone()).collect(),
        others: read.others,
        responder: read.responder.as_ref().map(|it| it.value.clone()),
    };
    let decision = message.decide(members, &mut || new_id(now_ms));
    for (notices, member) in &decision.notices {
        reports.add_reports(notices, member, now_ms);
    }
    let members = read.waiting.iter().chain(&read.responder);
    write_decision(&decision, (members, stored, alive), now_ms, changes);
    outcome.settled.extend(decision.settled);
    outcome.rest.extend(read.rest);
}

/// Adds the decision to the commit. `stored` is the existing group, `alive` the group that the
/// message reports.
fn write_decision<'a>(
    decision: &GroupDecision,
    (members, stored, alive): (
        impl Iterator<Item = &'a Stored<Occurrence>> + Clone,
        Option<&Stored<Group>>,
        Option<&Stored<Group>>,
    ),
    now_ms: i64,
    changes: &mut Changes,
) {
    for delivery in &decision.deliveries {
        changes.insert(delivery);
    }
    for member in &decision.members {
        let mut before = members.clone();
        if let Some(before) = before.find(|it| it.value.key == member.key)
            && before.value != *member
        {
            changes.update(before, member);
        }
    }
    if let Some(stored) = stored.filter(|_| alive.is_none() && !decision.settled.is_empty()) {
        // This group is replaced by the next one.
        let over = Group {
            end_ms: Some(now_ms),
            ..stored.value.clone()
        };
        changes.update(stored, &over);
    }
    match (alive, &decision.group) {
        (Some(stored), Some(next)) => changes.update(stored, next),
        (None, Some(next)) => changes.insert(next),
        (_, None) => {}
    }
}

impl CurrentGroup {
    async fn waiting_keys(&self, store: &Store) -> Result<Vec<Vec<u8>>, EngineError> {
        let mut rest = Vec::new();
        if let Some(key) = self.key {
            rest = member_keys(store, Membership::Joining, key, usize::MAX).await?;
        }
        if let Some(group) = &self.stored {
            let id = group.value.id;
            rest.extend(member_keys(store, Membership::Updated, id, usize::MAX).await?);
        }
        Ok(rest)
    }
}
