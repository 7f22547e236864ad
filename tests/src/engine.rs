//! What a service keeps its store in: the one list that suites are run by.

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

/// Variables that a service and commands are started with.
pub type Variables = Vec<(&'static str, String)>;

/// Where a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// In the data folder.
    Folder,
    /// In a database.
    Database,
}

impl Engine {
    /// All that there are.
    pub const ALL: [Self; 2] = [Self::Folder, Self::Database];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Database => "database",
        }
    }

    /// Those that can be used on this machine; who is left out is reported.
    pub fn usable() -> Vec<Self> {
        let is_usable = |it: &Self| *it == Self::Folder || server().is_some();
        Self::ALL.into_iter().filter(is_usable).collect()
    }

    /// That of the worlds that this thread makes: the one that [`Engine::within`] names, else that of
    /// `BELLWETHER_TEST_STORE`, else the data folder.
    ///
    /// # Panics
    /// When the variable names none.
    pub fn of_this_thread() -> Self {
        CHOSEN.get().unwrap_or_else(|| {
            let Some(asked) = std::env::var_os("BELLWETHER_TEST_STORE") else {
                return Self::Folder;
            };
            let named = Self::ALL.into_iter().find(|it| asked == *it.word());
            named.unwrap_or_else(|| {
                let asked = asked.display();
                panic!("BELLWETHER_TEST_STORE is {asked}; expected folder or database")
            })
        })
    }

    /// Whether a test of the data folder itself has to be left out, as worlds are in a database;
    /// which is reported.
    ///
    /// # Panics
    /// When it is unknown.
    pub fn only_in_a_folder() -> bool {
        let is_left_out = Self::of_this_thread() != Self::Folder;
        if is_left_out {
            // Written past the capture of the test's output: a skipped test is seen.
            let notice = b"skipped: it is about a data folder, and stores are in a database\n";
            std::io::stderr().write_all(notice).unwrap();
        }
        is_left_out
    }

    /// Has worlds that a test makes keep their store in it. Where it cannot be used the test is
    /// skipped, which is reported.
    pub fn within(self, test: impl FnOnce()) {
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

/// One server for all worlds of the process; each has a separate schema. It ends with the process.
fn server() -> Option<MutexGuard<'static, Postgres>> {
    static SERVER: OnceLock<Option<Mutex<Postgres>>> = OnceLock::new();
    let server = SERVER.get_or_init(|| Postgres::start().map(Mutex::new));
    let server = server.as_ref()?;
    Some(server.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The variables that lead a command to a separate store in a database, with the keys in that
/// folder.
///
/// # Panics
/// Where no server is installed.
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
        // Many worlds use one server concurrently.
        ("BELLWETHER_STORE_CONNECTIONS", "7".into()),
        (
            "BELLWETHER_STORE_SECRET_KEY_FILE",
            key_file.to_str().unwrap().into(),
        ),
    ]
}
