//! Checks of documents that require no access to the store.

use std::collections::{HashMap, hash_map::Entry};

use super::{Action, Change, Document, OWNER, definition_tags};
use crate::{
    domain::{Role, Settings},
    error::{Error, Violation},
    limits::{CONFIG_DOCUMENTS_MAX, TAG_CHARACTERS_MAX},
    resource::Resource,
};

/// Maximum number of characters in an owner; the tag starts with `owner:`.
pub const OWNER_CHARACTERS_MAX: usize = TAG_CHARACTERS_MAX - OWNER.len();

/// Returns [`Error::Invalid`] with all violations that do not depend on stored resources.
pub(super) fn check_documents(documents: &[Document], prune_owner: &str) -> Result<(), Error> {
    let mut violations = Vec::new();
    let mut add = |field: String, why: String| violations.push(Violation::new(field, why));
    let characters = prune_owner.chars().count();
    if characters > OWNER_CHARACTERS_MAX {
        let why = format!("has {characters} characters; the limit is {OWNER_CHARACTERS_MAX}");
        add("pruneOwner".into(), why);
    }
    let count = documents.len();
    if count > CONFIG_DOCUMENTS_MAX {
        let why = format!("has {count} documents; the limit is {CONFIG_DOCUMENTS_MAX}");
        add("documents".into(), why);
    } else if count == 0 && prune_owner.is_empty() {
        let why = format!("is empty; expected 1 to {CONFIG_DOCUMENTS_MAX} documents");
        add("documents".into(), why);
    }
    let mut seen = HashMap::new();
    let tag = format!("{OWNER}{prune_owner}");
    for (at, document) in documents.iter().enumerate().take(CONFIG_DOCUMENTS_MAX) {
        let identity = super::kind_and_name(&document.definition);
        let kind = identity.0;
        match seen.entry(identity) {
            Entry::Occupied(first) => add(
                format!("documents[{at}].{kind}.name"),
                format!("is already defined by documents[{}]", first.get()),
            ),
            Entry::Vacant(free) => {
                free.insert(at);
            }
        }
        // Settings need no tag of the owner, because they are never deleted.
        if !prune_owner.is_empty()
            && kind != Settings::WORD
            && !definition_tags(&document.definition).contains(&tag)
        {
            add(
                format!("documents[{at}].{kind}.tags"),
                format!("lacks `{tag}`, which pruning requires"),
            );
        }
    }
    if violations.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid(violations))
}

pub(super) fn check_role(changes: &[Change], role: Role) -> Result<(), Error> {
    let changes_settings = changes
        .iter()
        .any(|it| it.kind == Settings::WORD && !matches!(it.action, Action::Unchanged));
    if changes_settings && role != Role::Admin {
        return Err(Error::PermissionDenied(format!(
            "changing the settings requires the role `{}`; this key has the role `{}`",
            Role::Admin.as_str(),
            role.as_str()
        )));
    }
    Ok(())
}
