//! A persistent ordered map: copies are cheap, and a change copies the nodes on its path and shares
//! the rest.

use std::{cmp::Ordering, sync::Arc};

use crate::read::Direction;

const NODE_MAX: usize = 64;

pub(super) trait Keys {
    type Item: Copy;

    /// Returns the [`key_head`] of an item's key, which is stored inline.
    fn key_head(&self, item: Self::Item) -> u128;

    /// Returns the full key of an item, which may cause a cache miss.
    fn key(&self, item: Self::Item) -> &[u8];
}

/// Returns a key's first bytes as a number, enough to distinguish most keys.
pub(super) fn key_head(key: &[u8]) -> u128 {
    if let Some(first) = key.first_chunk() {
        return u128::from_be_bytes(*first);
    }
    let mut padded = [0; 16];
    padded[..key.len()].copy_from_slice(key);
    u128::from_be_bytes(padded)
}

#[derive(Debug, Clone, Copy)]
struct Probe<'a, K> {
    keys: &'a K,
    head: u128,
    key: &'a [u8],
}

impl<'a, K: Keys> Probe<'a, K> {
    fn new(keys: &'a K, key: &'a [u8]) -> Self {
        let head = key_head(key);
        Self { keys, head, key }
    }

    fn compare(&self, item: K::Item) -> Ordering {
        let by_head = self.keys.key_head(item).cmp(&self.head);
        by_head.then_with(|| self.keys.key(item).cmp(self.key))
    }

    fn search(&self, items: &[K::Item]) -> Result<usize, usize> {
        items.binary_search_by(|item| self.compare(*item))
    }

    fn child(&self, children: &[Child<K::Item>]) -> usize {
        let after = children.partition_point(|child| self.compare(child.from).is_le());
        after.saturating_sub(1)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewState<T> {
    Item(T),
    Nothing,
}

#[derive(Debug, Clone)]
pub(super) struct PersistentMap<T> {
    root: Arc<Node<T>>,
}

#[derive(Debug)]
enum Node<T> {
    Leaf(Vec<T>),
    Branch(Vec<Child<T>>),
}

#[derive(Debug, Clone)]
struct Child<T> {
    /// A lower bound of the keys in the child, except in the first one.
    from: T,
    node: Arc<Node<T>>,
}

impl<T> Default for PersistentMap<T> {
    fn default() -> Self {
        let root = Arc::new(Node::Leaf(Vec::new()));
        Self { root }
    }
}

/// Copies items with capacity for one more, so that inserting does not reallocate.
fn with_spare_capacity<T: Clone>(items: &[T]) -> Vec<T> {
    let mut copy = Vec::with_capacity(NODE_MAX + 1);
    copy.extend_from_slice(items);
    copy
}

impl<T: Copy> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(items) => Self::Leaf(with_spare_capacity(items)),
            Self::Branch(children) => Self::Branch(with_spare_capacity(children)),
        }
    }
}

impl<T: Copy> Node<T> {
    fn is_empty(&self) -> bool {
        match self {
            Self::Leaf(items) => items.is_empty(),
            Self::Branch(children) => children.is_empty(),
        }
    }
}

impl<T: Copy> PersistentMap<T> {
    /// Applies the result of `choose`, which is called with the existing item.
    pub(super) fn put(
        &mut self,
        keys: &impl Keys<Item = T>,
        key: &[u8],
        choose: impl FnOnce(Option<T>) -> NewState<T>,
    ) {
        let probe = Probe::new(keys, key);
        if let Some(sibling) = put_in_node(&mut self.root, &probe, choose) {
            let old = Arc::clone(&self.root);
            let Some(from) = first_item(&old) else { return };
            let mut children = Vec::with_capacity(NODE_MAX + 1);
            children.extend([Child { from, node: old }, sibling]);
            self.root = Arc::new(Node::Branch(children));
        } else if self.root.is_empty() {
            *self = Self::default();
        }
    }

    pub(super) fn get(&self, keys: &impl Keys<Item = T>, key: &[u8]) -> Option<T> {
        let (probe, mut node) = (Probe::new(keys, key), &*self.root);
        loop {
            match node {
                Node::Branch(children) => node = &*children[probe.child(children)].node,
                Node::Leaf(items) => return probe.search(items).ok().map(|at| items[at]),
            }
        }
    }

    /// Iterates from a key on: ascending starts at it, descending before it.
    pub(super) fn walk(
        &self,
        keys: &impl Keys<Item = T>,
        key: &[u8],
        direction: Direction,
    ) -> Walk<'_, T> {
        let probe = Probe::new(keys, key);
        let (mut path, mut node) = (Vec::new(), &*self.root);
        loop {
            match node {
                Node::Branch(children) => {
                    let at = probe.child(children);
                    path.push((children.as_slice(), at));
                    node = &*children[at].node;
                }
                Node::Leaf(items) => {
                    let (Ok(at) | Err(at)) = probe.search(items);
                    return Walk {
                        path,
                        leaf: items,
                        at,
                        direction,
                    };
                }
            }
        }
    }
}

fn first_item<T: Copy>(node: &Node<T>) -> Option<T> {
    match node {
        Node::Leaf(items) => items.first().copied(),
        Node::Branch(children) => children.first().map(|child| child.from),
    }
}

/// Applies a put; returns the second half of a node that became too large.
fn put_in_node<K: Keys>(
    node: &mut Arc<Node<K::Item>>,
    probe: &Probe<'_, K>,
    choose: impl FnOnce(Option<K::Item>) -> NewState<K::Item>,
) -> Option<Child<K::Item>> {
    match Arc::make_mut(node) {
        Node::Leaf(items) => {
            let at = probe.search(items);
            match (at, choose(at.ok().map(|at| items[at]))) {
                (Ok(at), NewState::Item(item)) => items[at] = item,
                (Err(at), NewState::Item(item)) => {
                    items.insert(at, item);
                    let second = split_items(items, at)?;
                    return Some(Child {
                        from: second[0],
                        node: Arc::new(Node::Leaf(second)),
                    });
                }
                (Ok(at), NewState::Nothing) => drop(items.remove(at)),
                (Err(_), NewState::Nothing) => {}
            }
            None
        }
        Node::Branch(children) => {
            let at = probe.child(children);
            let sibling = put_in_node(&mut children[at].node, probe, choose);
            if children[at].node.is_empty() {
                children.remove(at);
                return None;
            }
            children.insert(at + 1, sibling?);
            let second = split_items(children, at + 1)?;
            Some(Child {
                from: second[0].from,
                node: Arc::new(Node::Branch(second)),
            })
        }
    }
}

/// Splits the items of a node if there are too many after an insert. Sequential inserts leave full
/// nodes behind.
fn split_items<T: Clone>(items: &mut Vec<T>, put_at: usize) -> Option<Vec<T>> {
    if items.len() <= NODE_MAX {
        return None;
    }
    let is_last = put_at + 1 == items.len();
    let at = if is_last { NODE_MAX } else { NODE_MAX / 2 };
    let second = with_spare_capacity(&items[at..]);
    items.truncate(at);
    Some(second)
}

#[derive(Debug, Clone)]
pub(super) struct Walk<'a, T> {
    path: Vec<(&'a [Child<T>], usize)>,
    leaf: &'a [T],
    /// Ascending yields the items from here on, descending those before.
    at: usize,
    direction: Direction,
}

impl<T: Copy> Iterator for Walk<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            match self.direction {
                Direction::Ascending => {
                    if let Some(item) = self.leaf.get(self.at) {
                        self.at += 1;
                        return Some(*item);
                    }
                }
                Direction::Descending => {
                    if let Some(at) = self.at.checked_sub(1) {
                        self.at = at;
                        return self.leaf.get(at).copied();
                    }
                }
            }
            self.next_leaf()?;
        }
    }
}

impl<T: Copy> Walk<'_, T> {
    fn next_leaf(&mut self) -> Option<()> {
        loop {
            let (children, at) = self.path.pop()?;
            let next = match self.direction {
                Direction::Ascending => at + 1,
                Direction::Descending => at.wrapping_sub(1),
            };
            let Some(child) = children.get(next) else {
                continue;
            };
            self.path.push((children, next));
            let mut node = &*child.node;
            while let Node::Branch(children) = node {
                let at = match self.direction {
                    Direction::Ascending => 0,
                    Direction::Descending => children.len() - 1,
                };
                self.path.push((children.as_slice(), at));
                node = &*children[at].node;
            }
            if let Node::Leaf(items) = node {
                self.leaf = items;
                self.at = match self.direction {
                    Direction::Ascending => 0,
                    Direction::Descending => items.len(),
                };
            }
            return Some(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::{Keys, NewState, PersistentMap, key_head};
    use crate::read::Direction;

    /// Items are indexes. The keys differ before or after their heads.
    struct WordKeys(Vec<[u8; 20]>);

    impl Keys for WordKeys {
        type Item = usize;

        fn key_head(&self, item: usize) -> u128 {
            key_head(&self.0[item])
        }

        fn key(&self, item: usize) -> &[u8] {
            &self.0[item]
        }
    }

    fn walk_from(
        map: &PersistentMap<usize>,
        words: &WordKeys,
        from: &[u8],
        way: Direction,
    ) -> Vec<usize> {
        map.walk(words, from, way).collect()
    }

    fn assert_same_walk(
        map: &PersistentMap<usize>,
        model: &BTreeMap<[u8; 20], usize>,
        words: &WordKeys,
        from: [u8; 20],
    ) {
        let after: Vec<_> = model.range(from..).map(|(_, item)| *item).collect();
        assert_eq!(walk_from(map, words, &from, Direction::Ascending), after);
        let before: Vec<_> = model.range(..from).rev().map(|(_, item)| *item).collect();
        assert_eq!(walk_from(map, words, &from, Direction::Descending), before);
        assert_eq!(map.get(words, &from), model.get(&from).copied());
    }

    #[test]
    fn ordered_map_matches_btreemap_and_clones_are_independent() {
        for seed in 0..6 {
            let mut random = StdRng::seed_from_u64(seed);
            let word = |number: u32| {
                let mut word = [0; 20];
                word[if seed % 2 == 0 { 0..4 } else { 16..20 }]
                    .copy_from_slice(&number.to_be_bytes());
                word
            };
            let words = WordKeys((0..20_000).map(word).collect());
            let (mut map, mut model) = (PersistentMap::default(), BTreeMap::new());
            let (mut copy, mut model_then) = (map.clone(), model.clone());
            let span = [50, 1_000, 20_000][usize::try_from(seed).unwrap() % 3];
            for step in 0..15_000 {
                let item = if seed < 3 {
                    random.random_range(0..span)
                } else {
                    step % span
                };
                let key = words.0[item];
                if random.random_bool(0.7) {
                    map.put(&words, &key, |_| NewState::Item(item));
                    model.insert(key, item);
                } else {
                    map.put(&words, &key, |found| {
                        assert_eq!(found, model.get(&key).copied());
                        NewState::Nothing
                    });
                    model.remove(&key);
                }
                if step % 1_500 == 0 {
                    let from = words.0[random.random_range(0..span)];
                    assert_same_walk(&map, &model, &words, from);
                    assert_same_walk(&copy, &model_then, &words, from);
                    (copy, model_then) = (map.clone(), model.clone());
                }
            }
        }
    }
}
