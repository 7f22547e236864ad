//! The receivers of a rule: its own destinations, and through its escalation policy, the contacts
//! of each step and the fallback destination.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bellwether_proto::v1;

use super::references::{ReferencedResource, References, rules_using};
use crate::{
    decide::{Calendars, LoadedSchedule},
    domain::{Contact, EscalationPolicy, EscalationTarget, Name, Schedule},
    error::Error,
    limits::REACH_MAX,
    store::{Kind, Record, Store},
};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReachedReceiver {
    pub destination: Name,
    /// The policy; `None` for a destination of the rule itself.
    pub policy: Option<Name>,
    /// The step of the policy, from 1; 0 for its fallback and for a destination of the rule.
    pub step: u32,
    pub contact: Option<Name>,
    /// The schedule that puts the contact on call.
    pub schedule: Option<Name>,
    /// The identity of the contact's method; empty without a contact.
    pub method: String,
}

impl ReachedReceiver {
    fn from_destination(name: &Name, policy: Option<&Name>, step: u32) -> Self {
        Self {
            destination: name.clone(),
            policy: policy.cloned(),
            step,
            contact: None,
            schedule: None,
            method: String::new(),
        }
    }

    fn involves(&self, kind: Kind, name: &Name) -> bool {
        match kind {
            Kind::Destination => self.destination == *name,
            Kind::Contact => self.contact.as_ref() == Some(name),
            Kind::Schedule => self.schedule.as_ref() == Some(name),
            _ => self.policy.as_ref() == Some(name),
        }
    }

    pub fn to_wire(&self, rule: &str) -> v1::RuleReach {
        let text = |name: &Option<Name>| name.as_ref().map(ToString::to_string).unwrap_or_default();
        v1::RuleReach {
            rule_name: rule.into(),
            destination_name: self.destination.to_string(),
            policy_name: text(&self.policy),
            step: i32::try_from(self.step).unwrap_or(i32::MAX),
            contact_name: text(&self.contact),
            schedule_name: text(&self.schedule),
            method_id: self.method.clone(),
        }
    }
}

/// Returns all receivers that a rule with these destinations and this policy can notify at any
/// time, in the order of the policy; at most [`REACH_MAX`].
pub async fn receivers_of_rule(
    store: &Store,
    (destinations, policy): (&[Name], Option<&Name>),
    now_ms: i64,
) -> Result<Vec<ReachedReceiver>, Error> {
    let direct = destinations.iter();
    let direct = direct.map(|it| ReachedReceiver::from_destination(it, None, 0));
    let mut all: Vec<_> = direct.collect();
    if let Some(name) = policy {
        all.extend(reach_through_policy(store, name, now_ms).await?);
    }
    all.truncate(REACH_MAX);
    Ok(all)
}

/// Returns the rules that reach a destination, contact, schedule or policy, by name, each with its
/// first path; at most [`REACH_MAX`].
pub async fn rules_reaching(
    store: &Store,
    (kind, name): (Kind, &Name),
    now_ms: i64,
) -> Result<Vec<(Name, ReachedReceiver)>, Error> {
    let mut found = BTreeMap::new();
    if kind == Kind::Destination {
        for rule in rules_using(store, ReferencedResource::Destination(name)).await? {
            found.insert(rule, ReachedReceiver::from_destination(name, None, 0));
        }
    }
    for policy in policies_using(store, (kind, name)).await? {
        let ways = reach_through_policy(store, &policy, now_ms).await?;
        let Some(way) = ways.into_iter().find(|it| it.involves(kind, name)) else {
            continue;
        };
        let rules = References::find(store, Kind::Policy, &policy).await?;
        for (_, rule) in rules.iter() {
            found.entry(rule.clone()).or_insert_with(|| way.clone());
        }
    }
    Ok(found.into_iter().take(REACH_MAX).collect())
}

/// Refuses to delete a resource that others use, and names the rules that reach it through them.
///
/// # Errors
/// Returns [`Error::Refused`] with the names of the users if there are any.
pub(super) async fn ensure_unused(
    (store, references): (&Store, &References),
    (kind, name): (Kind, &Name),
    now_ms: i64,
) -> Result<(), Error> {
    if references.iter().next().is_none() {
        return Ok(());
    }
    let rules = rules_reaching(store, (kind, name), now_ms).await?;
    let rules: Vec<_> = rules.into_iter().map(|(rule, _)| rule).collect();
    references.ensure_unused_by_rules((kind.as_str(), name), &rules)
}

/// Converts the rules that reach a resource, and returns their size on the wire in bytes.
pub fn to_wire(rules: &[(Name, ReachedReceiver)]) -> (Vec<v1::RuleReach>, usize) {
    let rows = rules.iter().map(|(rule, way)| way.to_wire(rule.as_str()));
    let rows: Vec<_> = rows.collect();
    let bytes = rows.iter().map(wire_bytes).sum();
    (rows, bytes)
}

pub fn wire_bytes(way: &v1::RuleReach) -> usize {
    /// Bytes for field numbers and lengths.
    const AROUND: usize = 20;
    let names = [&way.rule_name, &way.destination_name, &way.policy_name];
    let others = [&way.contact_name, &way.schedule_name, &way.method_id];
    let texts = names.into_iter().chain(others);
    texts.map(String::len).sum::<usize>() + AROUND
}

async fn policies_using(store: &Store, used: (Kind, &Name)) -> Result<BTreeSet<Name>, Error> {
    let mut policies = BTreeSet::new();
    let (mut seen, mut open) = (HashSet::new(), vec![(used.0, used.1.clone())]);
    while let Some((kind, name)) = open.pop() {
        if kind == Kind::Policy {
            policies.insert(name);
            continue;
        }
        for (word, user) in References::find(store, kind, &name)
            .await?
            .take_references()
        {
            let kinds = [Kind::Contact, Kind::Schedule, Kind::Policy];
            let kind = kinds.into_iter().find(|it| it.as_str() == word);
            let kind = kind.filter(|it| seen.insert((*it, user.clone())));
            open.extend(kind.map(|it| (it, user)));
        }
    }
    Ok(policies)
}

async fn reach_through_policy(
    store: &Store,
    name: &Name,
    now_ms: i64,
) -> Result<Vec<ReachedReceiver>, Error> {
    let Some(policy) = store
        .get::<EscalationPolicy>(name.as_str().into())
        .await?
        .map(|it| it.value)
    else {
        return Ok(Vec::new());
    };
    let schedules =
        read_by_name::<Schedule>(store, policy.schedules().cloned(), |it| &it.name).await?;
    let on_call: HashMap<_, _> = schedules
        .into_iter()
        .map(|(name, it)| (name, contacts_on_schedule(&it, now_ms)))
        .collect();
    let scheduled = on_call.values().flatten();
    let contacts = policy.contacts().chain(scheduled).cloned();
    let contacts = read_by_name::<Contact>(store, contacts, |it| &it.name).await?;
    let mut all = ReachPaths::default();
    for (at, step) in policy.plan.steps.iter().enumerate() {
        let step_number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        for target in &step.targets {
            let (named, schedule) = match target {
                EscalationTarget::Destination(destination) => {
                    all.add(ReachedReceiver::from_destination(
                        destination,
                        Some(name),
                        step_number,
                    ));
                    continue;
                }
                EscalationTarget::Contact(contact) => (std::slice::from_ref(contact), None),
                EscalationTarget::Schedule(schedule) => {
                    let named = on_call.get(schedule).map_or(&[][..], Vec::as_slice);
                    (named, Some(schedule))
                }
            };
            for contact in named.iter().filter_map(|it| contacts.get(it)) {
                for method in &contact.methods {
                    all.add(ReachedReceiver {
                        contact: Some(contact.name.clone()),
                        schedule: schedule.cloned(),
                        method: method.id.clone(),
                        ..ReachedReceiver::from_destination(
                            &method.destination,
                            Some(name),
                            step_number,
                        )
                    });
                }
            }
        }
    }
    if let Some(fallback) = &policy.plan.fallback {
        all.add(ReachedReceiver::from_destination(fallback, Some(name), 0));
    }
    Ok(all.ordered)
}

/// Receivers in order, without duplicates.
#[derive(Default)]
struct ReachPaths {
    ordered: Vec<ReachedReceiver>,
    seen: HashSet<ReachedReceiver>,
}

impl ReachPaths {
    fn add(&mut self, way: ReachedReceiver) {
        if self.seen.insert(way.clone()) {
            self.ordered.push(way);
        }
    }
}

async fn read_by_name<T: Record>(
    store: &Store,
    names: impl Iterator<Item = Name>,
    name: impl Fn(&T) -> &Name,
) -> Result<HashMap<Name, T>, Error> {
    let names: BTreeSet<_> = names.collect();
    let keys = names.iter().map(|it| it.as_str().into()).collect();
    let found = store.get_many::<T>(keys).await?;
    let found = found.into_iter().flatten().map(|it| it.value);
    Ok(found.map(|it| (name(&it).clone(), it)).collect())
}

/// Returns the contacts that a schedule can put on call from now on, without duplicates.
fn contacts_on_schedule(schedule: &Schedule, now_ms: i64) -> Vec<Name> {
    let loaded = LoadedSchedule::new(schedule.clone(), &Calendars::default()).ok();
    let has_ended = |at: usize| loaded.as_ref().is_some_and(|it| it.has_ended(at, now_ms));
    let layers = schedule.layers.iter().enumerate();
    let layers = layers.filter(|(at, _)| !has_ended(*at));
    let slots = layers.flat_map(|(_, it)| &it.slots);
    let overrides = schedule.overrides.iter().filter(|it| it.end_ms > now_ms);
    let named = slots
        .flat_map(|it| &it.contacts)
        .chain(overrides.flat_map(|it| &it.contacts));
    let mut seen = HashSet::new();
    named.filter(|it| seen.insert(*it)).cloned().collect()
}
