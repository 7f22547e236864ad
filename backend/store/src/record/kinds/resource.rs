//! What people define, as records.

use super::{decoded_proven, defined, entry, proven};
use crate::record::{Record, Reference, bytes::Key};
use crate::{
    audit::Seen,
    domain::{
        AnyResource, Calendar, Client, Destination, Inhibition, IntakeMapping, Name, Rule,
        SavedView, Settings, Silence, Trigger,
    },
    engine::{EngineError, Entry, Index, Kind},
    seal::Sealer,
};

/// What people define: kept by its name, proven, and in the audit log as it is. What refers to others
/// by name has entries that lead back from them.
macro_rules! defined {
    ($($kind:ident($record:ident) refers $refers:expr $(, entries $entries:expr)?;)*) => {$(
        impl Record for $record {
            const KIND: Kind = Kind::$kind;

            fn seen(&self) -> Option<Seen> {
                Some(defined(&self.name, AnyResource::$kind(self.clone())))
            }

            fn key(&self) -> Vec<u8> {
                self.name.as_str().into()
            }

            fn refers(&self) -> Vec<Reference<'_>> {
                let refers: fn(&Self) -> Vec<Reference<'_>> = $refers;
                refers(self)
            }

            fn entries(&self) -> Vec<Entry> {
                let name = self.name.as_str().as_bytes();
                let key = |other: &Name| Key::new().name(other.as_str()).rest(name);
                let back = self.refers().into_iter().map(|it| entry(it.back, key(it.name)));
                back$(.chain($entries(self)))?.collect()
            }

            fn encode(&self, sealer: &Sealer) -> Vec<u8> {
                proven(self, self.id, Self::KIND, sealer)
            }

            fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
                decoded_proven(bytes, Self::KIND, sealer)
            }
        }
    )*};
}

defined! {
    Trigger(Trigger) refers |_| Vec::new();
    Destination(Destination) refers |_| Vec::new();
    Rule(Rule) refers of_rule;
    Silence(Silence) refers |it| by_name(Kind::Calendar, Index::SilenceByCalendar, &it.calendar);
    Calendar(Calendar) refers |it| by_name(Kind::Calendar, Index::CalendarByException, &it.except);
    Inhibition(Inhibition) refers |_| Vec::new();
    Mapping(IntakeMapping) refers |_| Vec::new();
    View(SavedView) refers |_| Vec::new();
    Settings(Settings) refers |_| Vec::new();
    Client(Client) refers |_| Vec::new(), entries by_key;
}

fn by_name<'a>(
    kind: Kind,
    back: Index,
    names: impl IntoIterator<Item = &'a Name>,
) -> Vec<Reference<'a>> {
    let names = names.into_iter();
    names.map(|name| Reference { kind, name, back }).collect()
}

fn of_rule(rule: &Rule) -> Vec<Reference<'_>> {
    let triggers = by_name(Kind::Trigger, Index::RuleByTrigger, &rule.trigger_names);
    let destinations = &rule.destination_names;
    let destinations = by_name(Kind::Destination, Index::RuleByDestination, destinations);
    let calendar = by_name(Kind::Calendar, Index::RuleByCalendar, &rule.active_calendar);
    [triggers, destinations, calendar].concat()
}

fn by_key(client: &Client) -> Vec<Entry> {
    let keys = client.keys().map(|(hash, _)| hash);
    keys.map(|hash| entry(Index::ClientByKey, Key::new().rest(&hash)))
        .collect()
}
