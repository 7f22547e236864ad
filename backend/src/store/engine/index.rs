//! The named indexes, and what their keys are made of.

/// The named indexes. An entry is a key that sorts, and the key of the record it leads to; each
/// entry's key is unique, so a key that could repeat ends with the record's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Index {
    /// Event id, number (4 bytes). Leads to the occurrence.
    OccurrenceByEvent = 1,
    /// Status (1 byte), severity (1 byte), last seen in ms (8 bytes), occurrence.
    OccurrenceByState = 2,
    /// Start in ms (8 bytes), occurrence.
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
    /// Rule id, delivery.
    DeliveryByRule = 11,
    /// State (1 byte), delivery.
    DeliveryByState = 12,
    /// Trigger id, delivery. Without tests.
    NotificationByTrigger = 13,
    /// Destination id, delivery. Without tests.
    NotificationByDestination = 14,
    /// When it was made in ms (8 bytes), client, idempotency key. Leads to the receipt.
    ReceiptByTime = 15,
    /// End in ms (8 bytes), revision.
    RevisionByEnd = 16,
}

impl Index {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 16] = [
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
    ];
}

impl Index {
    /// Whether every entry ends with the key of a record that is made once only: then an entry of a
    /// record that is new cannot be there.
    pub(super) fn ends_with_record(self) -> bool {
        match self {
            Self::OccurrenceByState
            | Self::OccurrenceByStart
            | Self::OccurrenceByReview
            | Self::DeliveryByDue
            | Self::DeliveryByEvent
            | Self::DeliveryByDestination
            | Self::DeliveryByRule
            | Self::DeliveryByState
            | Self::NotificationByTrigger
            | Self::NotificationByDestination => true,
            Self::OccurrenceByEvent
            | Self::RuleByTrigger
            | Self::RuleByDestination
            | Self::ClientByKey
            | Self::ReceiptByTime
            | Self::RevisionByEnd => false,
        }
    }
}
