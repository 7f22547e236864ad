//! Conversion of searches, counts and watches.

use bellwether_proto::v1::{self, page_input::Direction, sort_by::Sort};
use prost::Message;

use super::query::{self, clause};
use crate::{
    domain::SortField,
    domain::{Query, Severity, Status},
    error::{Error, Violation},
    limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX},
    matching::{self, CompiledQuery, compile, field::Field},
    ops::{
        fields::field_names,
        search::{Filter, SearchRequest},
    },
};

const BUCKETS_MAX: i32 = 500;
const BUCKETS_DEFAULT: usize = 60;
const GROUPS_MAX: i32 = 1_000;
const GROUPS_DEFAULT: usize = 50;

const FILTER_PATH: &str = "query.filter";

#[derive(Debug)]
pub struct ReadQuery<T> {
    pub what: T,
    /// Fields used in the condition, each with its position in the filter text, if any.
    pub named: Vec<(String, Option<usize>)>,
}

/// Converts a query to a filter. Relative times refer to `now_ms`.
///
/// # Errors
/// Returns all violations, with paths in the request.
pub fn filter(wire: Option<v1::EventQuery>, now_ms: i64) -> Result<ReadQuery<Filter>, Error> {
    let mut violations = Vec::new();
    let (what, named) = read_filter(wire.unwrap_or_default(), now_ms, &mut violations);
    if violations.is_empty() {
        Ok(ReadQuery { what, named })
    } else {
        Err(Error::Invalid(violations))
    }
}

pub fn search(
    wire: Option<v1::EventQuery>,
    now_ms: i64,
) -> Result<ReadQuery<SearchRequest>, Error> {
    let mut violations = Vec::new();
    let mut wire = wire.unwrap_or_default();
    let page = wire.page_input.take().unwrap_or_default();
    let (sort, ascending) = read_sort(&wire.sort_by, &mut violations);
    let fingerprint = wire.encode_to_vec();
    let limit = match usize::try_from(page.limit) {
        Ok(0) => PAGE_SIZE_DEFAULT,
        Ok(limit) => limit.min(PAGE_SIZE_MAX),
        Err(_) => {
            let message = format!("is negative; expected 1 to {PAGE_SIZE_MAX}");
            violations.push(Violation::new("query.pageInput.limit", message));
            PAGE_SIZE_DEFAULT
        }
    };
    let backward = match Direction::try_from(page.direction) {
        Ok(Direction::Unspecified | Direction::Forward) => false,
        Ok(Direction::Backward) => true,
        Err(_) => {
            let message = "is neither FORWARD nor BACKWARD";
            violations.push(Violation::new("query.pageInput.direction", message));
            false
        }
    };
    let (filter, named) = read_filter(wire, now_ms, &mut violations);
    if !violations.is_empty() {
        return Err(Error::Invalid(violations));
    }
    let cursor = page.cursor;
    let what = SearchRequest {
        filter,
        sort,
        ascending,
        limit,
        cursor,
        backward,
        fingerprint,
    };
    Ok(ReadQuery { what, named })
}

pub fn bucket_count(number: i32) -> Result<usize, Error> {
    match number {
        0 => Ok(BUCKETS_DEFAULT),
        1..=BUCKETS_MAX => Ok(usize::try_from(number).unwrap_or(BUCKETS_DEFAULT)),
        _ => Err(Error::invalid(
            "bucketCount",
            format!("must be between 1 and {BUCKETS_MAX}"),
        )),
    }
}

/// Converts the name of a field by which occurrences are grouped.
///
/// # Errors
/// Returns an error if the field cannot be used for groups.
pub fn group_field(name: &str) -> Result<Field, Error> {
    Field::parse_shared(name).map_err(|message| Error::invalid("field", message))
}

pub fn group_limit(number: i32) -> Result<usize, Error> {
    match number {
        0 => Ok(GROUPS_DEFAULT),
        1..=GROUPS_MAX => Ok(usize::try_from(number).unwrap_or(GROUPS_DEFAULT)),
        _ => Err(Error::invalid(
            "limit",
            format!("must be between 1 and {GROUPS_MAX}"),
        )),
    }
}

fn read_filter(
    wire: v1::EventQuery,
    now_ms: i64,
    violations: &mut Vec<Violation>,
) -> (Filter, Vec<(String, Option<usize>)>) {
    let range = wire.time_range.unwrap_or_default();
    if let (Some(start), Some(end)) = (range.start, range.end)
        && start > end
    {
        violations.push(Violation::new("query.timeRange", "ends before it starts"));
    }
    if wire.clause.is_some() && !wire.filter.is_empty() {
        violations.push(Violation::new(
            FILTER_PATH,
            "conflicts with `clause`; set only one of them",
        ));
    }
    let text = if wire.filter.is_empty() {
        None
    } else {
        query::parse_filter(&wire.filter, Some(now_ms), FILTER_PATH, violations)
    };
    let mut used_fields = Vec::new();
    let compiled = match (&text, wire.clause) {
        (Some((parsed, compiled)), _) => {
            let fields = parsed.fields().into_iter();
            used_fields.extend(fields.map(|(name, at)| (name.to_owned(), Some(at))));
            Some(compiled.clone())
        }
        (None, clause) => clause.and_then(|wire| {
            let (query, compiled) = read_query(wire, violations)?;
            let names = field_names(&query.clause).into_iter();
            used_fields.extend(names.map(|name| (name.to_owned(), None)));
            Some(compiled)
        }),
    };
    let severities = wire
        .severities
        .iter()
        .enumerate()
        .filter_map(|(at, number)| {
            let severity = Severity::from_number(*number);
            if severity.is_none() {
                let field = format!("query.severities[{at}]");
                violations.push(Violation::new(
                    field,
                    "is not one of SEVERITY_DEBUG to SEVERITY_CRITICAL",
                ));
            }
            severity
        });
    let severities = severities.collect();
    let statuses = wire.statuses.iter().enumerate().filter_map(|(at, number)| {
        let status = Status::from_number(*number);
        if status.is_none() {
            let field = format!("query.statuses[{at}]");
            let known = "is not one of STATUS_OPEN, STATUS_SUPPRESSED, STATUS_CLOSED";
            violations.push(Violation::new(field, known));
        }
        status
    });
    // Time bounds in the text narrow the range of the index.
    let bounds = text.map(|(parsed, _)| matching::time_bounds(&parsed.clause));
    let (since_ms, until_ms) = bounds.unwrap_or_default();
    let filter = Filter {
        start_ms: range.start.max(since_ms),
        end_ms: [range.end, until_ms].into_iter().flatten().min(),
        query: compiled,
        severities,
        statuses: statuses.collect(),
    };
    (filter, used_fields)
}

fn read_query(wire: v1::Clause, violations: &mut Vec<Violation>) -> Option<(Query, CompiledQuery)> {
    let known = violations.len();
    let query = Query {
        clause: clause(wire, "query.clause", violations),
    };
    if violations.len() > known {
        return None;
    }
    let prefix = |mut violation: Violation| {
        violation.field.insert_str(0, "query.");
        violation
    };
    match compile(&query) {
        Ok(compiled) => Some((query, compiled)),
        Err(found) => {
            violations.extend(found.into_iter().map(prefix));
            None
        }
    }
}

fn read_sort(wire: &[v1::SortBy], violations: &mut Vec<Violation>) -> (SortField, bool) {
    if wire.len() > 1 {
        let message = format!("has {} entries; the limit is 1", wire.len());
        violations.push(Violation::new("query.sortBy", message));
    }
    let Some(Sort::ByField(by)) = wire.first().and_then(|by| by.sort.as_ref()) else {
        return (SortField::default(), false);
    };
    let field = SortField::from_word(&by.field).unwrap_or_else(|message| {
        violations.push(Violation::new("query.sortBy[0].byField.field", message));
        SortField::default()
    });
    let order = v1::SortOrder::try_from(by.order).unwrap_or_else(|_unknown| {
        let message = "is neither SORT_ORDER_ASC nor SORT_ORDER_DESC";
        violations.push(Violation::new("query.sortBy[0].byField.order", message));
        v1::SortOrder::default()
    });
    (field, order == v1::SortOrder::Asc)
}
