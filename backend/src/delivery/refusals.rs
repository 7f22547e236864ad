//! Consecutive rejections. If many messages are rejected with the same response and none is
//! accepted in between, the destination is misconfigured, regardless of the responses.

use crate::{
    domain::{RecordId, destination::RepeatedRejections},
    limits::REFUSALS_ALIKE_MAX,
    send::{Advice, AttemptReport, verdict::FailureCause},
};

/// Records the outcome of an attempt. Once too many messages have been rejected with the same
/// response, further rejections count against the destination. Returns the messages that were
/// misjudged before.
pub(crate) fn reclassify_outcome(
    alike: &mut RepeatedRejections,
    message: RecordId,
    report: &mut AttemptReport,
) -> Vec<RecordId> {
    if report.verdict.is_about_addresses() {
        return Vec::new();
    }
    // A mail rejected for some addresses is delivered to the remaining addresses.
    match report
        .verdict
        .cause()
        .filter(|_| !report.verdict.has_arrived())
    {
        None => {
            *alike = RepeatedRejections::default();
            return Vec::new();
        }
        Some(FailureCause::Receiver | FailureCause::Destination) => return Vec::new(),
        Some(FailureCause::Message) => {}
    }
    let kind = similarity_key(report);
    if alike.kind != kind {
        alike.kind = kind;
        alike.messages.clear();
    }
    let was_judged = exceeds_rejection_limit(alike);
    if !was_judged && !alike.messages.contains(&message) {
        alike.messages.push(message);
    }
    if !exceeds_rejection_limit(alike) {
        return Vec::new();
    }
    report.verdict.advice = Advice::Fix;
    let explanation = &mut report.verdict.explanation;
    *explanation = format!(
        "{explanation} ({REFUSALS_ALIKE_MAX} consecutive messages were rejected alike: the \
         destination is considered to be failing)"
    );
    if was_judged {
        return Vec::new();
    }
    let judged = alike.messages.iter().copied();
    judged.filter(|it| *it != message).collect()
}

/// Whether enough messages were rejected with the same response to consider the destination
/// failing.
pub(crate) fn exceeds_rejection_limit(alike: &RepeatedRejections) -> bool {
    alike.messages.len() >= REFUSALS_ALIKE_MAX
}

/// Returns the key shared by similar rejections: the status if there is one, otherwise the words
/// without those that contain digits, such as ids.
fn similarity_key(report: &AttemptReport) -> String {
    let response = report.transcript.response.as_ref();
    let status = response.map(|response| response.status);
    if let Some(status) = status.filter(|status| *status >= 300) {
        return status.to_string();
    }
    let words = report.verdict.explanation.split_whitespace();
    let words = words.filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{domain::Transcript, send::Verdict};

    fn rejection_report(verdict: Verdict) -> AttemptReport {
        AttemptReport {
            verdict,
            duration: Duration::ZERO,
            transcript: Transcript::default(),
            times: None,
        }
    }

    fn delivery_id(number: usize) -> RecordId {
        RecordId::from_parts(1, number as u128)
    }

    #[test]
    fn repeated_identical_rejections_mark_the_destination_failing() {
        let mut refusals = RepeatedRejections::default();
        let mut judge = |number: usize, verdict: Verdict| {
            let mut report = rejection_report(verdict);
            let before = reclassify_outcome(&mut refusals, delivery_id(number), &mut report);
            (report.verdict.cause(), before.len())
        };
        let refused = |number| Verdict::new_rejected(format!("no: x{number}"), Advice::GiveUp);
        let message = (Some(FailureCause::Message), 0);
        let destination = (Some(FailureCause::Destination), 0);
        for number in 1..REFUSALS_ALIKE_MAX {
            assert_eq!(judge(number, refused(number)), message);
            assert_eq!(judge(number, refused(number)), message, "the same message");
        }
        let unwell = Verdict::new_unreachable("away");
        assert_eq!(judge(99, unwell).0, Some(FailureCause::Receiver));
        let all_before = REFUSALS_ALIKE_MAX - 1;
        let judged = (Some(FailureCause::Destination), all_before);
        assert_eq!(judge(100, refused(100)), judged);
        assert_eq!(judge(101, refused(101)), destination);
        assert_eq!(judge(100, refused(100)), destination);
        let other = Verdict::new_rejected("too long", Advice::GiveUp);
        assert_eq!(judge(102, other), message, "another refusal");
        for number in 0..all_before {
            assert_eq!(judge(number, refused(number)), message);
        }
        assert_eq!(judge(103, Verdict::new_delivered("ok")), (None, 0));
        assert_eq!(judge(104, refused(104)), message);
    }
}
