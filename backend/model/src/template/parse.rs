//! Parses Mustache templates.

use super::{Part, Template, TemplateError, check_size, snippets::IncludeStack};
use crate::domain::{NO_SNIPPETS, Snippets};

const NESTING_MAX: usize = 32;
const NAME_BYTES_MAX: usize = 512;

impl Template {
    /// Parses a template that includes no other template. Line ends are kept. A line that contains
    /// only a section tag or a comment is removed.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::parse_with(text, &NO_SNIPPETS)
    }

    pub fn parse_with(text: &str, snippets: &Snippets) -> Result<Self, TemplateError> {
        check_size(text)?;
        Self::parse_nested(text, &mut IncludeStack::new(text, snippets))
    }

    fn parse_nested(text: &str, included: &mut IncludeStack<'_>) -> Result<Self, TemplateError> {
        let mut open = vec![OpenSection {
            name: "",
            at: 0,
            inverted: false,
            parts: Vec::new(),
        }];
        let mut rest_at = 0;
        while let Some(found) = text[rest_at..].find("{{") {
            let tag = Tag::read(text, rest_at + found)?;
            let (before_end, after_at) = match tag.kind {
                Kind::Variable | Kind::Raw | Kind::Partial => (tag.at, tag.end),
                _ => standalone_range(text, &tag, rest_at).unwrap_or((tag.at, tag.end)),
            };
            push_text(&mut open, &text[rest_at..before_end]);
            if tag.kind == Kind::Partial {
                let parts = tag.parse_snippet(included);
                let parts =
                    parts.map_err(|message| TemplateError::at_offset(text, tag.at, message))?;
                for part in parts {
                    push_part(&mut open, part);
                }
            } else {
                tag.add_to_template(text, &mut open)?;
            }
            rest_at = after_at;
        }
        push_text(&mut open, &text[rest_at..]);
        match (open.pop(), open.is_empty()) {
            (Some(outermost), true) => Ok(Self {
                parts: outermost.parts,
            }),
            (Some(section), false) => Err(TemplateError::at_offset(
                text,
                section.at,
                format!("section `{}` is not closed", section.name),
            )),
            (None, _) => Ok(Self { parts: Vec::new() }),
        }
    }
}

/// A section that is still open; the outermost is the template itself.
struct OpenSection<'a> {
    name: &'a str,
    at: usize,
    inverted: bool,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Variable,
    Raw,
    Section,
    Inverted,
    End,
    Comment,
    Partial,
}

struct Tag<'a> {
    kind: Kind,
    name: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Tag<'a> {
    fn read(text: &'a str, at: usize) -> Result<Self, TemplateError> {
        let rest = &text[at..];
        let sigil = rest.as_bytes().get(2).copied();
        let (kind, name_at, close) = match sigil {
            Some(b'{') => (Kind::Raw, 3, "}}}"),
            Some(b'&') => (Kind::Raw, 3, "}}"),
            Some(b'#') => (Kind::Section, 3, "}}"),
            Some(b'^') => (Kind::Inverted, 3, "}}"),
            Some(b'/') => (Kind::End, 3, "}}"),
            Some(b'!') => (Kind::Comment, 3, "}}"),
            Some(b'>') => (Kind::Partial, 3, "}}"),
            Some(b'=') => {
                return Err(TemplateError::at_offset(
                    text,
                    at,
                    "custom delimiters are not allowed",
                ));
            }
            _ => (Kind::Variable, 2, "}}"),
        };
        let Some(length) = rest[name_at..].find(close) else {
            return Err(TemplateError::at_offset(
                text,
                at,
                format!("the tag is not closed: `{close}` is missing"),
            ));
        };
        let name = rest[name_at..name_at + length].trim();
        let tag = Self {
            kind,
            name,
            at,
            end: at + name_at + length + close.len(),
        };
        if kind != Kind::Comment {
            tag.check_name(text)?;
        }
        Ok(tag)
    }

    fn check_name(&self, text: &str) -> Result<(), TemplateError> {
        if self.name.is_empty() {
            return Err(TemplateError::at_offset(
                text,
                self.at,
                "the tag has no variable name",
            ));
        }
        if self.name.len() > NAME_BYTES_MAX {
            let bytes = self.name.len();
            let message = format!("the tag's name is {bytes} bytes; the limit is {NAME_BYTES_MAX}");
            return Err(TemplateError::at_offset(text, self.at, message));
        }
        let wrong = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '{' | '}');
        if self.name.contains(wrong) {
            let message = format!(
                "`{}` is not a valid variable name",
                self.name.escape_debug()
            );
            return Err(TemplateError::at_offset(text, self.at, message));
        }
        Ok(())
    }

    fn parse_snippet(&self, included: &mut IncludeStack<'_>) -> Result<Vec<Part>, String> {
        let text = included.push_snippet(self.name)?;
        let snippet = Template::parse_nested(text, included);
        included.pop_snippet();
        let snippet = snippet.map_err(|error| IncludeStack::snippet_error(self.name, error))?;
        Ok(snippet.parts)
    }

    fn add_to_template(
        &self,
        text: &str,
        open: &mut Vec<OpenSection<'a>>,
    ) -> Result<(), TemplateError> {
        match self.kind {
            Kind::Comment | Kind::Partial => {}
            Kind::Variable | Kind::Raw => {
                let raw = self.kind == Kind::Raw;
                push_part(
                    open,
                    Part::Variable {
                        name: self.name.to_owned(),
                        raw,
                    },
                );
            }
            Kind::Section | Kind::Inverted => {
                if open.len() > NESTING_MAX {
                    let message = format!("sections are nested more than {NESTING_MAX} deep");
                    return Err(TemplateError::at_offset(text, self.at, message));
                }
                let inverted = self.kind == Kind::Inverted;
                open.push(OpenSection {
                    name: self.name,
                    at: self.at,
                    inverted,
                    parts: Vec::new(),
                });
            }
            Kind::End => match open.pop() {
                Some(section) if !open.is_empty() && section.name == self.name => {
                    let OpenSection {
                        name,
                        inverted,
                        parts,
                        ..
                    } = section;
                    push_part(
                        open,
                        Part::Section {
                            name: name.to_owned(),
                            inverted,
                            parts,
                        },
                    );
                }
                Some(section) if !open.is_empty() => {
                    let message = format!(
                        "section `{}` ends here, but `{}` is open",
                        self.name, section.name
                    );
                    return Err(TemplateError::at_offset(text, self.at, message));
                }
                _ => {
                    let message = format!("section `{}` ends here but was never opened", self.name);
                    return Err(TemplateError::at_offset(text, self.at, message));
                }
            },
        }
        Ok(())
    }
}

fn push_part(open: &mut [OpenSection<'_>], part: Part) {
    if let Some(innermost) = open.last_mut() {
        innermost.parts.push(part);
    }
}

fn push_text(open: &mut [OpenSection<'_>], text: &str) {
    if !text.is_empty() {
        push_part(open, Part::Text(text.to_owned()));
    }
}

/// Returns the start of the line and of the next one if a tag is alone on its line.
fn standalone_range(text: &str, tag: &Tag<'_>, earliest: usize) -> Option<(usize, usize)> {
    // Only blanks are scanned, since one line may contain very many tags.
    let is_blank = |c: char| matches!(c, ' ' | '\t');
    let line_at = text[..tag.at].trim_end_matches(is_blank).len();
    // An earlier tag used the start of the line, so this one is not alone.
    if line_at < earliest || !(line_at == 0 || text[..line_at].ends_with('\n')) {
        return None;
    }
    let rest = text[tag.end..].trim_start_matches(is_blank);
    let line_end = rest.trim_start_matches('\r');
    let after = match line_end.strip_prefix('\n') {
        Some(after) => after,
        None if line_end.is_empty() => "",
        None => return None,
    };
    Some((line_at, text.len() - after.len()))
}
