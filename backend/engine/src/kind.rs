//! The kinds of record.

/// The one list of kinds: the number on disk, which never changes its meaning, the word, and the table
/// in PostgreSQL, with the layout since which it is there; the files of the layout made the others.
macro_rules! kinds {
    ($(
        #[doc = $doc:literal]
        $kind:ident = $number:literal, $word:literal, table $table:literal $(since $layout:literal)?;
    )+) => {
        /// The kinds of record. Numbers are written to disk and never change their meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind {
            $(#[doc = $doc] $kind = $number,)+
        }

        impl Kind {
            /// All of them, in the order of their numbers.
            pub const ALL: [Self; [$($number),+].len()] = [$(Self::$kind),+];

            /// The word for such records.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$kind => $word,)+
                }
            }

            /// The table of such records in PostgreSQL.
            pub(crate) fn table(self) -> &'static str {
                match self {
                    $(Self::$kind => $table,)+
                }
            }

            /// The layout in PostgreSQL that added the table; none where a file of the layout makes it.
            pub(crate) fn layout(self) -> Option<i32> {
                match self {
                    $(Self::$kind => None$(.or(Some($layout)))?,)+
                }
            }
        }
    };
}

kinds! {
    /// Facts about the store itself.
    Meta = 1, "fact", table "meta";
    /// Triggers, by name.
    Trigger = 2, "trigger", table "trigger";
    /// Destinations, by name.
    Destination = 3, "destination", table "destination";
    /// Rules, by name.
    Rule = 4, "rule", table "rule";
    /// Clients, by name.
    Client = 5, "client", table "client";
    /// Occurrences, by record id.
    Occurrence = 6, "occurrence", table "occurrence_now";
    /// Deliveries, by record id.
    Delivery = 7, "delivery", table "delivery";
    /// Attempts, by delivery and number.
    Attempt = 8, "attempt", table "attempt";
    /// The health of destinations' deliveries, by destination id.
    Health = 9, "health", table "health";
    /// Answers to requests with an idempotency key, by client and key.
    Receipt = 10, "receipt", table "receipt";
    /// Triggers and rules before they were edited, by kind, name, id and revision.
    Revision = 11, "revision", table "revision";
    /// Silences, by name.
    Silence = 12, "silence", table "silence";
    /// What the service counts, by what is counted and when.
    Counter = 13, "counter", table "counter";
    /// Calendars, by name.
    Calendar = 14, "calendar", table "calendar";
    /// Inhibitions, by name.
    Inhibition = 15, "inhibition", table "inhibition";
    /// Entries of the audit log, by number.
    Audit = 16, "audit entry", table "audit";
    /// Groups of occurrences that go out in one message, by record id.
    Group = 17, "group", table "occurrence_group";
    /// Intake mappings, by name.
    Mapping = 18, "mapping", table "mapping";
    /// What happened to the budgets of destinations, by destination id.
    Budget = 19, "budget", table "budget";
    /// Views, by name.
    View = 20, "view", table "saved_view" since 4;
    /// The settings that all nodes share, by name.
    Settings = 21, "settings", table "settings" since 5;
    /// Heartbeats, by name.
    Heartbeat = 22, "heartbeat", table "heartbeat" since 6;
    /// What heartbeats expect, by the identity of the heartbeat and a digest of the values.
    Expectation = 23, "expectation", table "expectation" since 6;
    /// Contacts, by name.
    Contact = 24, "contact", table "contact" since 7;
    /// Schedules, by name.
    Schedule = 25, "schedule", table "schedule" since 7;
    /// Escalation policies, by name.
    Policy = 26, "policy", table "escalation_policy" since 7;
    /// Events of the service's own that are not ingested yet, by record id.
    OwnEvent = 27, "own event", table "own_event" since 11;
}

impl Kind {
    /// Whether changes of such records are found in the change log. What an attempt, a fact, a
    /// counter, a destination's health or its budget, or an expectation says, no one follows automatically.
    pub fn is_logged(self) -> bool {
        !matches!(
            self,
            Self::Meta
                | Self::Attempt
                | Self::Health
                | Self::Counter
                | Self::Budget
                | Self::Expectation
        )
    }

    /// The kind of a number on disk.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}
