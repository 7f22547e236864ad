//! The store engines, and those on which tests can run.

use std::{
    cell::Cell,
    io::Write,
    path::Path,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::postgres::{PASSWORD, Postgres};

/// Environment variables of a service and its commands.
pub type Variables = Vec<(&'static str, String)>;

/// The location of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// In the data folder.
    Folder,
    /// In a database.
    Database,
}

impl Engine {
    pub const ALL: [Self; 2] = [Self::Folder, Self::Database];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Database => "database",
        }
    }

    /// Returns the engines available on this machine, and reports the missing ones.
    pub fn usable() -> Vec<Self> {
        let is_usable = |it: &Self| *it == Self::Folder || server().is_some();
        Self::ALL.into_iter().filter(is_usable).collect()
    }

    /// Returns the engine for worlds created by this thread: that of [`Engine::run_on`], else that
    /// of `BELLWETHER_TEST_STORE`, else the data folder.
    ///
    /// # Panics
    /// Panics if the variable names an unknown engine.
    pub fn of_this_thread() -> Self {
        CHOSEN.get().unwrap_or_else(|| {
            let Some(value) = std::env::var_os("BELLWETHER_TEST_STORE") else {
                return Self::Folder;
            };
            let named = Self::ALL.into_iter().find(|it| value == *it.as_str());
            named.unwrap_or_else(|| {
                let value = value.display();
                panic!("BELLWETHER_TEST_STORE is {value}; expected folder or database")
            })
        })
    }

    /// Whether to skip a test of the data folder because worlds use a database. If so, reports that
    /// the test is skipped.
    ///
    /// # Panics
    /// Panics if standard error cannot be written.
    pub fn only_in_a_folder() -> bool {
        let is_left_out = Self::of_this_thread() != Self::Folder;
        if is_left_out {
            // Write to standard error directly, so that a skipped test is visible.
            let notice = b"skipped: it is about a data folder, and stores are in a database\n";
            std::io::stderr().write_all(notice).unwrap();
        }
        is_left_out
    }

    /// Runs a test with its worlds on this engine. If the engine is not available, skips the test
    /// and reports that.
    pub fn run_on(self, test: impl FnOnce()) {
        if !Self::usable().contains(&self) {
            return;
        }
        let before = CHOSEN.replace(Some(self));
        test();
        CHOSEN.set(before);
    }
}

thread_local! {
    static CHOSEN: Cell<Option<Engine>> = const { Cell::new(None) };
}

/// One server for all worlds of the process, each with a separate schema. It stops with the
/// process.
fn server() -> Option<MutexGuard<'static, Postgres>> {
    static SERVER: OnceLock<Option<Mutex<Postgres>>> = OnceLock::new();
    let server = SERVER.get_or_init(|| Postgres::start().map(Mutex::new));
    let server = server.as_ref()?;
    Some(server.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the variables for a new store in a database, with the encryption keys in this folder.
///
/// # Panics
/// Panics if PostgreSQL is not installed.
pub fn in_database(data_dir: &Path) -> Variables {
    static SCHEMAS: AtomicUsize = AtomicUsize::new(0);
    let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
    let url = server().map(|server| server.url());
    let key_file = data_dir.join("secret.key");
    vec![
        ("BELLWETHER_STORE_URL", url.unwrap()),
        ("BELLWETHER_STORE_PASSWORD", PASSWORD.into()),
        ("BELLWETHER_STORE_SCHEMA", format!("world_{number}")),
        ("BELLWETHER_STORE_NODE_NAME", "one".into()),
        // Many worlds share one server.
        ("BELLWETHER_STORE_CONNECTIONS", "7".into()),
        (
            "BELLWETHER_STORE_SECRET_KEY_FILE",
            key_file.to_str().unwrap().into(),
        ),
    ]
}
