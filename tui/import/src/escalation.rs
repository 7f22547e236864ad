//! Import of escalations as policies.

use serde_json::{Value, json};

use super::imported::ImportOutput;

const STEPS_MAX: usize = 20;
const TARGETS_MAX: usize = 20;
const ROUNDS_MAX: i64 = 10;
const WAIT_MAX_SECONDS: i64 = 86_400;
const ACK_SECONDS: std::ops::RangeInclusive<i64> = 60..=604_800;
const PAUSE_SECONDS: i64 = 300;

pub(crate) struct Policy<'a> {
    pub(crate) path: &'a str,
    pub(crate) name: &'a str,
    pub(crate) description: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) rounds: i64,
    pub(crate) pause_seconds: Option<i64>,
    pub(crate) ack_timeout_seconds: Option<i64>,
}

pub(crate) struct Step {
    pub(crate) path: String,
    pub(crate) after_seconds: i64,
    pub(crate) targets: Vec<Value>,
}

/// Adds a policy and returns its name; `None` if no step has a target.
pub(crate) fn add_policy(policy: Policy<'_>, imported: &mut ImportOutput) -> Option<String> {
    let path = policy.path;
    let mut steps = merge_steps(policy.steps);
    if steps.is_empty() {
        imported.record_omission(path, "no step has anyone to notify");
        return None;
    }
    for step in steps.drain(STEPS_MAX.min(steps.len())..) {
        imported.record_omission(&step.path, "a policy can have at most 20 steps");
    }
    let first = steps[0].after_seconds;
    if first > 0 {
        let what = format!(
            "the first step runs immediately, not after {first} s; to delay it, set `delay` in the rule"
        );
        imported.add_note(path, &what);
    }
    let ends: Vec<_> = steps[1..].iter().map(|it| it.after_seconds).collect();
    let pause = policy.pause_seconds.unwrap_or(PAUSE_SECONDS);
    let mut written = Vec::new();
    for (at, step) in steps.into_iter().enumerate() {
        let wait = ends.get(at).map_or(pause, |end| end - step.after_seconds);
        let limited = clamp_reported(wait, 0..=WAIT_MAX_SECONDS, &step.path, "wait", imported);
        if step.targets.len() > TARGETS_MAX {
            imported.record_omission(
                &step.path,
                "a step can have at most 20 targets; the rest were dropped",
            );
        }
        let targets: Vec<_> = step.targets.into_iter().take(TARGETS_MAX).collect();
        written.push(json!({"targets": targets, "wait": format!("{limited}s")}));
    }
    let rounds = clamp_reported(policy.rounds, 1..=ROUNDS_MAX, path, "rounds", imported);
    let name = imported.unique_name("policy", policy.name);
    let mut body = json!({
        "name": name, "description": policy.description, "steps": written, "rounds": rounds,
    });
    if let Some(seconds) = policy.ack_timeout_seconds {
        let seconds = clamp_reported(seconds, ACK_SECONDS, path, "ackTimeout", imported);
        body["ackTimeout"] = json!(format!("{seconds}s"));
    }
    imported.add("policy", body);
    Some(name)
}

fn merge_steps(mut steps: Vec<Step>) -> Vec<Step> {
    steps.sort_by_key(|step| step.after_seconds);
    let mut joined: Vec<Step> = Vec::new();
    for step in steps.into_iter().filter(|step| !step.targets.is_empty()) {
        match joined.last_mut() {
            Some(last) if last.after_seconds == step.after_seconds => {
                for target in step.targets {
                    if !last.targets.contains(&target) {
                        last.targets.push(target);
                    }
                }
            }
            _ => joined.push(step),
        }
    }
    joined
}

fn clamp_reported(
    value: i64,
    range: std::ops::RangeInclusive<i64>,
    path: &str,
    what: &str,
    imported: &mut ImportOutput,
) -> i64 {
    let limited = value.clamp(*range.start(), *range.end());
    if limited != value {
        imported.add_note(path, &format!("`{what}` is {limited} instead of {value}"));
    }
    limited
}
