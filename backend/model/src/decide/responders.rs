//! Contacts, schedules and escalation policies in force, and the receivers of a step.

use std::{collections::BTreeMap, sync::Arc};

use super::{Calendars, LoadedSchedule};
use crate::domain::{
    Contact, ContactMethod, EscalationPolicy, EscalationTarget, Name, PagedContact, PagedReceiver,
    QueuedMethod, RecordId, Response, Severity,
};

#[derive(Debug, Default)]
pub struct Responders {
    pub contacts: BTreeMap<Name, Arc<Contact>>,
    /// The schedules, by name. Schedules whose time zone is not installed on this machine are
    /// omitted.
    pub schedules: BTreeMap<Name, Arc<LoadedSchedule>>,
    pub policies: BTreeMap<Name, Arc<EscalationPolicy>>,
    pub calendars: Arc<Calendars>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageTarget {
    /// The contact; `None` for a destination named by the policy.
    pub contact: Option<PagedContact>,
    /// The schedule through which the contact is on call.
    pub schedule: Option<Name>,
    pub destination: Name,
    pub round: u32,
    /// The step, counted from 1; 0 after all rounds.
    pub step: u32,
}

impl PageTarget {
    pub(super) fn for_destination(destination: Name, round: u32, step: u32) -> Self {
        Self {
            contact: None,
            schedule: None,
            destination,
            round,
            step,
        }
    }

    /// Returns the record of the receiver once the page is sent.
    pub fn into_paged(
        self,
        destination: RecordId,
        delivery: RecordId,
        now_ms: i64,
    ) -> PagedReceiver {
        PagedReceiver {
            contact: self.contact,
            schedule: self.schedule,
            destination: (destination, self.destination),
            delivery,
            at_ms: now_ms,
            round: self.round,
            step: self.step,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct UsableMethod<'a> {
    pub contact: &'a Contact,
    pub method: &'a ContactMethod,
    pub position: usize,
}

impl Responders {
    #[must_use]
    pub fn without_policies(&self) -> Self {
        Self {
            contacts: self.contacts.clone(),
            schedules: self.schedules.clone(),
            policies: BTreeMap::new(),
            calendars: Arc::clone(&self.calendars),
        }
    }

    /// Returns the contacts that a target of a step resolves to at a time, each with the schedule
    /// through which it is on call.
    pub fn resolve_contacts<'a>(
        &'a self,
        target: &'a EscalationTarget,
        now_ms: i64,
    ) -> Vec<(&'a Contact, Option<&'a Name>)> {
        let known = |name: &Name| self.contacts.get(name).map(AsRef::as_ref);
        match target {
            EscalationTarget::Destination(_) => Vec::new(),
            EscalationTarget::Contact(name) => {
                known(name).map(|it| (it, None)).into_iter().collect()
            }
            EscalationTarget::Schedule(name) => {
                let schedule = self.schedules.get(name);
                let on_call = schedule.map_or(&[][..], |it| it.on_call_at(now_ms).contacts);
                let contacts = on_call.iter().filter_map(known);
                contacts.map(|it| (it, Some(name))).collect()
            }
        }
    }

    /// Returns the methods by which a contact is notified about a severity at a given time.
    pub fn usable_methods<'a>(
        &'a self,
        contact: &'a Contact,
        severity: Severity,
        now_ms: i64,
    ) -> impl Iterator<Item = UsableMethod<'a>> {
        let methods = contact.methods.iter().enumerate();
        let is_usable = move |(_, it): &(usize, &ContactMethod)| {
            let is_inside = it.calendar.as_ref().is_none_or(|name| {
                let calendar = self.calendars.get(name);
                // An unknown calendar does not hold any message.
                calendar.is_none_or(|it| it.status_at(now_ms).in_window)
            });
            is_inside && it.min_severity.is_none_or(|least| severity >= least)
        };
        let usable = methods.filter(is_usable);
        usable.map(move |(position, method)| UsableMethod {
            contact,
            method,
            position,
        })
    }
}

impl UsableMethod<'_> {
    pub(super) fn page(self, schedule: Option<Name>, response: &Response) -> PageTarget {
        let method = self.method;
        PageTarget {
            contact: Some(PagedContact {
                name: self.contact.name.clone(),
                variables: method.variables.clone(),
                response: response.id,
                method: method.id.clone(),
            }),
            schedule,
            destination: method.destination.clone(),
            round: response.round,
            step: response.step,
        }
    }

    pub(super) fn matches_queued(self, queued: &QueuedMethod) -> bool {
        let is_method = if queued.method.is_empty() {
            u32::try_from(self.position) == Ok(queued.position)
        } else {
            self.method.id == queued.method
        };
        is_method && self.contact.name == queued.contact
    }

    /// Returns the record of a method to use later on behalf of the current step.
    pub(super) fn queued_method(
        self,
        schedule: Option<Name>,
        response: &Response,
        now_ms: i64,
    ) -> QueuedMethod {
        QueuedMethod {
            contact: self.contact.name.clone(),
            schedule,
            position: u32::try_from(self.position).unwrap_or(u32::MAX),
            due_ms: now_ms.saturating_add(self.method.after_ms),
            method: self.method.id.clone(),
            round: response.round,
            step: response.step,
        }
    }
}
