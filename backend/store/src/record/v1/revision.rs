//! Earlier revisions of triggers, rules, silences and schedules.

use crate::{
    domain::{RevisedResource, Revision, Rule, Schedule, Silence, Trigger},
    record::table::record,
};

record! {
    Revision as it {
        1 trigger = if let RevisedResource::Trigger(was) = &it.was { Some(was) } else { None },
        2 rule = if let RevisedResource::Rule(was) = &it.was { Some(was) } else { None },
        3 until_ms,
        4 deleted,
        5 silence = if let RevisedResource::Silence(was) = &it.was { Some(was) } else { None },
        6 schedule = if let RevisedResource::Schedule(was) = &it.was { Some(was) } else { None },
    } with { was: decode_resource(trigger, rule, silence, schedule)? }
}

fn decode_resource(
    trigger: Option<Trigger>,
    rule: Option<Rule>,
    silence: Option<Silence>,
    schedule: Option<Schedule>,
) -> Option<RevisedResource> {
    let all = [
        trigger.map(RevisedResource::Trigger),
        rule.map(RevisedResource::Rule),
        silence.map(RevisedResource::Silence),
        schedule.map(RevisedResource::Schedule),
    ];
    let mut all = all.into_iter().flatten();
    all.next().filter(|_| all.next().is_none())
}
