//! What the end of a conversation with a mail server means, by the phase it ended in.

use super::conversation::{Broken, Phase, Reply};
use crate::destination::{Advice, AttemptContext, Verdict, dial::DialError, http::fault};

/// The verdict on a conversation that broke in a phase.
pub(super) fn judge(attempt: &AttemptContext<'_>, broken: &Broken, phase: Phase) -> Verdict {
    let explanation = attempt.explain(&broken.to_string());
    match broken {
        Broken::Dial(DialError::Blocked(_)) => Verdict::blocked(explanation),
        Broken::Refused(phase, reply) => Verdict::rejected(explanation, advice(*phase, reply)),
        Broken::NoUnicode | Broken::NoMechanism(_) => Verdict::rejected(explanation, Advice::Mend),
        Broken::Garbled(_) if phase == Phase::Answer => Verdict::unknown(attempt.explain(
            &format!("the mail was sent, and the answer is no reply of SMTP: {broken}"),
        )),
        Broken::Dial(_) | Broken::Garbled(_) | Broken::NoStartTls => {
            Verdict::unreachable(explanation)
        }
        Broken::Io(error) => {
            let reason = attempt.explain(&fault::reason(error));
            if phase == Phase::Answer {
                Verdict::unknown(format!("the mail was sent, and no answer came: {reason}"))
            } else {
                let command = phase.command();
                Verdict::unreachable(format!(
                    "cannot talk to the mail server: {reason} ({command})"
                ))
            }
        }
    }
}

/// What to do after a refusal: before the text it is about the destination, after it about this mail.
fn advice(phase: Phase, reply: &Reply) -> Advice {
    match (phase, reply.is_permanent()) {
        // The server closes the conversation: it is down, or limits how much it accepts.
        _ if reply.code == 421 => Advice::Again,
        (Phase::Text | Phase::Answer, true) => Advice::FewMore,
        (Phase::Text | Phase::Answer, false) => Advice::Later,
        (_, true) => Advice::Mend,
        (_, false) => Advice::Again,
    }
}
