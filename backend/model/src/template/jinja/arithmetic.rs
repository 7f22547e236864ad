//! Arithmetic in Jinja expressions.

use minijinja::{Error, Value, machinery::ast::BinOpKind, value::ValueKind};

use super::error::invalid_operation;

#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Float(f64),
}

fn to_number(value: &Value) -> Option<Number> {
    let is_whole = value.is_integer() || value.kind() == ValueKind::Bool;
    if is_whole {
        return i128::try_from(value.clone()).ok().map(Number::Whole);
    }
    (value.kind() == ValueKind::Number)
        .then(|| f64::try_from(value.clone()).ok().map(Number::Float))
        .flatten()
}

impl Number {
    fn to_float(self) -> f64 {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "as Jinja does")]
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

fn checked_integer(number: Option<i128>) -> Result<Value, Error> {
    let number =
        number.ok_or_else(|| invalid_operation("the result is too large, or the divisor is 0"))?;
    Ok(match i64::try_from(number) {
        Ok(number) => Value::from(number),
        Err(_large) => Value::from(number),
    })
}

pub(super) fn negate(value: &Value) -> Result<Value, Error> {
    match to_number(value) {
        Some(Number::Whole(number)) => checked_integer(number.checked_neg()),
        Some(Number::Float(number)) => Ok(Value::from(-number)),
        None => Err(invalid_operation(format!(
            "`-` requires a number, not a {}",
            value.kind()
        ))),
    }
}

pub(super) fn calculate(op: BinOpKind, left: &Value, right: &Value) -> Result<Value, Error> {
    let (Some(a), Some(b)) = (to_number(left), to_number(right)) else {
        return Err(invalid_operation(format!(
            "an operator requires numbers, not {} and {}",
            left.kind(),
            right.kind()
        )));
    };
    if let (Number::Whole(a), Number::Whole(b)) = (a, b) {
        match op {
            BinOpKind::Add => return checked_integer(a.checked_add(b)),
            BinOpKind::Sub => return checked_integer(a.checked_sub(b)),
            BinOpKind::Mul => return checked_integer(a.checked_mul(b)),
            BinOpKind::FloorDiv => return checked_integer(floor_div(a, b)),
            BinOpKind::Rem => {
                let rest = floor_div(a, b).and_then(|it| a.checked_sub(it.checked_mul(b)?));
                return checked_integer(rest);
            }
            BinOpKind::Pow if b >= 0 => {
                return checked_integer(u32::try_from(b).ok().and_then(|b| a.checked_pow(b)));
            }
            _ => {}
        }
    }
    let (a, b) = (a.to_float(), b.to_float());
    let is_division = matches!(op, BinOpKind::Div | BinOpKind::FloorDiv | BinOpKind::Rem);
    if is_division && b == 0.0 {
        return Err(invalid_operation("division by zero"));
    }
    Ok(Value::from(match op {
        BinOpKind::Add => a + b,
        BinOpKind::Sub => a - b,
        BinOpKind::Mul => a * b,
        BinOpKind::Div => a / b,
        BinOpKind::FloorDiv => (a / b).floor(),
        BinOpKind::Rem => a - b * (a / b).floor(),
        BinOpKind::Pow => a.powf(b),
        _ => {
            return Err(invalid_operation(
                "an operator does not support its operands",
            ));
        }
    }))
}

fn floor_div(a: i128, b: i128) -> Option<i128> {
    let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
    let is_below = rest != 0 && (rest < 0) != (b < 0);
    Some(quotient - i128::from(is_below))
}

/// Returns the indices of a slice `[start:stop:step]` of a list.
pub(super) fn slice_indices(
    length: usize,
    [start, stop, step]: [Option<i64>; 3],
) -> Result<Vec<usize>, Error> {
    let length = i128::try_from(length).unwrap_or(i128::MAX);
    let step = i128::from(step.unwrap_or(1));
    if step == 0 {
        return Err(invalid_operation("the step of a slice must not be 0"));
    }
    let (least, most) = if step > 0 {
        (0, length)
    } else {
        (-1, length - 1)
    };
    let place = |bound: Option<i64>, absent: i128| {
        bound.map_or(absent, |bound| {
            let bound = i128::from(bound);
            let place = if bound < 0 { bound + length } else { bound };
            place.clamp(least, most)
        })
    };
    let (mut at, stop) = if step > 0 {
        (place(start, least), place(stop, most))
    } else {
        (place(start, most), place(stop, least))
    };
    let mut picked = Vec::new();
    while (step > 0 && at < stop) || (step < 0 && at > stop) {
        picked.extend(usize::try_from(at));
        at += step;
    }
    Ok(picked)
}
