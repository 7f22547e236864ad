//! The conditions that must be met before a match notifies, as displayed.

use bellwether_proto::v1::Gate;

use super::{SentDelivery, sent::PauseHistory};
use crate::{
    decide::{CONDITIONS, Case, Tense, condition::with_until},
    domain::{DigestMembership, Name},
    message::domain_json,
};

/// Evaluates the conditions in order. If the rule notified anyway, a condition that failed counts
/// as passed.
pub(super) fn evaluate_gates(
    case: &Case<'_>,
    tense: Tense,
    notified: bool,
    now_ms: i64,
) -> Vec<Gate> {
    let shown = CONDITIONS.iter().filter_map(|condition| {
        let hold = (condition.hold)(case);
        let passed = hold.is_none() || notified;
        if condition.is_rare && passed {
            return None;
        }
        let detail = match condition.about_repeats {
            Some(detail) if notified => detail.into(),
            _ => {
                let detail = (condition.detail)(case, hold, tense);
                let end_ms = hold.and_then(|it| it.until_ms);
                with_until(&detail, end_ms.filter(|end_ms| *end_ms > now_ms))
            }
        };
        Some(Gate {
            name: condition.name.into(),
            passed: Some(passed),
            detail,
        })
    });
    shown.collect()
}

/// Returns the condition about paused destinations. A pause holds messages but not the decision to
/// notify.
pub(super) fn destination_paused_gate(
    destinations: &[Name],
    pauses: &PauseHistory,
    (at_ms, tense): (i64, Tense),
) -> Gate {
    let is = if tense == Tense::Now { "is" } else { "was" };
    let waiting: Vec<_> = destinations
        .iter()
        .filter(|name| pauses.was_paused_at(name, at_ms))
        .map(|name| format!("`{name}`"))
        .collect();
    Gate {
        name: "destination paused".into(),
        passed: Some(waiting.is_empty()),
        detail: match waiting.as_slice() {
            [] => format!("none {is} paused"),
            [one] => format!("{one} {is} paused; its messages are waiting"),
            several => format!(
                "{} were paused; their messages are waiting",
                several.join(", ")
            ),
        },
    }
}

/// Returns the condition about the destination's message budget. Messages over the budget are
/// included in a digest or wait. `None` if all messages were sent separately.
pub(super) fn budget_gate(sent: &[SentDelivery], now_ms: i64) -> Option<Gate> {
    let details = sent.iter().filter_map(|it| {
        let name = &it.delivery.destination_name;
        if let Some(digest) = &it.digest {
            let (id, count) = (digest.id, digest.count);
            return Some(format!(
                "`{name}` is notified in digest {id} ({count} messages)"
            ));
        }
        let is_held = it.delivery.folding == DigestMembership::Alone && it.delivery.attempts == 0;
        let due_ms = it.delivery.state.due_ms().filter(|_| is_held)?;
        let when = if due_ms > now_ms {
            format!("at {}", domain_json::time(due_ms))
        } else {
            "now".to_owned()
        };
        Some(format!(
            "`{name}` is notified {when}, together with other held messages"
        ))
    });
    let details: Vec<_> = details.collect();
    (!details.is_empty()).then(|| Gate {
        name: "budget".into(),
        passed: Some(false),
        detail: details.join("; "),
    })
}
