//! One step of a backup, and its encoding, which is frozen like the encodings of records.

use prost::Message;

use crate::{
    engine::{Kind, LogPosition},
    seal::Sealer,
};

const PURPOSE: &str = "backup step";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// The records. If several steps contain the same record, the last one is valid.
    pub records: Vec<BackupRecord>,
    /// The position at which to continue, as an opaque value.
    pub place: Vec<u8>,
    /// The state that the backup contains. Set in the last step only.
    pub end: Option<BackupEnd>,
    /// Authentication code of the service over the step without its position, and over the previous
    /// code, so that no step can be changed, removed or reordered. Empty in a backup of an earlier
    /// version.
    pub proof: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupRecord {
    pub kind: Kind,
    pub key: Vec<u8>,
    /// Value of the record; `None` if it was deleted.
    pub value: Option<Vec<u8>>,
    pub attempts: Vec<Vec<u8>>,
}

impl BackupRecord {
    pub fn bytes(&self) -> usize {
        let attempts: usize = self.attempts.iter().map(Vec::len).sum();
        self.key.len() + self.value.as_ref().map_or(0, Vec::len) + attempts
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupEnd {
    pub identity: Vec<u8>,
    /// Position in the change log up to which the backup is complete.
    pub place: LogPosition,
    /// Time at which the store was read, as RFC 3339 in UTC. Empty in a backup of an earlier
    /// version.
    pub time: String,
}

#[derive(Clone, PartialEq, Message)]
struct StepV1 {
    #[prost(message, repeated, tag = "1")]
    records: Vec<RecordV1>,
    #[prost(bytes = "vec", tag = "2")]
    place: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    end: Option<EndV1>,
    #[prost(bytes = "vec", tag = "4")]
    proof: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct RecordV1 {
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
    /// Authenticates the step; `after` is the proof of the previous step.
    pub(super) fn prove(&mut self, after: &[u8], sealer: &Sealer) {
        let content = self.proven_content();
        self.proof = sealer.compute_proof(PURPOSE, &[after, &content]).into();
    }

    /// Whether the step was made by a service with these keys; `after` is the proof of the previous
    /// step.
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
        let to_stored = |record: BackupRecord| RecordV1 {
            kind: record.kind as u32,
            key: record.key,
            value: record.value,
            attempts: record.attempts,
        };
        let step = StepV1 {
            records: self.records.into_iter().map(to_stored).collect(),
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
        let from_stored = |record: RecordV1| {
            Some(BackupRecord {
                kind: Kind::from_number(record.kind.try_into().ok()?)?,
                key: record.key,
                value: record.value,
                attempts: record.attempts,
            })
        };
        Some(Self {
            records: step
                .records
                .into_iter()
                .map(from_stored)
                .collect::<Option<_>>()?,
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
