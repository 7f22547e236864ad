//! Charges for values by their size.

use std::cell::Cell;

use minijinja::{Error, ErrorKind, State, Value, value::ValueKind};

use super::error::invalid_operation;
use crate::{effort, template::RenderError};

pub(super) const VALUE_DEPTH_MAX: usize = 16;
/// Maximum depth of a variable, the same as for parsed documents.
const VARIABLE_DEPTH_MAX: usize = 128;
const STEP_BYTES: usize = 64;
/// Number of charges between two checks that the caller is still connected.
const CHECK_EVERY: u32 = 32;

/// The charges of one rendering; the steps themselves are the fuel of its state.
pub(super) struct Meter {
    bytes_max: usize,
    charges: Cell<u32>,
    /// The exceeded limit, other than the limit of steps.
    pub(super) limit: Cell<Option<RenderError>>,
}

impl Meter {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            charges: Cell::new(0),
            limit: Cell::new(None),
        }
    }

    /// # Errors
    /// Returns an error if no steps are left, if the caller has disconnected, or if the time limit
    /// has passed.
    pub(super) fn spend(&self, state: &State<'_, '_>, steps: u64) -> Result<(), Error> {
        let charges = self.charges.get().wrapping_add(1);
        self.charges.set(charges);
        if charges.is_multiple_of(CHECK_EVERY) && effort::is_caller_gone() {
            return Err(self.fail_with_limit(RenderError::TooSlow));
        }
        state.consume_fuel(steps)
    }

    pub(super) fn spend_bytes(&self, state: &State<'_, '_>, bytes: usize) -> Result<(), Error> {
        self.spend(state, string_steps(bytes))
    }

    pub(super) fn charge_text(
        &self,
        state: &State<'_, '_>,
        total: usize,
        bytes: usize,
    ) -> Result<(), Error> {
        // Steps are charged first, so that running out of them is not reported as a text that is
        // too long.
        self.spend_bytes(state, bytes)?;
        if total > self.bytes_max {
            return Err(self.fail_with_limit(RenderError::TooLong(self.bytes_max)));
        }
        Ok(())
    }

    fn fail_with_limit(&self, limit: RenderError) -> Error {
        self.limit.set(Some(limit));
        ErrorKind::OutOfFuel.into()
    }

    /// Charges for reading a whole value; returns the steps.
    pub(super) fn measure_value(&self, state: &State<'_, '_>, value: &Value) -> Result<u64, Error> {
        self.charge(state, value, VARIABLE_DEPTH_MAX)
    }

    /// Charges for a whole value up to a maximum depth; returns the steps.
    pub(super) fn charge(
        &self,
        state: &State<'_, '_>,
        value: &Value,
        depth_max: usize,
    ) -> Result<u64, Error> {
        if let Some(text) = value.as_str() {
            self.charge_text(state, text.len(), text.len())?;
            return Ok(string_steps(text.len()));
        }
        let left = state.fuel_levels().map_or(0, |(_, left)| left);
        let mut weight = Weight { steps: 0, left };
        let added = weight.add(value, depth_max);
        self.spend(state, weight.steps)?;
        added?;
        Ok(weight.steps)
    }

    /// Returns the items of a list, the keys of an object, or the characters of a text, charging
    /// for each.
    pub(super) fn charge_items(
        &self,
        state: &State<'_, '_>,
        value: &Value,
    ) -> Result<Vec<Value>, Error> {
        let count = value.as_str().map(str::len).or_else(|| value.len());
        self.spend(state, count.unwrap_or(0) as u64)?;
        let mut items = Vec::new();
        for item in value.try_iter()? {
            if count.is_none() {
                self.spend(state, 1)?;
            }
            items.push(check_valid(item)?);
        }
        Ok(items)
    }

    /// Returns a value, with lazy iterators converted to lists.
    pub(super) fn materialize(&self, state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
        match value.kind() {
            ValueKind::Iterable => Ok(Value::from(self.charge_items(state, &value)?)),
            ValueKind::Invalid => check_valid(value),
            _ => Ok(value),
        }
    }
}

fn check_valid(value: Value) -> Result<Value, Error> {
    if value.kind() != ValueKind::Invalid {
        return Ok(value);
    }
    let error = value.try_iter().err();
    Err(error.unwrap_or_else(|| invalid_operation("is not a value")))
}

/// Returns the steps for a string in addition to the step of its expression.
pub(super) fn string_steps(bytes: usize) -> u64 {
    (bytes / STEP_BYTES) as u64
}

/// Counts the steps of a value, up to the number of remaining steps.
struct Weight {
    steps: u64,
    left: u64,
}

impl Weight {
    fn add(&mut self, value: &Value, depth_left: usize) -> Result<(), Error> {
        let kind = value.kind();
        let entry = match kind {
            ValueKind::Seq | ValueKind::Iterable => 1,
            ValueKind::Map => 2,
            ValueKind::Invalid => return check_valid(value.clone()).map(drop),
            _ => {
                return self.count(1 + value.as_str().map_or(0, |text| string_steps(text.len())));
            }
        };
        let Some(depth_left) = depth_left.checked_sub(1) else {
            return Err(invalid_operation("a list or object is nested too deeply"));
        };
        let entries = value.len().unwrap_or(0) as u64;
        self.count(1 + entries * entry)?;
        for item in value.try_iter()? {
            if kind == ValueKind::Map {
                self.add(&value.get_item(&item)?, depth_left)?;
            }
            self.add(&item, depth_left)?;
        }
        Ok(())
    }

    fn count(&mut self, steps: u64) -> Result<(), Error> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.left {
            return Err(ErrorKind::OutOfFuel.into());
        }
        Ok(())
    }
}
