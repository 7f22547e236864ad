//! The parts of a record that are verified, independent of the kind, so that the checks are
//! compiled only once.

use std::any::Any;

use super::record_name;
use crate::{
    domain::{Attempt, Delivery, DeliveryState, RecordId, counter::CounterTally},
    engine::{EngineError, Entry, Kind},
    record::{Record, Store, with_record},
};

#[derive(Debug)]
pub(super) struct Part {
    pub(super) key: Vec<u8>,
    pub(super) entries: Vec<Entry>,
    pub(super) refers: Vec<(Kind, String)>,
    pub(super) counted: Vec<CounterTally>,
    pub(super) attempt: Option<AttemptPart>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum AttemptPart {
    UnderWay { delivery: RecordId, number: u32 },
    Of { delivery: RecordId, number: u32 },
}

impl Part {
    pub(super) fn decode(
        store: &Store,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) -> Result<Self, String> {
        let part = with_record!(
            kind,
            Of => store.decode::<Of>(value).map(|record| Self::from_record(&record)),
            else Err(EngineError::Corrupt("it is not a record".into()))
        );
        match part {
            Ok(part) if part.key == key => Ok(part),
            Ok(_) => Err(format!(
                "{} is stored under another record's key",
                record_name(kind, key)
            )),
            Err(error) => Err(format!(
                "{} cannot be read: {error}",
                record_name(kind, key)
            )),
        }
    }

    fn from_record<T: Record>(record: &T) -> Self {
        let refers = record.references().into_iter();
        Self {
            key: record.key(),
            entries: record.entries(),
            refers: refers
                .map(|it| (it.kind, it.name.as_str().into()))
                .collect(),
            counted: record.counter_entries(),
            attempt: AttemptPart::from_record(record),
        }
    }
}

impl AttemptPart {
    fn from_record(record: &dyn Any) -> Option<Self> {
        if let Some(attempt) = record.downcast_ref::<Attempt>() {
            return Some(Self::Of {
                delivery: attempt.delivery,
                number: attempt.number,
            });
        }
        let delivery = record.downcast_ref::<Delivery>()?;
        matches!(delivery.state, DeliveryState::Leased { .. }).then_some(Self::UnderWay {
            delivery: delivery.id,
            number: delivery.attempts,
        })
    }
}
