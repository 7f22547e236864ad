//! Who changed what: one log line for each change that a caller made.

use tonic::{Request, Status};

use super::access;
use crate::{domain::Name, ops::resource::Resource};

/// What somebody did.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Create,
    Update,
    Delete,
    Revoke,
    Retry,
    Cancel,
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Revoke => "revoke",
            Self::Retry => "retry",
            Self::Cancel => "cancel",
        }
    }
}

/// The caller that a change is put down to.
#[derive(Debug)]
pub(super) struct Author(Name);

/// The author of the changes that a request asks for.
///
/// # Errors
/// `UNAUTHENTICATED` when nobody has looked at the key of the request.
pub(super) fn author<T>(request: &Request<T>) -> Result<Author, Status> {
    access::caller(request).map(|caller| Author(caller.name))
}

impl Author {
    /// Writes down a change of a resource; nothing when it was only tried.
    pub(super) fn note_unless<T: Resource>(&self, tried: bool, change: Change, resource: &T) {
        if !tried {
            self.note(change, T::WORD, resource.name().as_str());
        }
    }

    /// Writes down a change.
    pub(super) fn note(&self, change: Change, what: &str, name: &str) {
        let (author, change) = (self.0.as_str(), change.word());
        tracing::info!(target: "bellwether::audit", author, change, what, name, "changed");
    }
}
