//! Enrichment tables, compiled for lookups by the fields of an occurrence.

mod csv;

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use self::csv::{CsvRow, CsvRows};
use crate::{
    domain::{EnrichmentTable, Name, Occurrence, Value, event::SOURCE},
    limits::{
        ENRICHED_BYTES_MAX, ENRICHMENT_BYTES_MAX, ENRICHMENT_CELL_BYTES_MAX,
        ENRICHMENT_COLUMNS_MAX, ENRICHMENT_ERRORS_MAX, ENRICHMENT_MATCH_FIELDS_MAX,
        ENRICHMENT_PREFIX_LENGTHS_MAX, ENRICHMENT_ROWS_MAX, EVENT_NAME_BYTES_MAX,
    },
    matching::{
        field::{Field, FieldValue},
        fold::fold,
    },
    violation::Violation,
};

/// Separates the values of a key. Values cannot contain it.
const SEPARATOR: char = '\0';
/// Marks a row whose last value is a prefix.
const WILDCARD: char = '*';

/// No enrichment tables.
pub static NO_ENRICHMENTS: Enrichments = Enrichments { tables: Vec::new() };

/// The enabled tables, in the order of their names.
#[derive(Debug, Clone, Default)]
pub struct Enrichments {
    tables: Vec<Arc<LoadedEnrichment>>,
}

/// A table with the positions of its rows by their folded values.
#[derive(Debug)]
pub struct LoadedEnrichment {
    pub table: EnrichmentTable,
    columns: Vec<Column>,
    /// The fields of the match columns, in the order of the columns.
    fields: Vec<Field>,
    exact: HashMap<Box<str>, RowPosition>,
    by_prefix: HashMap<Box<str>, RowPosition>,
    /// The lengths of the prefixes, longest first.
    prefix_lengths: BTreeSet<Reverse<usize>>,
    /// The cells of all rows after the first.
    rows: Vec<Vec<String>>,
}

#[derive(Debug)]
struct Column {
    name: String,
    /// Whether the column selects a row, rather than setting a metadata field.
    is_match: bool,
}

/// The position of a row in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowPosition {
    /// The line that the row starts at; the first line is 1.
    pub line: usize,
    index: usize,
}

/// A row that matches an occurrence, with its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedRow {
    pub row: RowPosition,
    /// The metadata fields that the row sets.
    pub values: Vec<(String, String)>,
    /// The fields that keep another value, with the value of the row.
    pub kept: Vec<(String, String)>,
}

impl Enrichments {
    /// Creates the set from tables in the order of their names.
    pub fn new(tables: Vec<Arc<LoadedEnrichment>>) -> Self {
        Self { tables }
    }

    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Returns the tables with `table` in place of the one with its name.
    #[must_use]
    pub fn with_table(&self, table: Arc<LoadedEnrichment>) -> Self {
        let name = &table.table.name;
        let mut tables = self.tables.clone();
        tables.retain(|it| it.table.name != *name);
        let at = tables.partition_point(|it| it.table.name < *name);
        tables.insert(at, table);
        Self { tables }
    }

    /// Adds the values of the matching rows to the metadata of an occurrence, which has only the
    /// values of its sender.
    pub fn apply(&self, occurrence: &mut Occurrence) {
        let mut left_bytes = ENRICHED_BYTES_MAX;
        for table in &self.tables {
            table.apply(occurrence, &mut left_bytes);
        }
    }

    /// Like [`Self::apply`]. Returns the matching row of the table `name`, with its effect.
    pub fn apply_traced(&self, occurrence: &mut Occurrence, name: &Name) -> Option<AppliedRow> {
        let (mut left_bytes, mut traced) = (ENRICHED_BYTES_MAX, None);
        for table in &self.tables {
            let first = occurrence.enriched.len();
            let row = table.apply(occurrence, &mut left_bytes);
            if table.table.name == *name {
                traced = row.map(|row| {
                    let set = &occurrence.enriched[first..];
                    let values = table.row_values(row);
                    let values = values.map(|(key, value)| (key.to_owned(), value.to_owned()));
                    let (values, kept) = values.partition(|(key, _)| set.contains(key));
                    AppliedRow { row, values, kept }
                });
            }
        }
        traced
    }
}

impl LoadedEnrichment {
    /// Compiles a table.
    ///
    /// # Errors
    /// Returns the violations of `matchFields` and `csv`; the latter name the line and column.
    pub fn new(table: EnrichmentTable) -> Result<Self, Vec<Violation>> {
        let mut violations = Vec::new();
        check_match_fields(&table.match_fields, &mut violations);
        let bytes = table.csv.len();
        if bytes > ENRICHMENT_BYTES_MAX {
            let message = format!("is {bytes} bytes; the limit is {ENRICHMENT_BYTES_MAX}");
            violations.push(Violation::new("csv", message));
        }
        let mut loaded = Self {
            table,
            columns: Vec::new(),
            fields: Vec::new(),
            exact: HashMap::new(),
            by_prefix: HashMap::new(),
            prefix_lengths: BTreeSet::new(),
            rows: Vec::new(),
        };
        if violations.is_empty() {
            let errors = loaded.read_rows();
            violations.extend(errors.into_iter().map(|it| Violation::new("csv", it)));
        }
        if violations.is_empty() {
            Ok(loaded)
        } else {
            Err(violations)
        }
    }

    pub fn row_count(&self) -> usize {
        self.exact.len() + self.by_prefix.len()
    }

    /// Returns the positions of all rows, in any order.
    pub fn rows(&self) -> impl Iterator<Item = RowPosition> {
        self.exact.values().chain(self.by_prefix.values()).copied()
    }

    /// Reads the columns and the rows. Returns the first errors.
    fn read_rows(&mut self) -> Vec<String> {
        let csv = std::mem::take(&mut self.table.csv);
        let mut rows = CsvRows::new(&csv);
        let mut errors = match rows.next() {
            None => vec!["is required: a row with the names of the columns, and rows".to_owned()],
            Some(Err(error)) => vec![error],
            Some(Ok(head)) => self.read_columns(&head.cells),
        };
        for row in rows {
            if self.columns.is_empty() || errors.len() >= ENRICHMENT_ERRORS_MAX {
                break;
            }
            errors.extend(row.and_then(|it| self.add_row(it)).err());
            if let Some(error) = self.exceeded_limit() {
                errors.push(error);
                break;
            }
        }
        self.table.csv = csv;
        errors
    }

    /// Reads the names of the columns. Leaves the table without columns if one is invalid.
    fn read_columns(&mut self, names: &[String]) -> Vec<String> {
        let (count, matched) = (names.len(), &self.table.match_fields);
        if count > ENRICHMENT_COLUMNS_MAX {
            let most = ENRICHMENT_COLUMNS_MAX;
            return vec![format!("line 1: has {count} columns; the limit is {most}")];
        }
        let missing = matched.iter().filter(|it| !names.contains(it));
        let missing = missing.map(|it| format!("line 1: has no column `{it}` to match"));
        let mut errors: Vec<_> = missing.collect();
        let mut columns = Vec::with_capacity(count);
        for (at, name) in names.iter().enumerate() {
            let is_match = matched.contains(name);
            let error = match names[..at].contains(name) {
                true => Some("occurs twice"),
                false if is_match => None,
                false => metadata_key_error(name),
            };
            errors.extend(error.map(|it| format!("line 1: column `{name}`: {it}")));
            let name = name.clone();
            columns.push(Column { name, is_match });
        }
        if columns.iter().all(|it| it.is_match) {
            errors.push("line 1: has no column to set".to_owned());
        }
        if errors.is_empty() {
            let matched = columns.iter().filter(|it| it.is_match);
            self.fields = matched
                .filter_map(|it| Field::parse(&it.name).ok())
                .collect();
            self.columns = columns;
        }
        errors
    }

    fn add_row(&mut self, row: CsvRow) -> Result<(), String> {
        let line = row.line;
        let (count, columns) = (row.cells.len(), self.columns.len());
        if count != columns {
            return Err(format!(
                "line {line}: has {count} cells; expected {columns}"
            ));
        }
        let mut key = String::new();
        for (cell, column) in row.cells.iter().zip(&self.columns) {
            check_cell(cell, column)
                .map_err(|error| format!("line {line}: column `{}`: {error}", column.name))?;
            if column.is_match {
                add_value(&mut key, cell);
            }
        }
        key.pop();
        let (rows, key) = match key.strip_suffix(WILDCARD) {
            Some(prefix) => {
                self.prefix_lengths.insert(Reverse(prefix.len()));
                (&mut self.by_prefix, prefix)
            }
            None => (&mut self.exact, key.as_str()),
        };
        let index = self.rows.len();
        if let Some(earlier) = rows.insert(key.into(), RowPosition { line, index }) {
            let earlier = earlier.line;
            return Err(format!(
                "line {line}: matches the same values as line {earlier}"
            ));
        }
        self.rows.push(row.cells);
        Ok(())
    }

    fn exceeded_limit(&self) -> Option<String> {
        if self.row_count() > ENRICHMENT_ROWS_MAX {
            return Some(format!("has more than {ENRICHMENT_ROWS_MAX} rows"));
        }
        let most = ENRICHMENT_PREFIX_LENGTHS_MAX;
        let is_over = self.prefix_lengths.len() > most;
        is_over.then(|| format!("has values before `*` of more than {most} different lengths"))
    }

    /// Returns the row with the values of an occurrence: an exact one, or that with the longest
    /// prefix.
    fn find_row(&self, occurrence: &Occurrence) -> Option<RowPosition> {
        let mut key = String::new();
        for field in &self.fields {
            let is_found = field.any_value(occurrence, &mut |value| {
                match value {
                    FieldValue::Text(text) => add_value(&mut key, text),
                    FieldValue::Number(number) => add_value(&mut key, &number.to_string()),
                    FieldValue::Bool(flag) => add_value(&mut key, &flag.to_string()),
                }
                true
            });
            if !is_found {
                return None;
            }
        }
        key.pop();
        let by_prefix = |length: &Reverse<usize>| self.by_prefix.get(key.get(..length.0)?);
        let exact = self.exact.get(key.as_str());
        exact
            .or_else(|| self.prefix_lengths.iter().find_map(by_prefix))
            .copied()
    }

    fn apply(&self, occurrence: &mut Occurrence, left_bytes: &mut usize) -> Option<RowPosition> {
        let row = self.find_row(occurrence)?;
        for (key, value) in self.row_values(row) {
            let bytes = key.len() + value.len();
            let (dimensions, metadata) = (&occurrence.dimensions, &mut occurrence.metadata);
            if bytes <= *left_bytes && !dimensions.contains_key(key) && !metadata.contains_key(key)
            {
                *left_bytes -= bytes;
                metadata.insert(key.to_owned(), Value::Text(value.to_owned()));
                occurrence.enriched.push(key.to_owned());
            }
        }
        Some(row)
    }

    /// Returns the metadata fields and values of a row.
    fn row_values(&self, row: RowPosition) -> impl Iterator<Item = (&str, &str)> {
        let cells = self.rows[row.index].iter().zip(&self.columns);
        let set = cells.filter(|(value, column)| !column.is_match && !value.is_empty());
        set.map(|(value, column)| (column.name.as_str(), value.as_str()))
    }
}

/// Adds a folded value to a key, followed by the separator.
fn add_value(key: &mut String, value: &str) {
    key.push_str(&fold(value));
    key.push(SEPARATOR);
}

fn check_match_fields(names: &[String], violations: &mut Vec<Violation>) {
    let count = names.len();
    if !(1..=ENRICHMENT_MATCH_FIELDS_MAX).contains(&count) {
        let message = format!("has {count} fields; expected 1 to {ENRICHMENT_MATCH_FIELDS_MAX}");
        violations.push(Violation::new("matchFields", message));
    }
    for (at, name) in names.iter().enumerate().take(ENRICHMENT_MATCH_FIELDS_MAX) {
        let error = match Field::parse(name) {
            Ok(
                Field::Name
                | Field::Type
                | Field::Dimension(_)
                | Field::Metadata(_)
                | Field::Either(_),
            ) => continue,
            Ok(_) => format!(
                "cannot be `{name}`; expected `name`, `type`, a dimension or a metadata field"
            ),
            Err(message) => message,
        };
        violations.push(Violation::new(format!("matchFields[{at}]"), error));
    }
}

/// Returns why a column cannot set a metadata field.
fn metadata_key_error(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("has no name")
    } else if name.len() > EVENT_NAME_BYTES_MAX {
        Some("has a name that is too long")
    } else if name.contains('.') {
        Some(
            "a metadata field to set cannot contain a dot; list a column to match in `matchFields`",
        )
    } else if name == SOURCE {
        Some("is reserved for the sender; use another name")
    } else if Field::fixed_names().contains(&name) {
        Some("is a field of every event; use another name, such as `owner` or `team`")
    } else {
        None
    }
}

fn check_cell(cell: &str, column: &Column) -> Result<(), String> {
    let bytes = cell.len();
    if bytes > ENRICHMENT_CELL_BYTES_MAX {
        let most = ENRICHMENT_CELL_BYTES_MAX;
        Err(format!("is {bytes} bytes; the limit is {most}"))
    } else if cell.contains(SEPARATOR) {
        Err("contains a null character; remove it".to_owned())
    } else if column.is_match && cell.is_empty() {
        Err("is empty; a match column requires a value".to_owned())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
