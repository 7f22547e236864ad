//! The settings of a store in a database, as far as configured.

use std::{fs, path::PathBuf};

use bellwether_backend::{
    config::DatabaseConfig,
    domain::Secret,
    limits::STORE_CONNECTIONS,
    store::engine::postgres::{Address, SCHEMA},
};
use toml::Value;

use super::unit;
use crate::config::{
    ConfigError,
    value::{self, Read},
};

const HOST_NAME: &str = "/proc/sys/kernel/hostname";
const NODE_NAME: &str = "bellwether";
/// Placeholder URL for validating a schema name.
const SOME_URL: &str = "postgres://bellwether@localhost/bellwether";

#[derive(Debug, Clone, Default)]
pub(super) struct Database {
    pub(super) url: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) schema: Option<String>,
    pub(super) node_name: Option<String>,
    pub(super) secret_key_file: Option<PathBuf>,
    pub(super) connections: Option<usize>,
    pub(super) require_standby: bool,
}

/// Validates a database URL; an empty value means that there is no database.
pub(super) fn parse_url(value: &Value) -> Read<Option<String>> {
    let url = unit::text_or_empty(value)?;
    if url.is_empty() {
        return Ok(None);
    }
    // The value is not repeated in the error: it may contain a password.
    Address::parse(&url, None, SCHEMA)?;
    Ok(Some(url))
}

pub(super) fn parse_schema(value: &Value) -> Read<String> {
    let schema = value::parse_text(value)?;
    Address::parse(SOME_URL, None, &schema)?;
    Ok(schema)
}

impl Database {
    pub(super) fn without_key(&self) -> Self {
        let mut database = self.clone();
        if self.url.is_some() {
            database.secret_key_file.get_or_insert_default();
        }
        database
    }

    pub(super) fn config(&self) -> Result<Option<DatabaseConfig>, ConfigError> {
        let missing = |setting: &str, given: &str| {
            let sentence = format!("{setting}: required because {given} is set");
            Err(ConfigError(sentence))
        };
        let Some(url) = &self.url else {
            return match (&self.password, &self.secret_key_file) {
                (Some(_), _) => missing("store.url", "store.password"),
                (None, Some(_)) => missing("store.url", "store.secret_key_file"),
                (None, None) => Ok(None),
            };
        };
        let Some(secret_key_file) = &self.secret_key_file else {
            return missing("store.secret_key_file", "store.url");
        };
        let schema = self.schema.as_deref().unwrap_or(SCHEMA);
        Ok(Some(DatabaseConfig {
            url: url.clone(),
            password: self.password.clone(),
            schema: schema.to_owned(),
            node_name: self.node_name.clone().unwrap_or_else(host_name),
            secret_key_file: secret_key_file.clone(),
            connections: self.connections.unwrap_or(STORE_CONNECTIONS),
            require_standby: self.require_standby,
        }))
    }
}

fn host_name() -> String {
    let name = fs::read_to_string(HOST_NAME).unwrap_or_default();
    match name.trim() {
        "" => NODE_NAME.to_owned(),
        name => name.to_owned(),
    }
}
