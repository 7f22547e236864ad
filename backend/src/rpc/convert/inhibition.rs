//! Conversion of inhibition previews.

use std::sync::Arc;

use bellwether_proto::v1;

use super::{event, list::to_i32, silence::held_messages};
use crate::{domain::Occurrence, ops::inhibition::Preview};

pub fn preview(preview: Preview) -> v1::PreviewInhibitionResponse {
    let shown =
        |it: Arc<Occurrence>| Some(event::event_with_one_occurrence(Arc::unwrap_or_clone(it)));
    let pairs = preview.pairs.into_iter().map(|it| v1::InhibitedPair {
        source: shown(it.source),
        target: shown(it.target),
    });
    v1::PreviewInhibitionResponse {
        pairs: pairs.collect(),
        source_count: Some(to_i32(preview.source_count)),
        target_count: Some(to_i32(preview.target_count)),
        held_count: Some(to_i32(preview.held_count)),
        last_days: Some(held_messages(preview.messages)),
        warnings: preview.warnings,
        stopped_early: preview.stopped_early,
    }
}
