//! Holds notifications while a source of an inhibition is open.

use super::{super::condition::format_time, HoldCondition};
use crate::{decide::Tense, domain::HoldKind};

pub(super) const HOLD: HoldCondition = HoldCondition {
    name: "inhibition",
    kind: HoldKind::Inhibition,
    held_by: |sending| sending.inhibited.to_vec(),
    detail: |all, tense| {
        let named = all.iter().map(|it| {
            let until = it.until_ms.map(format_time);
            let until = until.map_or_else(String::new, |until| format!("; released at {until}"));
            format!("`{}`, since {}{until}", it.name, it.detail)
        });
        let named = named.collect::<Vec<_>>().join(" and ");
        let holds = match (tense, all.len()) {
            (Tense::Now, 1) => "holds it",
            (Tense::Now, _) => "hold it",
            (Tense::Then, _) => "held it",
        };
        let plural = if all.len() == 1 { "" } else { "s" };
        format!("inhibition{plural} {named} {holds}")
    },
};
