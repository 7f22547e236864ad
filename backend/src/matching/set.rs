//! Many queries, and which of them an occurrence matches.

use super::compile::CompiledQuery;
use crate::domain::Occurrence;

/// Compiled queries, each with what it stands for.
#[derive(Debug, Clone)]
pub struct TriggerSet<K> {
    queries: Vec<(K, CompiledQuery)>,
}

impl<K> TriggerSet<K> {
    /// Takes queries, each with what it stands for.
    pub fn build(queries: Vec<(K, CompiledQuery)>) -> Self {
        Self { queries }
    }

    /// What the queries that the occurrence matches stand for, in the order of [`Self::build`].
    pub fn matching(&self, occurrence: &Occurrence) -> Vec<&K> {
        let matching = self
            .queries
            .iter()
            .filter(|(_, query)| query.matches(occurrence));
        matching.map(|(key, _)| key).collect()
    }
}
