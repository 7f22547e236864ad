//! A plan: documents, and what was stored when they were compared.

use std::{collections::BTreeSet, fs, io::Write, os::unix::fs::OpenOptionsExt, path::Path};

use bellwether_tui::api::ConfigKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Document;
use crate::{failure::Failure, script::document};

/// The form of plans that this version writes and reads.
const VERSION: u32 = 1;

/// Documents, and what was stored when they were compared.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    documents: Vec<Planned>,
    /// What is deleted, as kind and name.
    deletes: BTreeSet<(String, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Planned {
    kind: String,
    name: String,
    /// What is done, for who reads the plan.
    action: String,
    /// The etag of what was stored; empty when nothing was.
    etag: String,
    body: Value,
}

impl Plan {
    /// A plan of documents and what the service answered of them.
    pub(super) fn new(documents: &[Document], changes: &[Value], owner: Option<&str>) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let planned = documents
            .iter()
            .zip(changes)
            .map(|(document, change)| Planned {
                kind: document.kind.word().to_owned(),
                name: document.name.clone(),
                action: text(&change["action"]),
                etag: text(&change["etag"]),
                body: document.body.clone(),
            });
        Self {
            version: VERSION,
            owner: owner.map(str::to_owned),
            documents: planned.collect(),
            deletes: deleted(changes),
        }
    }

    /// Writes it for its owner's eyes alone: documents may hold secrets.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn save(&self, file: &Path) -> Result<(), Failure> {
        let write = || {
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(file)?;
            let text = serde_json::to_string_pretty(self).map_err(std::io::Error::other)?;
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")
        };
        write().map_err(|error: std::io::Error| {
            let shown = file.display();
            Failure::usage(format!("--save: {shown} cannot be written: {error}"))
        })
    }

    /// Reads what was saved.
    ///
    /// # Errors
    /// The file cannot be read, or is no plan.
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let wrong = |why: String| {
            let shown = file.display();
            Failure::usage(format!("--plan: {shown} {why}"))
        };
        let text = document::text(file);
        let text = text.map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let plan: Self = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("is not a plan of `diff --save`: {error}")))?;
        if plan.version != VERSION {
            let version = plan.version;
            return Err(wrong(format!("has version {version}; expected {VERSION}")));
        }
        Ok(plan)
    }

    pub(super) fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// Its documents.
    ///
    /// # Errors
    /// One is of a kind that this version does not know.
    pub(super) fn documents(&self) -> Result<Vec<Document>, Failure> {
        let planned = self.documents.iter().enumerate();
        let document = |(at, planned): (usize, &Planned)| {
            let word = &planned.kind;
            let kind = ConfigKind::find(word);
            let kind = kind.ok_or_else(|| {
                Failure::usage(format!("--plan: unknown kind `{word}` in this version"))
            })?;
            Ok(Document {
                source: format!("the plan, document {}", at + 1),
                kind,
                name: planned.name.clone(),
                body: planned.body.clone(),
            })
        };
        planned.map(document).collect()
    }

    /// Adds to a request what has to be stored still.
    pub(super) fn expect(&self, request: &mut Value) {
        for (at, planned) in self.documents.iter().enumerate() {
            let document = &mut request["documents"][at];
            if planned.etag.is_empty() {
                document["mustBeNew"] = true.into();
            } else {
                document[planned.kind.as_str()]["etag"] = planned.etag.as_str().into();
            }
        }
    }

    /// Refuses what would delete something else than was planned.
    ///
    /// # Errors
    /// A refusal that names it.
    pub(super) fn check(&self, changes: &[Value]) -> Result<(), Failure> {
        let now = deleted(changes);
        let differs: Vec<_> = now
            .symmetric_difference(&self.deletes)
            .map(|(kind, name)| format!("{kind} `{name}`"))
            .collect();
        if differs.is_empty() {
            return Ok(());
        }
        let differs = differs.join(", ");
        Err(Failure::refused(format!(
            "the deletions differ from the plan: {differs}; create a new plan"
        )))
    }
}

fn deleted(changes: &[Value]) -> BTreeSet<(String, String)> {
    let deleted = changes
        .iter()
        .filter(|change| change["action"] == "CONFIG_ACTION_DELETED");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    deleted
        .map(|change| (text(&change["kind"]), text(&change["name"])))
        .collect()
}
