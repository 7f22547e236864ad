//! The clock fact: the steps of the clock that were applied to the times of records.
//!
//! Records are not rewritten when the clock is set. Each record stores the shift that its times
//! include; reading it adds the difference to the shift of the store. A single commit applies a
//! step to all waiting records, and a crash leaves no partial result. Rewriting records later only
//! corrects the order of their index entries.

use std::sync::atomic::Ordering;

use tokio::sync::{RwLockReadGuard, RwLockWriteGuard};

use super::Store;
use crate::engine::{Action, Change, EngineError, Expect, Kind, Lane};

const KEY: &[u8] = b"clock";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockFact {
    /// Sum of the steps applied to the service's clock, in milliseconds.
    pub stepped_ms: i64,
    /// Sum of the steps applied to the times of waiting records, in milliseconds.
    pub shift_ms: i64,
    /// Sum of the steps included in all index entries, in milliseconds.
    pub indexed_ms: i64,
    /// Difference between the clock and the time elapsed in the kernel run `boot`, in milliseconds.
    pub offset_ms: i64,
    /// Id of the kernel run to which `offset_ms` refers; `None` if unknown.
    pub boot: Option<[u8; 16]>,
}

impl ClockFact {
    fn encode(&self) -> Vec<u8> {
        let times = [
            self.stepped_ms,
            self.shift_ms,
            self.indexed_ms,
            self.offset_ms,
        ];
        let times = times.iter().flat_map(|it| it.to_be_bytes());
        times.chain(self.boot.into_iter().flatten()).collect()
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let (times, boot) = value.split_at_checked(32)?;
        let mut times = times.chunks_exact(8).map(|it| {
            let bytes = it.try_into().unwrap_or_default();
            i64::from_be_bytes(bytes)
        });
        Some(Self {
            stepped_ms: times.next()?,
            shift_ms: times.next()?,
            indexed_ms: times.next()?,
            offset_ms: times.next()?,
            boot: boot.try_into().ok(),
        })
    }
}

pub(crate) fn is_clock_fact(key: &[u8]) -> bool {
    key == KEY
}

impl Store {
    /// Returns the shift that the times of records include when they are read and written, in
    /// milliseconds.
    pub fn current_shift_ms(&self) -> i64 {
        self.shift_ms.load(Ordering::Acquire)
    }

    /// Sets the shift with which the times of records are read and written from now on.
    pub fn set_shift_ms(&self, shift_ms: i64) {
        self.shift_ms.store(shift_ms, Ordering::Release);
    }

    /// Locks the clock: no clock step is applied while the guard is held, so decisions based on the
    /// time are stored with the shift at which they were made.
    pub async fn lock_clock_shared(&self) -> RwLockReadGuard<'_, ()> {
        self.steady.read().await
    }

    /// Waits until no decision is in progress, and prevents new decisions while the guard is held.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn lock_clock_exclusive(&self) -> RwLockWriteGuard<'_, ()> {
        self.steady.write().await
    }

    /// Reads the applied clock steps, with the version of the fact. `None` before the first start.
    pub async fn clock_fact(&self) -> Result<Option<(u64, ClockFact)>, EngineError> {
        let rows = self.engine.get(Kind::Meta, &[KEY.into()]).await?;
        let Some(row) = rows.into_iter().flatten().next() else {
            return Ok(None);
        };
        let unread = || EngineError::Corrupt("cannot read the clock changes".into());
        let fact = ClockFact::decode(&row.value).ok_or_else(unread)?;
        Ok(Some((row.version, fact)))
    }

    /// Stores the applied clock steps. The fact must still have `version`, or must be absent if
    /// `version` is `None`.
    pub async fn put_clock_fact(
        &self,
        version: Option<u64>,
        fact: &ClockFact,
    ) -> Result<(), EngineError> {
        let expect = version.map_or(Expect::Absent, Expect::Version);
        let change = Change {
            is_logged: false,
            ..Change::new(Kind::Meta, KEY, expect, Action::Put(fact.encode()))
        };
        let lane = self.effective_lane(Lane::Admin);
        self.engine.apply(lane, vec![change].into()).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_fact_round_trips() {
        for boot in [None, Some([7; 16])] {
            let fact = ClockFact {
                stepped_ms: -1,
                shift_ms: 2,
                indexed_ms: i64::MIN,
                offset_ms: i64::MAX,
                boot,
            };
            assert_eq!(ClockFact::decode(&fact.encode()), Some(fact));
        }
        assert_eq!(ClockFact::decode(&[0; 31]), None);
    }
}
