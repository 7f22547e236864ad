//! Deliveries: notifications on their way to destinations.

use std::{collections::BTreeMap, time::Duration};

use crate::domain::{
    DestinationKind, DigestContent, DigestItem, EventId, Folding, GroupContent, Name, Occurrence,
    OccurrenceId, PagedContact, RecordId, Status, TemplateLanguage, ThreadOf, Trigger,
};

/// One notification on its way to one destination.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Its identity, the same over all attempts; `webhook-id` of a webhook.
    pub id: RecordId,
    /// The rule that notified, by identity; none for a test, and for a digest.
    pub rule: Option<RecordId>,
    /// The destination, by identity; for the test of a draft, a separate identity.
    pub destination: RecordId,
    /// The destination's name; empty for the test of a draft without a name.
    pub destination_name: String,
    /// The event it tells about; none for a test with a sample event, and for a digest.
    pub event: Option<EventId>,
    /// Where it stands.
    pub state: DeliveryState,
    /// Whether it is a test.
    pub test: bool,
    /// How many attempts were begun, with those that a stop of the service cut off.
    pub attempts: u32,
    /// What the last failed attempt said; empty when none failed.
    pub last_error: String,
    /// When the notification was decided, in milliseconds since 1970.
    pub create_ms: i64,
    /// When it ended, in milliseconds since 1970.
    pub end_ms: Option<i64>,
    /// The delivery that this one sends again.
    pub retry_of: Option<RecordId>,
    /// The first of the deliveries that this one sends again, one after the other: the message has its
    /// place in the order of its thread.
    pub origin: Option<RecordId>,
    /// The newest delivery that sends this one again.
    pub retried_as: Option<RecordId>,
    /// How it stands to the budget of its destination.
    pub folding: Folding,
    /// The addresses of a mail that get no further attempt.
    pub recipients: Recipients,
    /// What there is to tell, as it was when the notification was decided.
    pub content: Content,
    /// Whether its place in its thread is noted; not for what earlier versions decided and had ended.
    pub in_thread: bool,
    /// The message of its thread, or the digest with that message, that has to end before it. It has no due time
    /// meanwhile.
    pub behind: Option<RecordId>,
    /// Whether the receiver may have it from an attempt of unknown outcome.
    pub may_have_arrived: bool,
}

/// The standing of a delivery towards those after it in its thread. Numbers are written to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadStanding {
    /// It tells that the thread is over, and has not ended.
    Closing = 1,
    /// It tells something else, and has not ended.
    Waiting = 2,
    /// A digest includes it.
    Folded = 3,
    /// It arrived; later ones report changes of it.
    Arrived = 4,
    /// It ended without success, and may have arrived nevertheless.
    Uncertain = 5,
    /// It waits for the end of another delivery, whose identity replaces the thread in the index.
    Behind = 6,
}

impl Delivery {
    /// One that is decided, and due immediately: of no rule and about no event, as a test is.
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
            last_error: String::new(),
            create_ms,
            end_ms: None,
            retry_of: None,
            origin: None,
            retried_as: None,
            folding: Folding::Open,
            recipients: Recipients::default(),
            content,
            in_thread: true,
            behind: None,
            may_have_arrived: false,
        }
    }
}

impl Delivery {
    /// Its place in the order of the messages of its thread: when the notification was decided that
    /// it reports on, though it may be sent again later.
    pub fn place(&self) -> (RecordId, RecordId) {
        let origin = self.origin.or(self.retry_of).unwrap_or(self.id);
        (origin, self.id)
    }

    /// Returns the time at which it is due, in milliseconds since 1970; `None` if it has ended or waits for the end
    /// of another.
    pub fn due_ms(&self) -> Option<i64> {
        self.state.due_ms().filter(|_| self.behind.is_none())
    }

    /// What its receiver sees as one matter: an occurrence, or a group.
    pub fn thread(&self) -> RecordId {
        let own = self.content.occurrence.key;
        let known_as = self.content.thread.map_or(own, |thread| thread.key);
        let group = self.content.group.as_ref();
        group.map_or(known_as, |group| group.id)
    }

    /// Returns its standing towards those after it in its thread; none where it is of no concern to them.
    pub fn thread_standing(&self) -> Option<ThreadStanding> {
        let has_thread = self.event.is_some() || self.content.group.is_some();
        if self.test || !self.in_thread || !has_thread {
            return None;
        }
        match self.state {
            DeliveryState::Pending { .. }
            | DeliveryState::Leased { .. }
            | DeliveryState::Retry { .. } => Some(if self.is_closing() {
                ThreadStanding::Closing
            } else {
                ThreadStanding::Waiting
            }),
            DeliveryState::Folded => Some(ThreadStanding::Folded),
            DeliveryState::Delivered if !self.content.clear => Some(ThreadStanding::Arrived),
            DeliveryState::Dead | DeliveryState::Cancelled if self.may_have_arrived => {
                Some(ThreadStanding::Uncertain)
            }
            DeliveryState::Delivered
            | DeliveryState::Dead
            | DeliveryState::Cancelled
            | DeliveryState::Shadowed => None,
        }
    }

    /// Whether it tells that its thread is over.
    pub fn is_closing(&self) -> bool {
        let is_closed = self.content.occurrence.status == Status::Closed;
        let group = self.content.group.as_ref();
        group.map_or(self.content.clear && is_closed, |it| it.is_over)
    }
}

/// The addresses of a mail that get no further attempt; empty as long as none has the mail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recipients {
    /// Those that have the mail.
    pub reached: Vec<String>,
    /// Those that the mail server refused permanently.
    pub refused: Vec<String>,
}

impl Recipients {
    /// Whether an address gets a further attempt.
    pub fn is_open(&self, address: &str) -> bool {
        let mut settled = self.reached.iter().chain(&self.refused);
        !settled.any(|it| it == address)
    }
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// Waits for its first attempt.
    Pending {
        /// When it is due, in milliseconds since 1970.
        due_ms: i64,
    },
    /// An attempt is under way.
    Leased {
        /// When the lease runs out, in milliseconds since 1970.
        until_ms: i64,
    },
    /// Waits for its next attempt.
    Retry {
        /// When it is due, in milliseconds since 1970.
        due_ms: i64,
    },
    /// The provider took the message.
    Delivered,
    /// Given up.
    Dead,
    /// Ended by an operator, or its destination is gone.
    Cancelled,
    /// Included in a digest, not sent separately.
    Folded,
    /// Of a shadow rule: recorded, and never sent.
    Shadowed,
}

impl DeliveryState {
    /// When something has to be done about it; none when it has ended.
    pub fn due_ms(self) -> Option<i64> {
        match self {
            Self::Pending { due_ms } | Self::Retry { due_ms } => Some(due_ms),
            Self::Leased { until_ms } => Some(until_ms),
            Self::Delivered | Self::Dead | Self::Cancelled | Self::Folded | Self::Shadowed => None,
        }
    }

    /// Its number on the wire and in the store's index.
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

    /// The largest of these numbers.
    pub const NUMBER_MAX: u8 = Self::Shadowed.number();
}

/// What there is to tell. It does not change after the decision, so that every attempt of a
/// delivery carries the same message whatever is edited meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// Whether it tells that a notified occurrence changed or ended.
    pub clear: bool,
    /// The occurrence, with its annotations and without its history.
    pub occurrence: Occurrence,
    /// The rule; for a test, one that replaces it.
    pub rule: RuleContent,
    /// The trigger that matched first; none for a test.
    pub trigger: Option<Trigger>,
    /// The kind and the templates of the destination; secrets and the address in it are not used.
    pub destination_kind: DestinationKind,
    /// The language of the templates in it.
    pub template_language: TemplateLanguage,
    /// The group that it reports on; none for an occurrence on its own. `occurrence` is its most
    /// severe open member, then the oldest; after its end the one that was closed last.
    pub group: Option<GroupContent>,
    /// For an occurrence on its own: the one that its receivers know it by, where that is another.
    pub thread: Option<ThreadOf>,
    /// What a digest includes; none for what is sent separately. `occurrence` is then the most
    /// severe one, and the rule has no name.
    pub digest: Option<DigestContent>,
    /// The contact that is notified; none for a destination on its own.
    pub contact: Option<PagedContact>,
}

impl Content {
    /// Whether it tells that the occurrence was closed.
    pub fn is_closing(&self) -> bool {
        let is_closed = self.clear && self.occurrence.status == Status::Closed;
        let group = self.group.as_ref();
        self.digest.is_none() && group.map_or(is_closed, |group| group.is_over)
    }

    /// The occurrence that receivers know it by.
    pub fn known_as(&self) -> OccurrenceId {
        let own = self.occurrence.id();
        self.thread.map_or(own, |it| it.id(own))
    }

    /// What a digest includes of a delivery with this content that was decided then.
    pub fn digest_item(&self, at_ms: i64) -> DigestItem {
        DigestItem {
            rule_name: self.rule.name.clone(),
            clear: self.clear,
            at_ms,
            occurrence: self.occurrence.clone(),
        }
    }

    /// The occurrences that it names, each once: all, or the most severe of a group.
    pub fn occurrences(&self) -> impl Iterator<Item = &Occurrence> {
        let members = self.group.iter().flat_map(|it| &it.members);
        let members = members.map(|(_, it)| it);
        let others = members.filter(|it| it.key != self.occurrence.key);
        std::iter::once(&self.occurrence).chain(others)
    }
}

/// What a message can tell about its rule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleContent {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// The message's template.
    pub message: String,
    /// The language of that template.
    pub template_language: TemplateLanguage,
    /// Whether it was enabled.
    pub enabled: bool,
    /// Seconds between repeats.
    pub repeat_interval_seconds: u32,
    /// Its triggers.
    pub trigger_names: Vec<Name>,
    /// Its destinations.
    pub destination_names: Vec<Name>,
}

/// One try of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The delivery.
    pub delivery: RecordId,
    /// 1 for the first.
    pub number: u32,
    /// When it began, in milliseconds since 1970.
    pub start_ms: i64,
    /// How long it took; none when its end is not known.
    pub duration: Option<Duration>,
    /// The verdict; none while it is under way.
    pub outcome: Option<Outcome>,
    /// The verdict in a sentence for people.
    pub explanation: String,
    /// What was sent and what came back, secrets masked.
    pub transcript: Transcript,
}

/// The outcome of an attempt, by what the provider means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The provider took the message.
    Delivered,
    /// The provider answered and refused the message.
    Rejected,
    /// The provider could not be reached, or did not answer in time.
    Unreachable,
    /// The egress guard did not let the message out.
    Blocked,
    /// The message was sent and its end is not known.
    Unknown,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Delivered,
        Self::Rejected,
        Self::Unreachable,
        Self::Blocked,
        Self::Unknown,
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Rejected => "rejected",
            Self::Unreachable => "unreachable",
            Self::Blocked => "blocked",
            Self::Unknown => "unknown",
        }
    }
}

/// What was sent and what came back, secrets masked, bodies cut.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transcript {
    /// What was sent; none when nothing was.
    pub request: Option<Request>,
    /// What came back; none when nothing did.
    pub response: Option<Response>,
}

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The HTTP method, or `SMTP`.
    pub method: String,
    /// The address.
    pub url: String,
    /// The headers.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The HTTP status, or the SMTP reply code.
    pub status: u16,
    /// The headers; of a mail, the answers about addresses that were refused.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}
