//! Makes the message of a group that is due: reads its members, re-evaluates each, and commits them
//! with the group and the deliveries.
//!
//! Joining writes the occurrence alone; only the creation of a message writes the group. Two who
//! make the same one conflict, and the second finds nothing to tell.

mod respond;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    decide::{
        Causes, GroupAsk, Notices, Past, Snapshot, Step, StepKind, Transition, as_notified,
        group_key, notify, of_update, reported_flapping, sending_state, trigger_of_update,
        would_pass_again,
    },
    domain::{
        Content, Delivery, Destination, DestinationKind, Group, GroupContent, MemberChange, Name,
        Notified, Occurrence, Pending, RecordId, Rule, Status, hold::SharedValue,
    },
    error::Error,
    limits::{
        CHAIN_MAX, GROUP_INTERVAL_DEFAULT, GROUP_JOINING_MAX, GROUP_MEMBERS_MAX,
        GROUP_SHOWN_BYTES_MAX, GROUP_SHOWN_MAX, TELL_MEMBERS,
    },
    ops::{
        cause_lookup::group::{joined, standing},
        cause_lookup::settled,
        commit::commit,
        deciding::{Deciding, new_id},
        intake::Intake,
        loop_guard::Reports,
        revision,
    },
    store::{
        Changes, Direction, EngineError, Index, Lane, Membership, Store, Stored,
        record::bytes::id_at,
    },
};

/// A group of which something waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// The rule.
    pub rule: RecordId,
    /// The key that something joins by, or the group that news is of.
    pub id: RecordId,
    /// Whether it is a key.
    pub is_joining: bool,
}

impl Due {
    /// The group that something of a rule waits for; none where it waits for none.
    pub fn of(pending: &Pending) -> Option<Self> {
        Some(Self {
            rule: pending.rule,
            id: pending.group_hold()?.id,
            is_joining: pending.is_opening,
        })
    }
}

impl Due {
    /// Whether something of an occurrence waited until now for a message of the group.
    fn is_of(self, occurrence: &Occurrence, now_ms: i64) -> bool {
        let mut pending = occurrence.pending.iter().filter(|it| it.rule == self.rule);
        let is_due = |it: &Pending| it.due_ms().is_some_and(|due_ms| due_ms <= now_ms);
        occurrence.status != Status::Suppressed && pending.any(is_due)
    }
}

/// The result of looking at some groups.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Occurrences that continue waiting, and are to be re-evaluated: when the next message goes
    /// out is known by now.
    pub rest: Vec<Vec<u8>>,
    /// Those of which nothing waits for these groups any more.
    pub settled: Vec<RecordId>,
    reports: Reports,
}

/// Makes the messages of groups of one rule as far as they are due, many with a commit. What waits
/// of an occurrence for a rule waits for one group of it, so that no two of these report on the
/// same one.
///
/// # Errors
/// Those of the store: some may not have been reported then.
pub async fn notify_group(
    (deciding, intake): (&Deciding, &Intake),
    dues: &[Due],
) -> Result<Outcome, Error> {
    let store = &deciding.store;
    let mut all = Outcome::default();
    let now_ms = deciding.clock.now_ms();
    let dues = dues.iter().map(|it| (*it, new_id(now_ms)));
    let dues: Vec<_> = dues.collect();
    let mut dues = &dues[..];
    while !dues.is_empty() {
        let decide = async || {
            let causes = Causes::default();
            for (_, new) in dues {
                causes.learn_group(GroupAsk::Id(*new), None);
            }
            settled(store, &causes, || decided(deciding, dues, &causes)).await
        };
        let ((outcome, decided), _) = commit(store, Lane::Bulk, decide).await?;
        intake.report_all(outcome.reports);
        all.rest.extend(outcome.rest);
        all.settled.extend(outcome.settled);
        dues = &dues[decided..];
    }
    Ok(all)
}

/// What is to be changed for as many of the groups as one commit takes, and how many these are. Each comes with
/// the identity of the group that begins where there is none to join.
async fn decided(
    deciding: &Deciding,
    dues: &[(Due, RecordId)],
    causes: &Causes,
) -> Result<(Changes, (Outcome, usize)), Error> {
    let snapshot = deciding.ruleset.refreshed().await?;
    let mut changes = deciding.store.changes();
    changes.rest_on(&snapshot);
    let mut outcome = Outcome::default();
    let (mut decided, mut known) = (0, BTreeSet::new());
    for (due, new) in dues {
        let found = GroupNow::read(&deciding.store, *due).await?;
        decided += 1;
        // What waits by the key and by the group itself is in one message.
        let group = found.stored.as_ref().map(|it| it.value.id);
        if group.is_some_and(|id| !known.insert(id)) {
            continue;
        }
        let in_force = (&*snapshot, causes);
        let what = (*due, *new, found);
        decide(deciding, what, in_force, (&mut changes, &mut outcome)).await?;
        if outcome.settled.len() >= TELL_MEMBERS {
            break;
        }
    }
    Ok((changes, (outcome, decided)))
}

/// The group that there is, and the one that a message is made about.
struct GroupNow {
    stored: Option<Stored<Group>>,
    /// Its members that are open, the most severe first; without those that join.
    open: Vec<Vec<u8>>,
    /// Those of them that are not acknowledged.
    unacknowledged: BTreeSet<RecordId>,
    joining: Vec<Vec<u8>>,
    news: Vec<Vec<u8>>,
    /// Whether there is more of these than one message takes.
    is_more: bool,
}

/// Members whose keys are read at a time: these are small.
const KEYS_AT_ONCE: usize = 5_000;

/// The occurrences that stand so to a group or a key, at most so many.
pub(super) async fn keys(
    store: &Store,
    how: Membership,
    id: RecordId,
    limit: usize,
) -> Result<Vec<Vec<u8>>, EngineError> {
    let mut range = standing(how, id);
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
        range.go_on_after(last);
        found.extend(page.into_iter().map(|(_, record)| record));
    }
    Ok(found)
}

impl GroupNow {
    async fn read(store: &Store, due: Due) -> Result<Self, EngineError> {
        let stored = if due.is_joining {
            joined(store, due.id).await?
        } else {
            store.get::<Group>(due.id.to_bytes().into()).await?
        };
        let mut found = Self {
            stored,
            open: Vec::new(),
            unacknowledged: BTreeSet::new(),
            joining: Vec::new(),
            news: Vec::new(),
            is_more: false,
        };
        let all = usize::MAX;
        let group = found.stored.as_ref().map(|it| &it.value);
        let key = match group {
            _ if due.is_joining => Some(due.id),
            Some(group) => group.takes_members().then_some(group.key),
            None => None,
        };
        let id = group.map(|it| it.id);
        if let Some(id) = id {
            found.open = keys(store, Membership::Open, id, all).await?;
            let others = keys(store, Membership::Unacknowledged, id, all).await?;
            found.unacknowledged = others.iter().filter_map(|key| id_at(key, 0)).collect();
        }
        if let Some(key) = key {
            found.joining = keys(store, Membership::Joining, key, GROUP_JOINING_MAX + 1).await?;
        }
        // The end of a group is one message, whatever it reports on.
        let is_last = found.open.is_empty() && found.joining.is_empty();
        let most = if is_last { all } else { GROUP_JOINING_MAX };
        if let Some(id) = id {
            found.news = keys(store, Membership::News, id, most.saturating_add(1)).await?;
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

    /// Whether it went quiet: nothing of it is open, and no one is to be notified of it.
    fn is_dead(&self) -> bool {
        self.open.is_empty() && self.news.is_empty()
    }
}

/// Decides what one group is to tell now.
async fn decide(
    deciding: &Deciding,
    (due, new, found): (Due, RecordId, GroupNow),
    (snapshot, causes): (&Snapshot, &Causes),
    (changes, outcome): (&mut Changes, &mut Outcome),
) -> Result<(), Error> {
    let store = &deciding.store;
    let now_ms = deciding.clock.now_ms();
    let waiting: Vec<_> = found.joining.iter().chain(&found.news).cloned().collect();
    // Who tells a close does not wait.
    let is_last = found.open.is_empty() && found.joining.is_empty();
    let is_dead = found.is_dead();
    // What was released together of a rule that does not group waits for no interval.
    let rule = snapshot.rule(due.rule);
    let is_freed = due.is_joining && rule.is_some_and(|it| it.group.is_none());
    let waits = !is_dead && !is_last && !is_freed;
    if let Some(group) = found.stored.as_ref().filter(|_| waits) {
        let next_ms = group.value.last_ms.saturating_add(group.value.interval_ms);
        if next_ms > now_ms {
            outcome.rest.extend(waiting);
            return Ok(());
        }
    }
    let read = store.get_many::<Occurrence>(waiting.clone()).await?;
    let read: Vec<_> = read.into_iter().flatten().collect();
    if !read.iter().any(|it| due.is_of(&it.value, now_ms)) {
        return Ok(());
    }
    let shown = found.open.iter().take(GROUP_SHOWN_MAX);
    let shown = shown.filter(|key| !waiting.contains(key)).cloned();
    let others = store.get_many::<Occurrence>(shown.collect()).await?;
    let others: Vec<_> = others.into_iter().flatten().map(|it| it.value).collect();
    let all = read.iter().map(|it| &it.value).chain(&others);
    let past = revision::past(store, snapshot, all).await?.asking(causes);
    let responder = found.stored.as_ref().and_then(|it| it.value.responder);
    let responder = responder.map(|key| key.to_bytes().into());
    let responder = responder.filter(|key| !waiting.contains(key));
    let responder = store.get_many::<Occurrence>(responder.into_iter().collect());
    let responder = responder.await?.into_iter().flatten();
    let id = match &found.stored {
        Some(stored) if !is_dead => stored.value.id,
        _ => new,
    };
    let mut making = Making {
        due,
        id,
        now_ms,
        snapshot,
        past: &past,
        shared: Vec::new(),
        reported: Vec::new(),
        others,
        members: responder.map(|it| (it.value.clone(), it)).collect(),
    };
    for stored in read {
        making.add(stored, changes, outcome);
    }
    making.finish(&found, is_dead, changes, outcome);
    for (next, stored) in &making.members {
        if *next != stored.value {
            changes.update(stored, next);
        }
    }
    // What was freed is due as it stands, and is reported next.
    if found.is_more && !is_freed {
        let waiting: BTreeSet<_> = waiting.into_iter().collect();
        let rest = GroupNow::rest(store, due, found.stored.as_ref().map(|it| it.value.id)).await?;
        outcome
            .rest
            .extend(rest.into_iter().filter(|it| !waiting.contains(it)));
    }
    Ok(())
}

impl GroupNow {
    /// Everything that waits for the group.
    async fn rest(
        store: &Store,
        due: Due,
        group: Option<RecordId>,
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        let mut rest = Vec::new();
        if due.is_joining {
            rest = keys(store, Membership::Joining, due.id, usize::MAX).await?;
        }
        if let Some(group) = group {
            rest.extend(keys(store, Membership::News, group, usize::MAX).await?);
        }
        Ok(rest)
    }
}

/// A message while it is made.
struct Making<'a> {
    due: Due,
    id: RecordId,
    now_ms: i64,
    snapshot: &'a Snapshot,
    past: &'a Past,
    /// What the first that joins shares with the others.
    shared: Vec<SharedValue>,
    /// The members that there is something to report on, as they are now.
    reported: Vec<(MemberChange, Occurrence)>,
    /// The most severe of those of which there is nothing to tell.
    others: Vec<Occurrence>,
    /// Those of which there may be something to tell and the one that carries the response, as they are after
    /// the message and before it.
    members: Vec<(Occurrence, Stored<Occurrence>)>,
}

impl Making<'_> {
    /// Re-evaluates a member, and takes what there is to report on it.
    fn add(&mut self, stored: Stored<Occurrence>, changes: &mut Changes, outcome: &mut Outcome) {
        let (due, now_ms) = (self.due, self.now_ms);
        if self.is_stale(&stored.value) {
            return;
        }
        let mut next = stored.value.clone();
        let step = Step {
            kind: StepKind::NotifyGroup {
                rule: due.rule,
                group: self.id,
            },
            transition: Transition::default(),
            matches: &self.snapshot.matches(&next),
            now_ms,
            past: self.past,
        };
        let notices = notify(&mut next, &step, self.snapshot, &mut || new_id(now_ms));
        outcome.reports.note(&notices, &next, now_ms);
        for delivery in &notices.deliveries {
            changes.insert(delivery);
        }
        if self.reported.is_empty() && notices.member.is_some() {
            let mut pending = stored.value.pending.iter();
            let waited = pending.find(|it| it.rule == due.rule);
            let hold = waited.and_then(Pending::group_hold);
            self.shared = hold.map_or_else(Vec::new, |it| it.shared.clone());
        }
        if notices.member.is_some() {
            outcome.settled.push(next.key);
        }
        if let Some(member) = notices.member {
            // The message reports on what ends with it.
            let flapping = stored.value.flapping.clone();
            let shown = Occurrence {
                flapping,
                ..next.clone()
            };
            self.reported.push((member.change, shown));
        }
        self.members.push((next, stored));
    }

    /// Whether it joined while its rule was a shadow and is none any more, or the other way round:
    /// it is re-evaluated first.
    fn is_stale(&self, member: &Occurrence) -> bool {
        let mut pending = member.pending.iter();
        let waits = pending.find(|it| it.rule == self.due.rule && it.is_opening);
        let hold = waits.and_then(Pending::group_hold);
        let rule = self.snapshot.rule(self.due.rule);
        let rule = rule.filter(|it| it.group.is_some());
        hold.zip(rule)
            .is_some_and(|(hold, rule)| group_key(rule.id, !rule.shadow, &hold.shared) == hold.id)
    }

    fn count(&self, change: MemberChange) -> u32 {
        let count = self.reported.iter().filter(|it| it.0 == change).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn finish(
        &mut self,
        found: &GroupNow,
        is_dead: bool,
        changes: &mut Changes,
        outcome: &mut Outcome,
    ) {
        let stored = found.stored.as_ref();
        if let Some(stored) = stored.filter(|_| is_dead && !self.reported.is_empty()) {
            // The next one takes its place.
            let over = Group {
                end_ms: Some(self.now_ms),
                ..stored.value.clone()
            };
            changes.update(stored, &over);
        }
        let stored = stored.filter(|_| !is_dead);
        if self.reported.is_empty() {
            return;
        }
        let rule = self.snapshot.rule(self.due.rule);
        let Some(group) = self.group(stored.map(|it| &it.value), found, rule) else {
            return;
        };
        let (content, group) = group;
        let (deliveries, destinations) = self.deliveries(&content, &group, rule, outcome);
        let mut next = Group {
            destinations,
            ..group
        };
        let pages = self.respond((&content, rule), &mut next, outcome);
        for delivery in deliveries.iter().chain(&pages) {
            changes.insert(delivery);
        }
        match stored {
            Some(stored) => changes.update(stored, &next),
            None => changes.insert(&next),
        }
    }

    /// What there is to report on the group, and the group as it is then.
    fn group(
        &self,
        stored: Option<&Group>,
        found: &GroupNow,
        rule: Option<&Rule>,
    ) -> Option<(GroupContent, Group)> {
        let is_up = |it: &&(MemberChange, Occurrence)| it.1.status != Status::Closed;
        let now_open: BTreeSet<_> = self
            .reported
            .iter()
            .filter(is_up)
            .map(|it| it.1.key)
            .collect();
        let was_open = found.open.iter().filter_map(|key| id_at(key, 0));
        let open: BTreeSet<_> = was_open.chain(now_open).collect();
        let closed = self.count(MemberChange::Closed);
        let open_count = u32::try_from(open.len()).unwrap_or(u32::MAX);
        let joined_count = self.count(MemberChange::Joined);
        // What is left over is included in the message after.
        let is_over = open.is_empty() && !found.is_more;
        let is_notified = joined_count > 0 || self.count(MemberChange::Repeated) > 0;
        let mut next = match stored {
            Some(group) => group.clone(),
            None => self.made(rule?),
        };
        next.message_count = next.message_count.saturating_add(1);
        next.member_count = next.member_count.saturating_add(joined_count);
        next.is_full = next.member_count >= GROUP_MEMBERS_MAX;
        next.last_ms = self.now_ms;
        if is_notified {
            next.notified_ms = self.now_ms;
        }
        if let Some(grouping) = rule.and_then(|it| it.group.as_ref()) {
            next.interval_ms = grouping.interval_ms;
        }
        next.end_ms = is_over.then_some(self.now_ms);
        let mut members: Vec<(Option<MemberChange>, &Occurrence)> = Vec::new();
        members.extend(self.reported.iter().map(|(change, it)| (Some(*change), it)));
        members.extend(self.others.iter().map(|it| (None, it)));
        members.sort_by_key(|(change, it)| {
            let is_closed = it.status == Status::Closed;
            (
                is_closed,
                u8::MAX - it.severity as u8,
                change.is_none(),
                it.key,
            )
        });
        let acknowledged = self.acknowledged(found, &open);
        let mut left_bytes = GROUP_SHOWN_BYTES_MAX;
        let mut shown = Vec::new();
        for (change, member) in members.into_iter().take(GROUP_SHOWN_MAX) {
            let bytes = member.weight_bytes();
            // The first is always there: a message without any says nothing.
            if bytes > left_bytes && !shown.is_empty() {
                break;
            }
            left_bytes = left_bytes.saturating_sub(bytes);
            shown.push((change, self.as_notified(member)));
        }
        let content = GroupContent {
            id: self.id,
            by: next.by.clone(),
            count: open_count.saturating_add(closed),
            open_count,
            joined_count,
            closed_count: closed,
            is_first: next.message_count == 1,
            is_over,
            acknowledged,
            members: shown,
        };
        Some((content, next))
    }

    /// A new group, as its first member finds it.
    fn made(&self, rule: &Rule) -> Group {
        let interval_ms = i64::try_from(GROUP_INTERVAL_DEFAULT.as_millis()).unwrap_or(i64::MAX);
        let grouping = rule.group.as_ref();
        Group {
            id: self.id,
            rule: rule.id,
            rule_name: rule.name.clone(),
            key: self.due.id,
            by: self.shared.clone(),
            interval_ms: grouping.map_or(interval_ms, |it| it.interval_ms),
            destinations: Vec::new(),
            message_count: 0,
            member_count: 0,
            is_full: false,
            create_ms: self.now_ms,
            last_ms: self.now_ms,
            notified_ms: self.now_ms,
            end_ms: None,
            shadow: rule.shadow,
            responder: None,
        }
    }

    /// A member as the message carries it: whether it flaps as well.
    fn as_notified(&self, member: &Occurrence) -> Occurrence {
        let rule = self.snapshot.rule(self.due.rule);
        Occurrence {
            flapping: reported_flapping(member, rule, self.now_ms),
            ..as_notified(member)
        }
    }

    fn acknowledged(&self, found: &GroupNow, open: &BTreeSet<RecordId>) -> bool {
        let known: BTreeMap<_, _> = self
            .reported
            .iter()
            .map(|(_, it)| it)
            .chain(&self.others)
            .map(|it| (it.key, it.acknowledged))
            .collect();
        let is_acknowledged = |key: &RecordId| match known.get(key) {
            Some(acknowledged) => *acknowledged,
            None => !found.unacknowledged.contains(key),
        };
        !open.is_empty() && open.iter().all(is_acknowledged)
    }

    /// The occurrence that stands for the others: the most severe that is open, then the oldest; when
    /// none is, the one that was closed last.
    fn main(&self, of: impl Fn(&Occurrence) -> bool) -> Option<&Occurrence> {
        let all = self.reported.iter().map(|(_, it)| it).chain(&self.others);
        let all: Vec<_> = all.filter(|it| of(it)).collect();
        let open = all.iter().filter(|it| it.status != Status::Closed);
        let worst = open.min_by_key(|it| (u8::MAX - it.severity as u8, it.key));
        let last = || {
            let closed = all.iter();
            closed.max_by_key(|it| (it.close.map_or(0, |close| close.at_ms), it.key))
        };
        worst.or_else(last).copied()
    }

    /// The deliveries of the message, and who has been notified of the group after it.
    fn deliveries(
        &self,
        content: &GroupContent,
        group: &Group,
        rule: Option<&Rule>,
        outcome: &mut Outcome,
    ) -> (Vec<Delivery>, Vec<(RecordId, Name)>) {
        let is_notified = self
            .reported
            .iter()
            .any(|(change, _)| matches!(change, MemberChange::Joined | MemberChange::Repeated));
        let is_news = self
            .reported
            .iter()
            .any(|(change, _)| matches!(change, MemberChange::Closed | MemberChange::Changed));
        let mut receivers: Vec<&Destination> = Vec::new();
        // A rule that became a shadow tells no one again of a group that knows of it.
        let sends = rule.filter(|it| it.shadow == group.shadow);
        if is_notified && let Some(rule) = sends {
            let names = rule.destination_names.iter();
            receivers.extend(names.filter_map(|name| self.snapshot.destination_named(name)));
        }
        let mut notified = group.destinations.clone();
        if is_news {
            let before = notified.iter();
            for found in before.filter_map(|(id, _)| self.snapshot.destination(*id)) {
                if !receivers.iter().any(|it| it.id == found.id) {
                    receivers.push(found);
                }
            }
        }
        let mut deliveries = Vec::with_capacity(receivers.len());
        for destination in receivers {
            let makes_events = matches!(destination.kind, DestinationKind::Event(_));
            let passes = |it: &Occurrence| {
                !makes_events || !would_pass_again(it, self.due.rule, destination)
            };
            let Some(main) = self.main(passes) else {
                let stopped = Notices {
                    stopped: vec![group.rule_name.clone()],
                    ..Notices::default()
                };
                if let Some(any) = self.main(|_| true) {
                    outcome.reports.note(&stopped, any, self.now_ms);
                }
                continue;
            };
            deliveries.push(self.delivery((main, content), group, rule, destination, !is_notified));
            if is_notified && !notified.iter().any(|(id, _)| *id == destination.id) {
                notified.push((destination.id, destination.name.clone()));
            }
        }
        (deliveries, notified)
    }

    fn delivery(
        &self,
        (main, content): (&Occurrence, &GroupContent),
        group: &Group,
        rule: Option<&Rule>,
        destination: &Destination,
        clear: bool,
    ) -> Delivery {
        let mut notified = main.notified.iter();
        let entry = notified.find(|it| it.rule == self.due.rule).cloned();
        let entry = entry.unwrap_or_else(|| Notified {
            rule: self.due.rule,
            rule_name: group.rule_name.clone(),
            last_ms: self.now_ms,
            send_updates: false,
            destinations: Vec::new(),
            cleared: false,
            opening: None,
            group: Some(self.id),
            shadow: group.shadow,
            thread: None,
            response: None,
        });
        let matches = self.snapshot.matches(main);
        let in_force = (self.snapshot, self.past);
        let mut occurrence = self.as_notified(main);
        // What an event is built from that stands for all of them.
        let mut chain: Vec<RecordId> = Vec::new();
        let all = self.reported.iter().map(|(_, it)| it).chain(&self.others);
        let all = all.filter(|it| !would_pass_again(it, self.due.rule, destination));
        for rule in all.flat_map(|it| &it.chain) {
            if !chain.contains(rule) {
                chain.push(*rule);
            }
        }
        chain.truncate(CHAIN_MAX);
        occurrence.chain = chain;
        // Outstanding resolutions are sent, whatever happened to the rule since.
        let is_owed = !group.shadow && content.closed_count > 0;
        let is_shadow = group.shadow || rule.is_some_and(|it| it.shadow);
        let (state, end_ms) = sending_state(is_shadow && !is_owed, self.now_ms);
        Delivery {
            rule: Some(self.due.rule),
            event: Some(occurrence.event),
            state,
            end_ms,
            ..Delivery::new(
                new_id(self.now_ms),
                (destination.id, destination.name.as_str().into()),
                Content {
                    clear,
                    occurrence,
                    rule: of_update(&entry, rule, self.past),
                    trigger: trigger_of_update(&entry, rule, &matches, in_force),
                    destination_kind: destination.kind.clone(),
                    template_language: destination.template_language,
                    group: Some(content.clone()),
                    thread: None,
                    digest: None,
                    contact: None,
                },
                self.now_ms,
            )
        }
    }
}
