//! Inhibitions between the wire and the domain.

use std::sync::Arc;

use bellwether_proto::{filter, v1};

use super::{
    event,
    list::count,
    query,
    silence::held_messages,
    time::{self, timestamp},
};
use crate::{
    domain::{Occurrence, inhibition::EqualFields},
    ops::{
        etag::etag,
        inhibition::{InhibitionDraft, InhibitionView, Preview},
    },
};

impl From<v1::Inhibition> for InhibitionDraft {
    fn from(wire: v1::Inhibition) -> Self {
        let mut faults = Vec::new();
        let source = (wire.source, wire.source_filter.as_str());
        let source = query::either(source, ("source", "sourceFilter"), &mut faults);
        let target = (wire.target, wire.target_filter.as_str());
        let target = query::either(target, ("target", "targetFilter"), &mut faults);
        let equal = |it: v1::EqualFields| EqualFields {
            target: if it.target.is_empty() {
                it.source.clone()
            } else {
                it.target
            },
            source: it.source,
        };
        Self {
            name: wire.name,
            description: wire.description,
            tags: wire.tags,
            enabled: wire.enabled.unwrap_or_default(),
            source,
            target,
            equal: wire.equal.into_iter().map(equal).collect(),
            linger_ms: wire.linger.as_ref().map(time::length_ms),
            etag: wire.etag,
            faults,
        }
    }
}

impl From<InhibitionView> for v1::Inhibition {
    fn from(view: InhibitionView) -> Self {
        let inhibition = view.inhibition;
        let state = if !inhibition.enabled {
            v1::inhibition::State::Disabled
        } else if inhibition.counted_revision == inhibition.revision {
            v1::inhibition::State::Active
        } else {
            v1::inhibition::State::Preparing
        };
        let equal = |it: EqualFields| v1::EqualFields {
            source: it.source,
            target: it.target,
        };
        Self {
            name: inhibition.name.to_string(),
            description: inhibition.description,
            tags: inhibition.tags,
            enabled: Some(inhibition.enabled),
            source: Some(query::to_wire(&inhibition.source)),
            source_filter: filter::print(&inhibition.source.clause),
            target: Some(query::to_wire(&inhibition.target)),
            target_filter: filter::print(&inhibition.target.clause),
            equal: inhibition.equal.into_iter().map(equal).collect(),
            linger: Some(time::length(inhibition.linger_ms)),
            state: state.into(),
            create_time: Some(timestamp(inhibition.create_ms)),
            update_time: Some(timestamp(inhibition.update_ms)),
            etag: etag(inhibition.id, inhibition.revision),
        }
    }
}

/// What a draft would hold.
pub fn preview(preview: Preview) -> v1::PreviewInhibitionResponse {
    let shown = |it: Arc<Occurrence>| Some(event::single(Arc::unwrap_or_clone(it)));
    let pairs = preview.pairs.into_iter().map(|it| v1::InhibitedPair {
        source: shown(it.source),
        target: shown(it.target),
    });
    v1::PreviewInhibitionResponse {
        pairs: pairs.collect(),
        source_count: Some(count(preview.source_count)),
        target_count: Some(count(preview.target_count)),
        held_count: Some(count(preview.held_count)),
        last_days: Some(held_messages(preview.messages)),
        warnings: preview.warnings,
        stopped_early: preview.stopped_early,
    }
}
