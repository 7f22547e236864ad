//! What rendering may cost, counted while it works.

use std::io;

use super::TemplateError;
use crate::{
    effort,
    limits::{BLANK_STEPS_MAX, MESSAGE_STEPS_MAX, RENDERED_BYTES_MAX, TEMPLATE_STEPS_MAX},
};

/// Bytes written or compared that cost as much as one step.
const STEP_BYTES: usize = 64;
/// How often steps are taken until the caller is looked for again.
const LOOK_EVERY: usize = 512;
/// Bytes of a value written as JSON that do: it is walked through for them.
const JSON_STEP_BYTES: usize = 4;

/// Why a template was not rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// An expression of it failed.
    #[error(transparent)]
    Failed(#[from] TemplateError),
    /// The text would be longer than the limit.
    #[error("the text has more than the {0} bytes that one template may write")]
    TooLong(usize),
    /// Too many entries, look-ups and bytes.
    #[error(
        "it takes more than the {0} steps that rendering may take; fewer sections inside sections \
         over long lists take less"
    )]
    TooManySteps(usize),
    /// The time is over, or the caller is gone.
    #[error("it takes longer than rendering may take")]
    TooSlow,
}

impl RenderError {
    /// Whether a limit was passed.
    pub fn is_limit(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }
}

/// The steps that rendering may take: a part of a template, an entry of a list, a look-up of a name,
/// and every 64 bytes written or compared are one.
///
/// All templates of one message, or of one document, share a budget, so that the cost of many is
/// bounded as well.
#[derive(Debug)]
pub struct Budget {
    /// What all templates together may take still.
    left: usize,
    total: usize,
    /// What the template that is being rendered may take still.
    steps: usize,
    steps_max: usize,
    bytes_max: usize,
    /// How often steps were taken, for looking for the caller from time to time.
    taken: usize,
}

impl Budget {
    /// The budget of one message.
    pub fn of_message() -> Self {
        Self::new(MESSAGE_STEPS_MAX, TEMPLATE_STEPS_MAX, RENDERED_BYTES_MAX)
    }

    /// The budget of a template without variables, rendered to see what its author wrote.
    pub fn of_blank() -> Self {
        Self::new(BLANK_STEPS_MAX, BLANK_STEPS_MAX, RENDERED_BYTES_MAX)
    }

    /// So many steps in all, and so many steps and bytes for one template.
    pub fn new(total: usize, steps_max: usize, bytes_max: usize) -> Self {
        Self {
            left: total,
            total,
            steps: steps_max,
            steps_max,
            bytes_max,
            taken: 0,
        }
    }

    /// The bytes that one template may write.
    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Begins with another template, and shows how many steps it may take.
    pub(super) fn begin_template(&mut self) -> usize {
        self.steps = self.steps_max;
        self.steps_max.min(self.left)
    }

    /// Takes all steps of a template, and says that these were too few.
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

    /// Takes so many steps.
    ///
    /// # Errors
    /// [`RenderError::TooManySteps`] when there are not so many left, and [`RenderError::TooSlow`] when the caller
    /// is gone or its time is over.
    pub fn spend(&mut self, steps: usize) -> Result<(), RenderError> {
        self.taken = self.taken.wrapping_add(1);
        if self.taken.is_multiple_of(LOOK_EVERY) && effort::is_over() {
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

    /// Compares so many bytes with keys.
    pub(super) fn compare(&mut self, bytes: usize) -> Result<(), RenderError> {
        self.spend(1 + bytes / STEP_BYTES)
    }

    /// Writes so many bytes behind those that are there.
    pub(super) fn write(&mut self, written: usize, bytes: usize) -> Result<(), RenderError> {
        if written + bytes > self.bytes_max {
            return Err(RenderError::TooLong(self.bytes_max));
        }
        self.spend(bytes / STEP_BYTES)
    }
}

/// Takes what is written as long as the budget does.
pub(super) struct Limited<'a> {
    budget: &'a mut Budget,
    bytes: Vec<u8>,
    fault: Option<RenderError>,
}

impl<'a> Limited<'a> {
    pub(super) fn new(budget: &'a mut Budget) -> Self {
        Self {
            budget,
            bytes: Vec::new(),
            fault: None,
        }
    }

    /// What was written, when that is all of it.
    pub(super) fn text(self, is_whole: bool) -> Result<String, RenderError> {
        match (self.fault, String::from_utf8(self.bytes)) {
            (None, Ok(text)) if is_whole => Ok(text),
            (fault, _) => Err(fault.unwrap_or(RenderError::TooLong(self.budget.bytes_max))),
        }
    }
}

impl io::Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (before, after) = (self.bytes.len(), self.bytes.len() + bytes.len());
        let steps = after / JSON_STEP_BYTES - before / JSON_STEP_BYTES;
        let taken = self.budget.write(before, bytes.len());
        if let Err(fault) = taken.and_then(|()| self.budget.spend(steps)) {
            self.fault = Some(fault.clone());
            return Err(io::Error::other(fault));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
