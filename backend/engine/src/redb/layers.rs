//! What everybody reads, as it is published: a holder keeps one snapshot and blocks no one.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::{closed::Closed, memtable::Memtable, tree::Tree};

/// All rows of one moment, the newest above.
#[derive(Debug, Clone)]
pub(super) struct Layers {
    /// What the log has in the file that is being written.
    pub(super) active: Memtable,
    /// What the log has in its other file, on the way into the tree.
    pub(super) moving: Option<Moving>,
    /// The rest; or why it cannot be read.
    pub(super) tree: Result<Arc<Tree>, Closed>,
}

/// Rows on their way into the tree.
#[derive(Debug, Clone)]
pub(super) struct Moving {
    pub(super) memory: Memtable,
    /// The last commit that they are of.
    pub(super) through: u64,
}

impl Layers {
    /// Whether the tree is still the one of these.
    pub(super) fn is_current(&self, newer: &Self) -> bool {
        match (&self.tree, &newer.tree) {
            (Ok(ours), Ok(theirs)) => Arc::ptr_eq(ours, theirs),
            _ => false,
        }
    }

    /// About how much of it is in memory, waiting to be moved.
    pub(super) fn bytes(&self) -> usize {
        let moving = self
            .moving
            .as_ref()
            .map_or(0, |moving| moving.memory.bytes());
        self.active.bytes() + moving
    }
}

/// Layers as they change.
#[derive(Debug)]
pub(super) struct Published {
    current: ArcSwap<Layers>,
    changing: Mutex<()>,
}

impl Published {
    pub(super) fn new(layers: Layers) -> Self {
        Self {
            current: ArcSwap::from_pointee(layers),
            changing: Mutex::default(),
        }
    }

    /// As they are now.
    pub(super) fn get(&self) -> Arc<Layers> {
        self.current.load_full()
    }

    /// Publishes what happens to them.
    pub(super) fn change(&self, change: impl FnOnce(&mut Layers)) {
        let changing = self.changing.lock();
        let _changing = changing.unwrap_or_else(PoisonError::into_inner);
        let mut layers = Layers::clone(&self.current.load());
        change(&mut layers);
        self.current.store(Arc::new(layers));
    }

    pub(super) fn set_tree(&self, tree: Result<Tree, Closed>) {
        let tree = tree.map(Arc::new);
        self.change(|layers| layers.tree = tree);
    }
}
