//! The named indexes, and what their keys are built from.

use super::kind::Kind;

/// The named indexes. An entry is a key that sorts, and the key of the record it leads to; each
/// entry's key is unique, so a key that could repeat ends with the record's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Index {
    /// Event id, number (4 bytes). Leads to the occurrence.
    OccurrenceByEvent = 1,
    /// Status (1 byte), severity (1 byte), last seen in ms (8 bytes), tie (20 bytes),
    /// occurrence.
    OccurrenceByState = 2,
    /// Tie (20 bytes: see `Key::tie`), occurrence.
    OccurrenceByStart = 3,
    /// Next review in ms (8 bytes), occurrence.
    OccurrenceByReview = 4,
    /// Trigger name, 0, rule name.
    RuleByTrigger = 5,
    /// Destination name, 0, rule name.
    RuleByDestination = 6,
    /// SHA-256 of the key. Leads to the client.
    ClientByKey = 7,
    /// Destination id, due in ms (8 bytes), delivery. Only deliveries that have not ended.
    DeliveryByDue = 8,
    /// Event id, delivery.
    DeliveryByEvent = 9,
    /// Destination id, delivery.
    DeliveryByDestination = 10,
    /// Rule id, delivery. Without what a shadow rule recorded.
    DeliveryByRule = 11,
    /// State (1 byte), delivery.
    DeliveryByState = 12,
    /// Trigger id, delivery. Without tests. For what a shadow rule recorded: rule id, delivery.
    NotificationByTrigger = 13,
    /// Destination id, delivery. Without tests, digests, and what a shadow rule recorded.
    NotificationByDestination = 14,
    /// When it was made in ms (8 bytes), client, idempotency key. Leads to the receipt.
    ReceiptByTime = 15,
    /// End in ms (8 bytes), revision.
    RevisionByEnd = 16,
    /// When to look again in ms (8 bytes), occurrence. Only where something waits.
    OccurrenceByDue = 17,
    /// How it stands to the silence or the cause (1 byte, see [`SilenceStanding`]), its id, occurrence.
    OccurrenceBySilence = 18,
    /// Status (1 byte), severity (1 byte), tie (20 bytes), occurrence.
    OccurrenceBySeverity = 19,
    /// Calendar name, 0, name of the rule that notifies inside its windows.
    RuleByCalendar = 20,
    /// Calendar name, 0, name of the silence that is in force inside its windows.
    SilenceByCalendar = 21,
    /// Name of the calendar that is taken out, 0, name of the other.
    CalendarByException = 22,
    /// Inhibition id, digest of what the equal fields hold (16 bytes), occurrence. Only sources.
    OccurrenceByCause = 23,
    /// Kind of thing, 0, its name, 0, number (8 bytes). Leads to the entry of the audit log.
    AuditByName = 24,
    /// How it stands to the group (1 byte, see [`Membership`]), the group's key or id, for what is open
    /// 255 less its severity (1 byte), occurrence.
    OccurrenceByGroup = 25,
    /// Key of what its members share, group. Only groups that take members.
    GroupByKey = 26,
    /// When it was over in ms (8 bytes), group. Only those that are over.
    GroupByEnd = 27,
    /// Group id, delivery.
    DeliveryByGroup = 28,
    /// Id of the digest that includes it, delivery.
    DeliveryByDigest = 29,
    /// Heartbeat id, how it stands (1 byte), last beat in ms of service (8 bytes), digest of its values.
    /// Leads to the expectation. Of what runs a second entry: the id of which all bits are set, heartbeat
    /// id, start in ms of service (8 bytes), digest of its values.
    ExpectationByBeat = 30,
    /// Policy name, 0, name of the rule that refers to it.
    RuleByPolicy = 31,
    /// Kind of what is named (1 byte), its name, 0, name of the contact that names it.
    ContactByUse = 32,
    /// The same of schedules.
    ScheduleByUse = 33,
    /// The same of escalation policies.
    PolicyByUse = 34,
    /// State of a response (1 byte), its id. Leads to the occurrence.
    OccurrenceByResponse = 35,
    /// Calendar name, 0, name of the heartbeat that refers to it.
    HeartbeatByCalendar = 36,
    /// Destination id, id of the occurrence or group that the thread is about, rule id or zeros, how it stands to
    /// those after it (1 byte), the first of those that it sends again or itself, delivery. Of what waits for the end
    /// of another delivery a second entry: destination id, that delivery, zeros, 6, that delivery, delivery.
    DeliveryByThread = 37,
}

/// How an occurrence stands to a silence, or to a cause: the first byte of an [`Index::OccurrenceBySilence`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilenceStanding {
    /// It is covered.
    Covered = 1,
    /// Something of it is held by the silence.
    Pending = 2,
    /// Something of it was skipped while the silence held it.
    Skipped = 3,
    /// Something of it is held while that other occurrence, its cause, is open.
    Inhibited = 4,
    /// A response that it carries is held by the silence, or another member of the group is that could carry it.
    Response = 5,
    /// A response that it carries is held by that other occurrence, the cause.
    ResponseInhibited = 6,
}

/// How an occurrence stands to a group: the first byte of an [`Index::OccurrenceByGroup`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// It is included in the next message, for the first time. By the key.
    Joining = 1,
    /// It was reported and is not closed. By the group.
    Open = 2,
    /// It was reported, is not closed and not acknowledged. By the group.
    Unacknowledged = 3,
    /// Something of it is included in the next message. By the group.
    News = 4,
    /// It was reported and is closed. By the group.
    Closed = 5,
}

impl Index {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 37] = [
        Self::OccurrenceByEvent,
        Self::OccurrenceByState,
        Self::OccurrenceByStart,
        Self::OccurrenceByReview,
        Self::RuleByTrigger,
        Self::RuleByDestination,
        Self::ClientByKey,
        Self::DeliveryByDue,
        Self::DeliveryByEvent,
        Self::DeliveryByDestination,
        Self::DeliveryByRule,
        Self::DeliveryByState,
        Self::NotificationByTrigger,
        Self::NotificationByDestination,
        Self::ReceiptByTime,
        Self::RevisionByEnd,
        Self::OccurrenceByDue,
        Self::OccurrenceBySilence,
        Self::OccurrenceBySeverity,
        Self::RuleByCalendar,
        Self::SilenceByCalendar,
        Self::CalendarByException,
        Self::OccurrenceByCause,
        Self::AuditByName,
        Self::OccurrenceByGroup,
        Self::GroupByKey,
        Self::GroupByEnd,
        Self::DeliveryByGroup,
        Self::DeliveryByDigest,
        Self::ExpectationByBeat,
        Self::RuleByPolicy,
        Self::ContactByUse,
        Self::ScheduleByUse,
        Self::PolicyByUse,
        Self::OccurrenceByResponse,
        Self::HeartbeatByCalendar,
        Self::DeliveryByThread,
    ];
}

impl Index {
    /// The kind of record that its entries lead to.
    pub fn kind(self) -> Kind {
        match self {
            Self::OccurrenceByEvent
            | Self::OccurrenceByState
            | Self::OccurrenceByStart
            | Self::OccurrenceByReview
            | Self::OccurrenceByDue
            | Self::OccurrenceBySilence
            | Self::OccurrenceByCause
            | Self::OccurrenceByGroup
            | Self::OccurrenceByResponse
            | Self::OccurrenceBySeverity => Kind::Occurrence,
            Self::RuleByTrigger
            | Self::RuleByDestination
            | Self::RuleByCalendar
            | Self::RuleByPolicy => Kind::Rule,
            Self::SilenceByCalendar => Kind::Silence,
            Self::CalendarByException => Kind::Calendar,
            Self::ClientByKey => Kind::Client,
            Self::DeliveryByDue
            | Self::DeliveryByEvent
            | Self::DeliveryByDestination
            | Self::DeliveryByRule
            | Self::DeliveryByState
            | Self::DeliveryByGroup
            | Self::DeliveryByDigest
            | Self::DeliveryByThread
            | Self::NotificationByTrigger
            | Self::NotificationByDestination => Kind::Delivery,
            Self::GroupByKey | Self::GroupByEnd => Kind::Group,
            Self::ReceiptByTime => Kind::Receipt,
            Self::RevisionByEnd => Kind::Revision,
            Self::AuditByName => Kind::Audit,
            Self::ExpectationByBeat => Kind::Expectation,
            Self::ContactByUse => Kind::Contact,
            Self::ScheduleByUse => Kind::Schedule,
            Self::PolicyByUse => Kind::Policy,
            Self::HeartbeatByCalendar => Kind::Heartbeat,
        }
    }

    /// Whether every entry ends with the key of a record that is made once only: then an entry of a
    /// record that is new cannot be there.
    pub(super) fn ends_with_record(self) -> bool {
        match self {
            Self::OccurrenceByState
            | Self::OccurrenceByStart
            | Self::OccurrenceByReview
            | Self::OccurrenceByDue
            | Self::OccurrenceBySilence
            | Self::OccurrenceByCause
            | Self::OccurrenceBySeverity
            | Self::DeliveryByDue
            | Self::DeliveryByEvent
            | Self::DeliveryByDestination
            | Self::DeliveryByRule
            | Self::DeliveryByState
            | Self::NotificationByTrigger
            | Self::NotificationByDestination
            | Self::OccurrenceByGroup
            | Self::GroupByKey
            | Self::GroupByEnd
            | Self::DeliveryByGroup
            | Self::DeliveryByDigest
            | Self::DeliveryByThread
            | Self::AuditByName => true,
            Self::OccurrenceByEvent
            | Self::RuleByTrigger
            | Self::RuleByDestination
            | Self::RuleByCalendar
            | Self::SilenceByCalendar
            | Self::CalendarByException
            | Self::ClientByKey
            | Self::ReceiptByTime
            | Self::ExpectationByBeat
            | Self::RuleByPolicy
            | Self::ContactByUse
            | Self::ScheduleByUse
            | Self::PolicyByUse
            | Self::OccurrenceByResponse
            | Self::HeartbeatByCalendar
            | Self::RevisionByEnd => false,
        }
    }
}
