//! Decides the due message of a group: its receivers, its content, and the resulting group.

mod respond;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    Notices, PastDefinitions, Snapshot, Step, StepKind, Transition, flapping_in_message, group_key,
    hold::destination_holds, notified_occurrence, notify, sending_state, sends_updates,
    update_content, update_trigger, withdraw_acknowledgement, would_pass_again,
};
use crate::{
    domain::{
        Content, Delivery, Destination, DestinationKind, Group, GroupContent, GroupKey,
        MemberChange, Name, Notified, Occurrence, Pending, RecordId, Rule, Severity, Status,
        hold::SharedValue, names_all_members,
    },
    limits::{
        CHAIN_MAX, GROUP_ALL_SHOWN_BYTES_MAX, GROUP_ALL_SHOWN_MAX, GROUP_INTERVAL_DEFAULT,
        GROUP_MEMBERS_MAX, GROUP_SHOWN_BYTES_MAX, GROUP_SHOWN_MAX,
    },
};

#[derive(Debug, Clone, Copy)]
pub struct GroupMessage<'a> {
    pub rule: RecordId,
    pub key: GroupKey,
    pub id: RecordId,
    /// The group before the message; `None` for its first message.
    pub group: Option<&'a Group>,
    /// The open members, without those that are joining.
    pub open: &'a [RecordId],
    pub unacknowledged: &'a BTreeSet<RecordId>,
    /// Whether more members are waiting than fit in one message.
    pub is_more: bool,
    pub snapshot: &'a Snapshot,
    pub past: &'a PastDefinitions,
    pub now_ms: i64,
}

#[derive(Debug)]
pub struct GroupMembers {
    pub waiting: Vec<Occurrence>,
    pub others: Vec<Occurrence>,
    /// The member that carries the response, if that member is not waiting.
    pub responder: Option<Occurrence>,
}

#[derive(Debug, Default)]
pub struct GroupDecision {
    /// The evaluated members and the member that carries the response, after the message.
    pub members: Vec<Occurrence>,
    pub settled: Vec<RecordId>,
    pub deliveries: Vec<Delivery>,
    /// The group after the message; `None` if there is no change to report.
    pub group: Option<Group>,
    /// Notices for own events of the service, each with the member that it is about.
    pub notices: Vec<(Notices, Occurrence)>,
}

impl GroupMessage<'_> {
    /// Decides the message: its deliveries, and the changes to the members and the group.
    ///
    /// `new_id` generates the identities of the deliveries.
    pub fn decide(
        &self,
        members: GroupMembers,
        new_id: &mut dyn FnMut() -> RecordId,
    ) -> GroupDecision {
        let all = members.waiting.iter().chain(&members.responder);
        let responses = all.flat_map(|it| &it.notified);
        let mut responses =
            responses.filter(|it| it.rule == self.rule && it.group == Some(self.id));
        let response = responses.find_map(|it| it.response.as_deref());
        let mut message = Message {
            about: self,
            worst: response.and_then(|it| it.most_severe),
            shared: Vec::new(),
            reported: Vec::new(),
            others: members.others,
            decision: GroupDecision {
                members: members.responder.into_iter().collect(),
                ..GroupDecision::default()
            },
            new_id,
        };
        for member in members.waiting {
            message.add(member);
        }
        message.finish();
        message.decision
    }
}

pub fn shown_members_max(rule: RecordId, group: Option<&Group>, snapshot: &Snapshot) -> usize {
    let Some(rule) = snapshot.rule(rule) else {
        return GROUP_SHOWN_MAX;
    };
    // The contacts of an escalation are reached through other destinations.
    let is_receiver = |it: &&Destination| {
        rule.escalation_policy.is_some()
            || rule.destination_names.contains(&it.name)
            || group.is_some_and(|group| group.destinations.iter().any(|(id, _)| *id == it.id))
    };
    let receivers: Vec<_> = snapshot.destinations().filter(is_receiver).collect();
    let has = |it: &str| {
        rule.message.contains(it) || receivers.iter().any(|to| to.kind.mentions_name(it))
    };
    if names_all_members(&snapshot.settings().templates, has) {
        GROUP_ALL_SHOWN_MAX
    } else {
        GROUP_SHOWN_MAX
    }
}

/// Returns the first members that fit in a message, or more if the templates of the message name
/// all members.
pub fn shown_members(
    members: impl Iterator<Item = (Option<MemberChange>, Occurrence)>,
    names_all: bool,
) -> Vec<(Option<MemberChange>, Occurrence)> {
    let (count_max, mut left_bytes) = if names_all {
        (GROUP_ALL_SHOWN_MAX, GROUP_ALL_SHOWN_BYTES_MAX)
    } else {
        (GROUP_SHOWN_MAX, GROUP_SHOWN_BYTES_MAX)
    };
    let mut shown = Vec::new();
    for (change, member) in members.take(count_max) {
        let bytes = member.estimated_bytes();
        // At least one is included: a message without members would be useless.
        if bytes > left_bytes && !shown.is_empty() {
            break;
        }
        left_bytes = left_bytes.saturating_sub(bytes);
        shown.push((change, member));
    }
    shown
}

struct Message<'a> {
    about: &'a GroupMessage<'a>,
    /// The highest severity recorded by the response; `None` without a response.
    worst: Option<Severity>,
    /// The values shared by the group, from its first joining member.
    shared: Vec<SharedValue>,
    reported: Vec<(MemberChange, Occurrence)>,
    others: Vec<Occurrence>,
    decision: GroupDecision,
    new_id: &'a mut dyn FnMut() -> RecordId,
}

impl<'a> Message<'a> {
    fn add(&mut self, before: Occurrence) {
        let (rule, now_ms) = (self.about.rule, self.about.now_ms);
        if self.needs_reevaluation(&before) {
            return;
        }
        let mut next = before.clone();
        if self.is_acknowledgement_outdated(&before) {
            withdraw_acknowledgement(&mut next, now_ms);
        }
        let step = Step {
            kind: StepKind::NotifyGroup {
                rule,
                group: self.id(),
            },
            transition: Transition::default(),
            matches: &self.about.snapshot.matching_triggers(&next),
            now_ms,
            past: self.about.past,
        };
        let mut notices = notify(&mut next, &step, self.about.snapshot, self.new_id);
        let deliveries = std::mem::take(&mut notices.deliveries);
        self.decision.deliveries.extend(deliveries);
        if let Some(member) = notices.member.take() {
            if self.reported.is_empty() {
                let mut pending = before.pending.iter();
                let hold = pending
                    .find(|it| it.rule == rule)
                    .and_then(Pending::group_hold);
                self.shared = hold.map_or_else(Vec::new, |it| it.shared.clone());
            }
            self.decision.settled.push(next.key);
            // Flapping that ends with this message is still shown in it.
            let shown = Occurrence {
                flapping: before.flapping,
                ..next.clone()
            };
            self.reported.push((member.change, shown));
        }
        self.report_member(notices, next.clone());
        self.decision.members.push(next);
    }

    /// Whether a member was acknowledged, and then became more severe than any severity recorded by
    /// the group's response.
    fn is_acknowledgement_outdated(&self, member: &Occurrence) -> bool {
        let is_exceeded = self.worst.is_some_and(|it| it < member.severity);
        is_exceeded && member.is_more_severe_than_acknowledged()
    }

    fn is_reportable(&self, change: MemberChange) -> bool {
        match change {
            MemberChange::Closed => true,
            MemberChange::Changed => sends_updates(self.rule()),
            MemberChange::Joined | MemberChange::Repeated => false,
        }
    }

    fn report_member(&mut self, notices: Notices, member: Occurrence) {
        if notices != Notices::default() {
            self.decision.notices.push((notices, member));
        }
    }

    fn id(&self) -> RecordId {
        self.about.id
    }

    /// Whether the rule became, or stopped being, a shadow rule since the member joined. The member
    /// must then be re-evaluated first.
    fn needs_reevaluation(&self, member: &Occurrence) -> bool {
        let mut pending = member.pending.iter();
        let waits = pending.find(|it| it.rule == self.about.rule && it.is_opening);
        let hold = waits.and_then(Pending::group_hold);
        let rule = self.rule().filter(|it| it.group.is_some());
        hold.zip(rule)
            .is_some_and(|(hold, rule)| group_key(rule.id, !rule.shadow, &hold.shared) == hold.id)
    }

    fn member_count(&self, change: MemberChange) -> u32 {
        let count = self.reported.iter().filter(|it| it.0 == change).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn rule(&self) -> Option<&'a Rule> {
        self.about.snapshot.rule(self.about.rule)
    }

    fn finish(&mut self) {
        if self.reported.is_empty() {
            return;
        }
        let Some((content, group)) = self.group() else {
            return;
        };
        let (deliveries, destinations) = self.build_deliveries(&content, &group);
        let mut next = Group {
            destinations,
            ..group
        };
        let pages = self.respond(&content, &mut next);
        let all = deliveries.into_iter().chain(pages);
        self.decision.deliveries.extend(all);
        self.decision.group = Some(next);
    }

    fn group(&self) -> Option<(GroupContent, Group)> {
        let (about, rule) = (self.about, self.rule());
        let is_up = |it: &&(MemberChange, Occurrence)| it.1.status != Status::Closed;
        let now_open: BTreeSet<_> = self
            .reported
            .iter()
            .filter(is_up)
            .map(|it| it.1.key)
            .collect();
        let was_open = about.open.iter().copied();
        let open: BTreeSet<_> = was_open.chain(now_open).collect();
        let closed = self.member_count(MemberChange::Closed);
        let open_count = u32::try_from(open.len()).unwrap_or(u32::MAX);
        let joined_count = self.member_count(MemberChange::Joined);
        // The group is not over while further members wait for the next message.
        let is_over = open.is_empty() && !about.is_more;
        let is_notified = joined_count > 0 || self.member_count(MemberChange::Repeated) > 0;
        let mut next = match about.group {
            Some(group) => group.clone(),
            None => self.create_group(rule?),
        };
        next.message_count = next.message_count.saturating_add(1);
        next.member_count = next.member_count.saturating_add(joined_count);
        next.is_full = next.member_count >= GROUP_MEMBERS_MAX;
        next.last_ms = self.about.now_ms;
        if is_notified {
            next.notified_ms = self.about.now_ms;
        }
        if let Some(grouping) = rule.and_then(|it| it.group.as_ref()) {
            next.interval_ms = grouping.interval_ms;
        }
        next.end_ms = is_over.then_some(self.about.now_ms);
        let mut members: Vec<(Option<MemberChange>, &Occurrence)> = Vec::new();
        members.extend(self.reported.iter().map(|(change, it)| (Some(*change), it)));
        members.extend(self.others.iter().map(|it| (None, it)));
        members.sort_by_key(|(change, it)| {
            let is_closed = it.status == Status::Closed;
            (is_closed, Reverse(it.severity), change.is_none(), it.key)
        });
        let members = members.into_iter();
        let (snapshot, group) = (about.snapshot, about.group);
        let names_all = shown_members_max(about.rule, group, snapshot) == GROUP_ALL_SHOWN_MAX;
        let members = members.map(|(change, it)| (change, self.notified_occurrence(it)));
        let shown = shown_members(members, names_all);
        let acknowledged = self.is_acknowledged(&open);
        let content = GroupContent {
            id: self.id(),
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

    fn create_group(&self, rule: &Rule) -> Group {
        let interval_ms = i64::try_from(GROUP_INTERVAL_DEFAULT.as_millis()).unwrap_or(i64::MAX);
        let grouping = rule.group.as_ref();
        Group {
            id: self.id(),
            rule: rule.id,
            rule_name: rule.name.clone(),
            key: self.about.key,
            by: self.shared.clone(),
            interval_ms: grouping.map_or(interval_ms, |it| it.interval_ms),
            destinations: Vec::new(),
            message_count: 0,
            member_count: 0,
            is_full: false,
            create_ms: self.about.now_ms,
            last_ms: self.about.now_ms,
            notified_ms: self.about.now_ms,
            end_ms: None,
            shadow: rule.shadow,
            responder: None,
        }
    }

    fn notified_occurrence(&self, member: &Occurrence) -> Occurrence {
        Occurrence {
            flapping: flapping_in_message(member, self.rule(), self.about.now_ms),
            ..notified_occurrence(member)
        }
    }

    fn is_acknowledged(&self, open: &BTreeSet<RecordId>) -> bool {
        let known = self.reported.iter().map(|(_, it)| it);
        let known: BTreeMap<_, _> = known
            .chain(&self.others)
            .map(|it| (it.key, it.acknowledged))
            .collect();
        let is_acknowledged = |key: &RecordId| match known.get(key) {
            Some(acknowledged) => *acknowledged,
            None => !self.about.unacknowledged.contains(key),
        };
        !open.is_empty() && open.iter().all(is_acknowledged)
    }

    /// Returns the representative occurrence: the most severe, then oldest, open one; if none is
    /// open, the one closed last.
    fn main_occurrence(&self, of: impl Fn(&Occurrence) -> bool) -> Option<Occurrence> {
        let all = self.reported.iter().map(|(_, it)| it).chain(&self.others);
        let all: Vec<_> = all.filter(|it| of(it)).collect();
        let open = all.iter().filter(|it| it.status != Status::Closed);
        let worst = open.min_by_key(|it| (Reverse(it.severity), it.key));
        let last = || {
            let closed = all.iter();
            closed.max_by_key(|it| (it.close.map_or(0, |close| close.at_ms), it.key))
        };
        worst.or_else(last).map(|it| (*it).clone())
    }

    /// Whether silences that name the destination cover all open members that the message reports.
    fn is_silenced(&self, destination: &Destination) -> bool {
        let (about, rule) = (self.about, self.rule());
        let is_held = |it: &Occurrence| {
            let silences = about.snapshot.silences().find_matching(it, about.now_ms);
            rule.is_some_and(|rule| {
                let named = (&rule.name, &destination.name);
                !destination_holds(&silences, named, about.now_ms).is_empty()
            })
        };
        let open = self.reported.iter().map(|(_, it)| it);
        let mut open = open.filter(|it| it.status == Status::Open).peekable();
        open.peek().is_some() && open.all(is_held)
    }

    /// Whether all changes that the message reports came from the destination.
    fn is_informed(&self, destination: RecordId) -> bool {
        let is_from_it = |(change, it): &(MemberChange, Occurrence)| {
            !self.is_reportable(*change) || it.informed.contains(&destination)
        };
        self.reported.iter().all(is_from_it)
    }

    /// Returns the deliveries of the message, and the receivers notified about the group so far.
    fn build_deliveries(
        &mut self,
        content: &GroupContent,
        group: &Group,
    ) -> (Vec<Delivery>, Vec<(RecordId, Name)>) {
        let (about, snapshot) = (self.about, self.about.snapshot);
        let is_notified = self
            .reported
            .iter()
            .any(|(change, _)| matches!(change, MemberChange::Joined | MemberChange::Repeated));
        let is_news = self
            .reported
            .iter()
            .any(|(change, _)| self.is_reportable(*change));
        let mut receivers: Vec<&Destination> = Vec::new();
        // A rule that became a shadow rule sends no more updates about groups it has reported.
        let sends = self.rule().filter(|it| it.shadow == group.shadow);
        if is_notified && let Some(rule) = sends {
            let names = rule.destination_names.iter();
            receivers.extend(names.filter_map(|name| snapshot.destination_by_name(name)));
        }
        let mut notified = group.destinations.clone();
        if is_news {
            let before = notified.iter();
            for found in before.filter_map(|(id, _)| snapshot.destination(*id)) {
                if !receivers.iter().any(|it| it.id == found.id) {
                    receivers.push(found);
                }
            }
        }
        let mut deliveries = Vec::with_capacity(receivers.len());
        for destination in receivers {
            let is_informed = !is_notified && self.is_informed(destination.id);
            if is_informed || self.is_silenced(destination) {
                continue;
            }
            let makes_events = matches!(destination.kind, DestinationKind::Event(_));
            let passes =
                |it: &Occurrence| !makes_events || !would_pass_again(it, about.rule, destination);
            let Some(main) = self.main_occurrence(passes) else {
                let stopped = Notices {
                    stopped: vec![group.rule_name.clone()],
                    ..Notices::default()
                };
                if let Some(any) = self.main_occurrence(|_| true) {
                    self.report_member(stopped, any);
                }
                continue;
            };
            deliveries.push(self.build_delivery(
                (&main, content),
                group,
                destination,
                !is_notified,
            ));
            if is_notified && !notified.iter().any(|(id, _)| *id == destination.id) {
                notified.push((destination.id, destination.name.clone()));
            }
        }
        (deliveries, notified)
    }

    fn build_delivery(
        &mut self,
        (main, content): (&Occurrence, &GroupContent),
        group: &Group,
        destination: &Destination,
        clear: bool,
    ) -> Delivery {
        let (about, rule) = (self.about, self.rule());
        let mut notified = main.notified.iter();
        let entry = notified.find(|it| it.rule == about.rule).cloned();
        let entry = entry.unwrap_or_else(|| Notified {
            rule: about.rule,
            rule_name: group.rule_name.clone(),
            last_ms: about.now_ms,
            send_updates: false,
            destinations: Vec::new(),
            cleared: false,
            opening: None,
            group: Some(about.id),
            shadow: group.shadow,
            thread: None,
            response: None,
            last_notified: None,
        });
        let matches = about.snapshot.matching_triggers(main);
        let in_force = (about.snapshot, about.past);
        let mut occurrence = self.notified_occurrence(main);
        // An event created by the message continues the chains of all its members.
        let mut chain: Vec<RecordId> = Vec::new();
        let all = self.reported.iter().map(|(_, it)| it).chain(&self.others);
        let all = all.filter(|it| !would_pass_again(it, about.rule, destination));
        for rule in all.flat_map(|it| &it.chain) {
            if !chain.contains(rule) {
                chain.push(*rule);
            }
        }
        chain.truncate(CHAIN_MAX);
        occurrence.chain = chain;
        // Due closing messages are sent regardless of changes to the rule.
        let is_owed = !group.shadow && content.closed_count > 0;
        let is_shadow = group.shadow || rule.is_some_and(|it| it.shadow);
        let (state, end_ms) = sending_state(is_shadow && !is_owed, about.now_ms);
        let mut own = Content {
            clear,
            occurrence,
            rule: update_content(&entry, rule, about.past),
            trigger: update_trigger(&entry, rule, &matches, in_force),
            destination_kind: destination.kind.clone(),
            template_language: destination.template_language,
            group: None,
            thread: None,
            digest: None,
            contact: None,
            previous: None,
        };
        let snippets = &about.snapshot.settings().templates;
        let members = content.members.iter().cloned();
        own.group = Some(GroupContent {
            members: shown_members(members, own.names_all_members(snippets)),
            by: content.by.clone(),
            ..*content
        });
        Delivery {
            rule: Some(about.rule),
            event: Some(own.occurrence.event),
            state,
            end_ms,
            ..Delivery::new(
                (self.new_id)(),
                (destination.id, destination.name.as_str().into()),
                own,
                about.now_ms,
            )
        }
    }
}

#[cfg(test)]
mod tests;
