//! Presets, and conversion of the configuration of other products to documents, with a report of
//! the parts without a counterpart. Reads and writes no files.

mod alertmanager;
mod error;
mod escalation;
mod fields;
mod grafana_oncall;
mod imported;
mod opsgenie;
mod pagerduty;
mod people;
pub mod preset;
mod rotation;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use self::{
    error::ImportError,
    imported::{ImportOutput, secret_name},
};

#[derive(Debug, Clone)]
pub struct File {
    /// Path within the export, for messages.
    pub path: String,
    /// The kind of the file's content, in lower case: the name of the parent folder or, for a file
    /// at the top, the file's name without extension.
    pub word: String,
    pub content: Value,
}

/// Converts the configuration of Alertmanager. `with_secrets` includes the values of secrets rather
/// than names of variables.
pub fn import_alertmanager(config: Value, with_secrets: bool) -> Result<ImportOutput, ImportError> {
    let mut imported = ImportOutput::new("alertmanager", with_secrets);
    alertmanager::import_config(config, &mut imported)?;
    Ok(imported)
}

pub fn import_opsgenie(files: Vec<File>) -> Result<ImportOutput, ImportError> {
    let mut imported = ImportOutput::new("opsgenie", false);
    opsgenie::import_export(files, &mut imported)?;
    Ok(imported)
}

pub fn import_pagerduty(files: Vec<File>) -> Result<ImportOutput, ImportError> {
    let mut imported = ImportOutput::new("pagerduty", false);
    pagerduty::import_export(files, &mut imported)?;
    Ok(imported)
}

pub fn import_grafana_oncall(files: Vec<File>) -> Result<ImportOutput, ImportError> {
    let mut imported = ImportOutput::new("grafana-oncall", false);
    grafana_oncall::import_export(files, &mut imported)?;
    Ok(imported)
}
