//! A disabled rule does not notify.

use super::{Condition, Hold};

pub(super) const CONDITION: Condition = Condition {
    name: "enabled",
    is_rare: false,
    about_repeats: None,
    hold: |case| (!case.rule.enabled).then(Hold::default),
    detail: |_, hold, tense| {
        let word = if hold.is_some() {
            "disabled"
        } else {
            "enabled"
        };
        format!("the rule {} {word}", tense.verb())
    },
};
