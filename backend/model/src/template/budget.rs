//! Limits the cost of rendering while it runs.

use std::io;

use super::TemplateError;
use crate::{
    effort,
    limits::{BLANK_STEPS_MAX, MESSAGE_STEPS_MAX, RENDERED_BYTES_MAX, TEMPLATE_STEPS_MAX},
};

const STEP_BYTES: usize = 64;
/// Number of steps between two checks that the caller is still connected.
const CHECK_EVERY: usize = 512;
const JSON_STEP_BYTES: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    #[error(transparent)]
    Failed(#[from] TemplateError),
    #[error("the output exceeds the limit of {0} bytes per template")]
    TooLong(usize),
    #[error("rendering exceeds {0} steps; nest fewer sections over long lists")]
    TooManySteps(usize),
    /// The time limit passed, or the caller has disconnected.
    #[error("rendering takes too long")]
    TooSlow,
}

impl RenderError {
    pub fn is_limit(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }
}

/// The budget of rendering, in steps. Each part of a template, list entry and name lookup is a
/// step, and so are each 64 bytes written or compared.
///
/// All templates of a message or a document share a budget, so that the total cost is bounded as
/// well.
#[derive(Debug)]
pub struct Budget {
    left: usize,
    total: usize,
    steps: usize,
    steps_max: usize,
    bytes_max: usize,
    /// The number of steps used, to check periodically whether the caller has disconnected.
    used: usize,
}

impl Budget {
    pub fn for_message() -> Self {
        Self::new(MESSAGE_STEPS_MAX, TEMPLATE_STEPS_MAX, RENDERED_BYTES_MAX)
    }

    /// Returns the budget for a template that is rendered without variables, to show its author's
    /// text.
    pub fn without_variables() -> Self {
        Self::new(BLANK_STEPS_MAX, BLANK_STEPS_MAX, RENDERED_BYTES_MAX)
    }

    /// Creates a budget of `total` steps, with limits on the steps and bytes of each template.
    pub fn new(total: usize, steps_max: usize, bytes_max: usize) -> Self {
        Self {
            left: total,
            total,
            steps: steps_max,
            steps_max,
            bytes_max,
            used: 0,
        }
    }

    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Starts another template, or another set of conditions, and returns the number of steps
    /// available to it.
    pub fn begin_template(&mut self) -> usize {
        self.steps = self.steps_max;
        self.steps_max.min(self.left)
    }

    /// Uses up the steps of the current template and returns the error.
    pub(super) fn exhaust(&mut self) -> RenderError {
        let limit = if self.left <= self.steps {
            self.total
        } else {
            self.steps_max
        };
        self.left = self.left.saturating_sub(self.steps);
        self.steps = 0;
        RenderError::TooManySteps(limit)
    }

    /// Uses steps.
    ///
    /// # Errors
    /// Returns [`RenderError::TooManySteps`] if not enough steps are left, and
    /// [`RenderError::TooSlow`] if the caller has disconnected or the time limit has passed.
    pub fn spend(&mut self, steps: usize) -> Result<(), RenderError> {
        self.used = self.used.wrapping_add(1);
        if self.used.is_multiple_of(CHECK_EVERY) && effort::is_caller_gone() {
            self.exhaust();
            return Err(RenderError::TooSlow);
        }
        let (of_template, of_all) = (self.steps.checked_sub(steps), self.left.checked_sub(steps));
        self.steps = of_template.unwrap_or_default();
        self.left = of_all.unwrap_or_default();
        match (of_template, of_all) {
            (Some(_), Some(_)) => Ok(()),
            (None, _) => Err(RenderError::TooManySteps(self.steps_max)),
            (_, None) => Err(RenderError::TooManySteps(self.total)),
        }
    }

    pub(super) fn spend_comparison(&mut self, bytes: usize) -> Result<(), RenderError> {
        self.spend(1 + bytes / STEP_BYTES)
    }

    pub(super) fn spend_output(&mut self, written: usize, bytes: usize) -> Result<(), RenderError> {
        if written + bytes > self.bytes_max {
            return Err(RenderError::TooLong(self.bytes_max));
        }
        self.spend(bytes / STEP_BYTES)
    }
}

pub(super) struct LimitedBuffer<'a> {
    budget: &'a mut Budget,
    bytes: Vec<u8>,
    error: Option<RenderError>,
}

impl<'a> LimitedBuffer<'a> {
    pub(super) fn new(budget: &'a mut Budget) -> Self {
        Self {
            budget,
            bytes: Vec::new(),
            error: None,
        }
    }

    /// Returns the text if it was written completely.
    pub(super) fn text(self, is_whole: bool) -> Result<String, RenderError> {
        match (self.error, String::from_utf8(self.bytes)) {
            (None, Ok(text)) if is_whole => Ok(text),
            (error, _) => Err(error.unwrap_or(RenderError::TooLong(self.budget.bytes_max))),
        }
    }
}

impl io::Write for LimitedBuffer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (before, after) = (self.bytes.len(), self.bytes.len() + bytes.len());
        let steps = after / JSON_STEP_BYTES - before / JSON_STEP_BYTES;
        let written = self.budget.spend_output(before, bytes.len());
        if let Err(error) = written.and_then(|()| self.budget.spend(steps)) {
            self.error = Some(error.clone());
            return Err(io::Error::other(error));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
