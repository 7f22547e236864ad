//! Nobody is notified of an occurrence that an operator or its sender suppressed, nor of its close
//! when it was suppressed until then, however often that is repeated.

use super::{Case, Condition, Hold};
use crate::domain::{Field, Status};

pub(super) const CONDITION: Condition = Condition {
    name: "suppressed",
    is_rare: false,
    about_repeats: None,
    hold: |case| {
        let is_held = case.occurrence.status == Status::Suppressed || was_until_its_close(case);
        is_held.then(|| Hold {
            since_ms: case.since(Field::Status),
            until_ms: None,
        })
    },
    detail: |case, _, tense| {
        if was_until_its_close(case) {
            return "the occurrence was suppressed until it was closed".into();
        }
        let status = case.occurrence.status.word();
        format!("the occurrence {} {status}", tense.is())
    },
};

fn was_until_its_close(case: &Case<'_>) -> bool {
    let last = || case.last_change(Field::Status);
    case.occurrence.status == Status::Closed
        && last().is_some_and(|it| it.from == Status::Suppressed.word())
}
