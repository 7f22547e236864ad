//! Damaged records: the results of decoding many seeded modifications of a record, so that another
//! decoder can be checked to return the same values and errors. Adding fields does not affect the
//! results, since only existing fields are modified.

use sha2::{Digest as _, Sha256};

use crate::{
    domain::{AuditAction, AuditEntry},
    engine::{EngineError, Kind},
    record::{Record, chain_entry, upgrade_proof},
    seal::{PROOF_BYTES, Sealer},
};

const CHANGES: usize = 300;
const DEPTH_MAX: usize = 12;

#[derive(Clone)]
struct Part {
    tag: u64,
    value: Value,
}

#[derive(Clone)]
enum Value {
    Number(u64),
    Fixed([u8; 8]),
    Bytes(Vec<u8>),
    Parts(Vec<Part>),
}

/// Returns a digest of decoding the modified forms of a record and encoding the result.
pub(super) fn mutation_digest<T: Record + PartialEq>(value: &[u8], sealer: &Sealer) -> String {
    let is_proven = upgrade_proof(T::KIND, &[1], sealer).is_some();
    let message = &value[if is_proven { 1 + PROOF_BYTES } else { 1 }..];
    let whole = parse_parts(message, 0).unwrap();
    let mut chance = Chance(u64::from(T::KIND as u8));
    let mut hash = Sha256::new();
    for _ in 0..CHANGES {
        let mut changed = whole.clone();
        for _ in 0..=chance.number_below(2) {
            mutate(&mut changed, &mut chance);
        }
        let mut bytes = vec![1];
        write_parts(&changed, &mut bytes);
        if chance.number_below(20) == 0 {
            bytes.truncate(1 + chance.number_below(bytes.len()));
        }
        let bytes = upgrade_proof(T::KIND, &bytes, sealer).unwrap_or(bytes);
        let outcome = decode_outcome::<T>(&bytes, sealer);
        hash.update((outcome.len() as u64).to_be_bytes());
        hash.update(outcome);
    }
    super::to_hex(&hash.finalize()[..8])
}

fn decode_outcome<T: Record + PartialEq>(bytes: &[u8], sealer: &Sealer) -> Vec<u8> {
    let value = match T::decode(bytes, sealer) {
        Err(EngineError::Corrupt(why)) => return why.into(),
        Err(other) => panic!("{other}"),
        Ok(value) => value,
    };
    let written = value.encode(sealer);
    let is_same = T::decode(&written, sealer).is_ok_and(|again| again == value);
    let mut outcome = vec![u8::from(is_same)];
    if !matches!(T::KIND, Kind::Destination | Kind::Mapping) {
        outcome.extend(written);
    }
    if let Some(state) = value.audit_snapshot().and_then(|seen| seen.state) {
        let entry = audit_entry_with_state(state);
        outcome.extend(entry.hash);
        let decoded = AuditEntry::decode(&entry.encode(sealer), sealer);
        outcome.push(u8::from(
            decoded.is_ok_and(|decoded| decoded.hash == entry.hash),
        ));
    }
    outcome
}

fn audit_entry_with_state(state: crate::domain::AnyResource) -> AuditEntry {
    let entry = AuditEntry {
        number: 0,
        time_ms: 1,
        client: String::new(),
        address: None,
        agent: String::new(),
        method: String::new(),
        action: AuditAction::Created,
        kind: String::new(),
        names: Vec::new(),
        count: 1,
        before: None,
        after: Some(state),
        changed_secrets: Vec::new(),
        reason: String::new(),
        previous: [0; 32],
        hash: [0; 32],
        is_proven: true,
    };
    chain_entry(entry, 1, [3; 32])
}

fn mutate(parts: &mut Vec<Part>, chance: &mut Chance) {
    const NUMBERS: [u64; 9] = [0, 1, 2, 3, 5, 9, 200, (1 << 32) + 1, u64::MAX];
    if parts.is_empty() {
        let value = Value::Number(1);
        return parts.push(Part { tag: 1, value });
    }
    let at = chance.number_below(parts.len());
    if let Value::Parts(inner) = &mut parts[at].value
        && chance.number_below(4) != 0
    {
        return mutate(inner, chance);
    }
    let other = chance.number_below(parts.len());
    match chance.number_below(10) {
        0 => drop(parts.remove(at)),
        1 => parts.insert(other, parts[at].clone()),
        2 => parts.swap(at, other),
        3 => parts[at].tag = parts[other].tag,
        4 => parts.insert(
            at,
            Part {
                tag: 900,
                value: Value::Bytes(vec![8, 1]),
            },
        ),
        5 => parts[at].value = parts[other].value.clone(),
        6 => parts[at].value = Value::Fixed([u8::try_from(chance.number_below(256)).unwrap(); 8]),
        _ => match &mut parts[at].value {
            Value::Number(number) => *number = NUMBERS[chance.number_below(NUMBERS.len())],
            Value::Fixed(bytes) => bytes[chance.number_below(8)] ^= 1 << chance.number_below(8),
            Value::Bytes(bytes) => match chance.number_below(5) {
                0 => bytes.clear(),
                1 => drop(bytes.pop()),
                2 => bytes.push(b' '),
                3 => bytes.push(0xff),
                _ => bytes.push(b'a'),
            },
            Value::Parts(inner) => inner.clear(),
        },
    }
}

fn parse_parts(mut bytes: &[u8], depth: usize) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let key = parse_number(&mut bytes)?;
        let value = match key & 7 {
            0 => Value::Number(parse_number(&mut bytes)?),
            1 => Value::Fixed(*bytes.split_off(..8)?.first_chunk()?),
            2 => {
                let length = usize::try_from(parse_number(&mut bytes)?).ok()?;
                let inner = bytes.split_off(..length)?;
                let fields =
                    (depth < DEPTH_MAX && !inner.is_empty()).then(|| parse_parts(inner, depth + 1));
                match fields.flatten() {
                    Some(fields) => Value::Parts(fields),
                    None => Value::Bytes(inner.into()),
                }
            }
            _ => return None,
        };
        let tag = key >> 3;
        parts.push(Part { tag, value });
    }
    Some(parts)
}

fn parse_number(bytes: &mut &[u8]) -> Option<u64> {
    prost::encoding::decode_varint(bytes).ok()
}

fn write_parts(parts: &[Part], to: &mut Vec<u8>) {
    use prost::encoding::encode_varint;

    for Part { tag, value } in parts {
        let wire_type = match value {
            Value::Number(_) => 0,
            Value::Fixed(_) => 1,
            Value::Bytes(_) | Value::Parts(_) => 2,
        };
        encode_varint(tag << 3 | wire_type, to);
        let inner = match value {
            Value::Number(number) => {
                encode_varint(*number, to);
                continue;
            }
            Value::Fixed(bytes) => {
                to.extend(bytes);
                continue;
            }
            Value::Bytes(bytes) => bytes.clone(),
            Value::Parts(parts) => {
                let mut inner = Vec::new();
                write_parts(parts, &mut inner);
                inner
            }
        };
        encode_varint(inner.len() as u64, to);
        to.extend(inner);
    }
}

struct Chance(u64);

impl Chance {
    fn number_below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ (bits >> 31)) % most as u64).unwrap()
    }
}
