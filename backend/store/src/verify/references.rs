//! What records must find elsewhere: rules their triggers and destinations, attempts their
//! delivery, a leased delivery the attempt under way.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    domain::{Attempt, Delivery, DeliveryState},
    engine::{EngineError, Kind},
    record::{Record, Store, bytes::Key},
};

/// What records refer to and is not there, one sentence each. Many refer to nothing, or to what may be
/// gone: an occurrence keeps the rules that notified, a delivery its destination and its event, also
/// when these are deleted.
pub(super) async fn dangling<T: Record>(
    values: &[T],
    store: &Store,
) -> Result<Vec<String>, EngineError> {
    let mut faults = without_attempt(&of_type(values), store).await?;
    faults.extend(without_delivery(&of_type(values), store).await?);
    for kind in Kind::ALL {
        let asked = values.iter().flat_map(|value| {
            let others = value.refers().into_iter().filter(|it| it.kind == kind);
            others.map(move |it| (value, it.name.as_str()))
        });
        let asked: Vec<_> = asked.collect();
        if asked.is_empty() {
            continue;
        }
        let keys = asked.iter().map(|(_, name)| name.as_bytes().into());
        let found = store.engine().get(kind, &keys.collect::<Vec<_>>()).await?;
        let missing = asked.iter().zip(found).filter(|(_, row)| row.is_none());
        faults.extend(missing.map(|((holder, name), _)| {
            let (word, holder) = (T::KIND.word(), holder.key());
            let (holder, kind) = (String::from_utf8_lossy(&holder), kind.word());
            format!("{word} `{holder}` names the {kind} `{name}`, which is not there")
        }));
    }
    Ok(faults)
}

/// The values that are of a type: all of them, or none.
fn of_type<T: Any, U: Any>(values: &[T]) -> Vec<&U> {
    let values = values.iter().map(|it| it as &dyn Any);
    values.filter_map(|it| it.downcast_ref()).collect()
}

async fn without_attempt(
    deliveries: &[&Delivery],
    store: &Store,
) -> Result<Vec<String>, EngineError> {
    let leased = deliveries
        .iter()
        .filter(|delivery| matches!(delivery.state, DeliveryState::Leased { .. }));
    let leased: Vec<_> = leased.collect();
    if leased.is_empty() {
        return Ok(Vec::new());
    }
    let key = |delivery: &&&Delivery| Key::new().id(delivery.id).number(delivery.attempts).build();
    let keys: Vec<_> = leased.iter().map(key).collect();
    let found = store.engine().get(Kind::Attempt, &keys).await?;
    let missing = leased.iter().zip(found).filter(|(_, row)| row.is_none());
    let fault = |delivery: &Delivery| {
        let (id, number) = (delivery.id, delivery.attempts);
        format!("delivery {id} is under way, and its attempt {number} is not there")
    };
    Ok(missing.map(|(delivery, _)| fault(delivery)).collect())
}

async fn without_delivery(
    attempts: &[&Attempt],
    store: &Store,
) -> Result<Vec<String>, EngineError> {
    if attempts.is_empty() {
        return Ok(Vec::new());
    }
    let ids: BTreeSet<_> = attempts.iter().map(|attempt| attempt.delivery).collect();
    let keys = ids.iter().map(|id| id.to_bytes().into()).collect();
    let found = store.get_many::<Delivery>(keys).await;
    // One that cannot be read was reported when deliveries were read.
    let Ok(found) = found else {
        return Ok(Vec::new());
    };
    let counts: BTreeMap<_, _> = ids
        .into_iter()
        .zip(found)
        .map(|(id, found)| (id, found.map(|found| found.value.attempts)))
        .collect();
    let fault = |attempt: &&Attempt| {
        let (number, delivery) = (attempt.number, attempt.delivery);
        match counts.get(&delivery).copied().flatten() {
            None => Some(format!(
                "attempt {number} belongs to delivery {delivery}, which is not there"
            )),
            Some(begun) if number > begun => Some(format!(
                "attempt {number} of delivery {delivery} is there, and only {begun} were begun"
            )),
            Some(_) => None,
        }
    };
    Ok(attempts.iter().filter_map(fault).collect())
}
