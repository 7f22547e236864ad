//! Limits the depth of tags and expressions in a Jinja template, by its tokens, before it is
//! parsed.

use minijinja::{
    machinery::{Span, Token, tokenize},
    syntax::SyntaxConfig,
};

use super::{super::TemplateError, filters::FILTERS};

/// Maximum nesting of tags; each `elif` counts as one.
const TAG_DEPTH_MAX: usize = 32;
/// Maximum nesting of brackets in an expression.
const LITERAL_DEPTH_MAX: usize = 16;
/// Maximum number of operators, filters and members in an expression, each of which is a level of
/// its tree.
const CHAIN_MAX: usize = 100;

const WORDS: [&str; 7] = ["and", "or", "not", "is", "in", "if", "else"];

/// Tags that are closed by another tag.
const OPENING: [&str; 5] = ["for", "if", "with", "filter", "autoescape"];

#[derive(Default)]
struct Nesting {
    /// The levels of each open tag: one for the tag, and one for each `elif`.
    tags: Vec<usize>,
    /// The operators of each open bracket since its last comma, outermost first; empty outside of
    /// tags.
    chains: Vec<usize>,
    /// Whether the tag is a `set` with a block as its value.
    sets_block: bool,
}

/// Refuses nesting too deep for the stack, and unknown filters.
pub(super) fn check(source: &str) -> Result<(), TemplateError> {
    let mut around = Nesting::default();
    let mut before = None;
    for token in tokenize(source, false, SyntaxConfig::default()) {
        // The parser stops here as well and reports the reason.
        let Ok((token, span)) = token else {
            break;
        };
        let message = around
            .process_token(&token, before.as_ref())
            .or_else(|| unknown_filter(&token, before.as_ref()));
        if let Some(message) = message {
            return Err(error_at(source, span, message));
        }
        before = Some(token);
    }
    Ok(())
}

pub(super) fn literal_patterns(source: &str) -> Vec<(Span, String)> {
    let tokens = tokenize(source, false, SyntaxConfig::default());
    let tokens: Vec<_> = tokens.map_while(Result::ok).collect();
    let found = tokens.windows(4).filter_map(|it| {
        let [(first, _), (second, _), (pattern, span), (last, _)] = it else {
            return None;
        };
        let takes_pattern = match (first, second) {
            (Token::Ident("matching"), Token::ParenOpen)
            | (Token::Str("matching"), Token::Comma) => matches!(last, Token::ParenClose),
            (Token::Ident("regex_replace"), Token::ParenOpen) => matches!(last, Token::Comma),
            _ => false,
        };
        match pattern {
            Token::Str(text) if takes_pattern => Some((*span, (*text).to_owned())),
            Token::String(text) if takes_pattern => Some((*span, text.to_string())),
            _ => None,
        }
    });
    found.collect()
}

pub(super) fn error_at(source: &str, span: Span, message: impl Into<String>) -> TemplateError {
    let offset = usize::try_from(span.start_offset).unwrap_or_default();
    let offset = if source.is_char_boundary(offset) {
        offset
    } else {
        0
    };
    TemplateError::at_offset(source, offset, message)
}

fn unknown_filter(token: &Token<'_>, before: Option<&Token<'_>>) -> Option<String> {
    match (before, token) {
        (Some(Token::Pipe), Token::Ident(word)) if !FILTERS.contains(word) => {
            Some(format!("unknown filter `{word}`"))
        }
        _ => None,
    }
}

impl Nesting {
    /// Processes a token; returns an error if it is nested too deeply.
    fn process_token(&mut self, token: &Token<'_>, before: Option<&Token<'_>>) -> Option<String> {
        match token {
            Token::VariableStart | Token::BlockStart => self.chains = vec![0],
            Token::BlockEnd if std::mem::take(&mut self.sets_block) => {
                self.tags.push(1);
                return self.depth_error();
            }
            Token::VariableEnd | Token::BlockEnd => self.chains.clear(),
            Token::Ident(word) if matches!(before, Some(Token::BlockStart)) => {
                return self.process_tag(word);
            }
            Token::Assign if self.chains.len() == 1 => self.sets_block = false,
            Token::BracketOpen | Token::ParenOpen | Token::BraceOpen => {
                if let Some(chain) = self.chains.last_mut() {
                    *chain += 1;
                }
                self.chains.push(0);
                if self.chains.len() > LITERAL_DEPTH_MAX + 1 {
                    return Some(format!(
                        "brackets are nested more than {LITERAL_DEPTH_MAX} levels deep"
                    ));
                }
            }
            Token::BracketClose | Token::ParenClose | Token::BraceClose => {
                self.chains.pop();
            }
            Token::Comma | Token::Colon => {
                if let Some(chain) = self.chains.last_mut() {
                    *chain = 0;
                }
            }
            _ => {}
        }
        if is_operator(token)
            && let Some(chain) = self.chains.last_mut()
        {
            *chain += 1;
        }
        let chained: usize = self.chains.iter().sum();
        (chained > CHAIN_MAX).then(|| {
            format!("an expression chains more than {CHAIN_MAX} operators, filters and members")
        })
    }

    fn process_tag(&mut self, word: &str) -> Option<String> {
        match word {
            "macro" | "call" => {
                return Some(format!(
                    "`{word}` is not supported; write the text where it is used, or loop over a list \
                     such as `[(\"Name\", event.name), (\"Count\", event.count)]`"
                ));
            }
            "elif" => {
                if let Some(levels) = self.tags.last_mut() {
                    *levels += 1;
                }
            }
            "set" => self.sets_block = true,
            word if OPENING.contains(&word) => self.tags.push(1),
            word if word.starts_with("end") => drop(self.tags.pop()),
            _ => {}
        }
        self.depth_error()
    }

    fn depth_error(&self) -> Option<String> {
        let levels: usize = self.tags.iter().sum();
        (levels > TAG_DEPTH_MAX).then(|| {
            format!(
                "tags are nested deeper than {TAG_DEPTH_MAX} levels (each `elif` counts as one); \
                 use a map such as `{{\"critical\": \"P1\"}}[event.severity]|default(\"P3\")`"
            )
        })
    }
}

/// Whether a token makes an expression one level deeper.
fn is_operator(token: &Token<'_>) -> bool {
    match token {
        Token::Ident(word) => WORDS.contains(word),
        Token::Plus
        | Token::Minus
        | Token::Mul
        | Token::Div
        | Token::FloorDiv
        | Token::Pow
        | Token::Mod
        | Token::Dot
        | Token::Tilde
        | Token::Pipe
        | Token::Eq
        | Token::Ne
        | Token::Gt
        | Token::Gte
        | Token::Lt
        | Token::Lte => true,
        _ => false,
    }
}
