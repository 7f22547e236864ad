//! The values that queries compare fields with.

use std::collections::HashSet;

use jiff::Timestamp;

use super::{
    field::{FieldValue, ValueType},
    fold::{FoldedText, fold},
    subject::Subject,
};
use crate::domain::{Clause, Literal, Severity, Status};

#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A string, with the number that it parses as, for fields that may contain either.
    Text(FoldedText, Option<f64>),
    Number(f64),
    Bool(bool),
}

impl Operand {
    /// Validates a literal for the type of its field.
    ///
    /// # Errors
    /// Returns a human-readable sentence fragment if the field can never have such a value.
    pub fn new(literal: &Literal, holds: ValueType) -> Result<Self, String> {
        match (holds, literal) {
            (ValueType::Severity, literal) => parse_severity(literal).map(Self::Number),
            (ValueType::Status, literal) => parse_status(literal).map(Self::Number),
            (ValueType::Time, Literal::Text(text)) => match parse_number(text) {
                Some(at_ms) => Ok(Self::Number(at_ms)),
                None => Err(format!(
                    "{text:?} is not a time; expected RFC 3339 such as `2026-01-31T08:00:00Z`, or \
                     milliseconds since 1970"
                )),
            },
            (ValueType::Number, Literal::Text(text)) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Self::Number(number)),
                _ => Err(format!("{text:?} is not a number")),
            },
            (
                ValueType::Time | ValueType::Number | ValueType::Anything,
                Literal::Number(number),
            ) => Ok(Self::Number(*number)),
            (ValueType::Bool, Literal::Text(text)) => match fold(text).as_ref() {
                "true" => Ok(Self::Bool(true)),
                "false" => Ok(Self::Bool(false)),
                _ => Err(format!("{text:?} is neither `true` nor `false`")),
            },
            (ValueType::Bool | ValueType::Anything, Literal::Bool(flag)) => Ok(Self::Bool(*flag)),
            (ValueType::Text, Literal::Number(number)) => Ok(Self::text(&number.to_string())),
            (ValueType::Text | ValueType::Anything, Literal::Text(text)) => Ok(Self::text(text)),
            (ValueType::Text, Literal::Bool(flag)) => Ok(Self::text(&flag.to_string())),
            (ValueType::Time, Literal::Bool(_)) => Err("is a boolean; expected a time".into()),
            (ValueType::Number, Literal::Bool(_)) => Err("is a boolean; expected a number".into()),
            (ValueType::Bool, Literal::Number(_)) => {
                Err("is a number; expected `true` or `false`".into())
            }
        }
    }

    fn text(text: &str) -> Self {
        let number = text.parse().ok().or_else(|| parse_time_ms(text));
        Self::Text(
            FoldedText::new(text),
            number.filter(|number: &f64| number.is_finite()),
        )
    }

    pub fn equals(&self, found: FieldValue<'_>, subject: &Subject<'_>) -> bool {
        match (self, found) {
            (Self::Text(text, _), FieldValue::Text(found)) => subject.equals(found, text),
            (Self::Number(number) | Self::Text(_, Some(number)), FieldValue::Number(found)) => {
                number_bits(*number) == number_bits(found)
            }
            (Self::Number(number), FieldValue::Text(found)) => found
                .parse()
                .is_ok_and(|found| number_bits(*number) == number_bits(found)),
            (Self::Bool(flag), FieldValue::Bool(found)) => *flag == found,
            (Self::Text(text, _), FieldValue::Bool(found)) => text.equals(bool_literal(found)),
            (Self::Bool(flag), FieldValue::Text(found)) => {
                found.eq_ignore_ascii_case(bool_literal(*flag))
            }
            _ => false,
        }
    }

    /// Returns the order of the value found in an occurrence relative to this one; `None` if they
    /// are not comparable.
    pub fn compare_with(
        &self,
        found: FieldValue<'_>,
        subject: &Subject<'_>,
    ) -> Option<std::cmp::Ordering> {
        let number = match self {
            Self::Text(_, number) => *number,
            Self::Number(number) => Some(*number),
            Self::Bool(_) => None,
        };
        match (found, number, self) {
            (FieldValue::Number(found), Some(number), _) => found.partial_cmp(&number),
            (FieldValue::Text(found), Some(number), _) => parse_number(found)?.partial_cmp(&number),
            (FieldValue::Text(found), None, Self::Text(text, _)) => {
                Some(subject.with_folded(found, |found| found.cmp(text.as_str())))
            }
            _ => None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Operands {
    all: Vec<Operand>,
    texts: HashSet<String>,
    /// Numbers parsed from string literals; not compared with fields that contain strings.
    numbers_of_texts: HashSet<u64>,
    numbers: HashSet<u64>,
}

impl Operands {
    pub fn new(all: Vec<Operand>) -> Self {
        let (mut texts, mut numbers) = (HashSet::new(), HashSet::new());
        let mut numbers_of_texts = HashSet::new();
        for operand in &all {
            match operand {
                Operand::Text(text, number) => {
                    texts.insert(text.as_str().to_owned());
                    numbers_of_texts.extend(number.map(number_bits));
                }
                Operand::Number(number) => {
                    numbers.insert(number_bits(*number));
                }
                Operand::Bool(flag) => {
                    texts.insert(bool_literal(*flag).to_owned());
                }
            }
        }
        Self {
            all,
            texts,
            numbers_of_texts,
            numbers,
        }
    }

    pub fn as_slice(&self) -> &[Operand] {
        &self.all
    }

    pub fn any_equals(&self, found: FieldValue<'_>, subject: &Subject<'_>) -> bool {
        match found {
            FieldValue::Text(text) => {
                let number = || {
                    text.parse()
                        .is_ok_and(|it| self.numbers.contains(&number_bits(it)))
                };
                subject.with_folded(text, |text| self.texts.contains(text))
                    || !self.numbers.is_empty() && number()
            }
            FieldValue::Number(number) => {
                let number = number_bits(number);
                self.numbers.contains(&number) || self.numbers_of_texts.contains(&number)
            }
            FieldValue::Bool(flag) => self.texts.contains(bool_literal(flag)),
        }
    }
}

/// Returns the same bits for equal numbers; zero has two signs.
pub(super) fn number_bits(number: f64) -> u64 {
    if number == 0.0 { 0 } else { number.to_bits() }
}

/// Returns the time bounds that follow directly from a condition, in milliseconds since 1970: the
/// earliest last-seen time, and the time before which the occurrence was opened.
pub fn time_bounds(clause: &Clause) -> (Option<i64>, Option<i64>) {
    let moment = |literal: &Literal| match Operand::new(literal, ValueType::Time) {
        #[expect(clippy::cast_possible_truncation, reason = "a bound may saturate")]
        Ok(Operand::Number(at_ms)) if at_ms.fract() == 0.0 => Some(at_ms as i64),
        _ => None,
    };
    match clause {
        Clause::GreaterAndEquals(field, literal) if field == "lastSeen" => (moment(literal), None),
        Clause::Less(field, literal) if field == "startTime" => (None, moment(literal)),
        Clause::And(clauses) => {
            let bounds = clauses.iter().map(time_bounds);
            let (since, until): (Vec<_>, Vec<_>) = bounds.unzip();
            (
                since.into_iter().flatten().max(),
                until.into_iter().flatten().min(),
            )
        }
        _ => (None, None),
    }
}

fn parse_number(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .or_else(|| parse_time_ms(text))
        .filter(|number: &f64| number.is_finite())
}

fn bool_literal(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}

fn parse_time_ms(text: &str) -> Option<f64> {
    // Checking one character of the date avoids the parser for most strings.
    if text.as_bytes().get(4) != Some(&b'-') {
        return None;
    }
    let moment: Timestamp = text.parse().ok()?;
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact up to 2^53: until the year 287396"
    )]
    Some(moment.as_millisecond() as f64)
}

fn parse_severity(literal: &Literal) -> Result<f64, String> {
    let named = |text: &str| {
        Severity::ALL.into_iter().find(|severity| {
            severity.as_str().eq_ignore_ascii_case(text)
                || severity.enum_name().eq_ignore_ascii_case(text)
        })
    };
    let words = "one of debug, info, warning, error, critical or a number from 1 to 5";
    parse_ordered(
        literal,
        words,
        |text| named(text).map(|severity| severity as i32),
        5,
    )
}

fn parse_status(literal: &Literal) -> Result<f64, String> {
    let named = |text: &str| {
        Status::ALL.into_iter().find(|status| {
            status.as_str().eq_ignore_ascii_case(text)
                || status.enum_name().eq_ignore_ascii_case(text)
        })
    };
    let words = "one of open, suppressed, closed or a number from 1 to 3";
    parse_ordered(
        literal,
        words,
        |text| named(text).map(|status| status as i32),
        3,
    )
}

fn parse_ordered(
    literal: &Literal,
    words: &str,
    named: impl Fn(&str) -> Option<i32>,
    highest: i32,
) -> Result<f64, String> {
    let number = match literal {
        Literal::Text(text) => match named(text) {
            Some(number) => Some(f64::from(number)),
            None => text.parse().ok(),
        },
        Literal::Number(number) => Some(*number),
        Literal::Bool(_) => None,
    };
    let fits = |number: &f64| (1.0..=f64::from(highest)).contains(number) && number.fract() == 0.0;
    number.filter(fits).ok_or_else(|| match literal {
        Literal::Text(text) => format!("{text:?} is not {words}"),
        Literal::Number(number) => format!("{number} is not {words}"),
        Literal::Bool(flag) => format!("{flag} is not {words}"),
    })
}
