//! Definitions as records.

use super::{decode_proven, definition_snapshot, entry, prove_record};
use crate::record::{Record, Reference, bytes::Key};
use crate::{
    audit::AuditSnapshot,
    domain::{AnyResource, Name, any_resource::each_resource},
    engine::{EngineError, Entry, Index, Kind},
    seal::Sealer,
};

/// Implements a definition: keyed by name, authenticated, and fully audited. Its references have
/// index entries that lead back to it.
macro_rules! defined {
    ($($number:literal $word:ident $kind:ident($type:ident) {
        tags $tags:expr;
        $(names $named:ident by $field:ident;)*
        $(each $listed:ident of $method:ident;)*
        $(found by $keys:ident;)?
    })+) => {$(
        impl Record for crate::domain::$type {
            const KIND: Kind = Kind::$kind;

            fn audit_snapshot(&self) -> Option<AuditSnapshot> {
                Some(definition_snapshot(&self.name, AnyResource::$kind(self.clone())))
            }

            fn key(&self) -> Vec<u8> {
                self.name.as_str().into()
            }

            fn references(&self) -> Vec<Reference<'_>> {
                let named: &[Vec<Reference<'_>>] = &[
                    $(references_by_name(
                        Kind::$named,
                        const { back_index(Kind::$kind, Kind::$named) },
                        &self.$field,
                    ),)*
                    $(references_by_name(
                        Kind::$listed,
                        const { back_index(Kind::$kind, Kind::$listed) },
                        self.$method(),
                    ),)*
                ];
                named.concat()
            }

            fn entries(&self) -> Vec<Entry> {
                let name = self.name.as_str().as_bytes();
                let back = self.references().into_iter();
                let back = back.map(|it| entry(it.back, users_prefix(it.back, it.kind, it.name).remainder(name)));
                let mut entries: Vec<_> = back$(.chain(key_entries(self.$keys())))?.collect();
                entries.sort_unstable();
                entries.dedup();
                entries
            }

            fn encode(&self, sealer: &Sealer) -> Vec<u8> {
                prove_record(self, self.id, Self::KIND, sealer)
            }

            fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
                decode_proven(bytes, Self::KIND, sealer)
            }
        }
    )+};
}
each_resource!(defined);

#[expect(
    clippy::panic,
    reason = "called only in constants, so it fails at compile time"
)]
const fn back_index(from: Kind, named: Kind) -> Index {
    match (from, named) {
        (Kind::Rule, Kind::Trigger) => Index::RuleByTrigger,
        (Kind::Rule, Kind::Destination) => Index::RuleByDestination,
        (Kind::Rule, Kind::Calendar) => Index::RuleByCalendar,
        (Kind::Rule, Kind::Policy) => Index::RuleByPolicy,
        (Kind::Silence, Kind::Calendar) => Index::SilenceByCalendar,
        (Kind::Calendar, Kind::Calendar) => Index::CalendarByException,
        (Kind::Heartbeat, Kind::Calendar) => Index::HeartbeatByCalendar,
        (Kind::Contact, _) => Index::ContactByUse,
        (Kind::Schedule, _) => Index::ScheduleByUse,
        (Kind::Policy, _) => Index::PolicyByUse,
        _ => panic!("no reverse index for this reference"),
    }
}

/// Returns the key prefix of the users of a definition in an index of references.
pub fn users_prefix(back: Index, named: Kind, name: &Name) -> Key {
    let key = match back {
        Index::ContactByUse | Index::ScheduleByUse | Index::PolicyByUse => {
            Key::new().byte(named as u8)
        }
        _ => Key::new(),
    };
    key.name(name.as_str())
}

fn references_by_name<'a>(
    kind: Kind,
    back: Index,
    names: impl IntoIterator<Item = &'a Name>,
) -> Vec<Reference<'a>> {
    let names = names.into_iter();
    names.map(|name| Reference { kind, name, back }).collect()
}

fn key_entries(keys: impl Iterator<Item = ([u8; 32], Option<i64>)>) -> impl Iterator<Item = Entry> {
    keys.map(|(hash, _)| entry(Index::ClientByKey, Key::new().remainder(&hash)))
}
