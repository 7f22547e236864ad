//! Creates a store in a database with its first client, and creates clients, without a running
//! service.

use futures_util::future::BoxFuture;
use std::{path::Path, sync::Arc};

use super::StartError;
use crate::{
    clock::{Clock, SystemClock},
    config::{DatabaseConfig, Location},
    domain::{KeyScope, Secret},
    error::Error,
    ops::client::{ClientDraft, Clients},
    store::{
        audit::{Actor, run_as},
        open::{create_in_database, open_for_command},
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreatedStore {
    /// A store, and a client whose key is in the given file.
    Store,
    /// The store was not created, because a store with clients existed.
    Nothing,
}

const COMMAND: &str = "command line";

/// Creates a client in a store without a running service. Requires access to the store's keys
/// instead of a client's key. Returns the key of the new client. The audit log attributes the
/// change to `command line`.
pub fn create_client<'a>(
    location: &'a Location,
    draft: &'a ClientDraft,
) -> BoxFuture<'a, Result<Secret, StartError>> {
    Box::pin(async move {
        let store = open_for_command(location).await?;
        let engine = Arc::clone(store.engine());
        let clock = engine.clock();
        let clock = clock.unwrap_or_else(|| Arc::new(SystemClock) as Arc<dyn Clock>);
        let author = Actor {
            client: COMMAND.into(),
            address: None,
            agent: String::new(),
            method: "",
            time_ms: clock.now_ms(),
            scope: Arc::new(KeyScope::default()),
        };
        let clients = Clients::new(store, clock);
        let created = run_as(author, clients.create(draft)).await;
        let closed = engine.close().await;
        let (_, key) = created?;
        closed.map_err(Error::from)?;
        Ok(key)
    })
}

/// Creates a store in a database: its tables, the key that seals its secrets, and the client
/// `admin`, whose key is written to a file. An interrupted creation is completed. A complete store
/// is not changed.
pub fn init_store<'a>(
    database: &'a DatabaseConfig,
    admin_key_file: &'a Path,
) -> BoxFuture<'a, Result<CreatedStore, StartError>> {
    Box::pin(async move {
        let store = create_in_database(database).await?;
        let engine = Arc::clone(store.engine());
        let clock = engine.clock();
        let clock = clock.unwrap_or_else(|| Arc::new(SystemClock) as Arc<dyn Clock>);
        let made = async {
            // Store the start of counting before any node counts.
            store.begin_counting(clock.now_ms()).await?;
            Clients::new(store, clock)
                .create_first_admin(admin_key_file)
                .await
        };
        let made = made.await;
        let closed = engine.close().await;
        let made = made?;
        closed.map_err(Error::from)?;
        Ok(if made {
            CreatedStore::Store
        } else {
            CreatedStore::Nothing
        })
    })
}
