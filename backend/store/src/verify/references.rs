//! Verifies references: rules to triggers and destinations, attempts to deliveries, and leased
//! deliveries to the attempt in progress.

use std::collections::{BTreeMap, BTreeSet};

use super::part::{AttemptPart, Part};
use crate::{
    domain::{Delivery, RecordId},
    engine::{EngineError, Kind},
    record::{Store, bytes::Key},
};

/// Returns the dangling references of records, one sentence each. Many records have no references,
/// or may refer to deleted records: an occurrence retains the rules that notified, and a delivery
/// retains its destination and event.
pub(super) async fn dangling_references(
    kind: Kind,
    parts: &[Part],
    store: &Store,
) -> Result<Vec<String>, EngineError> {
    let attempts: Vec<_> = parts.iter().filter_map(|part| part.attempt).collect();
    let mut errors = missing_attempt_errors(&attempts, store).await?;
    errors.extend(missing_delivery_errors(&attempts, store).await?);
    for other in Kind::ALL {
        let references = parts.iter().flat_map(|part| {
            let others = part.refers.iter().filter(|(kind, _)| *kind == other);
            others.map(move |(_, name)| (part, name))
        });
        let references: Vec<_> = references.collect();
        if references.is_empty() {
            continue;
        }
        let keys = references.iter().map(|(_, name)| name.as_bytes().into());
        let found = store.engine().get(other, &keys.collect::<Vec<_>>()).await?;
        let missing = references
            .iter()
            .zip(found)
            .filter(|(_, row)| row.is_none());
        errors.extend(missing.map(|((holder, name), _)| {
            let (word, other) = (kind.as_str(), other.as_str());
            let holder = String::from_utf8_lossy(&holder.key);
            format!("{word} `{holder}` refers to the {other} `{name}`, which does not exist")
        }));
    }
    Ok(errors)
}

async fn missing_attempt_errors(
    attempts: &[AttemptPart],
    store: &Store,
) -> Result<Vec<String>, EngineError> {
    let leased = attempts.iter().filter_map(|attempt| match *attempt {
        AttemptPart::UnderWay { delivery, number } => Some((delivery, number)),
        AttemptPart::Of { .. } => None,
    });
    let leased: Vec<(RecordId, u32)> = leased.collect();
    if leased.is_empty() {
        return Ok(Vec::new());
    }
    let key = |&(id, number): &(RecordId, u32)| Key::new().id(id).number(number).build();
    let keys: Vec<_> = leased.iter().map(key).collect();
    let found = store.engine().get(Kind::Attempt, &keys).await?;
    let missing = leased.iter().zip(found).filter(|(_, row)| row.is_none());
    let describe = |(id, number): &(RecordId, u32)| {
        format!("delivery {id} is in progress, but its attempt {number} does not exist")
    };
    Ok(missing.map(|(leased, _)| describe(leased)).collect())
}

async fn missing_delivery_errors(
    attempts: &[AttemptPart],
    store: &Store,
) -> Result<Vec<String>, EngineError> {
    let attempts = attempts.iter().filter_map(|attempt| match *attempt {
        AttemptPart::Of { delivery, number } => Some((delivery, number)),
        AttemptPart::UnderWay { .. } => None,
    });
    let attempts: Vec<(RecordId, u32)> = attempts.collect();
    if attempts.is_empty() {
        return Ok(Vec::new());
    }
    let ids: BTreeSet<_> = attempts.iter().map(|(delivery, _)| *delivery).collect();
    let keys = ids.iter().map(|id| id.to_bytes().into()).collect();
    let found = store.get_many::<Delivery>(keys).await;
    // Unreadable records were reported with the deliveries.
    let Ok(found) = found else {
        return Ok(Vec::new());
    };
    let counts: BTreeMap<_, _> = ids
        .into_iter()
        .zip(found)
        .map(|(id, found)| (id, found.map(|found| found.value.attempts)))
        .collect();
    let describe =
        |&(delivery, number): &(RecordId, u32)| match counts.get(&delivery).copied().flatten() {
            None => Some(format!(
                "attempt {number} belongs to delivery {delivery}, which does not exist"
            )),
            Some(begun) if number > begun => Some(format!(
                "attempt {number} of delivery {delivery} exists, but only {begun} were started"
            )),
            Some(_) => None,
        };
    Ok(attempts.iter().filter_map(describe).collect())
}
