//! Making a store in a database, with its keys and its first client.

use futures_util::future::BoxFuture;
use std::{path::Path, sync::Arc};

use super::StartError;
use crate::{
    clock::{Clock, SystemClock},
    config::DatabaseConfig,
    ops::client::Clients,
    store::open::make_in_database,
};

/// What was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// A store, and the client whose key is in the file that was named.
    Store,
    /// Nothing: there was a store with clients.
    Nothing,
}

/// Makes a store in a database: its tables, the key that seals its secrets, and the client `admin`,
/// whose key is written to a file. One that was begun is finished; in one that is whole nothing is
/// made.
///
/// # Errors
/// Those of opening a store, and when a file cannot be written.
pub fn init_store<'a>(
    database: &'a DatabaseConfig,
    admin_key_file: &'a Path,
) -> BoxFuture<'a, Result<Made, StartError>> {
    Box::pin(async move {
        let store = make_in_database(database).await?;
        let engine = Arc::clone(store.engine());
        let clock = engine.clock();
        let clock = clock.unwrap_or_else(|| Arc::new(SystemClock) as Arc<dyn Clock>);
        let made = async {
            // Before any node counts.
            store.begin_counting(clock.now_ms()).await?;
            Clients::new(store, clock).make_admin(admin_key_file).await
        };
        let made = made.await;
        engine.close().await;
        Ok(if made? { Made::Store } else { Made::Nothing })
    })
}
