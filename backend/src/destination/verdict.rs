//! Judging: the outcome of an attempt, and what is to be done about it.

use std::time::Duration;

use super::times::ExchangeTimes;
use crate::domain::{Outcome, Transcript, delivery::Recipients};

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What is to be believed of it, and what is to be done.
    pub verdict: Verdict,
    /// How long it took.
    pub duration: Duration,
    /// What was sent and what came back, secrets masked.
    pub transcript: Transcript,
    /// The times of the last exchange over HTTP that was answered.
    pub times: Option<ExchangeTimes>,
}

/// What is to be believed of an attempt, and what is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Its outcome.
    pub outcome: Outcome,
    /// The same in a sentence for people, secrets masked.
    pub explanation: String,
    /// What to do next when it was not delivered.
    pub advice: Advice,
    /// Of a mail: the addresses that a mail server answered about.
    pub recipients: Vec<RecipientAnswer>,
}

/// A mail server's answer about one address of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipientAnswer {
    /// The mail server took the mail for this address.
    Reached(String),
    /// The mail server refused the address.
    Refused {
        /// The address.
        address: String,
        /// The answer, secrets masked.
        said: String,
        /// Whether it is permanent (5xx).
        is_permanent: bool,
    },
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Try again as the schedule says.
    Again,
    /// Try this message again as the schedule says; others may go.
    Later,
    /// Try again, not before that much time has passed: the receiver asked for it, for all messages.
    AgainAfter(Duration),
    /// Try again as the schedule says; it helps once the destination is fixed.
    Mend,
    /// The receiver will hardly change its mind about this message: give up after a few tries.
    FewMore,
    /// Another try would end the same way.
    GiveUp,
}

/// What a failed attempt speaks against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The receiver, which is unwell: it is not reached, does not answer in time, or reports it.
    Receiver,
    /// The destination, which is wrong: access is denied, or nothing is there.
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
            (_, Advice::Mend) => Some(Fault::Destination),
            (_, Advice::FewMore | Advice::GiveUp | Advice::Later) => Some(Fault::Message),
        }
    }

    /// Whether the message arrived; of a mail, at one address at least.
    pub(crate) fn arrives(&self) -> bool {
        let is_reached = |it: &RecipientAnswer| matches!(it, RecipientAnswer::Reached(_));
        self.outcome == Outcome::Delivered || self.recipients.iter().any(is_reached)
    }

    /// Whether it is about some addresses of a mail, and says nothing of their destination.
    pub(crate) fn is_about_addresses(&self) -> bool {
        !self.recipients.is_empty() && !self.arrives() && self.fault() == Some(Fault::Message)
    }

    /// The addresses of a mail that get no further attempt after this one.
    pub(crate) fn settled(&self, before: &Recipients) -> Recipients {
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
            // Whatever is wrong may be the destination's.
            after.refused.clear();
        }
        after
    }

    pub(crate) fn with_recipients(self, recipients: Vec<RecipientAnswer>) -> Self {
        Self { recipients, ..self }
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
            recipients: Vec::new(),
        }
    }
}
