//! Resources of any kind.

use crate::domain::{
    Calendar, Client, Contact, Destination, Drill, EnrichmentTable, EscalationPolicy, Heartbeat,
    Inhibition, IntakeMapping, Rule, SavedView, Schedule, Settings, Silence, Trigger,
};

/// Passes the kinds of resources described by documents to a macro, after any context arguments.
/// The arguments per kind are its number in audit entries, its name, its type, its tags, and the
/// fields or methods that reference other kinds. A kind comes after the kinds that it references. A
/// macro that does not need the braces can match them as a `tt`.
#[macro_export]
macro_rules! each_documented {
    ($then:ident $($context:tt)*) => {
        $then! {
            $($context)*
            10 settings Settings(Settings) { tags |_| &[]; }
            6 calendar Calendar(Calendar) { tags |it| &it.tags; names Calendar by except; }
            1 trigger Trigger(Trigger) { tags |it| &it.tags; }
            2 destination Destination(Destination) { tags |it| &it.tags; }
            8 mapping Mapping(IntakeMapping) { tags |it| &it.tags; }
            7 inhibition Inhibition(Inhibition) { tags |it| &it.tags; }
            15 enrichment Enrichment(EnrichmentTable) { tags |it| &it.tags; }
            9 view View(SavedView) { tags |it| &it.tags; }
            11 heartbeat Heartbeat(Heartbeat) { tags |it| &it.tags; names Calendar by calendar; }
            12 contact Contact(Contact) {
                tags |it| &it.tags;
                each Destination of destinations;
                each Calendar of calendars;
            }
            13 schedule Schedule(Schedule) {
                tags |it| &it.tags;
                each Contact of contacts;
                each Calendar of calendars;
            }
            14 policy Policy(EscalationPolicy) {
                tags |it| &it.tags;
                each Destination of destinations;
                each Contact of contacts;
                each Schedule of schedules;
            }
            3 rule Rule(Rule) {
                tags |it| &it.tags;
                names Trigger by trigger_names;
                names Destination by destination_names;
                names Calendar by active_calendar;
                names Policy by escalation_policy;
            }
            16 drill Drill(Drill) { tags |it| &it.tags; }
        }
    };
}
pub use each_documented;

/// Passes all kinds of resources to a macro, like [`each_documented`].
#[macro_export]
macro_rules! each_resource {
    ($then:ident $($context:tt)*) => {
        $crate::each_documented! {
            $then $($context)*
            4 silence Silence(Silence) { tags |it| &it.tags; names Calendar by calendar; }
            5 client Client(Client) { tags |_| &[]; found by key_hashes; }
        }
    };
}
pub use each_resource;

macro_rules! any_resource {
    ($($number:literal $word:ident $kind:ident($type:ident) { tags $tags:expr; $($more:tt)* })+) => {
        /// A snapshot of a resource. Once stored, its secrets are empty.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AnyResource {
            $(#[doc = concat!("Of the kind `", stringify!($word), "`.")]
            $kind($type),)+
        }

        impl AnyResource {
            pub const WORDS: &[&str] = &[$(stringify!($word)),+];

            /// Returns the tags; empty for a client, which has none.
            pub fn tags(&self) -> &[String] {
                match self {
                    $(Self::$kind(it) => {
                        let tags: fn(&$type) -> &[String] = $tags;
                        tags(it)
                    })+
                }
            }
        }
    };
}
each_resource!(any_resource);

impl AnyResource {
    /// Returns the paths of the secrets that differ from `before`.
    pub fn changed_secrets(&self, before: Option<&Self>) -> Vec<String> {
        match (self, before) {
            (Self::Destination(after), None) => after.changed_secrets(None),
            (Self::Destination(after), Some(Self::Destination(before))) => {
                after.changed_secrets(Some(before))
            }
            (Self::Mapping(after), Some(Self::Mapping(before))) => {
                after.changed_secrets(Some(before))
            }
            (Self::Mapping(after), _) => after.changed_secrets(None),
            (Self::Client(after), Some(Self::Client(before)))
                if after.key_hash == before.key_hash =>
            {
                Vec::new()
            }
            (Self::Client(_), _) => vec!["key".into()],
            _ => Vec::new(),
        }
    }
}
