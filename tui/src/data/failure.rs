//! Failed calls, classified by what the operator can do.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// The code of the error in `docs/troubleshooting.md`; empty if the error has none.
    pub(crate) code: String,
    pub(crate) message: String,
    /// Invalid fields, in the JSON spelling of the API.
    pub(crate) fields: Vec<FieldError>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldError {
    pub(crate) path: String,
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// Wait: the service is unreachable.
    Unreachable,
    /// Wait or check: the service did not respond before the timeout; a write may have succeeded.
    TimedOut,
    /// Use another key.
    Unauthenticated,
    /// Sign in: there is no key.
    NotSignedIn,
    /// Use a key with another role.
    Denied,
    NotFound,
    /// Change the input.
    Invalid,
    /// Read the current state and decide again.
    Conflict,
    Unsupported,
    /// Report a bug.
    Internal,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: String::new(),
            message: message.into(),
            fields: Vec::new(),
        }
    }

    pub(crate) fn is_connection_failure(&self) -> bool {
        matches!(
            self.kind,
            FailureKind::Unreachable | FailureKind::Unauthenticated | FailureKind::NotSignedIn
        )
    }

    pub(crate) fn headline(&self) -> &'static str {
        match self.kind {
            FailureKind::Unreachable => "not connected",
            FailureKind::TimedOut => "no response in time",
            FailureKind::Unauthenticated => "key not accepted",
            FailureKind::NotSignedIn => "not signed in",
            FailureKind::Denied => "not allowed",
            FailureKind::NotFound => "not found",
            FailureKind::Invalid => "refused",
            FailureKind::Conflict => "changed concurrently",
            FailureKind::Unsupported => "not supported by this service",
            FailureKind::Internal => "the service failed",
        }
    }

    pub(crate) fn sentence(&self) -> String {
        let mut text = self.headline().to_owned();
        if !self.message.is_empty() {
            text.push_str(": ");
            text.push_str(&self.message);
        }
        for field in &self.fields {
            if !self.message.contains(&field.message) {
                text.push_str("; ");
                text.push_str(&field.path);
                text.push_str(": ");
                text.push_str(&field.message);
            }
        }
        text
    }
}
