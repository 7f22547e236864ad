//! Headers with variables in their values.

use super::is_template;
use crate::{
    domain::{
        TemplateLanguage,
        destination::{Header, HeaderValue},
    },
    limits::HEADER_VALUE_BYTES_MAX,
    message::{Facts, cut},
    template::{AnyTemplate, Budget, Escape, Variables},
};

const SHOWN_CHARACTERS_MAX: usize = 100;

pub(super) fn header_path(header: &Header) -> String {
    let name: String = header.name.chars().take(SHOWN_CHARACTERS_MAX).collect();
    format!("headers[{name}]")
}

pub(super) fn header_text(header: &Header) -> &str {
    match &header.value {
        HeaderValue::Plain(text) => text,
        HeaderValue::Secret(secret) => secret.reveal(),
    }
}

/// Renders the value with empty variables; texts that are not templates are returned unchanged.
pub(super) fn render_without_variables(language: TemplateLanguage, text: &str) -> String {
    let template = AnyTemplate::parse(language, text).ok();
    let blank = template.filter(|_| is_template(text)).map(|it| {
        let nothing = Variables::default();
        it.render(&nothing, Escape::Header, &mut Budget::without_variables())
    });
    blank
        .and_then(Result::ok)
        .unwrap_or_else(|| text.to_owned())
}

/// Renders the value for a message, on one line; `None` if it is not a template.
pub(super) fn render_value(header: &Header, facts: &mut Facts<'_>) -> Option<String> {
    let text = header_text(header);
    if !is_template(text) {
        return None;
    }
    let what = format!("the webhook's header `{}`", header.name);
    let filled = facts.fill_part(&what, text, Escape::Header);
    let filled = filled.unwrap_or_else(|| render_without_variables(facts.language, text));
    // Templates contain no line breaks, but values may.
    let line = filled.replace(char::is_control, " ");
    let room = HEADER_VALUE_BYTES_MAX.saturating_sub(header.name.len());
    Some(cut::truncate_bytes(line.trim(), room))
}
