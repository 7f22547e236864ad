//! Validates templates when they are saved.

use crate::{
    domain::{Snippets, TemplateLanguage},
    limits::{SNIPPET_BYTES_MAX, SNIPPET_NAME_MAX, SNIPPETS_BYTES_MAX, SNIPPETS_MAX},
    template::AnyTemplate,
    violation::Violation,
};

/// Returns the violations of a rule's message; the path is `message`.
pub fn check_message(
    language: TemplateLanguage,
    message: &str,
    snippets: &Snippets,
) -> Vec<Violation> {
    template_violation("message".into(), language, message, snippets)
        .into_iter()
        .collect()
}

/// Returns the violations of snippets: invalid names and sizes, and snippets that are valid in no
/// language. Paths start with `templates`.
pub fn check_snippets(snippets: &Snippets) -> Vec<Violation> {
    const FIELD: &str = "templates";
    let bytes: usize = snippets.values().map(String::len).sum();
    let count = snippets.len();
    if count > SNIPPETS_MAX {
        let template_violation =
            format!("has {count} templates; at most {SNIPPETS_MAX} are allowed");
        return vec![Violation::new(FIELD, template_violation)];
    }
    if bytes > SNIPPETS_BYTES_MAX {
        let template_violation =
            format!("is {bytes} bytes; at most {SNIPPETS_BYTES_MAX} are allowed");
        return vec![Violation::new(FIELD, template_violation)];
    }
    let violations = snippets.iter().filter_map(|(name, text)| {
        let shown: String = name.chars().take(SNIPPET_NAME_MAX).collect();
        let template_violation = snippet_error(snippets, name, text)?;
        Some(Violation::new(
            format!("{FIELD}[{shown}]"),
            template_violation,
        ))
    });
    violations.collect()
}

fn snippet_error(snippets: &Snippets, name: &str, text: &str) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > SNIPPET_NAME_MAX || !name.chars().all(is_word) {
        return Some(format!(
            "has an invalid name; expected 1 to {SNIPPET_NAME_MAX} letters, digits, `_` and `-`"
        ));
    }
    let bytes = text.len();
    if bytes > SNIPPET_BYTES_MAX {
        return Some(format!(
            "is {bytes} bytes; at most {SNIPPET_BYTES_MAX} are allowed"
        ));
    }
    let check = |language, text: &str| AnyTemplate::check(language, text, snippets);
    let as_jinja = check(TemplateLanguage::Jinja, text);
    let checked = match as_jinja {
        // Tags of Jinja are plain text in Mustache.
        Err(_) if !text.contains("{%") => check(TemplateLanguage::Mustache, text),
        checked => checked,
    };
    checked.err().map(|error| error.to_string())
}

/// Returns human-readable warnings about a rule's message: variables that no event can have.
pub fn message_warnings(
    language: TemplateLanguage,
    message: &str,
    snippets: &Snippets,
) -> Vec<String> {
    let unknown = AnyTemplate::parse_with(language, message, snippets);
    let unknown = unknown.map(|template| template.unknown_variables());
    let unknown = unknown.unwrap_or_default().into_iter();
    unknown
        .map(|name| format!("the rule's message: events have no variable `{name}`"))
        .collect()
}

pub fn template_violation(
    path: String,
    language: TemplateLanguage,
    source: &str,
    snippets: &Snippets,
) -> Option<Violation> {
    let error = AnyTemplate::check(language, source, snippets).err()?;
    Some(Violation::new(path, error.to_string()))
}
