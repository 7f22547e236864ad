//! What triggers, destinations and rules have in common: being named, found and listed.

use crate::{
    domain::{Destination, Name, RecordId, Rule, Trigger},
    error::Error,
    limits::{DESCRIPTION_CHARACTERS_MAX, PAGE_SIZE_MAX, TAGS_MAX},
    matching::fold::Folded,
    ops::{
        etag,
        page::{Page, PageRequest, Scope},
    },
    store::{Direction, Record, Store, Stored, engine::Range},
};

/// A stored resource that people name, describe and edit.
pub trait Resource: Record {
    /// What people call it.
    const WORD: &'static str;
    /// Its identity.
    fn id(&self) -> RecordId;
    /// Its name.
    fn name(&self) -> &Name;
    /// What people wrote about it.
    fn description(&self) -> &str;
    /// Its labels.
    fn tags(&self) -> &[String];
    /// Counts its edits.
    fn revision(&self) -> u64;
    /// When it was made, in milliseconds since 1970.
    fn create_ms(&self) -> i64;
}

macro_rules! resource {
    ($kind:ty, $word:literal) => {
        impl Resource for $kind {
            const WORD: &'static str = $word;
            fn id(&self) -> RecordId {
                self.id
            }
            fn name(&self) -> &Name {
                &self.name
            }
            fn description(&self) -> &str {
                &self.description
            }
            fn tags(&self) -> &[String] {
                &self.tags
            }
            fn revision(&self) -> u64 {
                self.revision
            }
            fn create_ms(&self) -> i64 {
                self.create_ms
            }
        }
    };
}

resource!(Trigger, "trigger");
resource!(Destination, "destination");
resource!(Rule, "rule");

/// Reads a resource by name.
///
/// # Errors
/// [`Error::NotFound`], also for a text that is no name.
pub async fn find<T: Resource>(store: &Store, name: &str) -> Result<Stored<T>, Error> {
    let found = match Name::parse(name) {
        Ok(name) => store.get(name.as_str().into()).await?,
        Err(_fault) => None,
    };
    found.ok_or_else(|| {
        let name: String = name
            .chars()
            .take(crate::domain::name::NAME_CHARACTERS_MAX)
            .collect();
        Error::NotFound(format!("there is no {} `{name}`", T::WORD))
    })
}

/// Refuses a name that is taken.
///
/// # Errors
/// [`Error::AlreadyExists`].
pub(super) async fn check_free<T: Resource>(store: &Store, name: &Name) -> Result<(), Error> {
    match store.get::<T>(name.as_str().into()).await? {
        None => Ok(()),
        Some(_) => Err(Error::AlreadyExists(format!(
            "there is a {} `{name}` already",
            T::WORD
        ))),
    }
}

/// Refuses a change whose caller has read another revision.
///
/// # Errors
/// [`Error::Aborted`].
pub(super) fn check_etag<T: Resource>(given: &str, stored: &T) -> Result<(), Error> {
    let what = format!("{} `{}`", T::WORD, stored.name());
    etag::check(given, stored.id(), stored.revision(), &what)
}

/// What an edit does not decide: who a resource is, and which revision it becomes.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) id: RecordId,
    pub(super) revision: u64,
    pub(super) create_ms: i64,
}

impl Origin {
    /// A resource that is made now.
    pub(super) fn new(now_ms: i64) -> Self {
        Self {
            id: RecordId::from_parts(now_ms.unsigned_abs(), rand::random()),
            revision: 1,
            create_ms: now_ms,
        }
    }

    /// The next revision of a stored resource.
    pub(super) fn of<T: Resource>(stored: &T) -> Self {
        Self {
            id: stored.id(),
            revision: stored.revision() + 1,
            create_ms: stored.create_ms(),
        }
    }
}

/// Which resources a list shows; empty parts let everything pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these names; names of nothing are passed over.
    pub names: Vec<String>,
    /// Only those that carry every one of these tags.
    pub tags: Vec<String>,
    /// Only those whose name or description contains this, without regard to letter case.
    pub text: String,
}

impl Filter {
    fn check(&self) -> Result<(), Error> {
        let bounds = [
            ("names", self.names.len(), PAGE_SIZE_MAX, "names"),
            ("tags", self.tags.len(), TAGS_MAX, "tags"),
            (
                "q",
                self.text.len(),
                4 * DESCRIPTION_CHARACTERS_MAX,
                "bytes",
            ),
        ];
        match bounds.into_iter().find(|(_, size, most, _)| size > most) {
            None => Ok(()),
            Some((field, size, most, unit)) => Err(Error::invalid(
                field,
                format!("has {size} {unit}; at most {most} are taken"),
            )),
        }
    }

    fn scope(&self, list: &str) -> Scope {
        Scope::new(list)
            .with("names", &self.names)
            .with("tags", &self.tags)
            .with("q", [&self.text])
    }
}

/// Lists resources by name. A walk from page to page sees every resource that is there all the
/// time exactly once, whatever is edited meanwhile.
///
/// # Errors
/// [`Error::Invalid`] for a filter, page size or token that is not accepted.
pub async fn list<T: Resource>(
    store: &Store,
    filter: &Filter,
    page: &PageRequest,
) -> Result<Page<T>, Error> {
    filter.check()?;
    let limit = page.limit()?;
    let scope = filter.scope(T::WORD);
    let mut collect = Collect {
        after: scope.last_key(&page.token)?,
        text: Folded::new(&filter.text),
        filter,
        limit,
        items: Vec::new(),
        has_more: false,
        total: 0,
    };
    if filter.names.is_empty() {
        let mut start = Vec::new();
        loop {
            let range = Range { start, end: None };
            let records = store
                .page::<T>(range, Direction::Ascending, PAGE_SIZE_MAX)
                .await?;
            let next = records
                .last()
                .map(|last| [&last.value.key()[..], &[0]].concat());
            let is_last = records.len() < PAGE_SIZE_MAX;
            for record in records {
                collect.take(record.value);
            }
            match next {
                Some(next) if !is_last => start = next,
                _ => break,
            }
        }
    } else {
        let mut names = filter.names.clone();
        names.sort_unstable();
        names.dedup();
        let keys = names.into_iter().map(String::into_bytes).collect();
        for record in store.get_many::<T>(keys).await?.into_iter().flatten() {
            collect.take(record.value);
        }
    }
    let last = collect.items.last().filter(|_| collect.has_more);
    Ok(Page {
        next_page_token: last.map_or_else(String::new, |last| scope.token(&last.key())),
        items: collect.items,
        total: collect.total,
    })
}

/// What a list has found so far.
struct Collect<'a, T> {
    filter: &'a Filter,
    text: Folded,
    after: Option<Vec<u8>>,
    limit: usize,
    items: Vec<T>,
    has_more: bool,
    total: usize,
}

impl<T: Resource> Collect<'_, T> {
    /// Takes the next resource in the order of keys.
    fn take(&mut self, resource: T) {
        let has_tag = |tag| resource.tags().contains(tag);
        let passes = self.filter.tags.iter().all(has_tag)
            && (self.text.is_in(resource.name().as_str())
                || self.text.is_in(resource.description()));
        if !passes {
            return;
        }
        self.total += 1;
        if self
            .after
            .as_ref()
            .is_some_and(|after| resource.key() <= *after)
        {
            return;
        }
        if self.items.len() < self.limit {
            self.items.push(resource);
        } else {
            self.has_more = true;
        }
    }
}
