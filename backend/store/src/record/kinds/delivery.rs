//! Deliveries, and the health of destinations, as records.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::{decode, encode, entry, name_only_snapshot, read, strip_version};
use crate::record::{
    EndedDelivery, Record,
    bytes::Key,
    noise::{self, NoiseCounts},
    steps,
    table::{Secrets, Table as _, Writer},
};
use crate::{
    audit::AuditSnapshot,
    domain::{
        Attempt, BudgetWindow, Delivery, DeliveryState, Health, RecordId, ThreadState,
        counter::CounterTally, destination::KeptValues,
    },
    engine::{EngineError, Entry, Index, Kind},
    metrics::CommitStep,
    seal::Sealer,
};

fn test_label(delivery: &Delivery) -> String {
    let destination = match &*delivery.destination_name {
        "" => "a draft",
        name => name,
    };
    let outcome = match (delivery.state, &*delivery.last_error) {
        (DeliveryState::Delivered, _) => "delivered",
        (DeliveryState::Dead, "") => "not delivered",
        (DeliveryState::Dead, error) => error,
        _ => "begun",
    };
    format!("{destination}: {outcome}")
}

/// Returns the key prefix for a delivery's thread and its state in the thread; the position
/// follows.
pub fn delivery_thread_prefix(delivery: &Delivery, standing: ThreadState) -> Key {
    let rule = delivery.rule.unwrap_or(RecordId::from_bytes([0; 16]));
    thread_prefix(delivery.destination, (delivery.thread_id(), rule), standing)
}

/// Returns the key prefix of the messages that a rule sends to a destination about an occurrence or
/// a group.
pub fn thread_prefix(
    destination: RecordId,
    (thread, rule): (RecordId, RecordId),
    standing: ThreadState,
) -> Key {
    let key = Key::new().id(destination).id(thread);
    key.id(rule).byte(standing as u8)
}

pub fn waiting_prefix(destination: RecordId, earlier: RecordId) -> Key {
    let no_rule = RecordId::from_bytes([0; 16]);
    thread_prefix(destination, (earlier, no_rule), ThreadState::Behind)
}

/// Returns the key prefix of the messages to a destination whose responses contained a value to
/// keep.
pub fn kept_value_prefix(destination: RecordId, name: &str, value: &str) -> Key {
    let mut digest =
        Sha256::digest([name.as_bytes(), b"\0", value.as_bytes()].concat()).into_iter();
    let digest = RecordId::from_bytes(std::array::from_fn(|_| digest.next().unwrap_or_default()));
    let no_rule = RecordId::from_bytes([0; 16]);
    thread_prefix(destination, (digest, no_rule), ThreadState::KeepingValue)
}

impl Record for Delivery {
    const KIND: Kind = Kind::Delivery;

    fn audit_snapshot(&self) -> Option<AuditSnapshot> {
        let seen = name_only_snapshot(&self.id);
        let outcome = if self.test {
            test_label(self)
        } else {
            String::new()
        };
        Some(AuditSnapshot { outcome, ..seen })
    }

    fn key(&self) -> Vec<u8> {
        self.id.to_bytes().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let state = Key::new().byte(self.state.number()).id(self.id);
        let destination = Key::new().id(self.destination).id(self.id);
        let mut entries = vec![
            entry(Index::DeliveryByState, state),
            entry(Index::DeliveryByDestination, destination),
        ];
        // A test runs only while its caller waits, so no other task may lease it.
        if let (Some(due_ms), false) = (self.due_ms(), self.test) {
            let due = Key::new().id(self.destination).time_ms(due_ms).id(self.id);
            entries.push(entry(Index::DeliveryByDue, due));
        }
        let is_shadowed = self.state == DeliveryState::Shadowed;
        // A digest represents notifications that are counted themselves.
        let is_test = self.test || self.content.is_drill();
        let is_notification = !is_test && !is_shadowed && self.content.digest.is_none();
        if is_notification {
            let destination = Key::new().id(self.destination).id(self.id);
            entries.push(entry(Index::NotificationByDestination, destination));
        }
        if let (Some(trigger), true) = (&self.content.trigger, is_notification) {
            let trigger = Key::new().id(trigger.id).id(self.id);
            entries.push(entry(Index::NotificationByTrigger, trigger));
        }
        let group = self.content.group.iter();
        let members = group.flat_map(|it| it.members.iter().map(|(_, it)| it.event));
        let named: BTreeSet<_> = self.event.into_iter().chain(members).collect();
        entries.extend(named.into_iter().map(|event| {
            let key = Key::new().event(event).id(self.id);
            entry(Index::DeliveryByEvent, key)
        }));
        if let Some(group) = &self.content.group {
            let key = Key::new().id(group.id).id(self.id);
            entries.push(entry(Index::DeliveryByGroup, key));
        }
        if let Some(digest) = self.folding.digest_id() {
            let key = Key::new().id(digest).id(self.id);
            entries.push(entry(Index::DeliveryByDigest, key));
        }
        if let Some(standing) = self.thread_state() {
            let (origin, id) = self.thread_position();
            let key = delivery_thread_prefix(self, standing).id(origin).id(id);
            entries.push(entry(Index::DeliveryByThread, key));
        }
        if !self.kept.values.is_empty() {
            let (origin, id) = self.thread_position();
            let key = delivery_thread_prefix(self, ThreadState::Keeping)
                .id(origin)
                .id(id);
            entries.push(entry(Index::DeliveryByThread, key));
            // A digest of a secret would help to guess it.
            let public = self.kept.values.iter();
            let public = public.filter(|it| !it.is_secret && !self.test);
            entries.extend(public.map(|it| {
                let key = kept_value_prefix(self.destination, &it.name, it.text.reveal());
                entry(Index::DeliveryByThread, key.id(origin).id(id))
            }));
        }
        if let (Some(earlier), Some(_)) = (self.behind, self.state.due_ms()) {
            let key = waiting_prefix(self.destination, earlier)
                .id(earlier)
                .id(self.id);
            entries.push(entry(Index::DeliveryByThread, key));
        }
        if let Some(rule) = self.rule {
            let index = if is_shadowed {
                Index::NotificationByTrigger
            } else {
                Index::DeliveryByRule
            };
            entries.push(entry(index, Key::new().id(rule).id(self.id)));
        }
        entries
    }

    fn counter_entries(&self) -> Vec<CounterTally> {
        Self::counter_entries(self)
    }

    fn ended_delivery(before: &Self, after: Option<&Self>) -> Option<EndedDelivery> {
        let due_ms = before.state.due_ms()?;
        let is_over = after.is_none_or(|it| it.state.due_ms().is_none());
        is_over.then(|| EndedDelivery {
            destination: before.destination,
            delivery: before.id,
            at_ms: after.and_then(|it| it.end_ms).unwrap_or(due_ms),
        })
    }

    fn owning_destination(&self) -> Option<RecordId> {
        Some(self.destination)
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        let mut bytes = encode(self);
        if !self.kept.values.is_empty() {
            let mut to = Writer::new(Secrets::Of(self.id, sealer));
            self.kept.write(&mut to);
            bytes.extend(to.bytes);
        }
        bytes
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        let delivery: Self = decode(bytes, Self::KIND)?;
        let secrets = Secrets::Of(delivery.id, sealer);
        let kept = read(
            strip_version(bytes, Self::KIND)?,
            secrets,
            Self::KIND,
            KeptValues::read,
        )?;
        Ok(Self { kept, ..delivery })
    }

    fn steps(&self, before: Option<&Self>, to: &mut Vec<CommitStep>) {
        steps::delivery_steps(self, before, to);
    }

    fn count_noise(&self, before: Option<&Self>, to: &mut NoiseCounts<'_>) {
        noise::count_delivery(self, before, to);
    }
}

impl Record for Attempt {
    const KIND: Kind = Kind::Attempt;

    fn key(&self) -> Vec<u8> {
        Key::new().id(self.delivery).number(self.number).build()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encode(self)
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decode(bytes, Self::KIND)
    }
}

impl Record for Health {
    const KIND: Kind = Kind::Health;

    fn key(&self) -> Vec<u8> {
        self.destination.to_bytes().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn owning_destination(&self) -> Option<RecordId> {
        Some(self.destination)
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encode(self)
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decode(bytes, Self::KIND)
    }
}

impl Record for BudgetWindow {
    const KIND: Kind = Kind::Budget;

    fn key(&self) -> Vec<u8> {
        self.destination.to_bytes().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn owning_destination(&self) -> Option<RecordId> {
        Some(self.destination)
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encode(self)
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decode(bytes, Self::KIND)
    }
}
