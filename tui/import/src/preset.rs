//! Presets: ready-made documents for other products, which are part of the program.

mod files;
mod parameter;

use serde_json::{Value, json};

pub use self::parameter::Parameter;

/// A destination or heartbeat in YAML, or an ingest mapping in JSON.
#[derive(Debug)]
pub struct Preset {
    pub name: &'static str,
    pub text: &'static str,
    pub is_json: bool,
}

impl Preset {
    pub fn iter() -> impl Iterator<Item = &'static Self> {
        files::PRESETS.iter().chain(files::MAPPINGS)
    }

    pub fn find(name: &str) -> Option<&'static Self> {
        Self::iter().find(|preset| preset.name == name)
    }

    /// Returns the document with its kind.
    ///
    /// # Panics
    /// Panics if the file is not valid; a test reads each.
    pub fn document(&self) -> Value {
        let mut document: Value = if self.is_json {
            serde_json::from_str(self.text).expect("the mappings are JSON")
        } else {
            serde_saphyr::from_str(self.text).expect("the presets are YAML")
        };
        // A mapping file contains the body of a REST call, not a document.
        if document["kind"].is_null() {
            document["kind"] = json!("mapping");
        }
        document
    }
}
