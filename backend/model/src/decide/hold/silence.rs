//! Holds notifications covered by a silence until it ends.

use super::{super::condition::format_time, HoldCondition};
use crate::{
    decide::{LoadedSilence, Tense},
    domain::{HeldBy, HoldKind},
};

pub(super) const HOLD: HoldCondition = HoldCondition {
    name: "silence",
    kind: HoldKind::Silence,
    held_by: |sending| {
        let covering = sending.covering.iter();
        let covering = covering.filter(|it| it.applies_to_rule(sending.rule_name));
        covering.map(|it| held_by(it, sending.now_ms)).collect()
    },
    detail: |all, tense| {
        let named = all.iter().map(|it| {
            let HeldBy {
                name,
                author,
                detail,
                ..
            } = it;
            let author = author.as_ref().map_or("", |author| author.as_str());
            match it.until_ms {
                Some(until_ms) => {
                    let until = format_time(until_ms);
                    format!("`{name}` ({author}, \u{ab}{detail}\u{bb}) until {until}")
                }
                None => format!("`{name}` ({author}, \u{ab}{detail}\u{bb})"),
            }
        });
        let named = named.collect::<Vec<_>>().join(" and ");
        let plural = if all.len() == 1 { "" } else { "s" };
        match (tense, all.len()) {
            (Tense::Now, 1) => format!("silence {named} holds it"),
            (Tense::Now, _) => format!("silence{plural} {named} hold it"),
            (Tense::Then, _) => format!("silence{plural} {named} held it"),
        }
    },
};

fn held_by(loaded: &LoadedSilence, now_ms: i64) -> HeldBy {
    let silence = &loaded.silence;
    HeldBy {
        kind: HoldKind::Silence,
        id: silence.id,
        name: silence.name.clone(),
        revision: silence.revision,
        since_ms: silence.start_ms,
        until_ms: loaded.current_end_ms(now_ms),
        author: Some(silence.author.clone()),
        shared: Vec::new(),
        detail: silence.reason.clone(),
    }
}
