//! One step of a backup, and its bytes, which are frozen as those of records are.

use prost::Message;

use crate::{
    engine::{Kind, LogPosition},
    seal::Sealer,
};

/// What proofs of steps are for.
const PURPOSE: &str = "backup step";

/// Records of a store, as they are kept, and where to continue after them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// The records; of those that several steps hold, the last step's are right.
    pub records: Vec<BackupRecord>,
    /// Where to continue. Opaque.
    pub place: Vec<u8>,
    /// What the backup is of; only in the last step.
    pub end: Option<BackupEnd>,
    /// Made by the service over all of it but the place, and over the proof of the step before: so
    /// none is changed, left out or put elsewhere. Empty in a backup of an earlier version.
    pub proof: Vec<u8>,
}

/// A record as it is kept, secrets sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupRecord {
    /// The kind of record.
    pub kind: Kind,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value; none when it was deleted.
    pub value: Option<Vec<u8>>,
    /// The values of a delivery's attempts, all of them.
    pub attempts: Vec<Vec<u8>>,
}

impl BackupRecord {
    /// How many bytes it takes, about.
    pub fn bytes(&self) -> usize {
        let attempts: usize = self.attempts.iter().map(Vec::len).sum();
        self.key.len() + self.value.as_ref().map_or(0, Vec::len) + attempts
    }
}

/// What a backup is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupEnd {
    /// Tells the store from others.
    pub identity: Vec<u8>,
    /// The place in the change log that the backup holds everything up to.
    pub place: LogPosition,
    /// When it was read, as RFC 3339 in UTC. Empty in a backup of an earlier version.
    pub time: String,
}

#[derive(Clone, PartialEq, Message)]
struct StepV1 {
    #[prost(message, repeated, tag = "1")]
    records: Vec<KeptV1>,
    #[prost(bytes = "vec", tag = "2")]
    place: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    end: Option<EndV1>,
    #[prost(bytes = "vec", tag = "4")]
    proof: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct KeptV1 {
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "3")]
    value: Option<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "4")]
    attempts: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct EndV1 {
    #[prost(bytes = "vec", tag = "1")]
    identity: Vec<u8>,
    #[prost(uint64, tag = "2")]
    place: u64,
    #[prost(string, tag = "3")]
    time: String,
}

impl Step {
    /// Proves that this service made it, after the step of that proof.
    pub(super) fn prove(&mut self, after: &[u8], sealer: &Sealer) {
        let content = self.proven_content();
        self.proof = sealer.prove(PURPOSE, &[after, &content]).into();
    }

    /// Whether the service of these keys made it, after the step of that proof.
    pub(super) fn is_proven(&self, after: &[u8], sealer: &Sealer) -> bool {
        sealer.is_proven(PURPOSE, &[after, &self.proven_content()], &self.proof)
    }

    fn proven_content(&self) -> Vec<u8> {
        let content = Self {
            place: Vec::new(),
            proof: Vec::new(),
            ..self.clone()
        };
        content.encode()
    }

    pub(super) fn encode(self) -> Vec<u8> {
        let kept = |kept: BackupRecord| KeptV1 {
            kind: kept.kind as u32,
            key: kept.key,
            value: kept.value,
            attempts: kept.attempts,
        };
        let step = StepV1 {
            records: self.records.into_iter().map(kept).collect(),
            place: self.place,
            end: self.end.map(|end| EndV1 {
                identity: end.identity,
                place: end.place.to_number(),
                time: end.time,
            }),
            proof: self.proof,
        };
        step.encode_to_vec()
    }

    /// The bytes of a step as an earlier version wrote it.
    #[cfg(test)]
    pub(crate) fn without_proof(bytes: &[u8]) -> Vec<u8> {
        let mut step = Self::decode(bytes).expect("a step");
        step.proof.clear();
        if let Some(end) = &mut step.end {
            end.time.clear();
        }
        step.encode()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let step = StepV1::decode(bytes).ok()?;
        let kept = |kept: KeptV1| {
            Some(BackupRecord {
                kind: Kind::from_number(kept.kind.try_into().ok()?)?,
                key: kept.key,
                value: kept.value,
                attempts: kept.attempts,
            })
        };
        Some(Self {
            records: step.records.into_iter().map(kept).collect::<Option<_>>()?,
            place: step.place,
            end: step.end.map(|end| BackupEnd {
                identity: end.identity,
                place: LogPosition::from_number(end.place),
                time: end.time,
            }),
            proof: step.proof,
        })
    }
}
