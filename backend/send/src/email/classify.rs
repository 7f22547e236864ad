//! Verdicts on SMTP conversations, by the phase in which they ended.

use super::conversation::{ConversationError, Phase, Reply};
use crate::{
    AttemptContext,
    dial::DialError,
    http::error,
    verdict::{Advice, Verdict},
};

pub(super) fn classify_failure(
    attempt: &AttemptContext<'_>,
    broken: &ConversationError,
    phase: Phase,
) -> Verdict {
    let explanation = attempt.mask_and_truncate(&broken.to_string());
    match broken {
        ConversationError::Dial(DialError::Blocked(_)) => Verdict::new_blocked(explanation),
        ConversationError::Refused(phase, reply) => {
            Verdict::new_rejected(explanation, failure_advice(*phase, reply))
        }
        ConversationError::TooLarge(..) => Verdict::new_rejected(explanation, Advice::Reduce),
        ConversationError::Late(limit) if phase == Phase::Answer => Verdict::new_unknown(format!(
            "the mail was sent, but no reply arrived within {limit:?}"
        )),
        ConversationError::Late(limit) => {
            let command = phase.command();
            Verdict::new_unreachable(format!(
                "the mail server timed out after {limit:?} ({command})"
            ))
        }
        ConversationError::NoUnicode | ConversationError::NoMechanism(_) => {
            Verdict::new_rejected(explanation, Advice::Fix)
        }
        ConversationError::Garbled(_) if phase == Phase::Answer => {
            Verdict::new_unknown(attempt.mask_and_truncate(&format!(
                "the mail was sent, but the reply is not valid SMTP: {broken}"
            )))
        }
        ConversationError::Dial(_)
        | ConversationError::Garbled(_)
        | ConversationError::NoStartTls => Verdict::new_unreachable(explanation),
        ConversationError::Io(error) => {
            let reason = attempt.mask_and_truncate(&error::root_cause(error));
            if phase == Phase::Answer {
                Verdict::new_unknown(format!("the mail was sent, but no reply arrived: {reason}"))
            } else {
                let command = phase.command();
                Verdict::new_unreachable(format!(
                    "communication with the mail server failed: {reason} ({command})"
                ))
            }
        }
    }
}

/// Returns the advice after a refusal. A refusal before the text concerns the destination, a later
/// one this mail.
fn failure_advice(phase: Phase, reply: &Reply) -> Advice {
    match (phase, reply.is_permanent()) {
        // The server closes the connection: it is shutting down or limits its load.
        _ if reply.code == 421 => Advice::Again,
        // A quota of the sender applies to other mails too.
        _ if reply.code >= 500 && reply.is_deferral() => Advice::Again,
        (Phase::Sender | Phase::Data | Phase::Text | Phase::Answer, true)
            if reply.is_about_content() =>
        {
            Advice::Reduce
        }
        (Phase::Text | Phase::Answer, true) => Advice::FewMore,
        (Phase::Text | Phase::Answer, false) => Advice::Later,
        (_, true) => Advice::Fix,
        (_, false) => Advice::Again,
    }
}
