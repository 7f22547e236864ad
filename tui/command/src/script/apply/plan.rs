//! Plans: documents, and the stored state that they were compared with.

use std::{collections::BTreeSet, fs, io::Write, os::unix::fs::OpenOptionsExt, path::Path};

use bellwether_tui::api::ConfigKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Document;
use crate::{failure::Failure, script::document};

const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    documents: Vec<PlannedChange>,
    deletes: BTreeSet<(String, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlannedChange {
    kind: String,
    name: String,
    action: String,
    /// Etag of the stored resource; empty if there was none.
    etag: String,
    body: Value,
}

impl Plan {
    pub(super) fn new(documents: &[Document], changes: &[Value], owner: Option<&str>) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let planned = documents
            .iter()
            .zip(changes)
            .map(|(document, change)| PlannedChange {
                kind: document.kind.singular().to_owned(),
                name: document.name.clone(),
                action: text(&change["action"]),
                etag: text(&change["etag"]),
                body: document.body.clone(),
            });
        Self {
            version: VERSION,
            owner: owner.map(str::to_owned),
            documents: planned.collect(),
            deletes: planned_deletions(changes),
        }
    }

    /// Writes the plan to a file that only its owner can read: documents may contain secrets.
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
            Failure::usage_error(format!("--save: failed to write {shown}: {error}"))
        })
    }

    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let wrong = |why: String| {
            let shown = file.display();
            Failure::usage_error(format!("--plan: {shown} {why}"))
        };
        let text = document::read_text(file);
        let text = text.map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let plan: Self = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("is not a plan saved by `diff --save`: {error}")))?;
        if plan.version != VERSION {
            let version = plan.version;
            return Err(wrong(format!("has version {version}; expected {VERSION}")));
        }
        Ok(plan)
    }

    pub(super) fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    pub(super) fn documents(&self) -> Result<Vec<Document>, Failure> {
        let planned = self.documents.iter().enumerate();
        let document = |(at, planned): (usize, &PlannedChange)| {
            let word = &planned.kind;
            let kind = ConfigKind::find(word);
            let kind = kind.ok_or_else(|| {
                Failure::usage_error(format!("--plan: kind `{word}` is unknown to this version"))
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

    pub(super) fn set_expected_etags(&self, request: &mut Value) {
        for (at, planned) in self.documents.iter().enumerate() {
            let document = &mut request["documents"][at];
            if planned.etag.is_empty() {
                document["mustBeNew"] = true.into();
            } else {
                document[planned.kind.as_str()]["etag"] = planned.etag.as_str().into();
            }
        }
    }

    /// Checks that the deletions are the same as in the plan.
    ///
    /// # Errors
    /// Returns a failure that names the differences.
    pub(super) fn check(&self, changes: &[Value]) -> Result<(), Failure> {
        let now = planned_deletions(changes);
        let differs: Vec<_> = now
            .symmetric_difference(&self.deletes)
            .map(|(kind, name)| format!("{kind} `{name}`"))
            .collect();
        if differs.is_empty() {
            return Ok(());
        }
        let differs = differs.join(", ");
        Err(Failure::rejected(format!(
            "deletions differ from the plan: {differs}; create a new plan"
        )))
    }
}

fn planned_deletions(changes: &[Value]) -> BTreeSet<(String, String)> {
    let deleted = changes
        .iter()
        .filter(|change| change["action"] == "CONFIG_ACTION_DELETED");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    deleted
        .map(|change| (text(&change["kind"]), text(&change["name"])))
        .collect()
}
