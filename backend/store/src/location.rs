//! Where a store is, and how it is opened.

use std::path::PathBuf;

use crate::domain::Secret;

/// Where a store is, and how it is opened.
#[derive(Debug, Clone)]
pub struct Location {
    /// The folder that holds the store and the keys; made when absent.
    pub data_dir: PathBuf,
    /// How a store in the folder is opened.
    pub options: StoreConfig,
    /// The database that the store is in; none means the folder.
    pub database: Option<DatabaseConfig>,
}

impl Location {
    /// A folder, with the defaults.
    pub fn folder(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            options: StoreConfig::default(),
            database: None,
        }
    }
}

/// The store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreConfig {
    /// Memory for cached pages, in bytes.
    pub cache_bytes: usize,
    /// Intake stops while the disk has less room than this, in bytes.
    pub free_space_floor_bytes: u64,
    /// Whether to open a store that a part of is missing, without what was in it.
    pub accept_loss: bool,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            cache_bytes: 32 * 1024 * 1024,
            free_space_floor_bytes: 64 * 1024 * 1024,
            accept_loss: false,
        }
    }
}

/// A database that holds the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseConfig {
    /// Its address, without a password.
    pub url: String,
    /// The password.
    pub password: Option<Secret>,
    /// The schema that the tables are in.
    pub schema: String,
    /// What this process is called where another one wants the store.
    pub node_name: String,
    /// The file with the keys that seal secrets; never created when serving.
    pub secret_key_file: PathBuf,
    /// Connections that this process keeps.
    pub connections: usize,
    /// Whether each commit has to be on a standby as well: without one nothing is served.
    pub require_standby: bool,
}
