//! Iterates over all records of a range, page by page.

use std::marker::PhantomData;

use super::{
    engine::{Direction, EngineError, Range},
    record::{Record, Store, Stored},
};

const PAGE: usize = 256;

#[derive(Debug)]
pub struct Pages<'a, T> {
    store: &'a Store,
    range: Option<Range>,
    records: PhantomData<T>,
}

impl Store {
    pub fn pages<T: Record>(&self, range: Range) -> Pages<'_, T> {
        Pages {
            store: self,
            range: Some(range),
            records: PhantomData,
        }
    }
}

impl<T: Record> Pages<'_, T> {
    /// Returns the next page, which is never empty. Returns `None` at the end.
    ///
    /// # Errors
    /// Returns any error of the engine; the next call reads the same page again.
    pub async fn next(&mut self) -> Result<Option<Vec<Stored<T>>>, EngineError> {
        let Some(range) = &mut self.range else {
            return Ok(None);
        };
        let page = self.store.page(range.clone(), Direction::Ascending, PAGE);
        let page: Vec<Stored<T>> = page.await?;
        match page.last() {
            Some(last) if page.len() == PAGE => range.exclude_through(&last.value.key()),
            _ => self.range = None,
        }
        Ok((!page.is_empty()).then_some(page))
    }
}
