//! Judging: what became of an attempt, and what is to be done about it.

use std::time::Duration;

use crate::domain::{Outcome, Transcript};

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What is to be believed of it, and what is to be done.
    pub verdict: Verdict,
    /// How long it took.
    pub duration: Duration,
    /// What was sent and what came back, secrets masked.
    pub transcript: Transcript,
}

/// What is to be believed of an attempt, and what is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What became of it.
    pub outcome: Outcome,
    /// The same in a sentence for people, secrets masked.
    pub explanation: String,
    /// What to do next when it was not delivered.
    pub advice: Advice,
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Try again as the schedule says.
    Again,
    /// Try again, not before that much time has passed: the receiver asked for it.
    AgainAfter(Duration),
    /// Try again as the schedule says; it helps once somebody mends the destination.
    Mend,
    /// The receiver will hardly change its mind about this message: give up after a few tries.
    FewMore,
    /// Another try would end the same way.
    GiveUp,
    /// The receiver wants nothing more, ever: pause the destination.
    Pause,
}

/// What a failed attempt speaks against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The receiver, which is unwell: it is not reached, does not answer in time, or says so.
    Receiver,
    /// The destination, which is wrong: nobody is let in there, or nothing is there.
    Destination,
    /// The message, which this receiver does not take; others may go.
    Message,
}

impl Verdict {
    /// What a failed attempt speaks against; none when the message was taken.
    pub(crate) fn fault(&self) -> Option<Fault> {
        match (self.outcome, self.advice) {
            (Outcome::Delivered, _) => None,
            (_, Advice::Again | Advice::AgainAfter(_)) => Some(Fault::Receiver),
            (_, Advice::Mend | Advice::Pause) => Some(Fault::Destination),
            (_, Advice::FewMore | Advice::GiveUp) => Some(Fault::Message),
        }
    }

    pub(crate) fn delivered(explanation: impl Into<String>) -> Self {
        Self::new(Outcome::Delivered, explanation, Advice::Again)
    }

    pub(crate) fn rejected(explanation: impl Into<String>, advice: Advice) -> Self {
        Self::new(Outcome::Rejected, explanation, advice)
    }

    pub(crate) fn unreachable(explanation: impl Into<String>) -> Self {
        Self::new(Outcome::Unreachable, explanation, Advice::Again)
    }

    pub(crate) fn blocked(explanation: impl Into<String>) -> Self {
        Self::new(Outcome::Blocked, explanation, Advice::Mend)
    }

    pub(crate) fn unknown(explanation: impl Into<String>) -> Self {
        Self::new(Outcome::Unknown, explanation, Advice::Again)
    }

    fn new(outcome: Outcome, explanation: impl Into<String>, advice: Advice) -> Self {
        Self {
            outcome,
            explanation: explanation.into(),
            advice,
        }
    }
}
