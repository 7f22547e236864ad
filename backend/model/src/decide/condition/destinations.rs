//! A rule without a destination that exists has no one to notify.

use super::{Condition, Hold};

pub(super) const CONDITION: Condition = Condition {
    name: "destinations",
    is_rare: true,
    about_repeats: None,
    hold: |case| case.destinations().next().is_none().then(Hold::default),
    detail: |_, _, _| "the rule has no destination to notify".into(),
};
