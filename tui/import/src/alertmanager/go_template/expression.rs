//! Converts pipelines of Go templates to expressions.

use serde_json::json;

use super::lexer::Token;

const DEPTH_MAX: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpressionKind {
    Root,
    /// A list of alerts: all, or only those in a state.
    Alerts(AlertState),
    Alert,
    Labels,
    GroupLabels,
    Annotations,
    Pairs,
    Pair,
    List,
    Text,
    Number,
    Bool,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AlertState {
    Any,
    Firing,
    Resolved,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expression {
    pub(super) kind: ExpressionKind,
    /// For an alert, and its labels and annotations, the variable of the event; for a pair, the
    /// variables of the name and the value.
    pub(super) text: String,
}

#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) dot: Expression,
    pub(super) variables: Vec<(String, Expression)>,
}

impl Scope {
    pub(super) fn root() -> Self {
        Self {
            dot: Expression::root(),
            variables: Vec::new(),
        }
    }
}

impl Expression {
    pub(super) fn new(kind: ExpressionKind, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { kind, text }
    }

    fn text(text: impl Into<String>) -> Self {
        Self::new(ExpressionKind::Text, text)
    }

    fn root() -> Self {
        Self::new(ExpressionKind::Root, "event")
    }

    pub(super) fn is_path(&self) -> bool {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        self.kind == ExpressionKind::Text && self.text.chars().all(is_name)
    }

    pub(super) fn truth(&self) -> Result<String, String> {
        match self.kind {
            ExpressionKind::Alerts(state) => Ok(count_expression(state)),
            ExpressionKind::Labels => Ok(format!("{}.dimensions", self.text)),
            ExpressionKind::Text
            | ExpressionKind::Number
            | ExpressionKind::Bool
            | ExpressionKind::List => Ok(self.text.clone()),
            _ => Err("tests a value of several parts".to_owned()),
        }
    }

    fn field(&self, name: &str) -> Result<Self, String> {
        let of = &self.text;
        let unknown = || Err(format!("uses `.{name}`"));
        Ok(match self.kind {
            ExpressionKind::Root => match name {
                "Receiver" => Self::text("destination.name"),
                "Status" => Self::text("(\"resolved\" if is_over else \"firing\")"),
                "Alerts" => Self::new(ExpressionKind::Alerts(AlertState::Any), ""),
                "GroupLabels" => Self::new(ExpressionKind::GroupLabels, "event"),
                "CommonLabels" => Self::new(ExpressionKind::Labels, "event"),
                "CommonAnnotations" => Self::new(ExpressionKind::Annotations, "event"),
                "ExternalURL" => Self::text("url"),
                "GroupKey" => Self::text("thread_id"),
                _ => return unknown(),
            },
            ExpressionKind::Alerts(AlertState::Any) => match name {
                "Firing" => Self::new(ExpressionKind::Alerts(AlertState::Firing), ""),
                "Resolved" => Self::new(ExpressionKind::Alerts(AlertState::Resolved), ""),
                _ => return unknown(),
            },
            ExpressionKind::Alert => match name {
                "Status" => Self::text(format!("(\"resolved\" if {of}.is_closed else \"firing\")")),
                "Labels" => Self::new(ExpressionKind::Labels, of),
                "Annotations" => Self::new(ExpressionKind::Annotations, of),
                "StartsAt" => Self::text(format!("{of}.start_time")),
                "GeneratorURL" => Self::text(format!("{of}.metadata.generatorURL")),
                "Fingerprint" => Self::text(format!("{of}.id")),
                _ => return unknown(),
            },
            ExpressionKind::Labels | ExpressionKind::GroupLabels => {
                let all = labels_expression(self);
                match name {
                    "SortedPairs" => Self::new(ExpressionKind::Pairs, all),
                    "Names" => Self::new(ExpressionKind::List, format!("{all}.keys()")),
                    "Values" => Self::new(ExpressionKind::List, format!("{all}.values()")),
                    "Remove" => return unknown(),
                    label => label_expression(of, label),
                }
            }
            ExpressionKind::Annotations => match name {
                "summary" => Self::text(format!("{of}.summary")),
                "description" => Self::text(format!("{of}.body")),
                "SortedPairs" | "Names" | "Values" | "Remove" => return unknown(),
                name => Self::text(member(&format!("{of}.metadata.annotations"), name)),
            },
            ExpressionKind::Pair => {
                let (key, value) = of.split_once(", ").unwrap_or_default();
                match name {
                    "Name" => Self::text(key),
                    "Value" => Self::text(value),
                    _ => return unknown(),
                }
            }
            _ => return unknown(),
        })
    }
}

fn member(of: &str, name: &str) -> String {
    let mut letters = name.chars();
    let is_first = letters.next().is_some_and(|c| c.is_ascii_alphabetic());
    if is_first && letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        format!("{of}.{name}")
    } else {
        format!("{of}[{}]", json!(name))
    }
}

/// Returns a label of an alert's event, as received.
fn label_expression(of: &str, label: &str) -> Expression {
    Expression::text(match label {
        "alertname" => format!("{of}.name"),
        "severity" => format!("({of}.dimensions.severity|default({of}.severity, true))"),
        "name" => format!("{of}.dimensions.label_name"),
        label => member(&format!("{of}.dimensions"), label),
    })
}

fn labels_expression(labels: &Expression) -> String {
    let of = &labels.text;
    match labels.kind {
        ExpressionKind::GroupLabels => "(group.by if group else event.dimensions)".to_owned(),
        _ => format!("{of}.dimensions"),
    }
}

fn count_expression(state: AlertState) -> String {
    match state {
        AlertState::Any => "(group.count if group else 1)",
        AlertState::Firing => "(group.open_count if group else (0 if event.is_closed else 1))",
        AlertState::Resolved => "(group.closed_count if group else (1 if event.is_closed else 0))",
    }
    .to_owned()
}

/// Returns the list of a loop, and its item.
pub(super) fn list_expression(
    of: &Expression,
    number: usize,
) -> Result<(String, Expression), String> {
    let pair = Expression::new(ExpressionKind::Pair, format!("name{number}, value{number}"));
    Ok(match of.kind {
        ExpressionKind::Alerts(state) => {
            let filter = match state {
                AlertState::Any => "",
                AlertState::Firing => "|rejectattr(\"is_closed\")",
                AlertState::Resolved => "|selectattr(\"is_closed\")",
            };
            let list = format!("group.events|default([event], true){filter}");
            let item = Expression::new(ExpressionKind::Alert, format!("alert{number}"));
            (list, item)
        }
        ExpressionKind::Pairs => (format!("{}|items", of.text), pair),
        ExpressionKind::Labels | ExpressionKind::GroupLabels => {
            (format!("{}|items", labels_expression(of)), pair)
        }
        ExpressionKind::List => (of.text.clone(), Expression::text(format!("item{number}"))),
        _ => return Err("has a loop over something other than alerts and labels".to_owned()),
    })
}

pub(super) fn parse_pipeline(tokens: &[Token], scope: &Scope) -> Result<Expression, String> {
    let mut parser = Parser {
        tokens,
        scope,
        depth: 0,
    };
    let found = parser.pipeline()?;
    match parser.tokens {
        [] => Ok(found),
        _ => Err("has an unknown expression".to_owned()),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    scope: &'a Scope,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Option<&'a Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn pipeline(&mut self) -> Result<Expression, String> {
        let mut piped = None;
        loop {
            let found = self.command(piped.take())?;
            if self.tokens.first() != Some(&Token::Pipe) {
                return Ok(found);
            }
            self.next();
            piped = Some(found);
        }
    }

    /// Converts an operand, or a function with its arguments, of which the piped one is the last.
    fn command(&mut self, piped: Option<Expression>) -> Result<Expression, String> {
        if let Some(Token::Word(name)) = self.tokens.first()
            && !["true", "false"].contains(&name.as_str())
        {
            self.next();
            let mut arguments = Vec::new();
            while !matches!(
                self.tokens.first(),
                None | Some(Token::Pipe | Token::Close | Token::Comma)
            ) {
                arguments.push(self.operand()?);
            }
            arguments.extend(piped);
            return call(name, &arguments);
        }
        match piped {
            None => self.operand(),
            Some(_) => Err("pipes into a value".to_owned()),
        }
    }

    fn operand(&mut self) -> Result<Expression, String> {
        let token = self.next().ok_or("lacks a value")?;
        Ok(match token {
            Token::Text(text) => Expression::text(json!(text).to_string()),
            Token::Number(number) => Expression::new(ExpressionKind::Number, number),
            Token::Word(word) if word == "true" || word == "false" => {
                Expression::new(ExpressionKind::Bool, word)
            }
            // A function without arguments, as an argument.
            Token::Word(word) => call(word, &[])?,
            Token::Path(name, fields) => {
                let start = match name.as_str() {
                    "." => self.scope.dot.clone(),
                    "$" => Expression::root(),
                    name => {
                        let mut variables = self.scope.variables.iter().rev();
                        let found = variables.find(|(known, _)| name.get(1..) == Some(known));
                        let (_, found) = found.ok_or_else(|| format!("uses `{name}`"))?;
                        found.clone()
                    }
                };
                follow(start, fields)?
            }
            Token::Open => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(format!("has more than {DEPTH_MAX} nested parentheses"));
                }
                let found = self.pipeline()?;
                if self.next() != Some(&Token::Close) {
                    return Err("lacks a `)`".to_owned());
                }
                self.depth -= 1;
                match self.tokens.first() {
                    Some(Token::Path(name, fields)) if name.is_empty() => {
                        self.next();
                        follow(found, fields)?
                    }
                    _ => found,
                }
            }
            _ => return Err("has an unknown expression".to_owned()),
        })
    }
}

fn follow(start: Expression, fields: &[String]) -> Result<Expression, String> {
    fields.iter().try_fold(start, |of, name| of.field(name))
}

fn is_scalar(it: &Expression) -> bool {
    matches!(
        it.kind,
        ExpressionKind::Text | ExpressionKind::Number | ExpressionKind::Bool
    )
}

fn call(name: &str, arguments: &[Expression]) -> Result<Expression, String> {
    let found = call_filter(name, arguments)
        .or_else(|| call_condition(name, arguments))
        .or_else(|| call_collection(name, arguments));
    found.ok_or_else(|| format!("uses `{name}`"))
}

fn call_filter(name: &str, arguments: &[Expression]) -> Option<Expression> {
    if !arguments.iter().all(is_scalar) {
        return None;
    }
    let filter = match (name, arguments) {
        ("toUpper", [_]) => "upper".to_owned(),
        ("toLower", [_]) => "lower".to_owned(),
        ("trimSpace", [_]) => "trim".to_owned(),
        ("humanize1024", [_]) => "humanizeBytes".to_owned(),
        ("urlquery", [_]) => "urlencode".to_owned(),
        ("title" | "humanize" | "humanizeDuration" | "humanizePercentage", [_]) => name.to_owned(),
        ("reReplaceAll", [pattern, new, _]) => {
            format!("regex_replace({}, {})", pattern.text, new.text)
        }
        ("safeHtml" | "safeUrl" | "print", [it]) => return Some(it.clone()),
        ("routeLabels", [_]) => return Some(Expression::text("\"\"")),
        ("printf", [format, values @ ..]) => return format_values(format, values),
        _ => return None,
    };
    let text = &arguments.last()?.text;
    Some(Expression::text(format!("{text}|{filter}")))
}

fn format_values(format: &Expression, values: &[Expression]) -> Option<Expression> {
    let format: String = serde_json::from_str(&format.text).ok()?;
    let format = format.replace("%v", "%s");
    let simple = format.matches("%s").count() + format.matches("%d").count();
    if format.matches('%').count() != simple || simple != values.len() {
        return None;
    }
    let values: Vec<_> = values.iter().map(|it| it.text.as_str()).collect();
    let text = format!("{}|format({})", json!(format), values.join(", "));
    Some(Expression::text(text))
}

fn call_condition(name: &str, arguments: &[Expression]) -> Option<Expression> {
    let comparison = |sign: &str| {
        let (left, rights) = arguments.split_first()?;
        let each = rights
            .iter()
            .map(|right| format!("{} {sign} {}", left.text, right.text));
        let each: Vec<_> = each.collect();
        let is_valid = arguments.iter().all(is_scalar) && !each.is_empty();
        // Only `eq` compares with several values.
        (is_valid && (each.len() == 1 || name == "eq")).then(|| each.join(" or "))
    };
    let text = match (name, arguments) {
        ("eq", _) => comparison("==")?,
        ("ne", _) => comparison("!=")?,
        ("lt", _) => comparison("<")?,
        ("le", _) => comparison("<=")?,
        ("gt", _) => comparison(">")?,
        ("ge", _) => comparison(">=")?,
        ("and" | "or", [_, _, ..]) => {
            let parts = arguments.iter().map(|it| it.truth().ok());
            let parts: Option<Vec<_>> = parts.collect();
            parts?.join(&format!(" {name} "))
        }
        ("not", [it]) => format!("not {}", it.truth().ok()?),
        ("match", [pattern, it]) if is_scalar(it) => {
            format!("{} is matching({})", it.text, pattern.text)
        }
        _ => return None,
    };
    Some(Expression::new(ExpressionKind::Bool, format!("({text})")))
}

fn call_collection(name: &str, arguments: &[Expression]) -> Option<Expression> {
    match (name, arguments) {
        ("join", [separator, list]) if list.kind == ExpressionKind::List => {
            let text = format!("{}|join({})", list.text, separator.text);
            Some(Expression::text(text))
        }
        ("toJson", [it]) => {
            let value = match it.kind {
                ExpressionKind::Labels | ExpressionKind::GroupLabels => labels_expression(it),
                _ if is_scalar(it) => it.text.clone(),
                _ => return None,
            };
            let text = format!("{value}|json");
            Some(Expression::new(ExpressionKind::Json, text))
        }
        ("len", [it]) => {
            let text = match it.kind {
                ExpressionKind::Alerts(state) => count_expression(state),
                ExpressionKind::Text | ExpressionKind::List => format!("{}|length", it.text),
                ExpressionKind::Labels | ExpressionKind::GroupLabels => {
                    format!("{}|length", labels_expression(it))
                }
                _ => return None,
            };
            Some(Expression::new(ExpressionKind::Number, text))
        }
        ("index", [of, key]) => match of.kind {
            ExpressionKind::Alerts(AlertState::Any) if key.text == "0" => {
                Some(Expression::new(ExpressionKind::Alert, "event"))
            }
            ExpressionKind::Labels | ExpressionKind::GroupLabels | ExpressionKind::Annotations => {
                of.field(&serde_json::from_str::<String>(&key.text).ok()?)
                    .ok()
            }
            _ => None,
        },
        _ => None,
    }
}
