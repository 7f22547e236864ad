//! Replaces each `{% include "name" %}` by the text of that snippet.

use std::{borrow::Cow, ops::Range};

use minijinja::{
    machinery::{Span, Token, tokenize},
    syntax::SyntaxConfig,
};

use super::{
    super::{TemplateError, snippets::IncludeStack},
    check, scan,
};

struct Tag {
    at: Range<usize>,
    span: Span,
    /// The name; `None` if the tag does not contain only a name in quotes.
    name: Option<String>,
}

/// Returns the text with its snippets. The text and each snippet are checked separately, so that
/// errors have their own positions and no tag opened in one is closed in another.
pub(super) fn expand_includes<'t>(
    source: &'t str,
    included: &mut IncludeStack<'_>,
) -> Result<Cow<'t, str>, TemplateError> {
    let tags = include_tags(source);
    if tags.is_empty() {
        return Ok(source.into());
    }
    let mut standalone_range = source.as_bytes().to_vec();
    for tag in &tags {
        // Turns the tags into comments of the same length.
        standalone_range[tag.at.start + 1] = b'#';
        standalone_range[tag.at.end - 2] = b'#';
    }
    check(&String::from_utf8_lossy(&standalone_range))?;
    let (mut whole, mut copied) = (String::new(), 0);
    for tag in tags {
        let in_template = |message: String| scan::error_at(source, tag.span, message);
        let Some(name) = &tag.name else {
            return Err(in_template(
                "`include` requires exactly one quoted template name".into(),
            ));
        };
        let text = included.push_snippet(name).map_err(in_template)?;
        let own = expand_includes(text, included).and_then(|own| check(&own).map(|()| own));
        included.pop_snippet();
        let own = own.map_err(|error| in_template(IncludeStack::snippet_error(name, error)))?;
        let written = &source[tag.at.clone()];
        // The names that the snippet sets are visible only in the snippet.
        let (before, after) = (
            if written.starts_with("{%-") {
                "{%- with %}"
            } else {
                "{% with %}"
            },
            if written.ends_with("-%}") {
                "{% endwith -%}"
            } else {
                "{% endwith %}"
            },
        );
        whole.push_str(&source[copied..tag.at.start]);
        for part in [before, &own, after] {
            whole.push_str(part);
        }
        copied = tag.at.end;
    }
    whole.push_str(&source[copied..]);
    Ok(whole.into())
}

fn include_tags(source: &str) -> Vec<Tag> {
    let tokens = tokenize(source, false, SyntaxConfig::default());
    // The parser reports the error at which the scan stops.
    let tokens: Vec<_> = tokens.map_while(Result::ok).collect();
    let starts = tokens.windows(2).enumerate();
    let starts = starts
        .filter(|(_, it)| matches!(it, [(Token::BlockStart, _), (Token::Ident("include"), _)]));
    let tags = starts.filter_map(|(at, _)| {
        let rest = &tokens[at..];
        let end = rest
            .iter()
            .position(|(it, _)| matches!(it, Token::BlockEnd))?;
        let name = match &rest[2..end] {
            [(Token::Str(name), _)] => Some((*name).to_owned()),
            [(Token::String(name), _)] => Some(name.to_string()),
            _ => None,
        };
        let start = usize::try_from(rest[0].1.start_offset).ok()?;
        let end = usize::try_from(rest[end].1.end_offset).ok()?;
        let written = source.get(start..end)?;
        let is_tag = written.starts_with("{%") && written.ends_with("%}");
        is_tag.then(|| Tag {
            at: start..end,
            span: rest[1].1,
            name,
        })
    });
    tags.collect()
}
