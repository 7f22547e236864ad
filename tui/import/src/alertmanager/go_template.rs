//! Converts simple Go templates of Alertmanager to this service's templates.
//!
//! A template with any other construct is not converted.

mod expression;
mod lexer;

use serde_json::{Value, json};

use self::{
    expression::{Expression, ExpressionKind, Scope, list_expression, parse_pipeline},
    lexer::{Segment, Token, split_segments, tokenize},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Mustache,
    Jinja,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    Text,
    /// Inside a JSON string, whose literal text is escaped.
    JsonString,
}

enum Block {
    If,
    For,
}

struct Converter {
    language: Language,
    context: Context,
    output: String,
    scopes: Vec<(Block, Scope)>,
    loops: usize,
}

pub(super) fn convert_text(text: &str, language: Language) -> Result<String, String> {
    convert(text, language, Context::Text)
}

pub(super) fn convert_json_string(text: &str, language: Language) -> Result<String, String> {
    Ok(format!(
        "\"{}\"",
        convert(text, language, Context::JsonString)?
    ))
}

/// Converts a tree whose strings are templates to a Jinja template for a JSON document.
pub(super) fn convert_json(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => {
            if let Some(json) = json_action(text)? {
                return Ok(json);
            }
            // A text that renders to an object or a list is sent as such.
            if looks_like_json(text) {
                convert_text(text, Language::Jinja)
            } else {
                convert_json_string(text, Language::Jinja)
            }
        }
        Value::Array(items) => {
            let items: Result<Vec<_>, _> = items.iter().map(convert_json).collect();
            Ok(format!("[{}]", items?.join(", ")))
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                let name = convert_json_string(name, Language::Jinja)?;
                Ok(format!("{name}: {}", convert_json(value)?))
            });
            let fields: Result<Vec<_>, String> = fields.collect();
            // A space keeps the braces of nested objects apart from those of placeholders.
            Ok(format!("{{ {} }}", fields?.join(", ")))
        }
        other => Ok(other.to_string()),
    }
}

fn looks_like_json(text: &str) -> bool {
    let text = text.trim();
    let inner = |open, close| Some(text.strip_prefix(open)?.strip_suffix(close)?.trim_start());
    let is_object = inner('{', '}').is_some_and(|it| it.is_empty() || it.starts_with('"'));
    let is_list =
        inner('[', ']').is_some_and(|it| it.starts_with(['"', '[', '{']) && !it.starts_with("{{"));
    is_object || is_list
}

/// Converts a text that consists of one action whose result is JSON.
fn json_action(text: &str) -> Result<Option<String>, String> {
    let segments = split_segments(text)?;
    let [Segment::Action(action)] = &segments[..] else {
        return Ok(None);
    };
    let tokens = tokenize(action)?;
    if !tokens
        .iter()
        .any(|it| matches!(it, Token::Word(word) if word == "toJson"))
    {
        return Ok(None);
    }
    let found = parse_pipeline(&tokens, &Scope::root())?;
    let is_json = found.kind == ExpressionKind::Json;
    Ok(is_json.then(|| format!("{{{{ {} }}}}", found.text)))
}

fn convert(text: &str, language: Language, context: Context) -> Result<String, String> {
    let mut converter = Converter {
        language,
        context,
        output: String::new(),
        scopes: Vec::new(),
        loops: 0,
    };
    for segment in split_segments(text)? {
        match segment {
            Segment::Literal(text) => converter.add_literal(&text)?,
            Segment::Action(action) => converter.add_action(&action)?,
        }
    }
    match converter.scopes.len() {
        0 => Ok(converter.output),
        _ => Err("lacks an `end`".to_owned()),
    }
}

impl Converter {
    fn add_literal(&mut self, text: &str) -> Result<(), String> {
        if ["{%", "{#", "{{"].iter().any(|it| text.contains(it)) {
            return Err("contains a tag of Jinja".to_owned());
        }
        if self.context == Context::JsonString {
            let quoted = json!(text).to_string();
            self.output.push_str(&quoted[1..quoted.len() - 1]);
        } else {
            self.output.push_str(text);
        }
        Ok(())
    }

    fn add_action(&mut self, action: &str) -> Result<(), String> {
        let tokens = tokenize(action)?;
        let (first, rest) = match &tokens[..] {
            [] => return Ok(()),
            [Token::Word(word), rest @ ..] => (word.as_str(), rest),
            _ => ("", &tokens[..]),
        };
        if self.language == Language::Mustache {
            let found = self.parse(&tokens)?;
            if found.is_path() {
                return self.push(&format!("{{{{{}}}}}", found.text));
            }
            return Err("uses more than a field".to_owned());
        }
        match first {
            "if" => {
                let condition = self.condition(rest)?;
                self.open(Block::If, self.scope(), &format!("{{% if {condition} %}}"))
            }
            "with" => {
                let (names, rest) = split_assignment(rest)?;
                let found = self.parse(rest)?;
                let mut scope = self.scope();
                for name in names {
                    scope.variables.push((name, found.clone()));
                }
                let tag = format!("{{% if {} %}}", found.truth()?);
                scope.dot = found;
                self.open(Block::If, scope, &tag)
            }
            "range" => self.open_loop(rest),
            "else" => self.add_else(rest),
            "end" if rest.is_empty() => match self.scopes.pop() {
                Some((Block::If, _)) => self.push("{% endif %}"),
                Some((Block::For, _)) => self.push("{% endfor %}"),
                None => Err("has an `end` without a start".to_owned()),
            },
            "define" | "template" | "block" | "break" | "continue" => {
                Err(format!("uses `{first}`"))
            }
            _ if tokens.contains(&Token::Assign) => Err("sets a variable".to_owned()),
            _ => {
                let found = self.parse(&tokens)?;
                match found.kind {
                    ExpressionKind::Text | ExpressionKind::Number | ExpressionKind::Bool => {
                        self.push(&format!("{{{{ {} }}}}", found.text))
                    }
                    _ => Err(format!("inserts a value of several parts: `{action}`")),
                }
            }
        }
    }

    fn add_else(&mut self, rest: &[Token]) -> Result<(), String> {
        let Some((block, _)) = self.scopes.pop() else {
            return Err("has an `else` without a start".to_owned());
        };
        let tag = match (&block, rest) {
            (_, []) => "{% else %}".to_owned(),
            (Block::If, [Token::Word(word), rest @ ..]) if word == "if" => {
                format!("{{% elif {} %}}", self.condition(rest)?)
            }
            _ => return Err("has an unknown `else`".to_owned()),
        };
        self.open(block, self.scope(), &tag)
    }

    fn open_loop(&mut self, tokens: &[Token]) -> Result<(), String> {
        let (names, rest) = split_assignment(tokens)?;
        let found = self.parse(rest)?;
        self.loops += 1;
        let number = self.loops;
        let (list, dot) = list_expression(&found, number)?;
        let mut scope = self.scope();
        let target = if dot.kind == ExpressionKind::Pair {
            let (name, value) = (format!("name{number}"), format!("value{number}"));
            // A range over labels sets the name and the value.
            for (variable, text) in names.into_iter().zip([&name, &value]) {
                let text = Expression::new(ExpressionKind::Text, text);
                scope.variables.push((variable, text));
            }
            format!("{name}, {value}")
        } else {
            match &names[..] {
                [] => {}
                [name] => scope.variables.push((name.clone(), dot.clone())),
                [place, name] if place == "_" => {
                    scope.variables.push((name.clone(), dot.clone()));
                }
                _ => return Err("uses the number of an item".to_owned()),
            }
            dot.text.clone()
        };
        scope.dot = dot;
        let tag = format!("{{% for {target} in {list} %}}");
        self.open(Block::For, scope, &tag)
    }

    fn open(&mut self, block: Block, scope: Scope, tag: &str) -> Result<(), String> {
        const DEPTH_MAX: usize = 16;
        if self.scopes.len() == DEPTH_MAX {
            return Err(format!("is nested more than {DEPTH_MAX} levels"));
        }
        self.scopes.push((block, scope));
        self.push(tag)
    }

    fn push(&mut self, text: &str) -> Result<(), String> {
        if self.output.ends_with('{') {
            return Err("has a brace before an action".to_owned());
        }
        self.output.push_str(text);
        Ok(())
    }

    fn scope(&self) -> Scope {
        let last = self.scopes.last();
        last.map_or_else(Scope::root, |(_, scope)| scope.clone())
    }

    fn parse(&self, tokens: &[Token]) -> Result<Expression, String> {
        parse_pipeline(tokens, &self.scope())
    }

    fn condition(&self, tokens: &[Token]) -> Result<String, String> {
        if tokens.contains(&Token::Assign) {
            return Err("sets a variable".to_owned());
        }
        self.parse(tokens)?.truth()
    }
}

/// Splits `$a, $b := …` into the names and the rest.
fn split_assignment(tokens: &[Token]) -> Result<(Vec<String>, &[Token]), String> {
    let Some(at) = tokens.iter().position(|it| *it == Token::Assign) else {
        return Ok((Vec::new(), tokens));
    };
    let names = tokens[..at].iter().filter(|it| **it != Token::Comma);
    let names = names.map(|it| match it {
        Token::Path(name, fields) if name.len() > 1 && fields.is_empty() => {
            Ok(name[1..].to_owned())
        }
        _ => Err("has an unknown assignment".to_owned()),
    });
    Ok((names.collect::<Result<_, _>>()?, &tokens[at + 1..]))
}

#[cfg(test)]
mod tests;
