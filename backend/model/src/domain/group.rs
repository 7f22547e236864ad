//! Groups: the occurrences that one rule reports on in one message.

use std::fmt;

use crate::domain::{Name, Occurrence, RecordId, hold::SharedValue};

/// What a group's members share, as a digest: the rule, its fields, and their values.
pub type GroupKey = RecordId;

/// A group that was notified of at least once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its identity.
    pub id: RecordId,
    /// The rule, by identity.
    pub rule: RecordId,
    /// Its name.
    pub rule_name: Name,
    /// What its members share, as a digest.
    pub key: GroupKey,
    /// What they share.
    pub by: Vec<SharedValue>,
    /// How long after a message the next one goes out at the earliest, in milliseconds.
    pub interval_ms: i64,
    /// Who was sent a message that is not `clear`, by identity and name: they get the closing one.
    pub destinations: Vec<(RecordId, Name)>,
    /// How many messages were decided.
    pub message_count: u32,
    /// How often an occurrence joined.
    pub member_count: u32,
    /// Whether it takes members no more, since it has so many.
    pub is_full: bool,
    /// When its first message was decided, in milliseconds since 1970.
    pub create_ms: i64,
    /// When its last message was decided, in milliseconds since 1970.
    pub last_ms: i64,
    /// When its last message was decided that is not `clear`, in milliseconds since 1970.
    pub notified_ms: i64,
    /// When its last open member was reported closed, in milliseconds since 1970.
    pub end_ms: Option<i64>,
    /// Whether its messages are only recorded.
    pub shadow: bool,
    /// The member that carries its response, by key; none where no policy was followed.
    pub responder: Option<RecordId>,
}

impl Group {
    /// Whether occurrences may join it.
    pub fn takes_members(&self) -> bool {
        !self.is_full && self.end_ms.is_none()
    }
}

/// The identity of a group as people see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupId(pub RecordId);

/// What stands before the identity of a group.
const PREFIX: &str = "group-";

impl GroupId {
    /// Takes `group-` and 26 letters and digits as an identity.
    pub fn parse(text: &str) -> Option<RecordId> {
        RecordId::parse(text.strip_prefix(PREFIX)?)
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PREFIX}{}", self.0)
    }
}

/// What happened to a member since the group's message before. Numbers are written to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberChange {
    /// It is new.
    Joined = 1,
    /// It was closed.
    Closed = 2,
    /// Its severity or its acknowledgement changed.
    Changed = 3,
    /// It came again, and the rule repeats.
    Repeated = 4,
}

impl MemberChange {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Joined, Self::Closed, Self::Changed, Self::Repeated];

    /// The word for it; none for what changed nothing.
    pub fn word(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::Closed => "closed",
            Self::Changed => "changed",
            Self::Repeated => "",
        }
    }
}

/// What a message reports on a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupContent {
    /// The group.
    pub id: RecordId,
    /// What its members share.
    pub by: Vec<SharedValue>,
    /// How many occurrences it includes: those that are open, and those that were closed since.
    pub count: u32,
    /// How many are open.
    pub open_count: u32,
    /// How many joined since the message before.
    pub joined_count: u32,
    /// How many were closed since.
    pub closed_count: u32,
    /// Whether it is the first message.
    pub is_first: bool,
    /// Whether nothing of it is open any more.
    pub is_over: bool,
    /// Whether all that is open is acknowledged.
    pub acknowledged: bool,
    /// The most severe members, and what happened to each since the message before.
    pub members: Vec<(Option<MemberChange>, Occurrence)>,
}
