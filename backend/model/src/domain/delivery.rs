//! Deliveries: notifications on their way to destinations.

use std::{collections::BTreeMap, time::Duration};

use crate::domain::{
    DestinationKind, DigestContent, DigestItem, DigestMembership, EventId, GroupContent, Name,
    Occurrence, OccurrenceId, PagedContact, RecordId, Severity, Snippets, Status, TemplateLanguage,
    ThreadOrigin, Trigger, destination::KeptValues, names_all_members,
};

#[expect(
    clippy::struct_excessive_bools,
    reason = "independent flags, each stored with the record"
)]
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// The identity, the same for all attempts; `webhook-id` of a webhook.
    pub id: RecordId,
    /// The rule that notified, by identity; `None` for a test or a digest.
    pub rule: Option<RecordId>,
    /// The destination, by identity; for the test of a draft, a separate identity.
    pub destination: RecordId,
    /// The name of the destination; empty for the test of a draft without a name.
    pub destination_name: String,
    /// The event that the delivery reports; `None` for a test with a sample event, or a digest.
    pub event: Option<EventId>,
    pub state: DeliveryState,
    pub test: bool,
    /// Number of started attempts, including those interrupted by a shutdown.
    pub attempts: u32,
    /// Number of attempts that the receiver deferred, for example because of a rate limit; not
    /// counted against the maximum number of attempts.
    pub deferrals: u32,
    /// Whether the last attempt failed because of the receiver or the destination, so that the next
    /// one is due as soon as another message is accepted.
    pub awaits_receiver: bool,
    /// Whether further attempts send the reduced form because the receiver rejected the full one.
    pub is_reduced: bool,
    /// The error of the last failed attempt; empty if none failed.
    pub last_error: String,
    /// Time at which the notification was decided, in milliseconds since 1970.
    pub create_ms: i64,
    pub end_ms: Option<i64>,
    pub retry_of: Option<RecordId>,
    /// The first delivery in the chain of resends; determines the position of the message in its
    /// thread.
    pub origin: Option<RecordId>,
    /// The newest delivery that resends this one.
    pub retried_as: Option<RecordId>,
    pub folding: DigestMembership,
    pub recipients: Recipients,
    pub content: Content,
    /// Whether the position in the thread is indexed; false for deliveries that had already ended
    /// under an earlier version.
    pub in_thread: bool,
    /// The delivery that must end first: an earlier one in the thread, or the digest that contains
    /// this one. Until then this delivery has no due time.
    pub behind: Option<RecordId>,
    /// Whether an attempt of unknown outcome may have reached the receiver.
    pub may_have_arrived: bool,
    /// All values kept for the thread, if the response to this message changed them.
    pub kept: KeptValues,
}

/// The state of a delivery as seen by later ones in its thread. The numbers are stored on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
    /// Reports the end of the thread, and has not ended.
    Closing = 1,
    /// Reports another change, and has not ended.
    Waiting = 2,
    /// Included in a digest.
    Folded = 3,
    /// Delivered, so that later messages report changes.
    Arrived = 4,
    /// Ended without success, but may have reached the receiver.
    Uncertain = 5,
    /// Waits for another delivery, whose identity replaces the thread in the index.
    Behind = 6,
    /// Stores the values kept for the thread, in addition to its other state.
    Keeping = 7,
    /// Stores a value kept for the thread. A digest of the value replaces the thread in the index.
    KeepingValue = 8,
}

impl Delivery {
    /// Creates a delivery due immediately, without a rule or an event, as for a test.
    pub fn new(
        id: RecordId,
        (destination, destination_name): (RecordId, String),
        content: Content,
        create_ms: i64,
    ) -> Self {
        Self {
            id,
            rule: None,
            destination,
            destination_name,
            event: None,
            state: DeliveryState::Pending { due_ms: create_ms },
            test: false,
            attempts: 0,
            deferrals: 0,
            awaits_receiver: false,
            is_reduced: false,
            last_error: String::new(),
            create_ms,
            end_ms: None,
            retry_of: None,
            origin: None,
            retried_as: None,
            folding: DigestMembership::Open,
            recipients: Recipients::default(),
            content,
            in_thread: true,
            behind: None,
            may_have_arrived: false,
            kept: KeptValues::default(),
        }
    }
}

impl Delivery {
    /// Returns the position in the thread: the identities of the first delivery in the chain of
    /// resends and of this delivery.
    pub fn thread_position(&self) -> (RecordId, RecordId) {
        let origin = self.origin.or(self.retry_of).unwrap_or(self.id);
        (origin, self.id)
    }

    /// Returns the due time, in milliseconds since 1970; `None` if the delivery has ended or waits
    /// for another one.
    pub fn due_ms(&self) -> Option<i64> {
        self.state.due_ms().filter(|_| self.behind.is_none())
    }

    /// Returns the thread that the delivery belongs to for its receiver: an occurrence or a group.
    pub fn thread_id(&self) -> RecordId {
        let own = self.content.occurrence.key;
        let known_as = self.content.thread.map_or(own, |thread| thread.key);
        let group = self.content.group.as_ref();
        group.map_or(known_as, |group| group.id)
    }

    /// Returns the state as seen by later deliveries in the thread; `None` if they can ignore this
    /// delivery.
    pub fn thread_state(&self) -> Option<ThreadState> {
        let has_thread = self.event.is_some() || self.content.group.is_some();
        if self.test || !self.in_thread || !has_thread {
            return None;
        }
        match self.state {
            DeliveryState::Pending { .. }
            | DeliveryState::Leased { .. }
            | DeliveryState::Retry { .. } => Some(if self.is_closing() {
                ThreadState::Closing
            } else {
                ThreadState::Waiting
            }),
            DeliveryState::Folded => Some(ThreadState::Folded),
            DeliveryState::Delivered if !self.content.clear => Some(ThreadState::Arrived),
            DeliveryState::Dead | DeliveryState::Cancelled if self.may_have_arrived => {
                Some(ThreadState::Uncertain)
            }
            DeliveryState::Delivered
            | DeliveryState::Dead
            | DeliveryState::Cancelled
            | DeliveryState::Shadowed => None,
        }
    }

    pub fn is_closing(&self) -> bool {
        let is_closed = self.content.occurrence.status == Status::Closed;
        let group = self.content.group.as_ref();
        group.map_or(self.content.clear && is_closed, |it| it.is_over)
    }
}

/// Recipients of a mail to which no further attempt is made. Empty until the first recipient is
/// reached or refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recipients {
    pub reached: Vec<String>,
    /// Addresses that the mail server refused permanently.
    pub refused: Vec<String>,
}

impl Recipients {
    pub fn is_open(&self, address: &str) -> bool {
        let mut settled = self.reached.iter().chain(&self.refused);
        !settled.any(|it| it == address)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    Pending {
        due_ms: i64,
    },
    /// An attempt is in progress.
    Leased {
        until_ms: i64,
    },
    Retry {
        due_ms: i64,
    },
    Delivered,
    /// Failed permanently.
    Dead,
    Cancelled,
    /// Included in a digest and not sent separately.
    Folded,
    Shadowed,
}

impl DeliveryState {
    /// Returns the time of the next action, in milliseconds since 1970; `None` if the delivery has
    /// ended.
    pub fn due_ms(self) -> Option<i64> {
        match self {
            Self::Pending { due_ms } | Self::Retry { due_ms } => Some(due_ms),
            Self::Leased { until_ms } => Some(until_ms),
            Self::Delivered | Self::Dead | Self::Cancelled | Self::Folded | Self::Shadowed => None,
        }
    }

    /// Returns the number used on the wire and in the index.
    pub const fn number(self) -> u8 {
        match self {
            Self::Pending { .. } => 1,
            Self::Leased { .. } => 2,
            Self::Retry { .. } => 3,
            Self::Delivered => 4,
            Self::Dead => 5,
            Self::Cancelled => 6,
            Self::Folded => 7,
            Self::Shadowed => 8,
        }
    }

    pub const NUMBER_MAX: u8 = Self::Shadowed.number();
}

/// The content of a delivery. It is fixed at the decision, so that later edits do not change the
/// message between attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// Whether the delivery reports that a notified occurrence changed or closed.
    pub clear: bool,
    /// The occurrence with its annotations, without its history.
    pub occurrence: Occurrence,
    /// The rule; for a test, a substitute.
    pub rule: RuleContent,
    /// The first matching trigger; `None` for a test.
    pub trigger: Option<Trigger>,
    /// The kind and templates of the destination; its secrets and address are not used.
    pub destination_kind: DestinationKind,
    pub template_language: TemplateLanguage,
    /// The reported group; `None` for a message about a single occurrence. For a group,
    /// `occurrence` is the most severe open member (the oldest among equals), or the member closed
    /// last once the group is over.
    pub group: Option<GroupContent>,
    /// The occurrence under which receivers know this one; `None` if it is this occurrence itself,
    /// and for groups.
    pub thread: Option<ThreadOrigin>,
    /// The content of a digest; `None` for a message sent on its own. For a digest, `occurrence` is
    /// the most severe one, and the rule has no name.
    pub digest: Option<DigestContent>,
    /// The contact being notified; `None` for a plain destination.
    pub contact: Option<PagedContact>,
    /// The state that the rule's previous notification of the occurrence reported; `None` for the
    /// first one, and for groups and digests.
    pub previous: Option<ReportedState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedState {
    pub severity: Severity,
    pub status: Status,
}

impl Content {
    pub fn is_closing(&self) -> bool {
        let is_closed = self.clear && self.occurrence.status == Status::Closed;
        let group = self.group.as_ref();
        self.digest.is_none() && group.map_or(is_closed, |group| group.is_over)
    }

    /// Whether the templates, or the snippets that they include, name all members of a group.
    pub fn names_all_members(&self, snippets: &Snippets) -> bool {
        names_all_members(snippets, |it| {
            self.rule.message.contains(it) || self.destination_kind.mentions_name(it)
        })
    }

    /// Returns the occurrence under which receivers know this one.
    pub fn displayed_occurrence(&self) -> OccurrenceId {
        let own = self.occurrence.id();
        self.thread.map_or(own, |it| it.id(own))
    }

    pub fn digest_item(&self, at_ms: i64) -> DigestItem {
        DigestItem {
            rule_name: self.rule.name.clone(),
            clear: self.clear,
            at_ms,
            occurrence: self.occurrence.clone(),
        }
    }

    /// Returns the distinct occurrences in the content; for a large group, only the most severe
    /// ones.
    pub fn occurrences(&self) -> impl Iterator<Item = &Occurrence> {
        let members = self.group.iter().flat_map(|it| &it.members);
        let members = members.map(|(_, it)| it);
        let others = members.filter(|it| it.key != self.occurrence.key);
        std::iter::once(&self.occurrence).chain(others)
    }
}

/// The part of a rule that messages can show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleContent {
    pub name: String,
    pub description: String,
    pub message: String,
    pub template_language: TemplateLanguage,
    pub enabled: bool,
    pub repeat_interval_seconds: u32,
    pub trigger_names: Vec<Name>,
    pub destination_names: Vec<Name>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub delivery: RecordId,
    /// The number of the attempt, counted from 1.
    pub number: u32,
    pub start_ms: i64,
    /// The duration; `None` if the end is unknown.
    pub duration: Option<Duration>,
    /// The outcome; `None` while the attempt is in progress.
    pub outcome: Option<Outcome>,
    pub explanation: String,
    /// Whether the reduced form of the message was sent.
    pub is_reduced: bool,
    pub transcript: Transcript,
}

/// The outcome of an attempt. The numbers are stored on disk, and are those on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Delivered = 1,
    Rejected = 2,
    /// The provider could not be reached, or timed out.
    Unreachable = 3,
    Blocked = 4,
    /// The message was sent, with unknown outcome.
    Unknown = 5,
}

impl Outcome {
    pub const ALL: [Self; 5] = [
        Self::Delivered,
        Self::Rejected,
        Self::Unreachable,
        Self::Blocked,
        Self::Unknown,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Rejected => "rejected",
            Self::Unreachable => "unreachable",
            Self::Blocked => "blocked",
            Self::Unknown => "unknown",
        }
    }
}

/// The request and the response of an attempt, with secrets masked and bodies truncated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transcript {
    pub request: Option<Request>,
    pub response: Option<Response>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The HTTP method, or `SMTP`.
    pub method: String,
    pub url: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The HTTP status, or the SMTP reply code.
    pub status: u16,
    /// The headers; for a mail, the replies for refused addresses.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}
