//! The kinds of record.

/// The single list of kinds: the number on disk, which never changes its meaning, the display name,
/// and the PostgreSQL table with the layout version that added the table. Tables without a layout
/// version are created by the layout files.
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
            /// All kinds, in the order of their numbers.
            pub const ALL: [Self; [$($number),+].len()] = [$(Self::$kind),+];

            /// Returns the display name of such a record.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $word,)+
                }
            }

            pub(crate) fn table_name(self) -> &'static str {
                match self {
                    $(Self::$kind => $table,)+
                }
            }

            /// Returns the layout version that added the table, or `None` if a layout file creates
            /// it.
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
    /// Delivery health of destinations, by destination id.
    Health = 9, "health", table "health";
    /// Responses to requests with an idempotency key, by client and key.
    Receipt = 10, "receipt", table "receipt";
    /// Former revisions of triggers and rules, by kind, name, id and revision.
    Revision = 11, "revision", table "revision";
    /// Silences, by name.
    Silence = 12, "silence", table "silence";
    /// The service's counters, by subject and time.
    Counter = 13, "counter", table "counter";
    /// Calendars, by name.
    Calendar = 14, "calendar", table "calendar";
    /// Inhibitions, by name.
    Inhibition = 15, "inhibition", table "inhibition";
    /// Entries of the audit log, by number.
    Audit = 16, "audit entry", table "audit";
    /// Groups of occurrences that share messages, by record id.
    Group = 17, "group", table "occurrence_group";
    /// Intake mappings, by name.
    Mapping = 18, "mapping", table "mapping";
    /// Budget windows of destinations, by destination id.
    Budget = 19, "budget", table "budget";
    /// Saved views, by name.
    View = 20, "view", table "saved_view" since 4;
    /// Settings shared by all nodes, by name.
    Settings = 21, "settings", table "settings" since 5;
    /// Heartbeats, by name.
    Heartbeat = 22, "heartbeat", table "heartbeat" since 6;
    /// Expectations of heartbeats, by heartbeat id and a digest of the values.
    Expectation = 23, "expectation", table "expectation" since 6;
    /// Contacts, by name.
    Contact = 24, "contact", table "contact" since 7;
    /// Schedules, by name.
    Schedule = 25, "schedule", table "schedule" since 7;
    /// Escalation policies, by name.
    Policy = 26, "policy", table "escalation_policy" since 7;
    /// Events of the service itself that are not ingested yet, by record id.
    OwnEvent = 27, "own event", table "own_event" since 11;
    /// Enrichment tables, by name.
    Enrichment = 28, "enrichment", table "enrichment_table" since 12;
    /// Drills, by name.
    Drill = 29, "drill", table "drill" since 12;
}

impl Kind {
    /// Whether changes to such records are written to the change log. No reader follows changes to
    /// attempts, facts, counters, health, budgets and expectations.
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

    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}
