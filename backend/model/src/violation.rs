//! Violations: invalid fields of a request.

/// An invalid field, named as in the JSON interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field, such as `type.webhook.url` or `triggerNames[2]`.
    pub field: String,
    /// The problem and what would be valid: a lower-case fragment without a full stop.
    pub description: String,
}

impl Violation {
    pub fn new(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            description: description.into(),
        }
    }
}
