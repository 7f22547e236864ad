//! Storage of a service under test: memory, a disk that loses power, or a database.

use std::sync::Arc;

use rand::rngs::StdRng;

use crate::{
    store::{
        EngineError, Sealer, Store,
        engine::{
            memory::MemoryEngine,
            postgres::{Address, PostgresEngine, migrate},
            redb::{Medium, RedbEngine, Settings},
        },
    },
    testing::simulated_disk::SimulatedDisk,
};

const SETTINGS: Settings = Settings {
    quick_repair_from: 0,
    ..Settings::with_cache(4 * 1024 * 1024)
};

#[derive(Debug)]
pub(super) enum Ground {
    /// Memory, which survives a crash of the service.
    Memory(Store),
    /// A disk, which loses unsynced data.
    Disk(SimulatedDisk, Arc<Sealer>),
    /// A database, which still executes the statements received before a crash of the service.
    Database(Box<Address>, Arc<Sealer>),
}

impl Ground {
    pub(super) fn memory() -> Self {
        let engine = Arc::new(MemoryEngine::new());
        Self::Memory(Store::new(engine, Arc::new(Sealer::with_random_key())))
    }

    pub(super) fn disk() -> Self {
        Self::Disk(
            SimulatedDisk::default(),
            Arc::new(Sealer::with_random_key()),
        )
    }

    /// Returns `None` if no server is installed.
    pub(super) async fn database() -> Option<Self> {
        let (url, password, schema) = super::postgres::free_schema()?;
        let address = Address::parse(&url, Some(password), &schema).unwrap();
        assert_eq!(migrate(&address).await.unwrap(), None);
        Some(Self::Database(
            Box::new(address),
            Arc::new(Sealer::with_random_key()),
        ))
    }

    pub(super) async fn open(&self) -> Store {
        let Self::Database(address, sealer) = self else {
            return self.try_open().unwrap();
        };
        let engine = PostgresEngine::open(Address::clone(address), None)
            .await
            .unwrap();
        Store::new(Arc::new(engine), Arc::clone(sealer))
    }

    pub(super) fn try_open(&self) -> Result<Store, EngineError> {
        Ok(match self {
            Self::Memory(store) => store.clone(),
            Self::Disk(disk, sealer) => {
                let medium: Arc<dyn Medium> = Arc::new(disk.clone());
                let engine = RedbEngine::open(medium, SETTINGS)?;
                Store::new(Arc::new(engine), Arc::clone(sealer))
            }
            Self::Database(..) => unreachable!("a database is opened by `open`"),
        })
    }

    /// Causes one to four consecutive disk operations to fail after `operations` successes. The
    /// store retries after a single failure. `None` lets all operations succeed.
    pub(super) fn fail_after(&self, operations: Option<u64>) {
        if let Self::Disk(disk, _) = self {
            let operations = operations.unwrap_or(u64::MAX);
            disk.fail_some_after(operations, 1 + operations % 4);
        }
    }

    /// Makes the power fail after `operations` more disk operations.
    pub(super) fn fail_power_after(&self, operations: u64) {
        if let Self::Disk(disk, _) = self {
            disk.fail_power_after(operations);
        }
    }

    pub(super) fn restore_power(&self, random: &mut StdRng) {
        if let Self::Disk(disk, _) = self {
            disk.restore_power(random);
        }
    }
}
