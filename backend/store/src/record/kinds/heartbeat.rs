//! What heartbeats expect, as records.

use super::{decoded, encoded, entry};
use crate::{
    domain::{Expectation, RecordId, Standing},
    engine::{EngineError, Entry, Index, Kind},
    record::{Record, bytes::Key},
    seal::Sealer,
};

impl Record for Expectation {
    const KIND: Kind = Kind::Expectation;

    fn key(&self) -> Vec<u8> {
        Key::new().id(self.heartbeat).id(self.key).build()
    }

    fn entries(&self) -> Vec<Entry> {
        let place = by_beat(self.heartbeat, self.standing()).moment(self.beat_service_ms);
        vec![entry(Index::ExpectationByBeat, place.id(self.key))]
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(self)
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND)
    }
}

/// Where the expectations of a heartbeat that stand so are in the order of beats.
pub fn by_beat(heartbeat: RecordId, standing: Standing) -> Key {
    Key::new().id(heartbeat).byte(standing as u8)
}
