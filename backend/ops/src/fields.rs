//! The fields of stored events, and suggestions for misspelled ones.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bellwether_language::filter::{self, FilterError};

use crate::{
    clock::Clock,
    domain::{Clause, Occurrence, Query, Value, value::Fields},
    error::Error,
    limits::{FIELD_NAMES_MAX, FIELDS_NEWS_MAX, FIELDS_READ_MAX},
    matching::field::Field,
    scan,
    search::{Filter, IndexWalk, NEWEST_FIRST, changed_occurrences},
    store::{LogPosition, Store},
};

/// Minimum time between full reads, regardless of the number of changes.
const FRESH: Duration = Duration::from_secs(5);
const HINTS_MAX: usize = 20;
const BATCH: usize = 500;
const DEPTH_MAX: usize = 4;

#[derive(Debug, Clone)]
pub struct FieldCache {
    store: Store,
    clock: Arc<dyn Clock>,
    known: Arc<Mutex<CachedFields>>,
}

#[derive(Debug, Default)]
struct CachedFields {
    /// Dimensions and metadata fields, each with and without its prefix.
    names: BTreeSet<String>,
    /// Monotonic time of the last full read, and the change log position up to which the names are
    /// current.
    read: Option<(Duration, LogPosition)>,
    /// Whether all stored events were read; false if there are none.
    is_whole: bool,
    /// Whether [`FIELDS_READ_MAX`] events were read.
    is_many: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownField {
    pub field: String,
    /// Name of the field in this service, if the given name is that of other products.
    pub here: Option<String>,
    /// Similar field that the author may have meant; `None` if there is none.
    pub nearest: Option<String>,
    /// Whether all events were checked, rather than only the latest.
    pub is_certain: bool,
    /// Whether [`FIELDS_READ_MAX`] events were checked.
    pub is_of_many: bool,
}

impl UnknownField {
    fn describe(&self) -> String {
        let field = &self.field;
        let events = if self.is_certain {
            "no event has".to_owned()
        } else {
            format!("none of the newest {FIELDS_READ_MAX} events has")
        };
        let unknown = format!("{events} a field `{field}`");
        match (&self.here, &self.nearest) {
            (Some(here), _) => format!("{unknown}; use `{here}`"),
            (None, Some(nearest)) => format!("{unknown}: `{nearest}`?"),
            (None, None) => unknown,
        }
    }

    /// Returns whether the field should be reported. If only a few new events lack the field, the
    /// author may expect it in later ones.
    fn is_reported(&self) -> bool {
        self.is_certain || self.is_of_many || self.here.is_some() || self.nearest.is_some()
    }
}

impl FieldCache {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            known: Arc::default(),
        }
    }

    /// Returns an entry for each name, which is `None` if some event has the field. `own` are
    /// fields that exist besides those of events; they may be suggested.
    async fn find_unknown(
        &self,
        names: &[&str],
        own: &[&str],
    ) -> Result<Vec<Option<UnknownField>>, Error> {
        let is_all_known =
            |known: &CachedFields| names.iter().all(|name| is_known_field(name, &known.names));
        let is_done = is_all_known(&self.lock_cache());
        if !is_done {
            self.refresh().await?;
        }
        let known = self.lock_cache();
        let unknown = names.iter().map(|name| {
            (!is_known_field(name, &known.names)).then(|| UnknownField {
                field: (*name).to_owned(),
                here: filter::local_field_name(name),
                nearest: most_similar(name, &known.names, own),
                is_certain: known.is_whole,
                is_of_many: known.is_many,
            })
        });
        Ok(unknown.collect())
    }

    /// Returns hints about fields that no event has, each with its position in the text, if known.
    /// They are not errors, because a future event may have the field, or an old one that was not
    /// read.
    pub async fn field_hints(
        &self,
        named: &[(&str, Option<usize>)],
        own: &[&str],
    ) -> Result<Vec<String>, Error> {
        let names: Vec<_> = named.iter().map(|(name, _)| *name).collect();
        let unknown = self.find_unknown(&names, own).await?;
        let mut hints = Vec::new();
        for ((_, at), unknown) in named.iter().zip(unknown) {
            let Some(unknown) = unknown.filter(UnknownField::is_reported) else {
                continue;
            };
            let message = unknown.describe();
            hints.push(match at {
                Some(at) => FilterError { at: *at, message }.to_string(),
                None => message,
            });
        }
        hints.truncate(HINTS_MAX);
        Ok(hints)
    }

    pub async fn field_warnings(&self, query: &Query) -> Result<Vec<String>, Error> {
        let mut names = field_names(&query.clause);
        names.sort_unstable();
        names.dedup();
        let named: Vec<_> = names.into_iter().map(|name| (name, None)).collect();
        self.field_hints(&named, &[]).await
    }

    /// Reads the changes since the last call, or the latest occurrences if there are too many.
    async fn refresh(&self) -> Result<(), Error> {
        let read = self.lock_cache().read;
        if let Some((at, through)) = read {
            let head = self.store.engine().log_head().await?;
            if head == through {
                return Ok(());
            }
            if let Some(news) = changed_occurrences(&self.store, through, head).await?
                && news.reached == head
                && news.keys.len() <= FIELDS_NEWS_MAX
            {
                return self.add(news.keys.into_iter().collect(), head).await;
            }
            if self.clock.elapsed().saturating_sub(at) < FRESH {
                self.lock_cache().is_whole = false;
                return Ok(());
            }
        }
        self.read().await
    }

    async fn add(&self, mut keys: Vec<Vec<u8>>, through: LogPosition) -> Result<(), Error> {
        let mut names = BTreeSet::new();
        let mut is_any = false;
        while !keys.is_empty() {
            let some = keys.split_off(keys.len().saturating_sub(BATCH));
            for found in self
                .store
                .get_many::<Occurrence>(some)
                .await?
                .into_iter()
                .flatten()
            {
                is_any = true;
                add_field(&found.value, &mut names);
                scan::yield_if_needed().await;
            }
        }
        let mut known = self.lock_cache();
        let is_first = known.names.is_empty() && is_any;
        known.names.append(&mut names);
        known.is_whole |= is_first;
        known.is_whole &= known.names.len() < FIELD_NAMES_MAX;
        if let Some((_, place)) = &mut known.read {
            *place = through.later(*place);
        }
        Ok(())
    }

    async fn read(&self) -> Result<(), Error> {
        // Read the log position first: occurrences stored in between are read twice rather than
        // missed.
        let through = self.store.engine().log_head().await?;
        let filter = Filter::default();
        let mut walk = IndexWalk::new(&self.store, &filter, NEWEST_FIRST, None);
        let (mut names, mut scanned, mut is_whole) = (BTreeSet::new(), 0, false);
        while scanned < FIELDS_READ_MAX && names.len() < FIELD_NAMES_MAX {
            let batch = walk.next(BATCH).await?;
            if batch.is_empty() {
                is_whole = scanned > 0;
                break;
            }
            scanned += batch.len();
            for (_, found) in &batch {
                add_field(&found.value, &mut names);
                scan::yield_if_needed().await;
            }
            tokio::task::yield_now().await;
        }
        let read = Some((self.clock.elapsed(), through));
        *self.lock_cache() = CachedFields {
            names,
            read,
            is_whole,
            is_many: scanned >= FIELDS_READ_MAX,
        };
        Ok(())
    }

    fn lock_cache(&self) -> std::sync::MutexGuard<'_, CachedFields> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub fn field_names(clause: &Clause) -> Vec<&str> {
    let mut names = Vec::new();
    collect_fields(clause, &mut names);
    names
}

fn collect_fields<'a>(clause: &'a Clause, names: &mut Vec<&'a str>) {
    match clause {
        Clause::And(clauses) | Clause::Or(clauses) => {
            for clause in clauses {
                collect_fields(clause, names);
            }
        }
        Clause::Not(clause) => collect_fields(clause, names),
        comparison => names.extend(comparison.field()),
    }
}

fn add_field(occurrence: &Occurrence, names: &mut BTreeSet<String>) {
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
    add_nested_fields("", &occurrence.metadata, 1, &mut |name| add(METADATA, name));
}

fn add_nested_fields(before: &str, fields: &Fields, depth: usize, add: &mut dyn FnMut(&str)) {
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
        Value::Object(inner) => add_nested_fields(&format!("{name}."), inner, depth + 1, add),
        // A path applies to each entry of a list.
        Value::List(values) => {
            for value in values {
                if let Value::Object(inner) = value {
                    add_nested_fields(&format!("{name}."), inner, depth + 1, add);
                }
            }
        }
        _ => {}
    }
}

const DIMENSIONS: &str = "dimensions.";
const METADATA: &str = "metadata.";

fn is_known_field(name: &str, names: &BTreeSet<String>) -> bool {
    match Field::parse(name) {
        Ok(Field::Dimension(_) | Field::Metadata(_) | Field::Either(_)) => {
            // Fields at a deeper level than those read are not reported.
            names.contains(name) || name.split('.').count() > DEPTH_MAX
        }
        // A built-in field, or one rejected for another reason.
        _ => true,
    }
}

fn most_similar(name: &str, names: &BTreeSet<String>, own: &[&str]) -> Option<String> {
    let prefixes = [DIMENSIONS, METADATA];
    let prefix = prefixes.into_iter().find(|it| name.starts_with(it));
    let seen = names.iter().map(String::as_str);
    let found = if let Some(prefix) = prefix {
        let alike = seen.filter_map(|seen| seen.strip_prefix(prefix));
        filter::nearest_field(&name[prefix.len()..], alike)
    } else {
        let bare = seen.filter(|seen| !prefixes.iter().any(|it| seen.starts_with(it)));
        let fixed = Field::fixed_names().into_iter().chain(own.iter().copied());
        filter::nearest_field(name, fixed.chain(bare))
    };
    found.map(|(_, nearest)| format!("{}{nearest}", prefix.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::ManualClock, samples, store::Lane};

    async fn sample_fields() -> FieldCache {
        let store = Store::in_memory();
        let mut occurrence = samples::occurrence();
        occurrence.dimensions.insert("host".into(), "db-1".into());
        let disk = Fields::from([("usedPercent".to_owned(), Value::Number(97.0))]);
        let list = Value::List(vec![Value::Object(disk)]);
        occurrence.metadata.insert("disks".into(), list);
        let mut changes = store.new_changes();
        changes.insert(&occurrence);
        store.apply(Lane::Bulk, changes).await.unwrap();
        FieldCache::new(store, Arc::new(ManualClock::starting_at(samples::START_MS)))
    }

    #[tokio::test]
    async fn unknown_field_suggests_the_nearest_name() {
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
        let unknown = sample_fields()
            .await
            .find_unknown(&names, &[])
            .await
            .unwrap();
        for ((name, expected), unknown) in cases.into_iter().zip(unknown) {
            let nearest = unknown.map(|unknown| unknown.nearest);
            assert_eq!(nearest, expected.map(|it| it.map(str::to_owned)), "{name}");
        }
    }
}
