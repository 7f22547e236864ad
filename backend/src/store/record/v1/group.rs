//! Groups, and what messages report on them.

use super::{
    hold::{SharedV1, shared},
    occurrence::{OccurrenceV1, record_id},
};
use crate::domain::{Group, GroupContent, MemberChange, Name, RecordId};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GroupV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    rule: Vec<u8>,
    #[prost(string, tag = "3")]
    rule_name: String,
    #[prost(bytes = "vec", tag = "4")]
    key: Vec<u8>,
    #[prost(message, repeated, tag = "5")]
    by: Vec<SharedV1>,
    #[prost(int64, tag = "6")]
    interval_ms: i64,
    #[prost(message, repeated, tag = "7")]
    destinations: Vec<ToldV1>,
    #[prost(uint32, tag = "8")]
    message_count: u32,
    #[prost(uint32, tag = "9")]
    member_count: u32,
    #[prost(bool, tag = "10")]
    is_full: bool,
    #[prost(int64, tag = "11")]
    create_ms: i64,
    #[prost(int64, tag = "12")]
    last_ms: i64,
    #[prost(int64, tag = "13")]
    notified_ms: i64,
    #[prost(int64, optional, tag = "14")]
    end_ms: Option<i64>,
    #[prost(bool, tag = "15")]
    shadow: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ToldV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(string, tag = "2")]
    name: String,
}

impl From<&Group> for GroupV1 {
    fn from(group: &Group) -> Self {
        let told = |(id, name): &(RecordId, Name)| ToldV1 {
            id: id.to_bytes().into(),
            name: name.to_string(),
        };
        Self {
            id: group.id.to_bytes().into(),
            rule: group.rule.to_bytes().into(),
            rule_name: group.rule_name.to_string(),
            key: group.key.to_bytes().into(),
            by: group.by.iter().map(SharedV1::from).collect(),
            interval_ms: group.interval_ms,
            destinations: group.destinations.iter().map(told).collect(),
            message_count: group.message_count,
            member_count: group.member_count,
            is_full: group.is_full,
            create_ms: group.create_ms,
            last_ms: group.last_ms,
            notified_ms: group.notified_ms,
            end_ms: group.end_ms,
            shadow: group.shadow,
        }
    }
}

impl GroupV1 {
    pub(crate) fn into_group(self) -> Option<Group> {
        let told = |it: ToldV1| Some((record_id(it.id)?, Name::parse(&it.name).ok()?));
        Some(Group {
            id: record_id(self.id)?,
            rule: record_id(self.rule)?,
            rule_name: Name::parse(&self.rule_name).ok()?,
            key: record_id(self.key)?,
            by: shared(self.by),
            interval_ms: self.interval_ms,
            destinations: {
                let all = self.destinations.into_iter().map(told);
                all.collect::<Option<_>>()?
            },
            message_count: self.message_count,
            member_count: self.member_count,
            is_full: self.is_full,
            create_ms: self.create_ms,
            last_ms: self.last_ms,
            notified_ms: self.notified_ms,
            end_ms: self.end_ms,
            shadow: self.shadow,
        })
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GroupContentV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(message, repeated, tag = "2")]
    by: Vec<SharedV1>,
    #[prost(uint32, tag = "3")]
    count: u32,
    #[prost(uint32, tag = "4")]
    open_count: u32,
    #[prost(uint32, tag = "5")]
    joined_count: u32,
    #[prost(uint32, tag = "6")]
    closed_count: u32,
    #[prost(bool, tag = "7")]
    is_first: bool,
    #[prost(bool, tag = "8")]
    is_over: bool,
    #[prost(bool, tag = "9")]
    acknowledged: bool,
    #[prost(message, repeated, tag = "10")]
    members: Vec<MemberV1>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct MemberV1 {
    /// 0 for none.
    #[prost(uint32, tag = "1")]
    change: u32,
    #[prost(message, optional, tag = "2")]
    occurrence: Option<OccurrenceV1>,
}

impl From<&GroupContent> for GroupContentV1 {
    fn from(content: &GroupContent) -> Self {
        let members = content.members.iter();
        Self {
            id: content.id.to_bytes().into(),
            by: content.by.iter().map(SharedV1::from).collect(),
            count: content.count,
            open_count: content.open_count,
            joined_count: content.joined_count,
            closed_count: content.closed_count,
            is_first: content.is_first,
            is_over: content.is_over,
            acknowledged: content.acknowledged,
            members: members
                .map(|(change, occurrence)| MemberV1 {
                    change: change.map_or(0, |it| it as u32),
                    occurrence: Some(occurrence.into()),
                })
                .collect(),
        }
    }
}

impl GroupContentV1 {
    pub(super) fn into_content(self) -> Option<GroupContent> {
        let member = |it: MemberV1| {
            let mut all = MemberChange::ALL.into_iter();
            let change = match it.change {
                0 => None,
                number => Some(all.find(|change| *change as u32 == number)?),
            };
            Some((change, it.occurrence?.into_occurrence()?))
        };
        Some(GroupContent {
            id: record_id(self.id)?,
            by: shared(self.by),
            count: self.count,
            open_count: self.open_count,
            joined_count: self.joined_count,
            closed_count: self.closed_count,
            is_first: self.is_first,
            is_over: self.is_over,
            acknowledged: self.acknowledged,
            members: {
                let all = self.members.into_iter().map(member);
                all.collect::<Option<_>>()?
            },
        })
    }
}
