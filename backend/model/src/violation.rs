//! What is wrong with one field of a request.

/// One violated field, in the spelling of the JSON interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field, such as `type.webhook.url` or `triggerNames[2]`.
    pub field: String,
    /// What is wrong and what would be right: a lower-case fragment without a full stop.
    pub description: String,
}

impl Violation {
    /// Reports what is wrong with a field.
    pub fn new(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            description: description.into(),
        }
    }
}
