//! Reading a whole store to see that it is whole: every record, and that records and index entries
//! belong to each other.

use std::collections::BTreeMap;

use crate::{
    domain::{
        Attempt, Client, Delivery, Destination, Health, Occurrence, Receipt, Revision, Rule,
        Trigger,
    },
    store::{Direction, EngineError, Index, Kind, Range, Record, Store, engine::Entry},
};

/// Records or entries read at a time.
const PAGE: usize = 500;
/// Faults that are told; more are only counted.
const FAULTS_TOLD_MAX: usize = 100;

/// What was found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Findings {
    /// Records read.
    pub records: u64,
    /// Index entries read.
    pub entries: u64,
    /// How much is wrong.
    pub faults: u64,
    /// What is wrong, one sentence each, the first hundred.
    pub told: Vec<String>,
}

impl Findings {
    fn tell(&mut self, fault: String) {
        self.faults += 1;
        if self.told.len() < FAULTS_TOLD_MAX {
            self.told.push(fault);
        }
    }
}

/// Reads every record and every index entry of a store that nobody writes to meanwhile.
///
/// # Errors
/// Those of the engine, when it does not let everything be read; what is read and wrong is in the
/// findings.
pub async fn verify(store: &Store) -> Result<Findings, EngineError> {
    let mut check = Check {
        store,
        findings: Findings::default(),
        expected: BTreeMap::new(),
    };
    check.records::<Trigger>().await?;
    check.records::<Destination>().await?;
    check.records::<Rule>().await?;
    check.records::<Client>().await?;
    check.records::<Occurrence>().await?;
    check.records::<Delivery>().await?;
    check.records::<Attempt>().await?;
    check.records::<Health>().await?;
    check.records::<Receipt>().await?;
    check.records::<Revision>().await?;
    check.indexes().await?;
    Ok(check.findings)
}

struct Check<'a> {
    store: &'a Store,
    findings: Findings,
    /// Entries that the records of an index's kind have, by the index's number.
    expected: BTreeMap<u8, u64>,
}

impl Check<'_> {
    /// Reads the records of a kind; each must decode, lie under its own key and have its entries.
    async fn records<T: Record>(&mut self) -> Result<(), EngineError> {
        let mut range = Range::under(b"");
        loop {
            let page = self
                .store
                .engine()
                .page(T::KIND, range.clone(), Direction::Ascending, PAGE);
            let page = page.await?;
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            range.start = after(last);
            for (key, row) in page {
                self.findings.records += 1;
                match self.store.decode::<T>(&row.value) {
                    Ok(value) if value.key() == key => {
                        self.entries_of(T::KIND, &key, value.entries()).await?;
                    }
                    Ok(_) => self
                        .findings
                        .tell(format!("{} lies elsewhere", name(T::KIND, &key))),
                    Err(error) => {
                        self.findings
                            .tell(format!("{}: {error}", name(T::KIND, &key)));
                    }
                }
            }
        }
    }

    async fn entries_of(
        &mut self,
        kind: Kind,
        key: &[u8],
        entries: Vec<Entry>,
    ) -> Result<(), EngineError> {
        for entry in entries {
            *self.expected.entry(entry.index as u8).or_default() += 1;
            let only = Range {
                end: Some(after(&entry.key)),
                start: entry.key,
            };
            let found = self
                .store
                .engine()
                .entries(entry.index, only, Direction::Ascending, 1);
            if found.await?.first().is_none_or(|(_, record)| record != key) {
                let fault = format!("{} is not found by {:?}", name(kind, key), entry.index);
                self.findings.tell(fault);
            }
        }
        Ok(())
    }

    /// Counts the entries. Every record has its own, so one too many leads to nothing.
    async fn indexes(&mut self) -> Result<(), EngineError> {
        for index in Index::ALL {
            let mut range = Range::under(b"");
            let mut count = 0;
            loop {
                let page =
                    self.store
                        .engine()
                        .entries(index, range.clone(), Direction::Ascending, PAGE);
                let page = page.await?;
                let Some((last, _)) = page.last() else {
                    break;
                };
                range.start = after(last);
                count += page.len() as u64;
            }
            self.findings.entries += count;
            let expected = self
                .expected
                .get(&(index as u8))
                .copied()
                .unwrap_or_default();
            if count != expected {
                let fault = format!("{index:?} has {count} entries in place of {expected}");
                self.findings.tell(fault);
            }
        }
        Ok(())
    }
}

/// The first key after that one.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

fn name(kind: Kind, key: &[u8]) -> String {
    format!("{kind:?} {}", key.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::verify;
    use crate::{
        domain::{Client, Name, RecordId, Role},
        store::{
            Index, Kind, Lane, Store,
            engine::{Action, Change, Entry, Expect},
        },
    };

    async fn with_clients() -> Store {
        let store = Store::in_memory();
        let mut changes = store.changes();
        for number in 0..3 {
            changes.insert(&Client {
                id: RecordId::from_parts(0, u128::from(number)),
                name: Name::parse(&format!("client {number}")).unwrap(),
                role: Role::Viewer,
                key_hash: [number; 32],
                create_ms: 0,
                last_used_ms: None,
            });
        }
        store.apply(Lane::Admin, changes).await.unwrap();
        store
    }

    async fn apply(store: &Store, change: Change) {
        let applied = store.engine().apply(Lane::Admin, vec![change]).await;
        applied.unwrap();
    }

    fn change(kind: Kind, key: &[u8]) -> Change {
        Change {
            kind,
            key: key.into(),
            expect: Expect::Absent,
            action: Action::Put(b"nonsense".into()),
            remove: Vec::new(),
            add: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_whole_store_has_no_faults() {
        let findings = verify(&with_clients().await).await.unwrap();
        assert_eq!((findings.records, findings.entries), (3, 3));
        assert_eq!(findings.told, Vec::<String>::new());
    }

    #[tokio::test]
    async fn what_does_not_belong_together_is_told() {
        let entry = |byte| Entry {
            index: Index::ClientByKey,
            key: vec![byte; 32],
        };
        let touched = Change {
            expect: Expect::Version(1),
            action: Action::Touch,
            ..change(Kind::Client, b"client 1")
        };
        let cases = [
            (change(Kind::Rule, b"r"), "Rule r"),
            (
                Change {
                    remove: vec![entry(1)],
                    ..touched.clone()
                },
                "Client client 1 is not found by ClientByKey",
            ),
            (
                Change {
                    add: vec![entry(9)],
                    ..touched
                },
                "ClientByKey has 4 entries in place of 3",
            ),
        ];
        for (damage, expected) in cases {
            let store = with_clients().await;
            apply(&store, damage).await;
            let findings = verify(&store).await.unwrap();
            assert!(findings.faults > 0);
            let is_told = findings.told.iter().any(|fault| fault.contains(expected));
            assert!(is_told, "{expected}: {:?}", findings.told);
        }
    }
}
