//! Assigns an occurrence to the groups of a rule, and determines the hold until their next message.

use super::Writer;
use crate::{
    decide::{
        GroupAt,
        grouping::{format_shared, group_key, shared_values},
    },
    domain::{
        GroupRef, HeldBy, HoldKind, MemberChange, Name, Notified, Pending, RecordId, Rule, Status,
    },
};

pub(super) struct GroupRelation {
    /// Whether the occurrence was reported with a group that has not ended.
    is_member: bool,
    /// Whether the occurrence would join a group, if the rule has grouping.
    pub(super) joins: bool,
    /// The hold until the group's next message; `None` without a group, or if that message is being
    /// decided.
    pub(super) group: Option<HeldBy>,
}

impl GroupRelation {
    pub(super) fn is_in_group(&self) -> bool {
        self.is_member || self.joins
    }

    pub(super) fn member_change(&self) -> MemberChange {
        if self.is_member {
            MemberChange::Repeated
        } else {
            MemberChange::Joined
        }
    }
}

impl Writer<'_> {
    /// Returns the hold of an occurrence that would join a group; `None` if the rule has no
    /// grouping, or the message is being decided.
    pub(super) fn join_hold(&self, rule: &Rule) -> Option<HeldBy> {
        let is_closed = self.occurrence.status == Status::Closed;
        if is_closed || self.current_group(rule.id).is_some() {
            return None;
        }
        let waited = self
            .waiting
            .previous_hold(rule.id)
            .filter(|it| it.is_opening);
        let waited = waited.and_then(|it| it.group_hold());
        let since_ms = waited.map_or(self.step.now_ms, |it| it.since_ms);
        // The values at the time of joining are used.
        let mut hold = match (&rule.group, waited) {
            (Some(_), Some(joined)) if joined.revision == rule.revision => joined.clone(),
            (Some(grouping), _) => {
                let shared = shared_values(grouping, self.occurrence);
                let detail = match format_shared(&shared) {
                    text if text.is_empty() => {
                        "the rule sends one message for all its events".to_owned()
                    }
                    text => format!("the rule sends one message for events with {text}"),
                };
                HeldBy {
                    id: group_key(rule.id, rule.shadow, &shared),
                    shared,
                    ..group_hold((rule.id, &rule.name), since_ms, detail)
                }
            }
            (None, Some(joined)) if joined.revision == 0 => joined.clone(),
            (None, _) => HeldBy {
                id: self.step.past.released_group(rule.id)?,
                ..group_hold((rule.id, &rule.name), since_ms, TOGETHER.to_owned())
            },
        };
        hold.revision = rule.group.as_ref().map_or(0, |_| rule.revision);
        let until_ms = match &rule.group {
            // Notifications released together are sent immediately, in as many messages as needed.
            None => since_ms,
            Some(grouping) => {
                let group = self.step.past.causes().find_group(GroupRef::Key(hold.id));
                let first_ms = since_ms.saturating_add(grouping.wait_ms);
                group.map_or(first_ms, |it| it.next_ms)
            }
        };
        hold.until_ms = Some(until_ms);
        Some(hold)
    }

    /// Returns the hold of an update about an occurrence reported with a group. `None` if the
    /// occurrence was not reported with a group, or if the group has ended or its message is being
    /// decided. A close is evaluated immediately, because it may be the last one.
    pub(super) fn update_hold(&self, entry: &Notified, is_close: bool) -> Option<HeldBy> {
        let id = entry
            .group
            .filter(|_| self.current_group(entry.rule).is_none())?;
        let group = self.active_group(entry)?;
        let waited = self.waiting.previous_hold(entry.rule);
        let has_settled = waited.is_some_and(Pending::is_flapping);
        let is_news = !self.step.kind.is_review() || has_settled;
        let is_last = is_close && (is_news || !group.is_open);
        let until_ms = if is_last {
            self.step.now_ms
        } else {
            group.next_ms
        };
        let detail = "already notified in this group";
        Some(HeldBy {
            until_ms: Some(until_ms),
            ..group_hold((id, &entry.rule_name), self.step.now_ms, detail.into())
        })
    }

    /// Returns the group with which the occurrence was reported, unless that group has ended.
    pub(super) fn active_group(&self, entry: &Notified) -> Option<GroupAt> {
        let group = self
            .step
            .past
            .causes()
            .find_group(GroupRef::Id(entry.group?));
        group.filter(|it| !it.is_over)
    }

    pub(super) fn group_relation(&self, rule: &Rule, entry: Option<&Notified>) -> GroupRelation {
        let has_group = |it: &Notified| it.group.is_some() && !it.cleared;
        let is_member = entry.is_some_and(|it| has_group(it) && self.active_group(it).is_some());
        // A member of a group that has ended joins another one.
        let joins = !is_member && entry.is_none_or(|it| it.group.is_some() || it.cleared);
        let group = match entry {
            Some(entry) if is_member => self.update_hold(entry, false),
            _ if joins => self.join_hold(rule),
            _ => None,
        };
        GroupRelation {
            is_member,
            joins,
            group,
        }
    }

    /// Returns the entry with the time of the group's last message if that is later, because a
    /// message about a group counts as a notification of all its members.
    pub(super) fn with_group_notification(&self, entry: &Notified) -> Option<Notified> {
        let group = self.active_group(entry)?;
        (group.notified_ms > entry.last_ms).then(|| Notified {
            last_ms: group.notified_ms,
            ..entry.clone()
        })
    }
}

const TOGETHER: &str = "many held notifications were released together and are sent in one message";

fn group_hold((id, rule_name): (RecordId, &Name), since_ms: i64, detail: String) -> HeldBy {
    HeldBy {
        kind: HoldKind::Group,
        id,
        name: rule_name.clone(),
        revision: 0,
        since_ms,
        until_ms: None,
        author: None,
        shared: Vec::new(),
        detail,
    }
}
