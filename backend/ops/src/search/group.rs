//! Groups of occurrences by the value of a field.

use std::{cmp::Reverse, collections::BTreeMap};

use super::{Filter, IndexWalk, NEWEST_FIRST, count_matches};
use crate::{
    clock::Clock,
    domain::{Occurrence, Severity},
    error::Error,
    limits::PAGE_TIME_MAX,
    matching::field::{Field, FieldValue},
    store::Store,
};

const GROUPS_MAX: usize = 100_000;
const BATCH: usize = 1_000;
const VALUE_CHARS: usize = 256;

/// Occurrences with the same value of a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// The value as text; `None` for occurrences without the field.
    pub value: Option<String>,
    /// Count by severity; severities without occurrences are omitted.
    pub by_severity: BTreeMap<Severity, usize>,
    /// Time at which the newest occurrence was last seen, in milliseconds since the epoch; `None`
    /// if the occurrences were only counted.
    pub last_seen_ms: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    /// The groups, largest first, then by value.
    pub all: Vec<Group>,
    pub counted: usize,
    pub is_complete: bool,
}

/// Groups the matching occurrences by the value of a field, most recently seen first. Reading takes
/// at most [`PAGE_TIME_MAX`].
pub async fn group_occurrences(
    store: &Store,
    clock: &dyn Clock,
    filter: &Filter,
    field: &Field,
) -> Result<Groups, Error> {
    let end = clock.elapsed() + PAGE_TIME_MAX;
    if filter.query.is_none() && filter.start_ms.is_none() && filter.end_ms.is_none() {
        match field {
            Field::Severity => return group_by_severity(store, filter).await,
            Field::Status => return group_by_status(store, filter).await,
            _ => {}
        }
    }
    let mut walk = IndexWalk::new(store, filter, NEWEST_FIRST, None);
    let mut groups: BTreeMap<Option<String>, Group> = BTreeMap::new();
    let (mut counted, mut is_complete) = (0, true);
    loop {
        let batch = walk.next(BATCH).await?;
        if batch.is_empty() {
            break;
        }
        for occurrence in filter.retain_matching(batch).await {
            let value = field_value(field, &occurrence);
            if groups.len() >= GROUPS_MAX && !groups.contains_key(&value) {
                is_complete = false;
                continue;
            }
            counted += 1;
            let group = groups.entry(value.clone()).or_default();
            group.value = value;
            *group.by_severity.entry(occurrence.severity).or_default() += 1;
            group.last_seen_ms = group.last_seen_ms.max(Some(occurrence.last_seen_ms));
        }
        if clock.elapsed() > end {
            is_complete = false;
            break;
        }
        tokio::task::yield_now().await;
    }
    Ok(Groups {
        all: sort_by_size(groups.into_values().collect()),
        counted,
        is_complete,
    })
}

fn sort_by_size(mut groups: Vec<Group>) -> Vec<Group> {
    // The sort is stable: ties stay sorted by value.
    groups.sort_by_key(|group| Reverse(group.by_severity.values().sum::<usize>()));
    groups
}

fn field_value(field: &Field, occurrence: &Occurrence) -> Option<String> {
    match field {
        Field::Severity => return Some(occurrence.severity.as_str().to_owned()),
        Field::Status => return Some(occurrence.status.as_str().to_owned()),
        _ => {}
    }
    let mut value = None;
    field.any_value(occurrence, &mut |found| {
        value = Some(match found {
            FieldValue::Text(text) => text.chars().take(VALUE_CHARS).collect(),
            FieldValue::Number(number) => number.to_string(),
            FieldValue::Bool(flag) => flag.to_string(),
        });
        true
    });
    value
}

async fn group_by_severity(store: &Store, filter: &Filter) -> Result<Groups, Error> {
    let mut groups = Vec::new();
    for severity in filter.severities().into_iter().rev() {
        let own = Filter {
            severities: vec![severity],
            ..filter.clone()
        };
        let number = count_matches(store, &own).await?;
        groups.push((severity.as_str(), BTreeMap::from([(severity, number)])));
    }
    Ok(to_groups(groups))
}

async fn group_by_status(store: &Store, filter: &Filter) -> Result<Groups, Error> {
    let mut groups = Vec::new();
    for status in filter.statuses() {
        let mut by_severity = BTreeMap::new();
        for severity in filter.severities() {
            let own = Filter {
                severities: vec![severity],
                statuses: vec![status],
                ..filter.clone()
            };
            by_severity.insert(severity, count_matches(store, &own).await?);
        }
        groups.push((status.as_str(), by_severity));
    }
    Ok(to_groups(groups))
}

fn to_groups(groups: Vec<(&str, BTreeMap<Severity, usize>)>) -> Groups {
    let group = |(value, mut by_severity): (&str, BTreeMap<Severity, usize>)| {
        by_severity.retain(|_, count| *count > 0);
        (!by_severity.is_empty()).then(|| Group {
            value: Some(value.to_owned()),
            by_severity,
            last_seen_ms: None,
        })
    };
    let groups: Vec<_> = groups.into_iter().filter_map(group).collect();
    let counts = groups.iter().flat_map(|group| group.by_severity.values());
    Groups {
        counted: counts.sum(),
        all: sort_by_size(groups),
        is_complete: true,
    }
}
