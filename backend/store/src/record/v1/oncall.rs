//! Contacts, schedules, escalation policies and responses.

use crate::{
    domain::{
        Contact, ContactMethod, EscalationPlan, EscalationPolicy, EscalationStep, EscalationTarget,
        Name, PagedContact, PagedReceiver, QueuedMethod, Response, ResponseHold, ResponseState,
        Schedule,
        contact::default_method_ids,
        schedule::{Layer, Override, Slot},
    },
    record::table::{numbers, record},
};

record! {
    Contact as it {
        1 id, 2 name, 3 description, 4 tags, 5 time_zone, 6 client as OptionalForm, 7 subject,
        8 methods = methods_to_store(&it.methods), 9 revision, 10 create_ms, 11 update_ms,
        12 feed_number,
    } => Some(Self {
        id, name, description, tags, time_zone, client, subject, methods: read_methods(methods),
        revision, create_ms, update_ms, feed_number,
    })
}

record! { ContactMethod {
    1 destination, 2 variables, 3 after_ms, 4 min_severity as OptionalForm, 5 calendar as OptionalForm, 6 id,
} }

/// Returns the methods to store, without identities that reading would derive. Records of versions
/// without identities are thus written unchanged, as proofs and hashes require.
fn methods_to_store(methods: &[ContactMethod]) -> Vec<ContactMethod> {
    let mut stored = methods.to_vec();
    let ids = methods.iter().map(|it| &it.id);
    if default_method_ids(methods).iter().eq(ids) {
        for method in &mut stored {
            method.id.clear();
        }
    }
    stored
}

fn read_methods(mut methods: Vec<ContactMethod>) -> Vec<ContactMethod> {
    if methods.iter().all(|it| it.id.is_empty()) {
        let ids = default_method_ids(&methods);
        for (method, id) in methods.iter_mut().zip(ids) {
            method.id = id;
        }
    }
    methods
}

record! { Schedule {
    1 id, 2 name, 3 description, 4 tags, 5 time_zone, 6 layers, 7 gaps_allowed, 8 overrides,
    9 revision, 10 create_ms, 11 update_ms, 12 feed_number,
} }

record! { Layer {
    1 name, 2 slots, 3 hand_offs, 4 calendar as OptionalForm, 5 from as OptionalForm, 6 until as OptionalForm,
} }

record! { Slot { 1 contacts } }

record! { Override {
    1 id, 2 contacts, 3 start_ms, 4 end_ms, 5 reason, 6 author as OptionalForm,
} }

record! { EscalationPolicy {
    1 id, 2 name, 3 description, 4 tags, 5 plan as NonEmptyForm, 6 revision, 7 create_ms, 8 update_ms,
} }

record! { EscalationPlan { 1 steps, 2 rounds, 3 ack_timeout_ms, 4 fallback as OptionalForm } }

record! { EscalationStep { 1 targets, 2 wait_ms } }

record! {
    EscalationTarget as it {
        1 destination as OptionalForm = if let EscalationTarget::Destination(name) = it { Some(name.clone()) } else { None },
        2 contact as OptionalForm = if let EscalationTarget::Contact(name) = it { Some(name.clone()) } else { None },
        3 schedule as OptionalForm = if let EscalationTarget::Schedule(name) = it { Some(name.clone()) } else { None },
    } => decode_target(destination, contact, schedule)
}

fn decode_target(
    destination: Option<Name>,
    contact: Option<Name>,
    schedule: Option<Name>,
) -> Option<EscalationTarget> {
    match (destination, contact, schedule) {
        (Some(name), None, None) => Some(EscalationTarget::Destination(name)),
        (None, Some(name), None) => Some(EscalationTarget::Contact(name)),
        (None, None, Some(name)) => Some(EscalationTarget::Schedule(name)),
        _ => None,
    }
}

record! { Response {
    1 id, 2 policy, 3 plan as NonEmptyForm, 4 state, 5 round, 6 rounds_left, 7 step, 8 step_ms, 9 checks,
    10 next_ms, 11 review_ms, 12 queued, 13 paged, 14 begin_ms, 15 end_ms, 16 is_unanswered,
    17 held_by, 18 most_severe as OptionalForm,
} }

record! { ResponseHold as it { 1 kind = it.0, 2 id = it.1 } => Some((kind, id)) }

record! { QueuedMethod {
    1 contact, 2 schedule as OptionalForm, 3 position, 4 due_ms, 5 method, 6 round, 7 step,
} }

record! { PagedReceiver {
    1 contact, 2 schedule as OptionalForm, 3 destination, 4 delivery, 5 at_ms, 6 round, 7 step,
} }

record! { PagedContact { 1 name, 2 variables, 3 response, 4 method } }

numbers! { ResponseState }
