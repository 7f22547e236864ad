//! What people define, as records.

use super::{decoded_proven, defined, entry, proven};
use crate::store::record::{Record, bytes::Key};
use crate::{
    domain::{
        AuditState, Calendar, Client, Destination, Inhibition, IntakeMapping, Name, Rule,
        SavedView, Silence, Trigger,
    },
    store::{
        audit::Seen,
        engine::{EngineError, Entry, Index, Kind},
        seal::Sealer,
    },
};

impl Record for Trigger {
    const KIND: Kind = Kind::Trigger;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Trigger(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        proven(self, self.id, Self::KIND, sealer)
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded_proven(bytes, Self::KIND, sealer)
    }
}

impl Record for Destination {
    const KIND: Kind = Kind::Destination;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Destination(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        proven(self, self.id, Self::KIND, sealer)
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded_proven(bytes, Self::KIND, sealer)
    }
}

impl Record for Rule {
    const KIND: Kind = Kind::Rule;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Rule(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let name = self.name.as_str().as_bytes();
        let of = |index, other: &str| entry(index, Key::new().name(other).rest(name));
        let triggers = self.trigger_names.iter();
        let destinations = self.destination_names.iter();
        let calendar = self.active_calendar.iter();
        triggers
            .map(|trigger| of(Index::RuleByTrigger, trigger.as_str()))
            .chain(destinations.map(|other| of(Index::RuleByDestination, other.as_str())))
            .chain(calendar.map(|other| of(Index::RuleByCalendar, other.as_str())))
            .collect()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        proven(self, self.id, Self::KIND, sealer)
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded_proven(bytes, Self::KIND, sealer)
    }
}

impl Record for Silence {
    const KIND: Kind = Kind::Silence;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Silence(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let name = self.name.as_str().as_bytes();
        let calendar = self.calendar.iter();
        let key = |other: &Name| Key::new().name(other.as_str()).rest(name);
        calendar
            .map(|other| entry(Index::SilenceByCalendar, key(other)))
            .collect()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        proven(self, self.id, Self::KIND, sealer)
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded_proven(bytes, Self::KIND, sealer)
    }
}

impl Record for Calendar {
    const KIND: Kind = Kind::Calendar;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Calendar(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let name = self.name.as_str().as_bytes();
        let out = |other: &Name| Key::new().name(other.as_str()).rest(name);
        let out = self.except.iter().map(out);
        out.map(|key| entry(Index::CalendarByException, key))
            .collect()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        proven(self, self.id, Self::KIND, sealer)
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded_proven(bytes, Self::KIND, sealer)
    }
}

impl Record for IntakeMapping {
    const KIND: Kind = Kind::Mapping;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Mapping(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        proven(self, self.id, Self::KIND, sealer)
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded_proven(bytes, Self::KIND, sealer)
    }
}

impl Record for SavedView {
    const KIND: Kind = Kind::View;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::View(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        proven(self, self.id, Self::KIND, sealer)
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded_proven(bytes, Self::KIND, sealer)
    }
}

impl Record for Inhibition {
    const KIND: Kind = Kind::Inhibition;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Inhibition(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        proven(self, self.id, Self::KIND, sealer)
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded_proven(bytes, Self::KIND, sealer)
    }
}

impl Record for Client {
    const KIND: Kind = Kind::Client;

    fn seen(&self) -> Option<Seen> {
        Some(defined(&self.name, AuditState::Client(self.clone())))
    }

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let keys = self.keys().map(|(hash, _)| hash);
        keys.map(|hash| entry(Index::ClientByKey, Key::new().rest(&hash)))
            .collect()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        proven(self, self.id, Self::KIND, sealer)
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded_proven(bytes, Self::KIND, sealer)
    }
}
