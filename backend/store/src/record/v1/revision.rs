//! Earlier revisions of triggers, rules, silences and schedules.

use crate::{
    domain::{Revised, Revision, Rule, Schedule, Silence, Trigger},
    record::table::record,
};

record! {
    Revision as it {
        1 trigger = if let Revised::Trigger(was) = &it.was { Some(was) } else { None },
        2 rule = if let Revised::Rule(was) = &it.was { Some(was) } else { None },
        3 until_ms,
        4 deleted,
        5 silence = if let Revised::Silence(was) = &it.was { Some(was) } else { None },
        6 schedule = if let Revised::Schedule(was) = &it.was { Some(was) } else { None },
    } with { was: revised(trigger, rule, silence, schedule)? }
}

fn revised(
    trigger: Option<Trigger>,
    rule: Option<Rule>,
    silence: Option<Silence>,
    schedule: Option<Schedule>,
) -> Option<Revised> {
    let all = [
        trigger.map(Revised::Trigger),
        rule.map(Revised::Rule),
        silence.map(Revised::Silence),
        schedule.map(Revised::Schedule),
    ];
    let mut all = all.into_iter().flatten();
    all.next().filter(|_| all.next().is_none())
}
