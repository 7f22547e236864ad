//! Published snapshots of all rows. Readers hold a snapshot and do not block other threads.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::{closed::ClosedReason, memtable::Memtable, tree::Tree};

/// All rows at one point in time, the newest layer first.
#[derive(Debug, Clone)]
pub(super) struct Layers {
    /// Rows in the log file that is being written.
    pub(super) active: Memtable,
    /// Rows in the other log file, on their way into the tree.
    pub(super) moving: Option<MovingLayer>,
    /// The remaining rows, or the reason that they cannot be read.
    pub(super) tree: Result<Arc<Tree>, ClosedReason>,
}

#[derive(Debug, Clone)]
pub(super) struct MovingLayer {
    pub(super) memory: Memtable,
    pub(super) through: u64,
}

impl Layers {
    pub(super) fn has_same_tree(&self, newer: &Self) -> bool {
        match (&self.tree, &newer.tree) {
            (Ok(ours), Ok(theirs)) => Arc::ptr_eq(ours, theirs),
            _ => false,
        }
    }

    /// Approximate memory of the rows waiting to be moved.
    pub(super) fn bytes(&self) -> usize {
        let moving = self
            .moving
            .as_ref()
            .map_or(0, |moving| moving.memory.bytes());
        self.active.bytes() + moving
    }
}

#[derive(Debug)]
pub(super) struct SharedLayers {
    current: ArcSwap<Layers>,
    changing: Mutex<()>,
}

impl SharedLayers {
    pub(super) fn new(layers: Layers) -> Self {
        Self {
            current: ArcSwap::from_pointee(layers),
            changing: Mutex::default(),
        }
    }

    pub(super) fn get(&self) -> Arc<Layers> {
        self.current.load_full()
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut Layers)) {
        let changing = self.changing.lock();
        let _changing = changing.unwrap_or_else(PoisonError::into_inner);
        let mut layers = Layers::clone(&self.current.load());
        change(&mut layers);
        self.current.store(Arc::new(layers));
    }

    pub(super) fn set_tree(&self, tree: Result<Tree, ClosedReason>) {
        let tree = tree.map(Arc::new);
        self.update(|layers| layers.tree = tree);
    }
}
