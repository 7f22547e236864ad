//! Why a call failed, sorted by what the operator can do.

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// A message for people.
    pub(crate) message: String,
    /// The fields that are wrong, in the JSON spelling of the API.
    pub(crate) fields: Vec<FieldError>,
}

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldError {
    /// As `type.webhook.url`.
    pub(crate) path: String,
    pub(crate) message: String,
}

/// The kinds of failure, by what helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// Wait: the service cannot be reached.
    Unreachable,
    /// Wait or look: the service did not answer in time; a write may have happened.
    TimedOut,
    /// Get a key.
    Unauthenticated,
    /// There is none to show: sign in.
    NotSignedIn,
    /// Get another role.
    Denied,
    /// It is gone.
    NotFound,
    /// Change the input.
    Invalid,
    /// Look at what is there now, then decide again.
    Conflict,
    /// The service does not do this.
    Unsupported,
    /// Report it.
    Internal,
}

impl Failure {
    /// A failure without field errors.
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            fields: Vec::new(),
        }
    }

    /// Whether it shows that the link is broken.
    pub(crate) fn breaks_the_link(&self) -> bool {
        matches!(
            self.kind,
            FailureKind::Unreachable | FailureKind::Unauthenticated | FailureKind::NotSignedIn
        )
    }

    /// What went wrong, before the service's own sentence.
    pub(crate) fn headline(&self) -> &'static str {
        match self.kind {
            FailureKind::Unreachable => "not connected",
            FailureKind::TimedOut => "no answer in time",
            FailureKind::Unauthenticated => "key not accepted",
            FailureKind::NotSignedIn => "not signed in",
            FailureKind::Denied => "not allowed",
            FailureKind::NotFound => "not found",
            FailureKind::Invalid => "refused",
            FailureKind::Conflict => "changed meanwhile",
            FailureKind::Unsupported => "not supported by this service",
            FailureKind::Internal => "the service failed",
        }
    }

    /// One sentence with everything, for a notice.
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
