//! The parts of a record that are verified, independent of the kind, so that the checks are
//! compiled only once.

use std::any::Any;

use super::name;
use crate::{
    domain::{Attempt, Delivery, DeliveryState, RecordId, counter::Counted},
    engine::{EngineError, Entry, Kind},
    record::{Record, Store, with_record},
};

#[derive(Debug)]
pub(super) struct Part {
    pub(super) key: Vec<u8>,
    pub(super) entries: Vec<Entry>,
    pub(super) refers: Vec<(Kind, String)>,
    pub(super) counted: Vec<Counted>,
    pub(super) attempt: Option<AttemptPart>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum AttemptPart {
    /// The attempt in progress of a delivery.
    UnderWay {
        delivery: RecordId,
        number: u32,
    },
    Of {
        delivery: RecordId,
        number: u32,
    },
}

impl Part {
    /// Decodes a record at a key.
    pub(super) fn decode(
        store: &Store,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) -> Result<Self, String> {
        let part = with_record!(
            kind,
            Of => store.decode::<Of>(value).map(|record| Self::of(&record)),
            else Err(EngineError::Corrupt("it is not a record".into()))
        );
        match part {
            Ok(part) if part.key == key => Ok(part),
            Ok(_) => Err(format!(
                "{} is stored under another record's key",
                name(kind, key)
            )),
            Err(error) => Err(format!("{} cannot be read: {error}", name(kind, key))),
        }
    }

    fn of<T: Record>(record: &T) -> Self {
        let refers = record.refers().into_iter();
        Self {
            key: record.key(),
            entries: record.entries(),
            refers: refers
                .map(|it| (it.kind, it.name.as_str().into()))
                .collect(),
            counted: record.counted(),
            attempt: AttemptPart::of(record),
        }
    }
}

impl AttemptPart {
    fn of(record: &dyn Any) -> Option<Self> {
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
