//! What is wrong with templates, told when they are saved.

use crate::{error::Violation, template::Template};

/// What is wrong with a rule's message; the path is `message`.
pub fn check_message(message: &str) -> Vec<Violation> {
    fault("message".into(), message).into_iter().collect()
}

/// What a rule's message will not show, for people: variables that no event can have.
pub fn message_warnings(message: &str) -> Vec<String> {
    let unknown = Template::parse(message).map(|template| template.unknown_variables());
    let unknown = unknown.unwrap_or_default().into_iter();
    unknown
        .map(|name| format!("the rule's message: no event has a variable `{name}`"))
        .collect()
}

/// What is wrong with a template that stands at that path.
pub(crate) fn fault(path: String, source: &str) -> Option<Violation> {
    let error = Template::parse(source).err()?;
    Some(Violation::new(path, error.to_string()))
}
