//! Expectations of heartbeats as records.

use super::{decode, encode, entry, name_only_snapshot};
use crate::{
    audit::AuditSnapshot,
    domain::{Expectation, ExpectationState, RecordId},
    engine::{EngineError, Entry, Index, Kind},
    record::{Record, bytes::Key},
    seal::Sealer,
};

impl Record for Expectation {
    const KIND: Kind = Kind::Expectation;

    fn audit_snapshot(&self) -> Option<AuditSnapshot> {
        Some(name_only_snapshot(&self.key))
    }

    fn key(&self) -> Vec<u8> {
        Key::new().id(self.heartbeat).id(self.key).build()
    }

    fn entries(&self) -> Vec<Entry> {
        let place = beat_prefix(self.heartbeat, self.static_state()).time_ms(self.beat_service_ms);
        let place = entry(Index::ExpectationByBeat, place.id(self.key));
        let running = self.run_in_progress().map(|run| {
            let place = start_prefix(self.heartbeat).time_ms(run.since_service_ms);
            entry(Index::ExpectationByBeat, place.id(self.key))
        });
        [place].into_iter().chain(running).collect()
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encode(self)
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decode(bytes, Self::KIND)
    }
}

/// Id that replaces the heartbeat id in the second entries of running expectations.
pub const RUNNING: RecordId = RecordId::from_bytes([u8::MAX; 16]);

/// Returns the key prefix of a heartbeat's running expectations, ordered by start.
pub fn start_prefix(heartbeat: RecordId) -> Key {
    Key::new().id(RUNNING).id(heartbeat)
}

/// Returns the key prefix of a heartbeat's expectations in a state, ordered by beat.
pub fn beat_prefix(heartbeat: RecordId, standing: ExpectationState) -> Key {
    Key::new().id(heartbeat).byte(standing as u8)
}
