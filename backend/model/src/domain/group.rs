//! Groups: occurrences that a rule reports in one message.

use std::{collections::BTreeSet, fmt};

use crate::{
    domain::{Name, Occurrence, RecordId, Snippets, hold::SharedValue},
    limits::SNIPPET_DEPTH_MAX,
};

/// A digest of the rule, its grouping fields and their values.
pub type GroupKey = RecordId;

/// A group about which at least one message was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub id: RecordId,
    pub rule: RecordId,
    pub rule_name: Name,
    pub key: GroupKey,
    /// The fields and values that the members share.
    pub by: Vec<SharedValue>,
    /// Minimum interval between messages, in milliseconds.
    pub interval_ms: i64,
    /// The receivers of the messages other than `clear` ones, by identity and name. They also get
    /// the closing message.
    pub destinations: Vec<(RecordId, Name)>,
    pub message_count: u32,
    /// Number of times an occurrence joined.
    pub member_count: u32,
    pub is_full: bool,
    /// Time at which the first message was decided, in milliseconds since 1970.
    pub create_ms: i64,
    pub last_ms: i64,
    /// Time at which the last message other than a `clear` one was decided, in milliseconds since
    /// 1970.
    pub notified_ms: i64,
    /// Time at which the last open member was reported closed, in milliseconds since 1970.
    pub end_ms: Option<i64>,
    /// Whether the messages are only recorded.
    pub shadow: bool,
    /// The key of the member that carries the response; `None` without a policy.
    pub responder: Option<RecordId>,
}

impl Group {
    pub fn accepts_members(&self) -> bool {
        !self.is_full && self.end_ms.is_none()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupId(pub RecordId);

const PREFIX: &str = "group-";

impl GroupId {
    pub fn parse(text: &str) -> Option<RecordId> {
        RecordId::parse(text.strip_prefix(PREFIX)?)
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PREFIX}{}", self.0)
    }
}

/// The change of a member since the previous message of the group. The numbers are stored on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberChange {
    Joined = 1,
    Closed = 2,
    /// The severity or acknowledgement changed.
    Changed = 3,
    /// The event was sent again, and the rule repeats.
    Repeated = 4,
}

impl MemberChange {
    pub const ALL: [Self; 4] = [Self::Joined, Self::Closed, Self::Changed, Self::Repeated];

    /// Returns the name of the change; empty for a repeat.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::Closed => "closed",
            Self::Changed => "changed",
            Self::Repeated => "",
        }
    }
}

/// The name, below `group`, of the variable with all members. Only messages whose templates contain
/// this name store more than the most severe members.
pub const ALL_EVENTS: &str = "all_events";

/// Whether templates contain [`ALL_EVENTS`], or the name of a snippet that does. `has` returns
/// whether one of the templates contains a word.
pub fn names_all_members(snippets: &Snippets, has: impl Fn(&str) -> bool) -> bool {
    let mut words = BTreeSet::from([ALL_EVENTS]);
    for _ in 0..SNIPPET_DEPTH_MAX {
        let more = snippets.iter();
        let more = more.filter(|(_, text)| words.iter().any(|it| text.contains(it)));
        let more: Vec<_> = more.map(|(name, _)| name.as_str()).collect();
        words.extend(more);
    }
    words.into_iter().any(has)
}

#[derive(Debug, Clone, PartialEq)]
pub struct GroupContent {
    pub id: RecordId,
    /// The fields and values that the members share.
    pub by: Vec<SharedValue>,
    /// Number of occurrences included: open ones, and those closed since the previous message.
    pub count: u32,
    pub open_count: u32,
    /// Number of occurrences that joined since the previous message.
    pub joined_count: u32,
    /// Number of occurrences closed since the previous message.
    pub closed_count: u32,
    pub is_first: bool,
    pub is_over: bool,
    pub acknowledged: bool,
    /// The most severe members, each with its change since the previous message.
    pub members: Vec<(Option<MemberChange>, Occurrence)>,
}
