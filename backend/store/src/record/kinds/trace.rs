//! Receipts, revisions and the audit log as records.

use super::{VERSION, decode, decode_proven, encode, entry, prove_record, read, strip_version};
use crate::record::{
    Record,
    bytes::Key,
    table::{Secrets, Writer},
    v1::audit,
};
use crate::{
    domain::{AuditEntry, Receipt, Revision},
    engine::{EngineError, Entry, Index, Kind},
    seal::Sealer,
};

impl Record for Receipt {
    const KIND: Kind = Kind::Receipt;

    fn key(&self) -> Vec<u8> {
        Key::new()
            .id(self.client)
            .remainder(self.key.as_bytes())
            .build()
    }

    fn entries(&self) -> Vec<Entry> {
        let time = Key::new().time_ms(self.create_ms).remainder(&self.key());
        vec![entry(Index::ReceiptByTime, time)]
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encode(self)
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decode(bytes, Self::KIND)
    }
}

impl Record for Revision {
    const KIND: Kind = Kind::Revision;

    fn key(&self) -> Vec<u8> {
        Key::new().revision(self.kind(), &self.id()).build()
    }

    fn entries(&self) -> Vec<Entry> {
        let end = Key::new().time_ms(self.until_ms).remainder(&self.key());
        vec![entry(Index::RevisionByEnd, end)]
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        prove_record(self, self.id().id, Self::KIND, sealer)
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decode_proven(bytes, Self::KIND, sealer)
    }
}

impl Record for AuditEntry {
    const KIND: Kind = Kind::Audit;

    fn key(&self) -> Vec<u8> {
        self.number.to_be_bytes().into()
    }

    fn entries(&self) -> Vec<Entry> {
        if self.before.is_none() && self.after.is_none() {
            return Vec::new();
        }
        let named = self.names.iter().map(|name| {
            let key = Key::new().name(&self.kind).name(name);
            entry(
                Index::AuditByName,
                key.remainder(&self.number.to_be_bytes()),
            )
        });
        named.collect()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        let mut to = Writer::new(Secrets::LeftOut);
        to.bytes.push(VERSION);
        audit::write(self, sealer, &mut to);
        to.bytes
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        let bytes = strip_version(bytes, Self::KIND)?;
        read(bytes, Secrets::LeftOut, Self::KIND, |from| {
            audit::read(from, sealer)
        })
    }
}

/// Renews the proof of an encoded audit entry with the newest key.
pub(crate) fn renew_proof(bytes: &[u8], sealer: &Sealer) -> Result<Vec<u8>, EngineError> {
    let entry = strip_version(bytes, Kind::Audit)?;
    let proven = read(entry, Secrets::LeftOut, Kind::Audit, |from| {
        audit::renew_proof(from, sealer)
    })?;
    Ok([&[VERSION], proven.as_slice()].concat())
}
