//! Compiles and validates queries.

use std::cmp::Ordering;

use regex::{Regex, RegexBuilder};

use super::{
    field::{Field, FieldValue, Holds},
    fold::{Folded, Part},
    literal::{Operand, Operands},
    subject::Subject,
};
use crate::{
    domain::{Clause, Literal, Occurrence, Query},
    effort,
    limits::{CLAUSE_DEPTH_MAX, CLAUSES_MAX},
    violation::Violation,
};

const VALUES_MAX: usize = 500;
/// Maximum size of a text to compare with, in bytes.
const TEXT_BYTES_MAX: usize = 4 * 1024;

/// Memory sizes for a compiled regular expression; it is charged the first one that suffices.
const PATTERN_MEMORY_BYTES: [usize; 4] = [8 * 1024, 64 * 1024, 256 * 1024, 1024 * 1024];
/// Maximum memory for all regular expressions of a query, in bytes.
const PATTERNS_MEMORY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Ratio of the cache for searching with a regular expression to its own memory.
const PATTERN_CACHE: usize = 16;
/// Maximum size of that cache, in bytes.
const CACHE_BYTES_MAX: usize = 1024 * 1024;
/// Maximum ratio of the cost of matching a regular expression to that of a plain text.
const PATTERN_COST: usize = 64;

const VIOLATIONS_MAX: usize = 100;

/// A validated query, ready for matching.
#[derive(Debug, Clone)]
pub struct CompiledQuery {
    pub(super) root: Node,
    speaks_of_status: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Compare(Field, Comparison),
}

#[derive(Debug, Clone)]
pub(super) enum Comparison {
    Equals(Operand),
    In(Box<Operands>),
    AtLeast(Operand),
    AtMost(Operand),
    Contains(Box<Part>),
    StartsWith(Folded),
    EndsWith(Folded),
    Matches(Regex),
    Exists,
    Above(Operand),
    Below(Operand),
}

impl CompiledQuery {
    /// Whether the occurrence matches.
    pub fn matches(&self, occurrence: &Occurrence) -> bool {
        self.is_true_of(&Subject::new(occurrence))
    }

    /// Like [`Self::matches`], for an occurrence matched against several queries.
    pub fn is_true_of(&self, subject: &Subject<'_>) -> bool {
        self.root.matches(subject)
    }

    /// Whether one of its clauses uses the status.
    pub fn speaks_of_status(&self) -> bool {
        self.speaks_of_status
    }
}

impl Node {
    fn looks_at(&self, field: &Field) -> bool {
        match self {
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().any(|node| node.looks_at(field)),
            Self::Not(node) => node.looks_at(field),
            Self::Compare(looked_at, _) => looked_at == field,
        }
    }

    pub(super) fn matches(&self, subject: &Subject<'_>) -> bool {
        match self {
            Self::And(nodes) => nodes.iter().all(|node| node.matches(subject)),
            Self::Or(nodes) => nodes.iter().any(|node| node.matches(subject)),
            Self::Not(node) => !node.matches(subject),
            Self::Compare(..) if subject.is_over() => false,
            Self::Compare(field, comparison) => field.any(subject.occurrence, &mut |found| {
                comparison.holds(found, subject)
            }),
        }
    }
}

impl Comparison {
    pub(super) fn holds(&self, found: FieldValue<'_>, subject: &Subject<'_>) -> bool {
        subject.spend(self.cost(found));
        let text = |test: &dyn Fn(&str) -> bool| match found {
            FieldValue::Text(text) => test(text),
            FieldValue::Number(number) => test(&number.to_string()),
            FieldValue::Bool(flag) => test(if flag { "true" } else { "false" }),
        };
        match self {
            Self::Equals(operand) => operand.equals(found, subject),
            Self::In(operands) => operands.equal(found, subject),
            Self::AtLeast(operand) => operand
                .order_of(found, subject)
                .is_some_and(Ordering::is_ge),
            Self::AtMost(operand) => operand
                .order_of(found, subject)
                .is_some_and(Ordering::is_le),
            Self::Contains(part) => text(&|whole| subject.folded(whole, |it| part.is_in(it))),
            Self::StartsWith(part) => text(&|whole| subject.starts(whole, part)),
            Self::EndsWith(part) => text(&|whole| subject.ends(whole, part)),
            Self::Matches(pattern) => text(&|whole| pattern.is_match(whole)),
            Self::Exists => true,
            Self::Above(operand) => operand
                .order_of(found, subject)
                .is_some_and(Ordering::is_gt),
            Self::Below(operand) => operand
                .order_of(found, subject)
                .is_some_and(Ordering::is_lt),
        }
    }

    /// Returns the cost of comparing a value, in bytes.
    fn cost(&self, found: FieldValue<'_>) -> usize {
        match (self, found) {
            (Self::Matches(_), FieldValue::Text(text)) => text.len().saturating_mul(PATTERN_COST),
            (_, FieldValue::Text(text)) => text.len(),
            _ => 0,
        }
    }
}

/// Validates and compiles a query.
///
/// # Errors
/// Returns all violations, at most 100; paths are relative to the query, such as
/// `clause.and.clauses[1].equals.field`.
pub fn compile(query: &Query) -> Result<CompiledQuery, Vec<Violation>> {
    let mut compiler = Compiler::default();
    let root = compiler.node(&query.clause, "clause", 1);
    match root {
        Some(root) if compiler.violations.is_empty() => Ok(CompiledQuery {
            speaks_of_status: root.looks_at(&Field::Status),
            root,
        }),
        _ => Err(compiler.violations),
    }
}

#[derive(Debug, Default)]
struct Compiler {
    clauses: usize,
    /// The memory used by regular expressions so far.
    pattern_bytes: usize,
    violations: Vec<Violation>,
}

impl Compiler {
    fn violate(&mut self, field: String, description: impl Into<String>) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation::new(field, description));
        }
    }

    /// Compiles a clause; `None` if it is invalid, which adds violations.
    fn node(&mut self, clause: &Clause, path: &str, depth: usize) -> Option<Node> {
        self.clauses += 1;
        if depth > CLAUSE_DEPTH_MAX {
            self.violate(
                path.into(),
                format!("is nested deeper than {CLAUSE_DEPTH_MAX} clauses"),
            );
            return None;
        }
        if self.clauses == CLAUSES_MAX + 1 {
            self.violate(
                "clause".into(),
                format!("has more than {CLAUSES_MAX} clauses"),
            );
        }
        if self.clauses > CLAUSES_MAX {
            return None;
        }
        match clause {
            Clause::And(clauses) => Some(Node::And(self.nodes(clauses, path, "and", depth)?)),
            Clause::Or(clauses) => Some(Node::Or(self.nodes(clauses, path, "or", depth)?)),
            Clause::Not(clause) => {
                let node = self.node(clause, &format!("{path}.not.clause"), depth + 1)?;
                Some(Node::Not(Box::new(node)))
            }
            comparison => self.comparison(comparison, path),
        }
    }

    fn nodes(
        &mut self,
        clauses: &[Clause],
        path: &str,
        word: &str,
        depth: usize,
    ) -> Option<Vec<Node>> {
        if clauses.is_empty() {
            self.violate(
                format!("{path}.{word}.clauses"),
                "needs at least one clause",
            );
            return None;
        }
        let mut nodes = Vec::with_capacity(clauses.len());
        for (at, clause) in clauses.iter().enumerate() {
            let path = format!("{path}.{word}.clauses[{at}]");
            nodes.extend(self.node(clause, &path, depth + 1));
        }
        Some(nodes)
    }

    fn comparison(&mut self, clause: &Clause, path: &str) -> Option<Node> {
        let (word, name) = match clause {
            Clause::Equals(name, _) => ("equals", name),
            Clause::In(name, _) => ("in", name),
            Clause::GreaterAndEquals(name, _) => ("greaterAndEquals", name),
            Clause::LessAndEquals(name, _) => ("lessAndEquals", name),
            Clause::Contains(name, _) => ("contains", name),
            Clause::StartsWith(name, _) => ("startsWith", name),
            Clause::EndsWith(name, _) => ("endsWith", name),
            Clause::Matches(name, _) => ("matches", name),
            Clause::Exists(name) => ("exists", name),
            Clause::Greater(name, _) => ("greater", name),
            Clause::Less(name, _) => ("less", name),
            Clause::And(_) | Clause::Or(_) | Clause::Not(_) => return None,
        };
        let path = format!("{path}.{word}");
        let field = match Field::parse(name) {
            Ok(field) => Some(field),
            Err(fault) => {
                self.violate(format!("{path}.field"), fault);
                None
            }
        };
        // The value is checked even if the field is invalid, so that both are reported.
        let holds = field.as_ref().map_or(Holds::Anything, Field::holds);
        let comparison = match clause {
            Clause::Equals(_, literal) => {
                let value = format!("{path}.{}", equals_value(literal));
                Comparison::Equals(self.operand(literal, holds, value)?)
            }
            Clause::In(_, literals) => {
                let operands = self.operands(literals, holds, &path)?;
                Comparison::In(Box::new(Operands::new(operands)))
            }
            Clause::GreaterAndEquals(_, literal) => {
                Comparison::AtLeast(self.ordered(literal, holds, &path)?)
            }
            Clause::LessAndEquals(_, literal) => {
                Comparison::AtMost(self.ordered(literal, holds, &path)?)
            }
            Clause::Contains(_, text) => {
                let part = self.part(text, holds, &path)?;
                Comparison::Contains(Box::new(Part::new(part)))
            }
            Clause::StartsWith(_, text) => Comparison::StartsWith(self.part(text, holds, &path)?),
            Clause::EndsWith(_, text) => Comparison::EndsWith(self.part(text, holds, &path)?),
            Clause::Matches(_, pattern) => {
                Comparison::Matches(self.pattern(pattern, holds, &path)?)
            }
            Clause::Exists(_) => Comparison::Exists,
            Clause::Greater(_, literal) => Comparison::Above(self.ordered(literal, holds, &path)?),
            Clause::Less(_, literal) => Comparison::Below(self.ordered(literal, holds, &path)?),
            Clause::And(_) | Clause::Or(_) | Clause::Not(_) => return None,
        };
        Some(Node::Compare(field?, comparison))
    }

    fn operand(&mut self, literal: &Literal, holds: Holds, path: String) -> Option<Operand> {
        if let Literal::Text(text) = literal
            && text.len() > TEXT_BYTES_MAX
        {
            self.violate(path, too_long(text));
            return None;
        }
        Operand::new(literal, holds)
            .map_err(|fault| self.violate(path, fault))
            .ok()
    }

    fn operands(&mut self, literals: &[Literal], holds: Holds, path: &str) -> Option<Vec<Operand>> {
        if literals.is_empty() || literals.len() > VALUES_MAX {
            let fault = format!("needs 1 to {VALUES_MAX} values, but has {}", literals.len());
            self.violate(format!("{path}.values"), fault);
            return None;
        }
        let mut operands = Vec::with_capacity(literals.len());
        for (at, literal) in literals.iter().enumerate() {
            operands.extend(self.operand(literal, holds, format!("{path}.values[{at}]")));
        }
        Some(operands)
    }

    fn ordered(&mut self, literal: &Literal, holds: Holds, path: &str) -> Option<Operand> {
        let path = format!("{path}.value");
        if holds == Holds::Bool || matches!(literal, Literal::Bool(_)) {
            self.violate(path, "true and false have no order; use `equals`");
            return None;
        }
        self.operand(literal, holds, path)
    }

    fn part(&mut self, text: &str, holds: Holds, path: &str) -> Option<Folded> {
        self.is_text(text, holds, path).then(|| Folded::new(text))
    }

    fn pattern(&mut self, pattern: &str, holds: Holds, path: &str) -> Option<Regex> {
        if !self.is_text(pattern, holds, path) {
            return None;
        }
        let left = PATTERNS_MEMORY_BYTES_MAX.saturating_sub(self.pattern_bytes);
        let mut fault = "is a regular expression that is too large when compiled".to_owned();
        for bytes in PATTERN_MEMORY_BYTES {
            if bytes > left {
                fault = "is one regular expression too many: together, those of a query are too \
                         large"
                    .into();
                break;
            }
            let mut builder = RegexBuilder::new(pattern);
            builder
                .case_insensitive(true)
                .size_limit(bytes)
                .dfa_size_limit(bytes.saturating_mul(PATTERN_CACHE).min(CACHE_BYTES_MAX));
            match effort::apart(|| builder.build()) {
                Ok(built) => {
                    self.pattern_bytes += bytes;
                    return Some(built);
                }
                Err(regex::Error::CompiledTooBig(_)) => {}
                // The last line states the error; those above show its position.
                Err(error) => {
                    let text = error.to_string();
                    let reason = text.lines().last().unwrap_or_default();
                    let reason = reason.trim_start_matches("error: ");
                    fault = format!("is not a valid regular expression: {reason}");
                    break;
                }
            }
        }
        self.violate(format!("{path}.value"), fault);
        None
    }

    /// Checks that the text is not empty or too long, and that the field can contain texts.
    fn is_text(&mut self, text: &str, holds: Holds, path: &str) -> bool {
        if text.is_empty() {
            self.violate(
                format!("{path}.value"),
                "is required: the text to search for",
            );
            return false;
        }
        if text.len() > TEXT_BYTES_MAX {
            self.violate(format!("{path}.value"), too_long(text));
            return false;
        }
        if !matches!(holds, Holds::Text | Holds::Anything) {
            let fault = "searches for text in a field without text; use `equals`, `in`, \
                         `greaterAndEquals` or `lessAndEquals`";
            self.violate(format!("{path}.field"), fault);
            return false;
        }
        true
    }
}

fn too_long(text: &str) -> String {
    format!("has {} bytes; the limit is {TEXT_BYTES_MAX}", text.len())
}

fn equals_value(literal: &Literal) -> &'static str {
    match literal {
        Literal::Text(_) => "stringVal",
        Literal::Number(_) => "numberVal",
        Literal::Bool(_) => "boolVal",
    }
}
