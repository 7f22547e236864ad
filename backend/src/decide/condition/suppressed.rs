//! Nobody is notified of an occurrence that an operator or its sender suppressed, nor of the close
//! that ends that.

use super::{Case, Condition, Hold};
use crate::domain::Status;

pub(super) const CONDITION: Condition = Condition {
    name: "suppressed",
    is_rare: false,
    is_about_repeats: false,
    hold: |case| {
        let is_suppressed = case.occurrence.status == Status::Suppressed;
        (is_suppressed || is_its_close(case)).then(Hold::default)
    },
    detail: |case, _, tense| {
        if is_its_close(case) {
            return "the occurrence was suppressed until it was closed".into();
        }
        let status = case.occurrence.status.word();
        format!("the occurrence {} {status}", tense.is())
    },
};

fn is_its_close(case: &Case<'_>) -> bool {
    case.transition.closed && case.transition.from == Some(Status::Suppressed)
}
