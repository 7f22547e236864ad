//! Something that there is only so much of, shared so that no holder has it all.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// One holder has at most one in so many.
const SHARE: usize = 4;

/// What many take from and return to. A holder that is not `None` has at most a quarter.
#[derive(Debug)]
pub struct Pool<H> {
    most: usize,
    most_of_one: usize,
    taken: Mutex<Taken<H>>,
}

#[derive(Debug)]
struct Taken<H> {
    all: usize,
    by: HashMap<H, usize>,
}

/// Why nothing more can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// All of it is taken.
    All,
    /// The holder has its share.
    Share,
}

impl<H: Eq + Hash + Clone> Pool<H> {
    /// A pool of so many.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            most_of_one: (most / SHARE).max(1),
            taken: Mutex::new(Taken {
                all: 0,
                by: HashMap::new(),
            }),
        })
    }

    /// A permit of that holder, which has taken nothing yet. Without a holder only what is left in all
    /// counts.
    pub fn permit(self: &Arc<Self>, holder: Option<H>) -> Permit<H> {
        Permit {
            pool: Arc::clone(self),
            holder,
            count: 0,
        }
    }

    /// How much is taken.
    pub fn taken(&self) -> usize {
        self.state().all
    }

    fn state(&self) -> MutexGuard<'_, Taken<H>> {
        // Counts are whole between any two statements.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one holder has taken for one purpose, until it is dropped.
#[derive(Debug)]
pub struct Permit<H: Eq + Hash + Clone> {
    pool: Arc<Pool<H>>,
    holder: Option<H>,
    count: usize,
}

impl<H: Eq + Hash + Clone> Permit<H> {
    /// Takes so many more.
    ///
    /// # Errors
    /// When there are none left for the holder; nothing is taken then.
    pub fn take(&mut self, count: usize) -> Result<(), Full> {
        let mut taken = self.pool.state();
        let all = taken.all.saturating_add(count);
        if all > self.pool.most {
            return Err(Full::All);
        }
        if let Some(holder) = &self.holder {
            let held = taken.by.get(holder).copied().unwrap_or(0);
            let held = held.saturating_add(count);
            if held > self.pool.most_of_one {
                return Err(Full::Share);
            }
            taken.by.insert(holder.clone(), held);
        }
        taken.all = all;
        self.count += count;
        Ok(())
    }
}

impl<H: Eq + Hash + Clone> Drop for Permit<H> {
    fn drop(&mut self) {
        if self.count == 0 {
            return;
        }
        let mut taken = self.pool.state();
        taken.all -= self.count;
        if let Some(holder) = &self.holder
            && let Some(held) = taken.by.get_mut(holder)
        {
            *held -= self.count;
            if *held == 0 {
                taken.by.remove(holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_has_a_quarter_and_gives_it_back() {
        let pool = Pool::new(8);
        let mut first = pool.permit(Some("a"));
        assert_eq!(first.take(2), Ok(()));
        assert_eq!(pool.permit(Some("a")).take(1), Err(Full::Share));
        assert_eq!(pool.permit(Some("b")).take(2), Ok(()));
        let mut nobodys = pool.permit(None);
        assert_eq!(nobodys.take(7), Err(Full::All));
        assert_eq!(nobodys.take(6), Ok(()));
        drop(first);
        assert_eq!(pool.permit(Some("a")).take(2), Ok(()));
        drop(nobodys);
        assert_eq!(pool.taken(), 0);
        assert!(pool.state().by.is_empty());
    }
}
