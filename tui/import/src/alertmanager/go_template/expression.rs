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

/// An expression in the new language.
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

    /// Whether the expression only names a variable.
    pub(super) fn is_path(&self) -> bool {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        self.kind == ExpressionKind::Text && self.text.chars().all(is_name)
    }

    /// Returns a condition that is true if the value is not empty.
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

fn call(name: &str, arguments: &[Expression]) -> Result<Expression, String> {
    let unknown = || Err(format!("uses `{name}`"));
    let is_scalar = |it: &Expression| {
        matches!(
            it.kind,
            ExpressionKind::Text | ExpressionKind::Number | ExpressionKind::Bool
        )
    };
    let filter = |it: &Expression, filter: &str| {
        if is_scalar(it) {
            Ok(Expression::text(format!("{}|{filter}", it.text)))
        } else {
            Err(format!("uses `{name}`"))
        }
    };
    let number = |text: String| Ok(Expression::new(ExpressionKind::Number, text));
    let truth = |text: String| Ok(Expression::new(ExpressionKind::Bool, text));
    match (name, arguments) {
        ("toUpper", [it]) => filter(it, "upper"),
        ("toLower", [it]) => filter(it, "lower"),
        ("title", [it]) => filter(it, "title"),
        ("trimSpace", [it]) => filter(it, "trim"),
        ("humanize", [it]) => filter(it, "humanize"),
        ("humanize1024", [it]) => filter(it, "humanizeBytes"),
        ("humanizeDuration", [it]) => filter(it, "humanizeDuration"),
        ("humanizePercentage", [it]) => filter(it, "humanizePercentage"),
        ("urlquery", [it]) => filter(it, "urlencode"),
        ("safeHtml" | "safeUrl" | "print", [it]) if is_scalar(it) => Ok(it.clone()),
        ("reReplaceAll", [pattern, new, it]) => filter(
            it,
            &format!("regex_replace({}, {})", pattern.text, new.text),
        ),
        ("match", [pattern, it]) if is_scalar(it) => {
            truth(format!("({} is matching({}))", it.text, pattern.text))
        }
        ("join", [separator, list]) if list.kind == ExpressionKind::List => {
            let text = format!("{}|join({})", list.text, separator.text);
            Ok(Expression::text(text))
        }
        ("routeLabels", [_]) => Ok(Expression::text("\"\"")),
        ("toJson", [it]) => {
            let value = match it.kind {
                ExpressionKind::Labels | ExpressionKind::GroupLabels => labels_expression(it),
                ExpressionKind::Text | ExpressionKind::Number | ExpressionKind::Bool => {
                    it.text.clone()
                }
                _ => return unknown(),
            };
            Ok(Expression::new(
                ExpressionKind::Json,
                format!("{value}|json"),
            ))
        }
        ("len", [it]) => match it.kind {
            ExpressionKind::Alerts(state) => number(count_expression(state)),
            ExpressionKind::Text | ExpressionKind::List => number(format!("{}|length", it.text)),
            ExpressionKind::Labels | ExpressionKind::GroupLabels => {
                number(format!("{}|length", labels_expression(it)))
            }
            _ => unknown(),
        },
        ("index", [of, key]) => match (of.kind, key.kind) {
            (ExpressionKind::Alerts(AlertState::Any), ExpressionKind::Number)
                if key.text == "0" =>
            {
                Ok(Expression::new(ExpressionKind::Alert, "event"))
            }
            (
                ExpressionKind::Labels | ExpressionKind::GroupLabels | ExpressionKind::Annotations,
                ExpressionKind::Text,
            ) => match serde_json::from_str::<String>(&key.text) {
                Ok(key) => of.field(&key),
                Err(_not_constant) => unknown(),
            },
            _ => unknown(),
        },
        ("eq", [left, rights @ ..]) if !rights.is_empty() && arguments.iter().all(is_scalar) => {
            let each = rights
                .iter()
                .map(|right| format!("{} == {}", left.text, right.text));
            truth(format!("({})", each.collect::<Vec<_>>().join(" or ")))
        }
        ("ne" | "lt" | "le" | "gt" | "ge", [left, right]) if arguments.iter().all(is_scalar) => {
            let sign = match name {
                "ne" => "!=",
                "lt" => "<",
                "le" => "<=",
                "gt" => ">",
                _ => ">=",
            };
            truth(format!("({} {sign} {})", left.text, right.text))
        }
        ("and" | "or", [_, _, ..]) => {
            let parts: Result<Vec<_>, _> = arguments.iter().map(Expression::truth).collect();
            truth(format!("({})", parts?.join(&format!(" {name} "))))
        }
        ("not", [it]) => truth(format!("(not {})", it.truth()?)),
        ("printf", [format, values @ ..]) if values.iter().all(is_scalar) => {
            let Ok(format) = serde_json::from_str::<String>(&format.text) else {
                return unknown();
            };
            let format = format.replace("%v", "%s");
            let verbs = format.matches('%').count();
            let simple = format.matches("%s").count() + format.matches("%d").count();
            if verbs != simple || verbs != values.len() {
                return unknown();
            }
            let values: Vec<_> = values.iter().map(|it| it.text.as_str()).collect();
            let text = format!("{}|format({})", json!(format), values.join(", "));
            Ok(Expression::text(text))
        }
        _ => unknown(),
    }
}
