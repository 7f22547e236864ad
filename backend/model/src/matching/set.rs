//! Finds the queries that match an occurrence without evaluating all of them.

use std::collections::HashMap;

use super::{
    compile::CompiledQuery,
    field::Field,
    field_index::FieldIndex,
    require::{Key, required_keys},
    subject::Subject,
};
use crate::domain::Occurrence;

/// Compiled queries with their keys.
///
/// Most queries can only match if a field contains a certain string, part of a string or number.
/// These queries are looked up by the values of the occurrence and only then evaluated. Other
/// queries, such as a lone `not` or a comparison of numbers, are always evaluated.
#[derive(Debug, Clone)]
pub struct TriggerSet<K> {
    queries: Vec<(K, CompiledQuery)>,
    always: Vec<usize>,
    fields: Fields,
}

/// The indexes of all fields used by queries, looked up by the fields of an occurrence, which are
/// far fewer.
#[derive(Debug, Clone, Default)]
struct Fields {
    indexes: Vec<(Field, FieldIndex)>,
    /// Fields that every occurrence has.
    fixed: Vec<usize>,
    dimensions: HashMap<String, Vec<usize>>,
    /// By the name of the metadata field up to its first dot.
    metadata: HashMap<String, Vec<usize>>,
}

impl<K> TriggerSet<K> {
    pub fn build(queries: Vec<(K, CompiledQuery)>) -> Self {
        let mut always = Vec::new();
        let mut fields = Fields::default();
        let mut places = HashMap::new();
        for (at, (_, query)) in queries.iter().enumerate() {
            match required_keys(&query.root) {
                None => always.push(at),
                Some(keys) => {
                    for key in keys {
                        fields.insert(&mut places, &key, at);
                    }
                }
            }
        }
        if fields.finish().is_err() {
            always = (0..queries.len()).collect();
            fields = Fields::default();
        }
        Self {
            queries,
            always,
            fields,
        }
    }

    /// Returns the keys of the queries that match the occurrence, in the order of [`Self::build`].
    pub fn find_matching(&self, occurrence: &Occurrence) -> Vec<&K> {
        let mut candidates = self.always.clone();
        self.fields.add(occurrence, &mut candidates);
        candidates.sort_unstable();
        candidates.dedup();
        let candidates = candidates.into_iter().map(|at| &self.queries[at]);
        let subject = Subject::new(occurrence);
        candidates
            .filter(|(_, query)| query.matches_subject(&subject))
            .map(|(key, _)| key)
            .collect()
    }
}

impl Fields {
    fn insert(&mut self, places: &mut HashMap<Field, usize>, key: &Key<'_>, query: usize) {
        let known = places.get(key.field).copied();
        let place = known.unwrap_or_else(|| {
            let place = self.add_field(key.field);
            places.insert(key.field.clone(), place);
            place
        });
        self.indexes[place].1.insert(&key.want, query);
    }

    fn add_field(&mut self, field: &Field) -> usize {
        let place = self.indexes.len();
        self.indexes.push((field.clone(), FieldIndex::default()));
        let by_name = |map: &mut HashMap<String, Vec<usize>>, name: &str| {
            map.entry(name.to_owned()).or_default().push(place);
        };
        match field {
            Field::Dimension(key) => by_name(&mut self.dimensions, key),
            Field::Metadata(path) => by_name(&mut self.metadata, first_part(path)),
            Field::Either(name) => {
                by_name(&mut self.dimensions, name);
                by_name(&mut self.metadata, first_part(name));
            }
            _ => self.fixed.push(place),
        }
        place
    }

    fn finish(&mut self) -> Result<(), aho_corasick::BuildError> {
        self.indexes
            .iter_mut()
            .try_for_each(|(_, index)| index.finish())
    }

    /// Adds the queries that require a value that the occurrence contains.
    fn add(&self, occurrence: &Occurrence, candidates: &mut Vec<usize>) {
        let mut visit = |places: &[usize]| {
            for place in places {
                let (field, index) = &self.indexes[*place];
                // Returns false so that every value is visited.
                field.any_value(occurrence, &mut |found| {
                    index.add(found, candidates);
                    false
                });
            }
        };
        visit(&self.fixed);
        if !self.dimensions.is_empty() {
            for key in occurrence.dimensions.keys() {
                self.dimensions
                    .get(key)
                    .into_iter()
                    .for_each(|places| visit(places));
            }
        }
        if !self.metadata.is_empty() {
            // Keys with the same first part need not be neighbours in sorted order, as `a`, `a-b`
            // and `a.b` show. Visiting a field twice is harmless.
            let mut last = None;
            for key in occurrence.metadata.keys() {
                let first = first_part(key);
                if last != Some(first) {
                    self.metadata
                        .get(first)
                        .into_iter()
                        .for_each(|places| visit(places));
                    last = Some(first);
                }
            }
        }
    }
}

fn first_part(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}
