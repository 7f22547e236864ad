//! No one is notified about a suppressed occurrence. If it was suppressed from the start, its close
//! does not notify either, however often the close is sent.

use super::{Case, Condition, Hold};
use crate::domain::{Field, Status};

pub(super) const CONDITION: Condition = Condition {
    name: "suppressed",
    is_rare: false,
    about_repeats: None,
    hold: |case| {
        let is_held = case.occurrence.status == Status::Suppressed || was_never_open(case);
        is_held.then(|| Hold {
            since_ms: case.field_since(Field::Status),
            until_ms: None,
        })
    },
    detail: |case, _, tense| {
        if was_never_open(case) {
            return "the occurrence was suppressed until closed".into();
        }
        let status = case.occurrence.status.as_str();
        format!("the occurrence {} {status}", tense.verb())
    },
};

/// Whether the occurrence is closed, started suppressed and, as far as its history shows, was never
/// open.
fn was_never_open(case: &Case<'_>) -> bool {
    if case.occurrence.status != Status::Closed {
        return false;
    }
    let open = Status::Open.as_str();
    let mut changes = case.changes_to_field(Field::Status);
    let began = changes.next().map(|first| {
        let first_known = if first.from.is_empty() {
            &first.to
        } else {
            &first.from
        };
        first_known == Status::Suppressed.as_str() && first.to != open
    });
    began == Some(true) && changes.all(|it| it.to != open)
}
