//! The outcome of an attempt, and the advice for the next one.

use std::time::Duration;

use super::times::ExchangeTimes;
use crate::domain::{Outcome, Transcript, delivery::Recipients, destination::KeptValues};

pub const REQUESTED_WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptReport {
    pub verdict: Verdict,
    pub duration: Duration,
    pub transcript: Transcript,
    /// Times of the last HTTP exchange with a response.
    pub times: Option<ExchangeTimes>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub outcome: Outcome,
    /// A readable explanation, with secrets masked.
    pub explanation: String,
    pub advice: Advice,
    /// For a mail: the mail server's replies about its addresses.
    pub recipients: Vec<RecipientAnswer>,
    /// For a webhook: all values kept for the thread, if the response changed them.
    pub kept: KeptValues,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipientAnswer {
    Reached(String),
    Refused {
        address: String,
        /// The reply, with secrets masked.
        said: String,
        /// Whether the refusal is permanent (5xx).
        is_permanent: bool,
    },
}

/// The next step after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Retry on schedule.
    Again,
    /// Retry this message on schedule; other messages are not affected.
    Later,
    /// Retry after the given time, which the receiver requests for all messages.
    AgainAfter(Duration),
    /// Retry without counting the attempt: the receiver limits the rate. Contains the requested
    /// delay for all messages; `None` if the receiver states none.
    Limited(Option<Duration>),
    /// Retry on schedule; the destination needs to be fixed.
    Fix,
    /// The receiver is unlikely to accept this message: give up after a few retries.
    FewMore,
    /// Retry once in the reduced form: the receiver does not accept this content. Never returned
    /// for an attempt already in that form.
    Reduce,
    /// Do not retry: the result would be the same.
    GiveUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCause {
    /// The receiver is unhealthy: unreachable, too slow, or reporting an error.
    Receiver,
    /// The destination is misconfigured: access is denied, or it does not exist.
    Destination,
    /// The receiver does not accept this message; others may succeed.
    Message,
}

impl Advice {
    pub fn cause(self) -> FailureCause {
        match self {
            Self::Again | Self::AgainAfter(_) | Self::Limited(_) => FailureCause::Receiver,
            Self::Fix => FailureCause::Destination,
            Self::FewMore | Self::Reduce | Self::GiveUp | Self::Later => FailureCause::Message,
        }
    }

    /// Whether the attempt shows nothing about the receiver or the message: it was too early, or an
    /// attempt in another form follows.
    pub fn is_inconclusive(self) -> bool {
        matches!(self, Self::Limited(_) | Self::Reduce)
    }

    /// Returns the delay that the receiver requests for all messages; at most
    /// [`REQUESTED_WAIT_MAX`].
    pub fn requested_wait(self) -> Option<Duration> {
        match self {
            Self::AgainAfter(wait) | Self::Limited(Some(wait)) => {
                Some(wait.min(REQUESTED_WAIT_MAX))
            }
            _ => None,
        }
    }
}

impl Verdict {
    pub fn cause(&self) -> Option<FailureCause> {
        (self.outcome != Outcome::Delivered).then(|| self.advice.cause())
    }

    /// Whether the message arrived; for a mail, at one address at least.
    pub fn has_arrived(&self) -> bool {
        let is_reached = |it: &RecipientAnswer| matches!(it, RecipientAnswer::Reached(_));
        self.outcome == Outcome::Delivered || self.recipients.iter().any(is_reached)
    }

    /// Whether the verdict concerns only some addresses of a mail, not the destination.
    pub fn is_about_addresses(&self) -> bool {
        !self.recipients.is_empty()
            && !self.has_arrived()
            && self.cause() == Some(FailureCause::Message)
    }

    /// Returns the addresses of a mail that get no further attempt after this one.
    pub fn settled_recipients(&self, before: &Recipients) -> Recipients {
        let mut after = before.clone();
        for answer in &self.recipients {
            match answer {
                RecipientAnswer::Reached(address) => after.reached.push(address.clone()),
                RecipientAnswer::Refused {
                    address,
                    is_permanent: true,
                    ..
                } => after.refused.push(address.clone()),
                RecipientAnswer::Refused { .. } => {}
            }
        }
        if after.reached.is_empty() {
            // No address was reached, so the destination itself may be wrong.
            after.refused.clear();
        }
        after
    }

    pub(crate) fn with_recipients(self, recipients: Vec<RecipientAnswer>) -> Self {
        Self { recipients, ..self }
    }

    pub fn new_delivered(explanation: impl Into<String>) -> Self {
        Self::new(Outcome::Delivered, explanation, Advice::Again)
    }

    pub fn new_rejected(explanation: impl Into<String>, advice: Advice) -> Self {
        Self::new(Outcome::Rejected, explanation, advice)
    }

    pub fn new_unreachable(explanation: impl Into<String>) -> Self {
        Self::new(Outcome::Unreachable, explanation, Advice::Again)
    }

    pub(crate) fn new_blocked(explanation: impl Into<String>) -> Self {
        Self::new(Outcome::Blocked, explanation, Advice::Fix)
    }

    pub fn new_unknown(explanation: impl Into<String>) -> Self {
        Self::new(Outcome::Unknown, explanation, Advice::Again)
    }

    fn new(outcome: Outcome, explanation: impl Into<String>, advice: Advice) -> Self {
        Self {
            outcome,
            explanation: explanation.into(),
            advice,
            recipients: Vec::new(),
            kept: KeptValues::default(),
        }
    }
}
