//! The location of a store and its options.

use std::path::PathBuf;

use crate::domain::Secret;

#[derive(Debug, Clone)]
pub struct Location {
    /// The folder of the store and the keys; created if missing.
    pub data_dir: PathBuf,
    pub options: StoreConfig,
    /// The database of the store; `None` if it is in the folder.
    pub database: Option<DatabaseConfig>,
}

impl Location {
    pub fn folder(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            options: StoreConfig::default(),
            database: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreConfig {
    pub cache_bytes: usize,
    /// Free disk space below which events are rejected, in bytes.
    pub free_space_floor_bytes: u64,
    /// Whether to open a store with missing parts, losing their content.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseConfig {
    /// URL, without a password.
    pub url: String,
    pub password: Option<Secret>,
    pub schema: String,
    /// Name of this process, shown to another process that tries to use the store.
    pub node_name: String,
    /// File with the keys that seal secrets; never created when serving.
    pub secret_key_file: PathBuf,
    pub connections: usize,
    /// Whether each commit has to be on a standby as well. If so, no request is served without a
    /// standby.
    pub require_standby: bool,
}
