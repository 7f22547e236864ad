//! Lists of resources, paged and limited in number and bytes.

use super::Resource;
use crate::{
    error::Error,
    limits::{
        DESCRIPTION_CHARACTERS_MAX, LIST_PAGE_BYTES, LIST_STEP_FIRST, LIST_STEP_MAX, PAGE_SIZE_MAX,
        TAGS_MAX,
    },
    matching::fold::FoldedText,
    page::{Page, PageRequest, TokenScope},
    store::{Direction, Store, Stored, engine::Range},
};

/// Filter for lists of resources. Empty fields are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub names: Vec<String>,
    /// Tags that a resource must have, all of them.
    pub tags: Vec<String>,
    /// Text that the name or description must contain, ignoring case.
    pub text: String,
    /// Values of further filters, which page tokens are bound to.
    pub others: Vec<String>,
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
                format!("has {size} {unit}; the limit is {most}"),
            )),
        }
    }

    fn scope(&self, list: &str) -> TokenScope {
        let scope = TokenScope::new(list)
            .with_field("names", &self.names)
            .with_field("tags", &self.tags)
            .with_field("q", [&self.text]);
        if self.others.is_empty() {
            scope
        } else {
            scope.with_field("others", &self.others)
        }
    }
}

/// Lists the matching resources by name. `view` converts each resource, and returns the bytes added
/// by the conversion. A page ends at [`LIST_PAGE_BYTES`] even if more resources were requested. A
/// resource that exists during the whole walk through the pages is returned exactly once,
/// regardless of concurrent edits.
pub(super) async fn list_page<T, V, F>(
    store: &Store,
    filter: &Filter,
    page: &PageRequest,
    passes: &(dyn Fn(&T) -> bool + Send + Sync),
    view: impl Fn(T) -> F,
) -> Result<Page<V>, Error>
where
    T: Resource,
    F: Future<Output = Result<(V, usize), Error>>,
{
    filter.check()?;
    let limit = page.limit()?;
    let scope = filter.scope(T::WORD);
    let mut collect = Collector::<T> {
        after: scope.last_key(&page.token)?,
        text: FoldedText::new(&filter.text),
        passes,
        filter,
        limit,
        items: Vec::new(),
        bytes: 0,
        has_more: false,
        total: 0,
    };
    collect.collect_all(store).await?;
    let (mut items, mut last, mut bytes) = (Vec::new(), Vec::new(), 0);
    let mut has_more = collect.has_more;
    for resource in collect.items {
        let key = resource.value.key();
        let (item, more_bytes) = view(resource.value).await?;
        bytes += resource.bytes + more_bytes;
        if bytes > LIST_PAGE_BYTES && !items.is_empty() {
            has_more = true;
            break;
        }
        last = key;
        items.push(item);
    }
    Ok(Page {
        next_page_token: if has_more {
            scope.encode_token(&last)
        } else {
            String::new()
        },
        items,
        total: collect.total,
    })
}

#[derive(Default)]
struct PageSize {
    largest_bytes: Option<usize>,
}

impl PageSize {
    fn next_page_size(&self) -> usize {
        match self.largest_bytes {
            None => LIST_STEP_FIRST,
            Some(bytes) => (LIST_PAGE_BYTES / bytes.max(1)).clamp(1, LIST_STEP_MAX),
        }
    }

    fn record_size(&mut self, bytes: usize) {
        self.largest_bytes = self.largest_bytes.max(Some(bytes));
    }
}

struct Collector<'a, T> {
    filter: &'a Filter,
    passes: &'a (dyn Fn(&T) -> bool + Send + Sync),
    text: FoldedText,
    after: Option<Vec<u8>>,
    limit: usize,
    items: Vec<Stored<T>>,
    bytes: usize,
    has_more: bool,
    total: usize,
}

impl<T: Resource> Collector<'_, T> {
    async fn collect_all(&mut self, store: &Store) -> Result<(), Error> {
        let mut step = PageSize::default();
        if self.filter.names.is_empty() {
            let mut start = Vec::new();
            loop {
                let range = Range { start, end: None };
                let requested = step.next_page_size();
                let records = store
                    .page::<T>(range, Direction::Ascending, requested)
                    .await?;
                let next = records
                    .last()
                    .map(|last| [&last.value.key()[..], &[0]].concat());
                let is_last = records.len() < requested;
                for record in records {
                    step.record_size(record.bytes);
                    self.add_record(record);
                }
                match next {
                    Some(next) if !is_last => start = next,
                    _ => break,
                }
            }
        } else {
            let mut names = self.filter.names.clone();
            names.sort_unstable();
            names.dedup();
            let mut keys = names.into_iter().map(String::into_bytes);
            loop {
                let requested: Vec<_> = keys.by_ref().take(step.next_page_size()).collect();
                if requested.is_empty() {
                    break;
                }
                for record in store.get_many::<T>(requested).await?.into_iter().flatten() {
                    step.record_size(record.bytes);
                    self.add_record(record);
                }
            }
        }
        Ok(())
    }

    fn add_record(&mut self, record: Stored<T>) {
        let resource = &record.value;
        let has_tag = |tag| resource.tags().contains(tag);
        let passes = self.filter.tags.iter().all(has_tag)
            && (self.text.is_contained_in(resource.name().as_str())
                || self.text.is_contained_in(resource.description()))
            && (self.passes)(resource);
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
        let is_full = self.items.len() == self.limit || self.bytes > LIST_PAGE_BYTES;
        if is_full {
            self.has_more = true;
        } else {
            self.bytes += record.bytes;
            self.items.push(record);
        }
    }
}
