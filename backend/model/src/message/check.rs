//! Validates templates when they are saved.

use crate::{domain::TemplateLanguage, template::AnyTemplate, violation::Violation};

/// Returns the violations of a rule's message; the path is `message`.
pub fn check_message(language: TemplateLanguage, message: &str) -> Vec<Violation> {
    fault("message".into(), language, message)
        .into_iter()
        .collect()
}

/// Returns warnings for people about a rule's message: variables that no event can have.
pub fn message_warnings(language: TemplateLanguage, message: &str) -> Vec<String> {
    let unknown = AnyTemplate::parse(language, message);
    let unknown = unknown.map(|template| template.unknown_variables());
    let unknown = unknown.unwrap_or_default().into_iter();
    unknown
        .map(|name| format!("the rule's message: no event has a variable `{name}`"))
        .collect()
}

/// Returns the violation of the template at a path, if it is invalid.
pub fn fault(path: String, language: TemplateLanguage, source: &str) -> Option<Violation> {
    let error = AnyTemplate::check(language, source).err()?;
    Some(Violation::new(path, error.to_string()))
}
