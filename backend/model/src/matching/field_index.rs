//! Index of queries by the value they require in one field.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, BuildError};

use super::{field::FieldValue, fold::fold, literal::number_bits, require::RequiredValue};

/// The queries that require a value in one field, by that value.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldIndex {
    texts: HashMap<String, Vec<usize>>,
    numbers: HashMap<u64, Vec<usize>>,
    parts: HashMap<String, Vec<usize>>,
    search: Option<Search>,
}

/// Finds all required parts in one pass over a text.
#[derive(Debug, Clone)]
struct Search {
    automaton: AhoCorasick,
    /// The queries of each part, in the order of the automaton.
    queries: Vec<Vec<usize>>,
}

impl FieldIndex {
    pub(super) fn insert(&mut self, want: &RequiredValue<'_>, query: usize) {
        let queries = match want {
            RequiredValue::Text(text) => self.texts.entry((*text).to_owned()).or_default(),
            RequiredValue::Number(number) => self.numbers.entry(number_bits(*number)).or_default(),
            RequiredValue::Part(part) => self.parts.entry(part.as_str().to_owned()).or_default(),
        };
        queries.push(query);
    }

    /// Builds the data that [`FieldIndex::add`] requires.
    ///
    /// # Errors
    /// Returns an error if there are too many parts for one automaton; queries that require parts
    /// are then not found.
    pub(super) fn finish(&mut self) -> Result<(), BuildError> {
        if self.parts.is_empty() {
            return Ok(());
        }
        let (parts, queries): (Vec<_>, Vec<_>) = self.parts.drain().unzip();
        let automaton = AhoCorasick::new(&parts)?;
        self.search = Some(Search { automaton, queries });
        Ok(())
    }

    /// Adds the queries that require this value. Some of them may require further values.
    pub(super) fn add(&self, found: FieldValue<'_>, candidates: &mut Vec<usize>) {
        match found {
            FieldValue::Text(text) => {
                let text = fold(text);
                self.add_text(&text, candidates);
                if !self.numbers.is_empty()
                    && let Ok(number) = text.parse()
                {
                    self.add_number(number, candidates);
                }
            }
            FieldValue::Number(number) => {
                self.add_number(number, candidates);
                if self.search.is_some() {
                    self.add_parts(&number.to_string(), candidates);
                }
            }
            FieldValue::Bool(flag) => {
                self.add_text(if flag { "true" } else { "false" }, candidates);
            }
        }
    }

    fn add_text(&self, folded: &str, candidates: &mut Vec<usize>) {
        if let Some(queries) = self.texts.get(folded) {
            candidates.extend(queries);
        }
        self.add_parts(folded, candidates);
    }

    fn add_parts(&self, folded: &str, candidates: &mut Vec<usize>) {
        if let Some(search) = &self.search {
            for part in search.automaton.find_overlapping_iter(folded) {
                candidates.extend(&search.queries[part.pattern().as_usize()]);
            }
        }
    }

    fn add_number(&self, number: f64, candidates: &mut Vec<usize>) {
        if let Some(queries) = self.numbers.get(&number_bits(number)) {
            candidates.extend(queries);
        }
    }
}
