//! Previews of the values that an enrichment table would set in stored events.

use std::{collections::BTreeSet, sync::Arc};

use bellwether_proto::v1;

use super::{EnrichmentTables, load_draft};
use crate::{
    decide::AppliedRow,
    domain::{Occurrence, Status},
    error::Error,
    limits::{ENRICHMENT_PREVIEW_EVENTS_MAX, ENRICHMENT_PREVIEW_SHOWN_MAX},
    recent_messages::Deadline,
    resource::{AuthoredResource as _, Origin},
    ruleset::Ruleset,
    scan,
    search::{Filter, IndexWalk, NEWEST_FIRST},
};

const BATCH: usize = 500;

#[derive(Debug, Clone)]
pub struct EnrichmentPreviews {
    all: EnrichmentTables,
    ruleset: Arc<Ruleset>,
}

#[derive(Debug, Clone, Default)]
pub struct EnrichmentPreview {
    pub event_count: usize,
    pub matched_count: usize,
    /// Number of events whose metadata would change.
    pub changed_count: usize,
    pub row_count: usize,
    pub unmatched_row_count: usize,
    /// The lines of the first rows that match no event.
    pub unmatched_lines: Vec<usize>,
    /// The newest events that match a row.
    pub events: Vec<PreviewedEvent>,
    pub warnings: Vec<String>,
    pub stopped_early: bool,
}

#[derive(Debug, Clone)]
pub struct PreviewedEvent {
    /// The occurrence as stored.
    pub occurrence: Occurrence,
    pub applied: AppliedRow,
}

impl EnrichmentPreviews {
    pub fn new(all: EnrichmentTables, ruleset: Arc<Ruleset>) -> Self {
        Self { all, ruleset }
    }

    /// Applies a draft to the newest stored events, in place of the stored table of its name. The
    /// draft is not stored and requires no name.
    pub async fn preview(
        &self,
        mut draft: v1::EnrichmentTable,
    ) -> Result<EnrichmentPreview, Error> {
        if draft.name.is_empty() {
            "preview".clone_into(&mut draft.name);
        }
        let clock = &*self.all.clock;
        let loaded = load_draft(&draft, false, Origin::new(clock.now_ms()))?;
        let name = loaded.table.name.clone();
        let mut unmatched: BTreeSet<_> = loaded.rows().collect();
        let mut preview = EnrichmentPreview {
            row_count: unmatched.len(),
            warnings: loaded.table.warnings(&self.all).await?,
            ..EnrichmentPreview::default()
        };
        let snapshot = self.ruleset.refresh().await?;
        let tables = snapshot.enrichments().with_table(Arc::new(loaded));
        let filter = Filter {
            statuses: Status::ALL.to_vec(),
            ..Filter::default()
        };
        let end = Deadline::start(clock);
        let mut walk = IndexWalk::new(&self.all.store, &filter, NEWEST_FIRST, None);
        while preview.event_count < ENRICHMENT_PREVIEW_EVENTS_MAX {
            let left = ENRICHMENT_PREVIEW_EVENTS_MAX - preview.event_count;
            let batch = walk.next(left.min(BATCH)).await?;
            if batch.is_empty() {
                break;
            }
            preview.event_count += batch.len();
            for (_, found) in batch {
                scan::yield_if_needed().await;
                let mut occurrence = found.value;
                let before = occurrence.metadata.clone();
                let enriched = occurrence.enriched.clone();
                occurrence.remove_enriched();
                let applied = tables.apply_traced(&mut occurrence, &name);
                preview.changed_count += usize::from(occurrence.metadata != before);
                let Some(applied) = applied else { continue };
                preview.matched_count += 1;
                unmatched.remove(&applied.row);
                if preview.events.len() < ENRICHMENT_PREVIEW_SHOWN_MAX {
                    occurrence.metadata = before;
                    occurrence.enriched = enriched;
                    preview.events.push(PreviewedEvent {
                        occurrence,
                        applied,
                    });
                }
            }
            if end.has_passed(clock) {
                preview.stopped_early = true;
                break;
            }
            tokio::task::yield_now().await;
        }
        preview.unmatched_row_count = unmatched.len();
        let lines = unmatched.into_iter().map(|it| it.line);
        preview.unmatched_lines = lines.take(ENRICHMENT_PREVIEW_SHOWN_MAX).collect();
        Ok(preview)
    }
}
