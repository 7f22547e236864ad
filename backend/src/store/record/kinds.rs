//! What each kind of record is keyed by, and which index entries lead to it.

use prost::Message;

use super::{
    Record,
    bytes::Key,
    v1::{
        client::ClientV1,
        delivery::{AttemptV1, DeliveryV1},
        destination::{DestinationV1, HealthV1},
        occurrence::{self, OccurrenceV1},
        receipt::ReceiptV1,
        revision::RevisionV1,
        rule::RuleV1,
        trigger::TriggerV1,
    },
};
use crate::{
    domain::{
        Attempt, Client, Delivery, Destination, Health, Occurrence, Receipt, Revision, Rule,
        Trigger,
    },
    store::{
        engine::{EngineError, Entry, Index, Kind},
        seal::Sealer,
    },
};

/// The newest encoding, which is the first byte of every value.
const VERSION: u8 = 1;
/// What an occurrence takes about, beside its texts.
const RECORD_BYTES: usize = 256;

fn encoded(message: &impl Message) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + message.encoded_len());
    bytes.push(VERSION);
    message.encode_raw(&mut bytes);
    bytes
}

fn decoded<M: Message + Default, T>(
    bytes: &[u8],
    kind: Kind,
    convert: impl FnOnce(M) -> Option<T>,
) -> Result<T, EngineError> {
    let corrupt = |what: &str| EngineError::Corrupt(format!("a {kind:?} record {what}"));
    match bytes.split_first() {
        Some((&VERSION, rest)) => {
            let message = M::decode(rest).map_err(|_fault| corrupt("cannot be read"))?;
            convert(message).ok_or_else(|| corrupt("holds values that cannot be"))
        }
        Some((other, _)) => Err(corrupt(&format!("has the unknown encoding {other}"))),
        None => Err(corrupt("is empty")),
    }
}

fn entry(index: Index, key: Key) -> Entry {
    Entry {
        index,
        key: key.build(),
    }
}

impl Record for Trigger {
    const KIND: Kind = Kind::Trigger;

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&TriggerV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, TriggerV1::into_trigger)
    }
}

impl Record for Destination {
    const KIND: Kind = Kind::Destination;

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn encode(&self, sealer: &Sealer) -> Vec<u8> {
        encoded(&DestinationV1::new(self, sealer))
    }

    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, |record: DestinationV1| {
            record.into_destination(sealer)
        })
    }
}

impl Record for Rule {
    const KIND: Kind = Kind::Rule;

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let name = self.name.as_str().as_bytes();
        let of = |index, other: &str| entry(index, Key::new().name(other).rest(name));
        let triggers = self.trigger_names.iter();
        let destinations = self.destination_names.iter();
        triggers
            .map(|trigger| of(Index::RuleByTrigger, trigger.as_str()))
            .chain(destinations.map(|other| of(Index::RuleByDestination, other.as_str())))
            .collect()
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&RuleV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, RuleV1::into_rule)
    }
}

impl Record for Client {
    const KIND: Kind = Kind::Client;

    fn key(&self) -> Vec<u8> {
        self.name.as_str().into()
    }

    fn entries(&self) -> Vec<Entry> {
        vec![entry(Index::ClientByKey, Key::new().rest(&self.key_hash))]
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&ClientV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, ClientV1::into_client)
    }
}

impl Record for Occurrence {
    const KIND: Kind = Kind::Occurrence;

    fn key(&self) -> Vec<u8> {
        self.key.to_bytes().into()
    }

    fn entries(&self) -> Vec<Entry> {
        let state = Key::new()
            .byte(self.status as u8)
            .byte(self.severity as u8)
            .moment(self.last_seen_ms)
            .id(self.key);
        vec![
            entry(
                Index::OccurrenceByEvent,
                Key::new().event(self.event).number(self.number),
            ),
            entry(Index::OccurrenceByState, state),
            entry(
                Index::OccurrenceByStart,
                Key::new().moment(self.start_ms).id(self.key),
            ),
            entry(
                Index::OccurrenceByReview,
                Key::new().moment(self.review_ms).id(self.key),
            ),
        ]
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        let text_bytes = self.weight_bytes() + self.name.len() + self.kind.len();
        let mut bytes = Vec::with_capacity(RECORD_BYTES + text_bytes);
        bytes.push(VERSION);
        occurrence::write(self, &mut bytes);
        bytes
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, OccurrenceV1::into_occurrence)
    }
}

impl Record for Delivery {
    const KIND: Kind = Kind::Delivery;

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
        // A test is under way only while its caller waits: nobody else is to lease it.
        if let (Some(due_ms), false) = (self.state.due_ms(), self.test) {
            let due = Key::new().id(self.destination).moment(due_ms).id(self.id);
            entries.push(entry(Index::DeliveryByDue, due));
        }
        if !self.test {
            let destination = Key::new().id(self.destination).id(self.id);
            entries.push(entry(Index::NotificationByDestination, destination));
        }
        if let (Some(trigger), false) = (&self.content.trigger, self.test) {
            let trigger = Key::new().id(trigger.id).id(self.id);
            entries.push(entry(Index::NotificationByTrigger, trigger));
        }
        if let Some(event) = self.event {
            entries.push(entry(
                Index::DeliveryByEvent,
                Key::new().event(event).id(self.id),
            ));
        }
        if let Some(rule) = self.rule {
            entries.push(entry(
                Index::DeliveryByRule,
                Key::new().id(rule).id(self.id),
            ));
        }
        entries
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&DeliveryV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, DeliveryV1::into_delivery)
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
        encoded(&AttemptV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, AttemptV1::into_attempt)
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

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&HealthV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, HealthV1::into_health)
    }
}

impl Record for Receipt {
    const KIND: Kind = Kind::Receipt;

    fn key(&self) -> Vec<u8> {
        Key::new().id(self.client).rest(self.key.as_bytes()).build()
    }

    fn entries(&self) -> Vec<Entry> {
        let time = Key::new().moment(self.create_ms).rest(&self.key());
        vec![entry(Index::ReceiptByTime, time)]
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&ReceiptV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, ReceiptV1::into_receipt)
    }
}

impl Record for Revision {
    const KIND: Kind = Kind::Revision;

    fn key(&self) -> Vec<u8> {
        Key::new().revision(self.of(), &self.id()).build()
    }

    fn entries(&self) -> Vec<Entry> {
        let end = Key::new().moment(self.until_ms).rest(&self.key());
        vec![entry(Index::RevisionByEnd, end)]
    }

    fn encode(&self, _sealer: &Sealer) -> Vec<u8> {
        encoded(&RevisionV1::from(self))
    }

    fn decode(bytes: &[u8], _sealer: &Sealer) -> Result<Self, EngineError> {
        decoded(bytes, Self::KIND, RevisionV1::into_revision)
    }
}
