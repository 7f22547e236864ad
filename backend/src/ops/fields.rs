//! Which fields stored events have, and which of them somebody may have meant.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bellwether_proto::filter;

use crate::{
    clock::Clock,
    domain::{Clause, Occurrence, Query, Value, value::Fields},
    error::Error,
    limits::{FIELD_NAMES_MAX, FIELDS_READ_MAX},
    matching::field::Field,
    ops::search::{Filter, NEWEST_FIRST, Walk},
    store::Store,
};

/// How long what was read is taken for what there is.
const FRESH: Duration = Duration::from_secs(5);
/// Occurrences read at once.
const BATCH: usize = 500;
/// How deep names reach into objects.
const DEPTH_MAX: usize = 4;

/// The names of fields that stored events have.
#[derive(Debug, Clone)]
pub struct FieldsSeen {
    store: Store,
    clock: Arc<dyn Clock>,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// Dimensions and metadata fields, each also as what a bare name means.
    names: BTreeSet<String>,
    /// When they were read, by the clock that is never set.
    read: Option<Duration>,
    /// Whether every event was read.
    is_whole: bool,
}

/// A field that no event has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Its name.
    pub field: String,
    /// The field that may be meant; none when none is near.
    pub nearest: Option<String>,
    /// Whether all events were looked at, and not only the newest.
    pub is_certain: bool,
}

impl Unknown {
    /// A sentence fragment for people.
    pub fn describe(&self) -> String {
        let field = &self.field;
        match &self.nearest {
            Some(nearest) => format!("no event has a field `{field}`: `{nearest}`?"),
            None => format!("no event has a field `{field}`"),
        }
    }
}

impl FieldsSeen {
    /// Nothing was read yet.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            known: Arc::default(),
        }
    }

    /// Those of the names that no event has, each at its place in the list. One of `own`, fields that
    /// what is asked of has besides those of events, may be meant as well.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn unknown(
        &self,
        names: &[&str],
        own: &[&str],
    ) -> Result<Vec<Option<Unknown>>, Error> {
        if !self.knows(names) {
            self.read().await?;
        }
        let known = self.known();
        let unknown = names.iter().map(|name| {
            (!is_known(name, &known.names)).then(|| Unknown {
                field: (*name).to_owned(),
                nearest: nearest(name, &known.names, own),
                is_certain: known.is_whole,
            })
        });
        Ok(unknown.collect())
    }

    /// Whether there is nothing to be read for an answer.
    fn knows(&self, names: &[&str]) -> bool {
        let known = self.known();
        let passed = known
            .read
            .map(|read| self.clock.passed().saturating_sub(read));
        passed.is_some_and(|passed| passed < FRESH)
            || names.iter().all(|name| is_known(name, &known.names))
    }

    /// What the author of a query may not have meant: fields that no event has, and that are near
    /// another one.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn warnings(&self, query: &Query) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        collect(&query.clause, &mut names);
        names.sort_unstable();
        names.dedup();
        let unknown = self.unknown(&names, &[]).await?.into_iter().flatten();
        let near = unknown.filter(|unknown| unknown.nearest.is_some());
        Ok(near.map(|unknown| unknown.describe()).collect())
    }

    /// Reads the newest occurrences.
    async fn read(&self) -> Result<(), Error> {
        let filter = Filter::default();
        let mut walk = Walk::new(&self.store, &filter, NEWEST_FIRST, None);
        let (mut names, mut looked_at, mut is_whole) = (BTreeSet::new(), 0, false);
        while looked_at < FIELDS_READ_MAX && names.len() < FIELD_NAMES_MAX {
            let batch = walk.next(BATCH).await?;
            if batch.is_empty() {
                is_whole = true;
                break;
            }
            looked_at += batch.len();
            for (_, found) in &batch {
                add(&found.value, &mut names);
            }
            tokio::task::yield_now().await;
        }
        let read = Some(self.clock.passed());
        *self.known() = Known {
            names,
            read,
            is_whole,
        };
        Ok(())
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fields that a clause looks at.
fn collect<'a>(clause: &'a Clause, names: &mut Vec<&'a str>) {
    match clause {
        Clause::And(clauses) | Clause::Or(clauses) => {
            for clause in clauses {
                collect(clause, names);
            }
        }
        Clause::Not(clause) => collect(clause, names),
        comparison => names.extend(comparison.field()),
    }
}

fn add(occurrence: &Occurrence, names: &mut BTreeSet<String>) {
    let mut add = |prefix: &str, name: &str| {
        if !names.contains(name) {
            names.insert(name.to_owned());
        }
        let qualified = format!("{prefix}{name}");
        names.insert(qualified);
    };
    for key in occurrence.dimensions.keys() {
        add(DIMENSIONS, key);
    }
    add_inside("", &occurrence.metadata, 1, &mut |name| add(METADATA, name));
}

fn add_inside(before: &str, fields: &Fields, depth: usize, add: &mut dyn FnMut(&str)) {
    for (key, value) in fields {
        let name = format!("{before}{key}");
        add(&name);
        if depth < DEPTH_MAX {
            add_value(&name, value, depth, add);
        }
    }
}

fn add_value(name: &str, value: &Value, depth: usize, add: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(inner) => add_inside(&format!("{name}."), inner, depth + 1, add),
        // Names reach through lists.
        Value::List(values) => {
            for value in values {
                if let Value::Object(inner) = value {
                    add_inside(&format!("{name}."), inner, depth + 1, add);
                }
            }
        }
        _ => {}
    }
}

const DIMENSIONS: &str = "dimensions.";
const METADATA: &str = "metadata.";

fn is_known(name: &str, names: &BTreeSet<String>) -> bool {
    match Field::parse(name) {
        Ok(Field::Dimension(_) | Field::Metadata(_) | Field::Either(_)) => {
            // What lies deeper than is read is not told about.
            names.contains(name) || name.split('.').count() > DEPTH_MAX
        }
        // A fixed field, or one that is refused for another reason.
        _ => true,
    }
}

/// The field that a name is most like; none when it is like none.
fn nearest(name: &str, names: &BTreeSet<String>, own: &[&str]) -> Option<String> {
    let prefixes = [DIMENSIONS, METADATA];
    let prefix = prefixes.into_iter().find(|it| name.starts_with(it));
    let seen = names.iter().map(String::as_str);
    let found = if let Some(prefix) = prefix {
        let alike = seen.filter_map(|seen| seen.strip_prefix(prefix));
        filter::nearest(&name[prefix.len()..], alike)
    } else {
        let bare = seen.filter(|seen| !prefixes.iter().any(|it| seen.starts_with(it)));
        let fixed = Field::fixed_names().into_iter().chain(own.iter().copied());
        filter::nearest(name, fixed.chain(bare))
    };
    found.map(|(_, nearest)| format!("{}{nearest}", prefix.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::ManualClock, ops::samples, store::Lane};

    async fn seen() -> FieldsSeen {
        let store = samples::store();
        let mut occurrence = samples::occurrence();
        occurrence.dimensions.insert("host".into(), "db-1".into());
        let disk = Fields::from([("usedPercent".to_owned(), Value::Number(97.0))]);
        let list = Value::List(vec![Value::Object(disk)]);
        occurrence.metadata.insert("disks".into(), list);
        let mut changes = store.changes();
        changes.insert(&occurrence);
        store.apply(Lane::Bulk, changes).await.unwrap();
        FieldsSeen::new(store, Arc::new(ManualClock::at(samples::START_MS)))
    }

    #[tokio::test]
    async fn a_name_that_no_event_has_is_told_with_the_nearest_that_is_near() {
        let cases = [
            ("host", None),
            ("dimensions.host", None),
            ("severity", None),
            ("disks.usedPercent", None),
            ("metadata.disks", None),
            ("severty", Some(Some("severity"))),
            ("Host", Some(Some("host"))),
            ("hots", Some(Some("host"))),
            ("dimensions.hots", Some(Some("dimensions.host"))),
            ("lastseen", Some(Some("lastSeen"))),
            ("quite another", Some(None)),
            ("metadata.host", Some(None)),
        ];
        let names = cases.map(|(name, _)| name);
        let unknown = seen().await.unknown(&names, &[]).await.unwrap();
        for ((name, expected), unknown) in cases.into_iter().zip(unknown) {
            let nearest = unknown.map(|unknown| unknown.nearest);
            assert_eq!(nearest, expected.map(|it| it.map(str::to_owned)), "{name}");
        }
    }
}
