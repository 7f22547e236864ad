//! A rule without existing destinations and without an escalation policy has no one to notify.

use super::{Condition, Hold};

pub(super) const CONDITION: Condition = Condition {
    name: "destinations",
    is_rare: true,
    about_repeats: None,
    hold: |case| {
        let has_policy = case.rule.escalation_policy.is_some();
        let is_empty = !has_policy && case.destinations().next().is_none();
        is_empty.then(Hold::default)
    },
    detail: |_, _, _| "the rule has no destination to notify".into(),
};
