//! `EnrichmentTableService`.

use bellwether_proto::v1::{self, enrichment_table_service_server::EnrichmentTableService};
use tonic::{Request, Response, Status, async_trait};

use super::{
    convert::{event::event_with_one_occurrence, list::to_i32},
    serve::serve,
};
use crate::ops::enrichment::{EnrichmentPreviews, EnrichmentTables, PreviewedEvent};

#[derive(Debug)]
pub struct EnrichmentTableApi {
    pub(crate) tables: EnrichmentTables,
    pub(crate) previews: EnrichmentPreviews,
}

#[async_trait]
impl EnrichmentTableService for EnrichmentTableApi {
    serve! {
        tables of enrichment;
        create_enrichment_table(CreateEnrichmentTableRequest) -> CreateEnrichmentTableResponse;
        list_enrichment_tables(ListEnrichmentTablesRequest)
            -> ListEnrichmentTablesResponse { enrichments };
        get_enrichment_table(GetEnrichmentTableRequest) -> GetEnrichmentTableResponse;
        update_enrichment_table(UpdateEnrichmentTableRequest) -> UpdateEnrichmentTableResponse;
        delete_enrichment_table(DeleteEnrichmentTableRequest)
            -> DeleteEnrichmentTableResponse, |it| it.force;
        stored |_api, _request, stored| { warnings: stored.warnings.clone() }
    }

    async fn preview_enrichment_table(
        &self,
        request: Request<v1::PreviewEnrichmentTableRequest>,
    ) -> Result<Response<v1::PreviewEnrichmentTableResponse>, Status> {
        let wire = request.into_inner().enrichment.unwrap_or_default();
        let preview = self.previews.preview(wire).await?;
        Ok(Response::new(v1::PreviewEnrichmentTableResponse {
            event_count: Some(to_i32(preview.event_count)),
            matched_count: Some(to_i32(preview.matched_count)),
            changed_count: Some(to_i32(preview.changed_count)),
            row_count: Some(to_i32(preview.row_count)),
            unmatched_row_count: Some(to_i32(preview.unmatched_row_count)),
            unmatched_lines: preview.unmatched_lines.into_iter().map(to_i32).collect(),
            events: preview.events.into_iter().map(enriched_event).collect(),
            warnings: preview.warnings,
            stopped_early: preview.stopped_early,
        }))
    }
}

fn enriched_event(found: PreviewedEvent) -> v1::EnrichedEvent {
    let kept = found.applied.kept.into_iter();
    v1::EnrichedEvent {
        event: Some(event_with_one_occurrence(found.occurrence)),
        line: to_i32(found.applied.row.line),
        values: found.applied.values.into_iter().collect(),
        kept_fields: kept.map(|(key, _)| key).collect(),
    }
}
