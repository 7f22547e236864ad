//! Compiles and validates queries.

use std::cmp::Ordering;

use regex::{Regex, RegexBuilder};

use super::{
    field::{Field, FieldValue, ValueType},
    fold::{FoldedText, Part},
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

/// Memory sizes for compiled regular expressions, in bytes. Each expression is charged the smallest
/// sufficient size.
const PATTERN_MEMORY_BYTES: [usize; 4] = [8 * 1024, 64 * 1024, 256 * 1024, 1024 * 1024];
/// Maximum memory for all regular expressions of a query, in bytes.
const PATTERNS_MEMORY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Size of the search cache of a regular expression, as a multiple of the memory of the expression.
const PATTERN_CACHE: usize = 16;
/// Maximum size of the cache for searching with a regular expression, in bytes.
const CACHE_BYTES_MAX: usize = 1024 * 1024;
/// Maximum ratio of the cost of matching a regular expression to that of a plain text.
const PATTERN_COST: usize = 64;

const VIOLATIONS_MAX: usize = 100;

#[derive(Debug, Clone)]
pub struct CompiledQuery {
    pub(super) root: Node,
    constrains_status: bool,
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
    StartsWith(FoldedText),
    EndsWith(FoldedText),
    Matches(Regex),
    Exists,
    Above(Operand),
    Below(Operand),
}

impl CompiledQuery {
    pub fn matches(&self, occurrence: &Occurrence) -> bool {
        self.matches_subject(&Subject::new(occurrence))
    }

    /// Like [`Self::matches`], for an occurrence matched against several queries.
    pub fn matches_subject(&self, subject: &Subject<'_>) -> bool {
        self.root.matches(subject)
    }

    pub fn uses_status(&self) -> bool {
        self.constrains_status
    }
}

impl Node {
    fn uses_field(&self, field: &Field) -> bool {
        match self {
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().any(|node| node.uses_field(field)),
            Self::Not(node) => node.uses_field(field),
            Self::Compare(compared, _) => compared == field,
        }
    }

    pub(super) fn matches(&self, subject: &Subject<'_>) -> bool {
        match self {
            Self::And(nodes) => nodes.iter().all(|node| node.matches(subject)),
            Self::Or(nodes) => nodes.iter().any(|node| node.matches(subject)),
            Self::Not(node) => !node.matches(subject),
            Self::Compare(..) if subject.is_over() => false,
            Self::Compare(field, comparison) => field.any_value(subject.occurrence, &mut |found| {
                comparison.is_true(found, subject)
            }),
        }
    }
}

impl Comparison {
    pub(super) fn is_true(&self, found: FieldValue<'_>, subject: &Subject<'_>) -> bool {
        subject.spend(self.evaluation_cost(found));
        let text = |test: &dyn Fn(&str) -> bool| match found {
            FieldValue::Text(text) => test(text),
            FieldValue::Number(number) => test(&number.to_string()),
            FieldValue::Bool(flag) => test(if flag { "true" } else { "false" }),
        };
        match self {
            Self::Equals(operand) => operand.equals(found, subject),
            Self::In(operands) => operands.any_equals(found, subject),
            Self::AtLeast(operand) => operand
                .compare_with(found, subject)
                .is_some_and(Ordering::is_ge),
            Self::AtMost(operand) => operand
                .compare_with(found, subject)
                .is_some_and(Ordering::is_le),
            Self::Contains(part) => {
                text(&|whole| subject.with_folded(whole, |it| part.is_contained_in(it)))
            }
            Self::StartsWith(part) => text(&|whole| subject.starts_with(whole, part)),
            Self::EndsWith(part) => text(&|whole| subject.ends_with(whole, part)),
            Self::Matches(pattern) => text(&|whole| pattern.is_match(whole)),
            Self::Exists => true,
            Self::Above(operand) => operand
                .compare_with(found, subject)
                .is_some_and(Ordering::is_gt),
            Self::Below(operand) => operand
                .compare_with(found, subject)
                .is_some_and(Ordering::is_lt),
        }
    }

    /// Returns the cost of comparing a value, in bytes.
    fn evaluation_cost(&self, found: FieldValue<'_>) -> usize {
        match (self, found) {
            (Self::Matches(_), FieldValue::Text(text)) => text.len().saturating_mul(PATTERN_COST),
            (_, FieldValue::Text(text)) => text.len(),
            _ => 0,
        }
    }
}

/// # Errors
/// Returns all violations, at most 100; paths are relative to the query, such as
/// `clause.and.clauses[1].equals.field`.
pub fn compile(query: &Query) -> Result<CompiledQuery, Vec<Violation>> {
    let mut compiler = Compiler::default();
    let root = compiler.compile_clause(&query.clause, "clause", 1);
    match root {
        Some(root) if compiler.violations.is_empty() => Ok(CompiledQuery {
            constrains_status: root.uses_field(&Field::Status),
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
    fn add_violation(&mut self, field: String, description: impl Into<String>) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation::new(field, description));
        }
    }

    /// Compiles a clause; `None` if it is invalid, which adds violations.
    fn compile_clause(&mut self, clause: &Clause, path: &str, depth: usize) -> Option<Node> {
        self.clauses += 1;
        if depth > CLAUSE_DEPTH_MAX {
            self.add_violation(
                path.into(),
                format!("is nested more than {CLAUSE_DEPTH_MAX} clauses deep"),
            );
            return None;
        }
        if self.clauses == CLAUSES_MAX + 1 {
            self.add_violation(
                "clause".into(),
                format!("has more than {CLAUSES_MAX} clauses"),
            );
        }
        if self.clauses > CLAUSES_MAX {
            return None;
        }
        match clause {
            Clause::And(clauses) => Some(Node::And(
                self.compile_clauses(clauses, path, "and", depth)?,
            )),
            Clause::Or(clauses) => {
                Some(Node::Or(self.compile_clauses(clauses, path, "or", depth)?))
            }
            Clause::Not(clause) => {
                let node = self.compile_clause(clause, &format!("{path}.not.clause"), depth + 1)?;
                Some(Node::Not(Box::new(node)))
            }
            comparison => self.compile_comparison(comparison, path),
        }
    }

    fn compile_clauses(
        &mut self,
        clauses: &[Clause],
        path: &str,
        word: &str,
        depth: usize,
    ) -> Option<Vec<Node>> {
        if clauses.is_empty() {
            self.add_violation(
                format!("{path}.{word}.clauses"),
                "requires at least one clause",
            );
            return None;
        }
        let mut nodes = Vec::with_capacity(clauses.len());
        for (at, clause) in clauses.iter().enumerate() {
            let path = format!("{path}.{word}.clauses[{at}]");
            nodes.extend(self.compile_clause(clause, &path, depth + 1));
        }
        Some(nodes)
    }

    fn compile_comparison(&mut self, clause: &Clause, path: &str) -> Option<Node> {
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
            Err(message) => {
                self.add_violation(format!("{path}.field"), message);
                None
            }
        };
        // The value is checked even if the field is invalid, so that both are reported.
        let holds = field
            .as_ref()
            .map_or(ValueType::Anything, Field::value_type);
        let comparison = match clause {
            Clause::Equals(_, literal) => {
                let value = format!("{path}.{}", equals_value(literal));
                Comparison::Equals(self.compile_operand(literal, holds, value)?)
            }
            Clause::In(_, literals) => {
                let operands = self.compile_operands(literals, holds, &path)?;
                Comparison::In(Box::new(Operands::new(operands)))
            }
            Clause::GreaterAndEquals(_, literal) => {
                Comparison::AtLeast(self.compile_ordered(literal, holds, &path)?)
            }
            Clause::LessAndEquals(_, literal) => {
                Comparison::AtMost(self.compile_ordered(literal, holds, &path)?)
            }
            Clause::Contains(_, text) => {
                let part = self.compile_part(text, holds, &path)?;
                Comparison::Contains(Box::new(Part::new(part)))
            }
            Clause::StartsWith(_, text) => {
                Comparison::StartsWith(self.compile_part(text, holds, &path)?)
            }
            Clause::EndsWith(_, text) => {
                Comparison::EndsWith(self.compile_part(text, holds, &path)?)
            }
            Clause::Matches(_, pattern) => {
                Comparison::Matches(self.compile_pattern(pattern, holds, &path)?)
            }
            Clause::Exists(_) => Comparison::Exists,
            Clause::Greater(_, literal) => {
                Comparison::Above(self.compile_ordered(literal, holds, &path)?)
            }
            Clause::Less(_, literal) => {
                Comparison::Below(self.compile_ordered(literal, holds, &path)?)
            }
            Clause::And(_) | Clause::Or(_) | Clause::Not(_) => return None,
        };
        Some(Node::Compare(field?, comparison))
    }

    fn compile_operand(
        &mut self,
        literal: &Literal,
        holds: ValueType,
        path: String,
    ) -> Option<Operand> {
        if let Literal::Text(text) = literal
            && text.len() > TEXT_BYTES_MAX
        {
            self.add_violation(path, too_long_message(text));
            return None;
        }
        Operand::new(literal, holds)
            .map_err(|message| self.add_violation(path, message))
            .ok()
    }

    fn compile_operands(
        &mut self,
        literals: &[Literal],
        holds: ValueType,
        path: &str,
    ) -> Option<Vec<Operand>> {
        if literals.is_empty() || literals.len() > VALUES_MAX {
            let message = format!(
                "requires 1 to {VALUES_MAX} values, but has {}",
                literals.len()
            );
            self.add_violation(format!("{path}.values"), message);
            return None;
        }
        let mut operands = Vec::with_capacity(literals.len());
        for (at, literal) in literals.iter().enumerate() {
            operands.extend(self.compile_operand(literal, holds, format!("{path}.values[{at}]")));
        }
        Some(operands)
    }

    fn compile_ordered(
        &mut self,
        literal: &Literal,
        holds: ValueType,
        path: &str,
    ) -> Option<Operand> {
        let path = format!("{path}.value");
        if holds == ValueType::Bool || matches!(literal, Literal::Bool(_)) {
            self.add_violation(path, "booleans have no order; use `equals`");
            return None;
        }
        self.compile_operand(literal, holds, path)
    }

    fn compile_part(&mut self, text: &str, holds: ValueType, path: &str) -> Option<FoldedText> {
        self.check_text(text, holds, path)
            .then(|| FoldedText::new(text))
    }

    fn compile_pattern(&mut self, pattern: &str, holds: ValueType, path: &str) -> Option<Regex> {
        if !self.check_text(pattern, holds, path) {
            return None;
        }
        let left = PATTERNS_MEMORY_BYTES_MAX.saturating_sub(self.pattern_bytes);
        let mut message = "is a regular expression that is too large when compiled".to_owned();
        for bytes in PATTERN_MEMORY_BYTES {
            if bytes > left {
                message = "is too large combined with the query's other regular expressions".into();
                break;
            }
            let mut builder = RegexBuilder::new(pattern);
            builder
                .case_insensitive(true)
                .size_limit(bytes)
                .dfa_size_limit(bytes.saturating_mul(PATTERN_CACHE).min(CACHE_BYTES_MAX));
            match effort::run_offloaded(|| builder.build()) {
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
                    message = format!("is not a valid regular expression: {reason}");
                    break;
                }
            }
        }
        self.add_violation(format!("{path}.value"), message);
        None
    }

    /// Checks that the string is not empty or too long, and that the field can contain strings.
    fn check_text(&mut self, text: &str, holds: ValueType, path: &str) -> bool {
        if text.is_empty() {
            self.add_violation(
                format!("{path}.value"),
                "is required: the text to search for",
            );
            return false;
        }
        if text.len() > TEXT_BYTES_MAX {
            self.add_violation(format!("{path}.value"), too_long_message(text));
            return false;
        }
        if !matches!(holds, ValueType::Text | ValueType::Anything) {
            let message = "searches for text in a field without text; use `equals`, `in`, \
                         `greaterAndEquals` or `lessAndEquals`";
            self.add_violation(format!("{path}.field"), message);
            return false;
        }
        true
    }
}

fn too_long_message(text: &str) -> String {
    format!("is {} bytes; the limit is {TEXT_BYTES_MAX}", text.len())
}

fn equals_value(literal: &Literal) -> &'static str {
    match literal {
        Literal::Text(_) => "stringVal",
        Literal::Number(_) => "numberVal",
        Literal::Bool(_) => "boolVal",
    }
}
