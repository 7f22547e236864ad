//! What records must find elsewhere: rules their triggers and destinations, attempts their
//! delivery, a leased delivery the attempt under way.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use crate::{
    domain::{
        Attempt, AuditEntry, BudgetWindow, Calendar, Client, Delivery, DeliveryState, Destination,
        Group, Health, Inhibition, IntakeMapping, Name, Occurrence, Receipt, Revision, Rule,
        SavedView, Silence, Trigger,
    },
    store::{EngineError, Kind, Store, record::bytes::Key},
};

/// Records that may refer to others.
#[async_trait]
pub(super) trait Referring: Sized {
    /// What is referred to and not there, one sentence each.
    async fn dangling(values: &[Self], store: &Store) -> Result<Vec<String>, EngineError>;
}

/// Kinds that refer to nothing, or to what may be gone: an occurrence keeps the rules that notified,
/// a delivery its destination and its event, also when these are deleted.
macro_rules! refers_to_nothing {
    ($($kind:ty),*) => {
        $(#[async_trait]
        impl Referring for $kind {
            async fn dangling(_: &[Self], _: &Store) -> Result<Vec<String>, EngineError> {
                Ok(Vec::new())
            }
        })*
    };
}

refers_to_nothing!(
    AuditEntry,
    Trigger,
    Destination,
    Client,
    Occurrence,
    Health,
    Receipt,
    Revision,
    Inhibition,
    Group,
    IntakeMapping,
    BudgetWindow,
    SavedView
);

#[async_trait]
impl Referring for Rule {
    async fn dangling(rules: &[Self], store: &Store) -> Result<Vec<String>, EngineError> {
        let triggers = names(rules, |rule| &rule.trigger_names);
        let destinations = names(rules, |rule| &rule.destination_names);
        let mut faults = missing("rule", (Kind::Trigger, triggers), store).await?;
        faults.extend(missing("rule", (Kind::Destination, destinations), store).await?);
        let calendars = rules.iter().filter_map(|it| {
            let calendar = it.active_calendar.as_ref()?;
            Some((it.name.as_str(), calendar.as_str()))
        });
        let calendars = (Kind::Calendar, calendars.collect());
        faults.extend(missing("rule", calendars, store).await?);
        Ok(faults)
    }
}

#[async_trait]
impl Referring for Silence {
    async fn dangling(silences: &[Self], store: &Store) -> Result<Vec<String>, EngineError> {
        let calendars = silences.iter().filter_map(|it| {
            let calendar = it.calendar.as_ref()?;
            Some((it.name.as_str(), calendar.as_str()))
        });
        missing("silence", (Kind::Calendar, calendars.collect()), store).await
    }
}

#[async_trait]
impl Referring for Calendar {
    async fn dangling(calendars: &[Self], store: &Store) -> Result<Vec<String>, EngineError> {
        let except = calendars.iter().flat_map(|it| {
            let out = it.except.iter().map(Name::as_str);
            out.map(|name| (it.name.as_str(), name))
        });
        missing("calendar", (Kind::Calendar, except.collect()), store).await
    }
}

/// Those of the names, each after the name of who holds it, that are not there.
async fn missing(
    word: &str,
    (kind, asked): (Kind, Vec<(&str, &str)>),
    store: &Store,
) -> Result<Vec<String>, EngineError> {
    let keys = asked.iter().map(|(_, name)| name.as_bytes().into());
    let keys: Vec<_> = keys.collect();
    let found = store.engine().get(kind, &keys).await?;
    let missing = asked.iter().zip(found).filter(|(_, row)| row.is_none());
    let fault = |(holder, name): &(&str, &str)| {
        let kind = kind.word();
        format!("{word} `{holder}` names the {kind} `{name}`, which is not there")
    };
    Ok(missing.map(|(asked, _)| fault(asked)).collect())
}

/// The names that rules hold, each after its rule's.
fn names(rules: &[Rule], of: impl Fn(&Rule) -> &[Name]) -> Vec<(&str, &str)> {
    let mut names = Vec::new();
    for rule in rules {
        names.extend(
            of(rule)
                .iter()
                .map(|name| (rule.name.as_str(), name.as_str())),
        );
    }
    names
}

#[async_trait]
impl Referring for Delivery {
    async fn dangling(deliveries: &[Self], store: &Store) -> Result<Vec<String>, EngineError> {
        let leased = deliveries
            .iter()
            .filter(|delivery| matches!(delivery.state, DeliveryState::Leased { .. }));
        let leased: Vec<_> = leased.collect();
        let key = |delivery: &&Self| Key::new().id(delivery.id).number(delivery.attempts).build();
        let keys: Vec<_> = leased.iter().map(key).collect();
        let found = store.engine().get(Kind::Attempt, &keys).await?;
        let missing = leased.iter().zip(found).filter(|(_, row)| row.is_none());
        let fault = |delivery: &Self| {
            let (id, number) = (delivery.id, delivery.attempts);
            format!("delivery {id} is under way, and its attempt {number} is not there")
        };
        Ok(missing.map(|(delivery, _)| fault(delivery)).collect())
    }
}

#[async_trait]
impl Referring for Attempt {
    async fn dangling(attempts: &[Self], store: &Store) -> Result<Vec<String>, EngineError> {
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
        let fault = |attempt: &Self| {
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
}
