//! Verdicts on SMTP conversations, by the phase in which they ended.

use super::conversation::{Broken, Phase, Reply};
use crate::destination::{Advice, AttemptContext, Verdict, dial::DialError, http::fault};

pub(super) fn judge(attempt: &AttemptContext<'_>, broken: &Broken, phase: Phase) -> Verdict {
    let explanation = attempt.explain(&broken.to_string());
    match broken {
        Broken::Dial(DialError::Blocked(_)) => Verdict::blocked(explanation),
        Broken::Refused(phase, reply) => Verdict::rejected(explanation, advice(*phase, reply)),
        Broken::TooLarge(..) => Verdict::rejected(explanation, Advice::Reduce),
        Broken::Late(limit) if phase == Phase::Answer => Verdict::unknown(format!(
            "the mail was sent, but no reply arrived within {limit:?}"
        )),
        Broken::Late(limit) => {
            let command = phase.command();
            Verdict::unreachable(format!(
                "the mail server did not finish within {limit:?} ({command})"
            ))
        }
        Broken::NoUnicode | Broken::NoMechanism(_) => Verdict::rejected(explanation, Advice::Mend),
        Broken::Garbled(_) if phase == Phase::Answer => Verdict::unknown(attempt.explain(
            &format!("the mail was sent, but the reply is not valid SMTP: {broken}"),
        )),
        Broken::Dial(_) | Broken::Garbled(_) | Broken::NoStartTls => {
            Verdict::unreachable(explanation)
        }
        Broken::Io(error) => {
            let reason = attempt.explain(&fault::reason(error));
            if phase == Phase::Answer {
                Verdict::unknown(format!("the mail was sent, but no reply arrived: {reason}"))
            } else {
                let command = phase.command();
                Verdict::unreachable(format!(
                    "communication with the mail server failed: {reason} ({command})"
                ))
            }
        }
    }
}

/// Returns the advice after a refusal: before the text it concerns the destination, afterwards this
/// mail.
fn advice(phase: Phase, reply: &Reply) -> Advice {
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
        (_, true) => Advice::Mend,
        (_, false) => Advice::Again,
    }
}
