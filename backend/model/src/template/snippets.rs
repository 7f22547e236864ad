//! Named templates that other templates include.

#[cfg(test)]
mod tests;

use bellwether_language::filter::nearest_field;

use crate::{
    domain::Snippets,
    limits::{SNIPPET_DEPTH_MAX, TEMPLATE_BYTES_MAX},
};

/// The snippets around the text that is being parsed.
pub(super) struct IncludeStack<'a> {
    snippets: &'a Snippets,
    /// Names, outermost first.
    around: Vec<&'a str>,
    left_bytes: usize,
}

impl<'a> IncludeStack<'a> {
    pub(super) fn new(template: &str, snippets: &'a Snippets) -> Self {
        Self {
            snippets,
            around: Vec::new(),
            left_bytes: TEMPLATE_BYTES_MAX.saturating_sub(template.len()),
        }
    }

    /// Returns the text of a snippet without its final line break, and makes it the innermost one
    /// until [`Self::pop_snippet`].
    ///
    /// # Errors
    /// Returns an error if there is no such snippet, or if a limit is exceeded.
    pub(super) fn push_snippet(&mut self, name: &str) -> Result<&'a str, String> {
        let Some((name, text)) = self.snippets.get_key_value(name) else {
            let likely = nearest_field(name, self.snippets.keys().map(String::as_str));
            let advice = match likely {
                Some((_, likely)) => format!("; did you mean `{likely}`?"),
                None if self.snippets.is_empty() => " here".into(),
                None => " in the setting `templates`".into(),
            };
            return Err(format!("there is no template `{name}` to include{advice}"));
        };
        if self.around.contains(&name.as_str()) {
            return Err(format!("the template `{name}` includes itself"));
        }
        if self.around.len() == SNIPPET_DEPTH_MAX {
            return Err(format!(
                "templates are included more than {SNIPPET_DEPTH_MAX} levels deep"
            ));
        }
        let Some(left_bytes) = self.left_bytes.checked_sub(text.len()) else {
            return Err(format!(
                "the template has more than {TEMPLATE_BYTES_MAX} bytes, including the templates that it includes"
            ));
        };
        self.left_bytes = left_bytes;
        self.around.push(name);
        let text = text.strip_suffix('\n').unwrap_or(text);
        Ok(text.strip_suffix('\r').unwrap_or(text))
    }

    pub(super) fn pop_snippet(&mut self) {
        self.around.pop();
    }

    pub(super) fn snippet_error(name: &str, error: impl std::fmt::Display) -> String {
        format!("in the template `{name}`: {error}")
    }
}
