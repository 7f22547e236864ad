//! An index of names that finds names differing only in letter case or invisible characters.

use std::collections::{BTreeSet, HashMap};

use super::Resource;
use crate::{
    domain::Name,
    error::Error,
    limits::PAGE_SIZE_MAX,
    matching::fold::fold_name,
    store::{Direction, LogPosition, Store, engine::Range},
};

/// Log entries read at a time. If there are more, all names are read again instead.
const LOG_STEPS: usize = 256;
const LOG_STEPS_MAX: u64 = 5_000;

/// The names of one kind by their folded form, up to a position in the change log.
#[derive(Debug, Default)]
pub(super) struct NameIndex {
    followed: Option<LogPosition>,
    names: HashMap<String, BTreeSet<String>>,
}

/// Returns the first of `others` that looks the same as a name.
pub(crate) fn find_lookalike<'a>(
    name: &str,
    mut others: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let own = fold_name(name);
    others.find(|other| fold_name(other) == own)
}

impl NameIndex {
    pub(super) async fn find_lookalike<T: Resource>(
        &mut self,
        store: &Store,
        name: &Name,
    ) -> Result<Option<String>, Error> {
        self.catch_up::<T>(store).await?;
        let alike = self.names.get(&fold_name(name.as_str()));
        let mut alike = alike.into_iter().flatten();
        Ok(alike.find(|other| **other != name.as_str()).cloned())
    }

    async fn catch_up<T: Resource>(&mut self, store: &Store) -> Result<(), Error> {
        let head = store.engine().log_head().await?;
        let Some(mut from) = self
            .followed
            .filter(|from| head.steps_since(*from) <= LOG_STEPS_MAX)
        else {
            return self.read::<T>(store, head).await;
        };
        while from < head {
            let Some(steps) = store.engine().log_after(from, LOG_STEPS).await? else {
                return self.read::<T>(store, head).await;
            };
            let Some(last) = steps.last() else { break };
            from = last.position;
            let changed = steps.into_iter().flat_map(|step| step.changed);
            for (_, key) in changed.filter(|(kind, _)| *kind == T::KIND) {
                let is_there = store.get::<T>(key.clone()).await?.is_some();
                if let Ok(name) = String::from_utf8(key) {
                    self.update(&name, is_there);
                }
            }
        }
        self.followed = Some(from);
        Ok(())
    }

    async fn read<T: Resource>(&mut self, store: &Store, head: LogPosition) -> Result<(), Error> {
        self.names.clear();
        let mut start = Vec::new();
        loop {
            let range = Range { start, end: None };
            let page = store
                .page::<T>(range, Direction::Ascending, PAGE_SIZE_MAX)
                .await?;
            for stored in &page {
                self.update(stored.value.name().as_str(), true);
            }
            match page.last() {
                Some(last) if page.len() == PAGE_SIZE_MAX => {
                    start = [&last.value.key()[..], &[0]].concat();
                }
                _ => break,
            }
        }
        self.followed = Some(head);
        Ok(())
    }

    fn update(&mut self, name: &str, is_there: bool) {
        let key = fold_name(name);
        if is_there {
            self.names.entry(key).or_default().insert(name.to_owned());
        } else if let Some(alike) = self.names.get_mut(&key) {
            alike.remove(name);
            if alike.is_empty() {
                self.names.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_ignoring_case_and_invisible_characters() {
        let cases = [
            ("disk-full", "Disk-Full", true),
            ("IN", "in", true),
            ("STRASSE", "stra\u{df}e", true),
            ("\u{e9}t\u{e9}", "e\u{301}te\u{301}", true),
            (
                "\u{915}\u{94d}\u{200d}\u{937}",
                "\u{915}\u{94d}\u{937}",
                true,
            ),
            ("paypal", "p\u{430}ypal", false),
            ("paypal", "paypa1", false),
            ("disk-full", "disk_full", false),
            ("db-1", "db-2", false),
            ("\u{e9}t\u{e9}", "ete", false),
        ];
        for (one, other, expected) in cases {
            let is_alike = find_lookalike(one, [other].into_iter()).is_some();
            assert_eq!(is_alike, expected, "{one} {other}");
        }
    }
}
