//! The named indexes and the layout of their keys.

use super::kind::Kind;

/// The named indexes. An entry maps a sort key to the key of a record. Sort keys are unique, so
/// those that could repeat end with the record's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Index {
    /// Event id, number of the occurrence (4 bytes). Points to the occurrence.
    OccurrenceByEvent = 1,
    /// Status (1 byte), severity (1 byte), last seen in ms (8 bytes), tie (20 bytes),
    /// occurrence.
    OccurrenceByState = 2,
    /// Tie (20 bytes: see `Key::tie_breaker`), occurrence.
    OccurrenceByStart = 3,
    /// Next review in ms (8 bytes), occurrence.
    OccurrenceByReview = 4,
    /// Trigger name, NUL, rule name.
    RuleByTrigger = 5,
    /// Destination name, NUL, rule name.
    RuleByDestination = 6,
    /// SHA-256 of the key. Points to the client.
    ClientByKey = 7,
    /// Destination id, due in ms (8 bytes), delivery. Only unfinished deliveries.
    DeliveryByDue = 8,
    /// Event id, delivery.
    DeliveryByEvent = 9,
    /// Destination id, delivery.
    DeliveryByDestination = 10,
    /// Rule id, delivery. Excludes records of shadow rules.
    DeliveryByRule = 11,
    /// State (1 byte), delivery.
    DeliveryByState = 12,
    /// Trigger id, delivery. Excludes tests. For records of shadow rules: rule id, delivery.
    NotificationByTrigger = 13,
    /// Destination id, delivery. Excludes tests, digests and records of shadow rules.
    NotificationByDestination = 14,
    /// Creation time in ms (8 bytes), client, idempotency key. Points to the receipt.
    ReceiptByTime = 15,
    /// End in ms (8 bytes), revision.
    RevisionByEnd = 16,
    /// Time of the next evaluation in ms (8 bytes), occurrence. Only for occurrences with a waiting
    /// notification.
    OccurrenceByDue = 17,
    /// Relation to the silence or the cause (1 byte, see [`SilenceStanding`]), id of the silence or
    /// cause, occurrence.
    OccurrenceBySilence = 18,
    /// Status (1 byte), severity (1 byte), tie (20 bytes), occurrence.
    OccurrenceBySeverity = 19,
    /// Calendar name, NUL, name of a rule that notifies only inside its windows.
    RuleByCalendar = 20,
    /// Calendar name, NUL, name of a silence that is in force inside its windows.
    SilenceByCalendar = 21,
    /// Name of the excluded calendar, NUL, name of the calendar that excludes it.
    CalendarByException = 22,
    /// Inhibition id, digest of the values of the equal fields (16 bytes), occurrence. Only
    /// sources.
    OccurrenceByCause = 23,
    /// Resource type, NUL, resource name, NUL, sequence number of the audit entry (8 bytes). Points
    /// to that entry.
    AuditByName = 24,
    /// Relation to the group (1 byte, see [`Membership`]), the group's key or id, for open
    /// occurrences 255 minus the severity (1 byte), occurrence.
    OccurrenceByGroup = 25,
    /// Key shared by the members, group. Only groups that accept members.
    GroupByKey = 26,
    /// End in ms (8 bytes), group. Only groups that ended.
    GroupByEnd = 27,
    /// Group id, delivery.
    DeliveryByGroup = 28,
    /// Id of the containing digest, delivery.
    DeliveryByDigest = 29,
    /// Heartbeat id, status (1 byte), last beat in ms of service time (8 bytes), digest of its
    /// values. Points to the expectation. Running jobs have a second entry: an id with all bits
    /// set, heartbeat id, start in ms of service time (8 bytes), digest of its values.
    ExpectationByBeat = 30,
    /// Policy name, NUL, name of a rule that refers to it.
    RuleByPolicy = 31,
    /// Type of the referenced resource (1 byte), its name, NUL, name of the referring contact.
    ContactByUse = 32,
    /// Like [`Self::ContactByUse`], for schedules.
    ScheduleByUse = 33,
    /// Like [`Self::ContactByUse`], for escalation policies.
    PolicyByUse = 34,
    /// State of a response (1 byte), id of the response. Points to the occurrence.
    OccurrenceByResponse = 35,
    /// Calendar name, NUL, name of a heartbeat that refers to it.
    HeartbeatByCalendar = 36,
    /// Destination id, id of the thread's occurrence or group, rule id or zeros, relation to later
    /// deliveries (1 byte), the first delivery of a chain of resends, delivery. Deliveries that
    /// wait for another delivery to end have a second entry: destination id, the other delivery,
    /// zeros, 6, the other delivery, delivery. Each value that is kept for the thread has an entry:
    /// destination id, digest of its name and text, zeros, 8, the first delivery, delivery.
    DeliveryByThread = 37,
}

/// The relation of an occurrence to a silence or a cause: the first byte of an entry of
/// [`Index::OccurrenceBySilence`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilenceStanding {
    Covered = 1,
    /// Has a notification held by the silence.
    Pending = 2,
    /// Had a notification skipped while the silence held it.
    Skipped = 3,
    /// Has a notification held while its cause, another occurrence, is open.
    Inhibited = 4,
    /// Carries a response held by the silence, or is in a group with another member that could
    /// carry it.
    Response = 5,
    /// Carries a response held by the cause.
    ResponseInhibited = 6,
}

/// The relation of an occurrence to a group: the first byte of an entry of
/// [`Index::OccurrenceByGroup`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// Included in the next message for the first time. By key.
    Joining = 1,
    /// Reported and not closed. By group.
    Open = 2,
    /// Reported, neither closed nor acknowledged. By group.
    Unacknowledged = 3,
    /// Has an update in the next message. By group.
    Updated = 4,
    /// Reported and closed. By group.
    Closed = 5,
}

impl Index {
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

    /// Whether every entry ends with the key of a record that is created only once. Entries of a
    /// new record then cannot exist yet.
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
