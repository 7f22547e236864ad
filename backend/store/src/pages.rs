//! Walks over all records of a stretch, page by page.

use std::marker::PhantomData;

use super::{
    engine::{Direction, EngineError, Range},
    record::{Record, Store, Stored},
};

/// Records that are read at a time.
const PAGE: usize = 256;

/// A walk in the order of the keys.
#[derive(Debug)]
pub struct Pages<'a, T> {
    store: &'a Store,
    /// What is left; none at the end.
    range: Option<Range>,
    records: PhantomData<T>,
}

impl Store {
    /// Walks the records of a stretch.
    pub fn pages<T: Record>(&self, range: Range) -> Pages<'_, T> {
        Pages {
            store: self,
            range: Some(range),
            records: PhantomData,
        }
    }
}

impl<T: Record> Pages<'_, T> {
    /// The next page, never an empty one; none at the end.
    ///
    /// # Errors
    /// Those of the engine; the same page is read again then.
    pub async fn next(&mut self) -> Result<Option<Vec<Stored<T>>>, EngineError> {
        let Some(range) = &mut self.range else {
            return Ok(None);
        };
        let page = self.store.page(range.clone(), Direction::Ascending, PAGE);
        let page: Vec<Stored<T>> = page.await?;
        match page.last() {
            Some(last) if page.len() == PAGE => range.go_on_after(&last.value.key()),
            _ => self.range = None,
        }
        Ok((!page.is_empty()).then_some(page))
    }
}
