//! Triggers, rules and silences as they were before they were edited or deleted.

use crate::{
    domain::{Revised, Revision, Rule, Silence, Trigger},
    record::table::record,
};

record! {
    Revision as it {
        1 trigger = if let Revised::Trigger(was) = &it.was { Some(was) } else { None },
        2 rule = if let Revised::Rule(was) = &it.was { Some(was) } else { None },
        3 until_ms,
        4 deleted,
        5 silence = if let Revised::Silence(was) = &it.was { Some(was) } else { None },
    } with { was: revised(trigger, rule, silence)? }
}

/// What it was: exactly one of them.
fn revised(
    trigger: Option<Trigger>,
    rule: Option<Rule>,
    silence: Option<Silence>,
) -> Option<Revised> {
    match (trigger, rule, silence) {
        (Some(trigger), None, None) => Some(Revised::Trigger(trigger)),
        (None, Some(rule), None) => Some(Revised::Rule(rule)),
        (None, None, Some(silence)) => Some(Revised::Silence(silence)),
        _ => None,
    }
}
