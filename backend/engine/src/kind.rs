//! The kinds of record.

/// The kinds of record. Numbers are written to disk and never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Facts about the store itself.
    Meta = 1,
    /// Triggers, by name.
    Trigger = 2,
    /// Destinations, by name.
    Destination = 3,
    /// Rules, by name.
    Rule = 4,
    /// Clients, by name.
    Client = 5,
    /// Occurrences, by record id.
    Occurrence = 6,
    /// Deliveries, by record id.
    Delivery = 7,
    /// Attempts, by delivery and number.
    Attempt = 8,
    /// The health of destinations' deliveries, by destination id.
    Health = 9,
    /// Answers to requests with an idempotency key, by client and key.
    Receipt = 10,
    /// Triggers and rules before they were edited, by kind, name, id and revision.
    Revision = 11,
    /// Silences, by name.
    Silence = 12,
    /// What the service counts, by what is counted and when.
    Counter = 13,
    /// Calendars, by name.
    Calendar = 14,
    /// Inhibitions, by name.
    Inhibition = 15,
    /// Entries of the audit log, by number.
    Audit = 16,
    /// Groups of occurrences that go out in one message, by record id.
    Group = 17,
    /// Intake mappings, by name.
    Mapping = 18,
    /// What happened to the budgets of destinations, by destination id.
    Budget = 19,
    /// Views, by name.
    View = 20,
}

impl Kind {
    /// Whether changes of such records are found in the change log. What an attempt, a fact, a
    /// counter, a destination's health or its budget says, no one follows automatically.
    pub fn is_logged(self) -> bool {
        !matches!(
            self,
            Self::Meta | Self::Attempt | Self::Health | Self::Counter | Self::Budget
        )
    }

    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 20] = [
        Self::Meta,
        Self::Trigger,
        Self::Destination,
        Self::Rule,
        Self::Client,
        Self::Occurrence,
        Self::Delivery,
        Self::Attempt,
        Self::Health,
        Self::Receipt,
        Self::Revision,
        Self::Silence,
        Self::Counter,
        Self::Calendar,
        Self::Inhibition,
        Self::Audit,
        Self::Group,
        Self::Mapping,
        Self::Budget,
        Self::View,
    ];

    /// The kind of a number on disk.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// The word for such records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Meta => "fact",
            Self::Trigger => "trigger",
            Self::Destination => "destination",
            Self::Rule => "rule",
            Self::Client => "client",
            Self::Occurrence => "occurrence",
            Self::Delivery => "delivery",
            Self::Attempt => "attempt",
            Self::Health => "health",
            Self::Receipt => "receipt",
            Self::Revision => "revision",
            Self::Silence => "silence",
            Self::Counter => "counter",
            Self::Calendar => "calendar",
            Self::Inhibition => "inhibition",
            Self::Audit => "audit entry",
            Self::Group => "group",
            Self::Mapping => "mapping",
            Self::Budget => "budget",
            Self::View => "view",
        }
    }
}
