//! A limited resource that is shared so that no holder can use all of it.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

const SHARE: usize = 4;

/// A limited pool. Each holder other than `None` gets at most a quarter of it.
#[derive(Debug)]
pub struct Pool<H> {
    most: usize,
    max_per_holder: usize,
    in_use: Mutex<PermitUsage<H>>,
}

#[derive(Debug)]
struct PermitUsage<H> {
    all: usize,
    by: HashMap<H, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermitError {
    All,
    Share,
}

impl<H: Eq + Hash + Clone> Pool<H> {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            max_per_holder: (most / SHARE).max(1),
            in_use: Mutex::new(PermitUsage {
                all: 0,
                by: HashMap::new(),
            }),
        })
    }

    /// Returns an empty permit for the holder. Without a holder, only the total is limited.
    pub fn new_permit(self: &Arc<Self>, holder: Option<H>) -> Permit<H> {
        Permit {
            pool: Arc::clone(self),
            holder,
            count: 0,
        }
    }

    pub fn permits_in_use(&self) -> usize {
        self.lock_usage().all
    }

    fn lock_usage(&self) -> MutexGuard<'_, PermitUsage<H>> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Permits held by one holder for one purpose; released when dropped.
#[derive(Debug)]
pub struct Permit<H: Eq + Hash + Clone> {
    pool: Arc<Pool<H>>,
    holder: Option<H>,
    count: usize,
}

impl<H: Eq + Hash + Clone> Permit<H> {
    /// Acquires `count` more permits.
    ///
    /// # Errors
    /// Returns an error if not enough are available to the holder; none is acquired then.
    pub fn acquire(&mut self, count: usize) -> Result<(), PermitError> {
        let mut in_use = self.pool.lock_usage();
        let all = in_use.all.saturating_add(count);
        if all > self.pool.most {
            return Err(PermitError::All);
        }
        if let Some(holder) = &self.holder {
            let held = in_use.by.get(holder).copied().unwrap_or(0);
            let held = held.saturating_add(count);
            if held > self.pool.max_per_holder {
                return Err(PermitError::Share);
            }
            in_use.by.insert(holder.clone(), held);
        }
        in_use.all = all;
        self.count += count;
        Ok(())
    }
}

impl<H: Eq + Hash + Clone> Drop for Permit<H> {
    fn drop(&mut self) {
        if self.count == 0 {
            return;
        }
        let mut in_use = self.pool.lock_usage();
        in_use.all -= self.count;
        if let Some(holder) = &self.holder
            && let Some(held) = in_use.by.get_mut(holder)
        {
            *held -= self.count;
            if *held == 0 {
                in_use.by.remove(holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_gets_at_most_a_quarter_until_release() {
        let pool = Pool::new(8);
        let mut first = pool.new_permit(Some("a"));
        assert_eq!(first.acquire(2), Ok(()));
        assert_eq!(
            pool.new_permit(Some("a")).acquire(1),
            Err(PermitError::Share)
        );
        assert_eq!(pool.new_permit(Some("b")).acquire(2), Ok(()));
        let mut nobodys = pool.new_permit(None);
        assert_eq!(nobodys.acquire(7), Err(PermitError::All));
        assert_eq!(nobodys.acquire(6), Ok(()));
        drop(first);
        assert_eq!(pool.new_permit(Some("a")).acquire(2), Ok(()));
        drop(nobodys);
        assert_eq!(pool.permits_in_use(), 0);
        assert!(pool.lock_usage().by.is_empty());
    }
}
