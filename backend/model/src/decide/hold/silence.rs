//! Holds notifications covered by a silence until it ends.

use super::OutgoingNotification;
use crate::{
    decide::LoadedSilence,
    domain::{HeldBy, HoldKind},
};

pub(super) fn silence_holds(sending: &OutgoingNotification<'_>) -> impl Iterator<Item = HeldBy> {
    let covering = sending.covering.iter();
    let covering = covering.filter(|it| it.applies_to_rule(sending.rule_name));
    covering.map(|it| silence_hold(it, sending.now_ms))
}

fn silence_hold(loaded: &LoadedSilence, now_ms: i64) -> HeldBy {
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
