//! Resolves the names with which a draft refers to other definitions.

use std::collections::HashSet;

use crate::{
    domain::Name,
    error::Error,
    limits::RULE_NAMES_MAX,
    resource::{Resource, Resources},
    store::{Changes, Kind, Record, Store, Stored},
    tag_scope::TagScope,
    validate::Violations,
};

/// Checks the references of a draft. The resource must exist, the draft's author must be allowed to
/// refer to it, and it must not be deleted before the draft is stored.
#[derive(Debug)]
pub(super) struct ReferenceChecker<'a> {
    store: &'a Store,
    scope: Option<TagScope>,
    /// References of the stored definition, which an edit may keep.
    existing: Vec<(Kind, Name)>,
    pub(super) violations: &'a mut Violations,
    changes: &'a mut Changes,
}

impl<'a> ReferenceChecker<'a> {
    pub(super) fn new<K, T: Record>(
        all: &'a Resources<K>,
        stored: Option<&T>,
        (violations, changes): (&'a mut Violations, &'a mut Changes),
    ) -> Self {
        let existing = stored
            .map(Record::references)
            .unwrap_or_default()
            .into_iter();
        Self {
            store: &all.store,
            scope: TagScope::from_caller(),
            existing: existing.map(|it| (it.kind, it.name.clone())).collect(),
            violations,
            changes,
        }
    }

    /// Returns the resources with the given names, without duplicates; unknown names are
    /// violations.
    ///
    /// # Errors
    /// Returns [`Error::PermissionDenied`] if the author is not allowed to refer to one of them, or
    /// an error if the store fails.
    pub(super) async fn resolve_all<T: Resource>(
        &mut self,
        field: &str,
        texts: &[String],
    ) -> Result<Vec<Stored<T>>, Error> {
        if texts.len() > RULE_NAMES_MAX {
            let count = texts.len();
            let message = format!("has {count} names; the limit is {RULE_NAMES_MAX}");
            self.violations.add(field, message);
            return Ok(Vec::new());
        }
        let keys = texts.iter().map(|text| text.clone().into_bytes()).collect();
        let stored = self.store.get_many::<T>(keys).await?;
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        for (at, (text, stored)) in texts.iter().zip(stored).enumerate() {
            match stored {
                Some(stored) if seen.insert(text) => {
                    self.add_reference(field, &stored)?;
                    found.push(stored);
                }
                Some(_) => {}
                None => self
                    .violations
                    .add(format!("{field}[{at}]"), missing_message::<T>(text)),
            }
        }
        Ok(found)
    }

    /// Returns the resource with the given name. An empty or unknown name is a violation.
    pub(super) async fn resolve<T: Resource>(
        &mut self,
        field: &str,
        text: &str,
    ) -> Result<Option<Stored<T>>, Error> {
        if text.is_empty() {
            let message = format!("is required: the name of a {}", T::WORD);
            self.violations.add(field, message);
        }
        self.resolve_optional(field, text).await
    }

    /// Returns the resource with the given name, or `None` for an empty name. An unknown name is a
    /// violation.
    pub(super) async fn resolve_optional<T: Resource>(
        &mut self,
        field: &str,
        text: &str,
    ) -> Result<Option<Stored<T>>, Error> {
        if text.is_empty() {
            return Ok(None);
        }
        let stored = self.store.get::<T>(text.into()).await?;
        match &stored {
            Some(stored) => self.add_reference(field, stored)?,
            None => self.violations.add(field, missing_message::<T>(text)),
        }
        Ok(stored)
    }

    fn add_reference<T: Resource>(&mut self, field: &str, stored: &Stored<T>) -> Result<(), Error> {
        let is_existing = || {
            let mut existing = self.existing.iter();
            existing.any(|(kind, name)| (*kind, name) == (T::KIND, stored.value.name()))
        };
        if let Some(scope) = &self.scope
            && !is_usable_by_any_author(T::KIND)
            && !is_existing()
        {
            scope.check(field, &stored.value)?;
        }
        self.changes.touch_record(stored);
        Ok(())
    }
}

/// Whether any author may refer to definitions of a kind, because they only select events or times.
fn is_usable_by_any_author(kind: Kind) -> bool {
    matches!(kind, Kind::Trigger | Kind::Calendar)
}

fn missing_message<T: Resource>(text: &str) -> String {
    match Name::parse(text) {
        Ok(name) => format!("{} `{name}` not found", T::WORD),
        Err(message) => message,
    }
}
