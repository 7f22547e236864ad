//! What the end of a conversation with a mail server means.

use crate::destination::{Advice, AttemptContext, Verdict, dial::DialError, http::fault};

/// Why a conversation did not end with a taken mail.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Dial(#[from] DialError),
    /// Before the server was ready for a mail.
    #[error(transparent)]
    NoConversation(lettre::transport::smtp::Error),
    #[error(transparent)]
    Smtp(#[from] lettre::transport::smtp::Error),
    #[error("the mail server does not offer STARTTLS")]
    NoStartTls,
    #[error("the mail server cannot take addresses with letters beyond ASCII")]
    NoUnicode,
}

/// The verdict on a conversation that broke before or after the mail was `sent`.
pub(super) fn judge(attempt: &AttemptContext<'_>, broken: &Broken, sent: bool) -> Verdict {
    let (Broken::Smtp(error) | Broken::NoConversation(error)) = broken else {
        let explanation = attempt.explain(&broken.to_string());
        return match broken {
            Broken::Dial(DialError::Blocked(_)) => Verdict::blocked(explanation),
            Broken::NoUnicode => Verdict::rejected(explanation, Advice::FewMore),
            _ => Verdict::unreachable(explanation),
        };
    };
    if let Some(code) = error.status() {
        let explanation =
            attempt.explain(&format!("the mail server answered {code}: {}", said(error)));
        let advice = match u16::from(code) {
            // Who may send, and to whom; all else is about the mail.
            530 | 534 | 535 | 538 | 550 | 551 | 553 => Advice::Mend,
            _ if error.is_transient() => Advice::Again,
            _ => Advice::FewMore,
        };
        return Verdict::rejected(explanation, advice);
    }
    let explanation = attempt.explain(&fault::reason(error));
    if sent {
        return Verdict::unknown(format!(
            "the mail was sent, and no answer came: {explanation}"
        ));
    }
    Verdict::unreachable(format!("cannot talk to the mail server: {explanation}"))
}

/// The text of a refusal.
pub(super) fn said(error: &lettre::transport::smtp::Error) -> String {
    let text = std::error::Error::source(error).map(ToString::to_string);
    text.unwrap_or_default()
}
