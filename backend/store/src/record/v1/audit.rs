//! Entries of the audit log.

use sha2::{Digest, Sha256};

use super::client::parse_address;
use crate::{
    domain::{AnyResource, AuditAction, AuditEntry, any_resource::each_resource},
    record::table::{Reader, Secrets, Table, Unreadable, Writer, numbers, one_of, record},
    seal::Sealer,
};

const PURPOSE: &str = "audit entry";

/// Field number of the hash, which covers all fields except itself and the proof.
const HASH: u32 = 15;
/// Field number of the proof, which authenticates the hash with the key that was newest when the
/// proof was made.
const PROOF: u32 = 16;

record! {
    AuditEntry as it {
        1 number, 2 time_ms, 3 client,
        4 address_text = it.address.map_or_else(String::new, |it| it.to_string()),
        5 method, 6 action, 7 kind, 8 names, 9 count, 10 before, 11 after, 12 changed_secrets,
        13 reason, 14 previous, 17 agent,
    } with { address: parse_address(address_text), hash: [0; 32], is_proven: false }
}

macro_rules! by_number {
    ($($number:literal $word:ident $kind:ident($type:ident) $own:tt)+) => {
        one_of! { AnyResource { $($number $word $kind,)+ } }
    };
}
each_resource!(by_number);

numbers! { AuditAction { 1 Created, 2 Updated, 3 Deleted, 4 Read, 5 Refused } }

pub(crate) fn write(entry: &AuditEntry, sealer: &Sealer, to: &mut Writer<'_>) {
    entry.write(to);
    seal_entry(&entry.hash, sealer, to);
}

fn seal_entry(hash: &[u8; 32], sealer: &Sealer, to: &mut Writer<'_>) {
    to.write_bytes(HASH, hash);
    to.write_bytes(PROOF, &sealer.compute_proof(PURPOSE, &[hash]));
}

pub(crate) fn read(from: Reader<'_>, sealer: &Sealer) -> Result<Option<AuditEntry>, Unreadable> {
    let Some(EntryParts {
        covered,
        hash,
        proof,
    }) = split_entry(from)?
    else {
        return Ok(None);
    };
    let entry = AuditEntry::read(Reader {
        rest: &covered,
        ..from
    })?;
    Ok(entry.map(|entry| AuditEntry {
        hash,
        is_proven: sealer.is_proven(PURPOSE, &[&hash], proof),
        ..entry
    }))
}

/// Returns the unchanged fields of an entry with a proof by the newest key; `None` if its hash does
/// not match.
pub(crate) fn renew_proof(
    from: Reader<'_>,
    sealer: &Sealer,
) -> Result<Option<Vec<u8>>, Unreadable> {
    Ok(split_entry(from)?.map(|parts| {
        let mut to = Writer::new(from.secrets);
        to.bytes = parts.covered;
        seal_entry(&parts.hash, sealer, &mut to);
        to.bytes
    }))
}

struct EntryParts<'a> {
    covered: Vec<u8>,
    hash: [u8; 32],
    proof: &'a [u8],
}

fn split_entry(from: Reader<'_>) -> Result<Option<EntryParts<'_>>, Unreadable> {
    let (mut hash, mut proof) = (None, &[][..]);
    let mut covered = Vec::with_capacity(from.rest.len());
    let mut rest = from;
    loop {
        let field = rest.rest;
        let Some((tag, wire_type)) = rest.read_key()? else {
            break;
        };
        match tag {
            HASH => hash = <&[u8; 32]>::try_from(rest.read_bytes(wire_type)?).ok(),
            PROOF => proof = rest.read_bytes(wire_type)?,
            _ => {
                rest.skip(tag, wire_type)?;
                covered.extend(&field[..field.len() - rest.rest.len()]);
            }
        }
    }
    let hash = hash.filter(|hash| Sha256::digest(&covered)[..] == hash[..]);
    Ok(hash.map(|&hash| EntryParts {
        covered,
        hash,
        proof,
    }))
}

/// Returns the entry with its number in the chain and its hash, given the hash of the previous
/// entry.
pub fn chain_entry(entry: AuditEntry, number: u64, previous: [u8; 32]) -> AuditEntry {
    let entry = AuditEntry {
        number,
        previous,
        ..entry
    };
    let mut to = Writer::new(Secrets::LeftOut);
    entry.write(&mut to);
    let hash = Sha256::digest(&to.bytes).into();
    AuditEntry { hash, ..entry }
}
