//! What every decision about occurrences needs: the store, the time and the rules.

use std::sync::Arc;

use crate::{
    clock::Clock,
    config::LifetimeConfig,
    domain::RecordId,
    ops::{recent::Traffic, ruleset::Ruleset},
    store::Store,
};

/// What every decision about occurrences needs. Clones share it.
#[derive(Debug, Clone)]
pub struct Deciding {
    /// Where occurrences and deliveries are kept.
    pub store: Store,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The rules in force.
    pub ruleset: Arc<Ruleset>,
    /// How long occurrences live.
    pub lifetime: LifetimeConfig,
    /// Where accepted events are counted.
    pub traffic: Arc<Traffic>,
}

/// A new identity of that time.
pub fn new_id(now_ms: i64) -> RecordId {
    let time_ms = u64::try_from(now_ms).unwrap_or_default();
    RecordId::from_parts(time_ms, rand::random())
}
