//! Enrichment tables: service, validation, storage, and previews on stored events.

mod preview;

use bellwether_proto::v1::{self, enrichment_table_service_server::EnrichmentTableService};
use tonic::{Request, Response, Status, async_trait};

use crate::{
    decide::LoadedEnrichment,
    domain::{Clause, EnrichmentTable, Query},
    error::Error,
    etag::compute_etag,
    from_domain::FromDomain,
    limits::ENRICHMENT_TABLES_MAX,
    resource::{AuthoredResource, Origin, Resources, resource},
    serve::serve,
    store::Changes,
    tag_scope::TagScope,
    validate::Violations,
    wire::{event::event_with_one_occurrence, time::timestamp, to_i32},
};

pub use preview::{EnrichmentPreview, EnrichmentPreviews, PreviewedEvent};

pub type EnrichmentTables = Resources<EnrichmentTable>;

resource!(EnrichmentTable, v1::EnrichmentTable, "enrichment", |_| None);

#[derive(Debug)]
pub struct EnrichmentTableApi {
    pub tables: EnrichmentTables,
    pub previews: EnrichmentPreviews,
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

impl AuthoredResource for EnrichmentTable {
    type Draft = v1::EnrichmentTable;
    type View = v1::EnrichmentTable;

    async fn from_draft(
        all: &EnrichmentTables,
        draft: &v1::EnrichmentTable,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        // A table can change any event, including the fields that a scope depends on.
        if let Some(scope) = TagScope::from_caller() {
            return Err(scope.denied_error("an enrichment table changes all events and"));
        }
        let loaded = load_draft(draft, stored.is_none(), origin)?;
        all.check_room(stored, ENRICHMENT_TABLES_MAX).await?;
        Ok((loaded.table, all.store.new_changes()))
    }

    async fn warnings(&self, all: &EnrichmentTables) -> Result<Vec<String>, Error> {
        let fields = self.match_fields.iter().cloned();
        let clause = Clause::And(fields.map(Clause::Exists).collect());
        all.fields.field_warnings(&Query { clause }).await
    }
}

/// Validates a draft and compiles its rows.
fn load_draft(
    draft: &v1::EnrichmentTable,
    is_new: bool,
    origin: Origin,
) -> Result<LoadedEnrichment, Error> {
    let mut violations = Violations::default();
    let name = violations.name(&draft.name, is_new);
    violations.check_texts(&draft.description, &draft.tags);
    let Some(name) = name else {
        return violations.into_result(None);
    };
    let csv = draft.csv.trim_start_matches('\u{feff}');
    let loaded = LoadedEnrichment::new(EnrichmentTable {
        id: origin.id,
        name,
        description: draft.description.clone(),
        tags: draft.tags.clone(),
        enabled: draft.enabled.unwrap_or_default(),
        match_fields: draft.match_fields.clone(),
        csv: csv.trim_end_matches(['\r', '\n']).to_owned(),
        revision: origin.revision,
        create_ms: origin.create_ms,
        update_ms: origin.update_ms,
    });
    let loaded = loaded.map_err(|found| violations.extend(found)).ok();
    violations.into_result(loaded)
}

impl FromDomain<EnrichmentTable> for v1::EnrichmentTable {
    fn from_domain(table: EnrichmentTable) -> Self {
        Self {
            name: table.name.to_string(),
            description: table.description,
            tags: table.tags,
            enabled: Some(table.enabled),
            match_fields: table.match_fields,
            csv: table.csv,
            create_time: Some(timestamp(table.create_ms)),
            update_time: Some(timestamp(table.update_ms)),
            etag: compute_etag(table.id, table.revision),
        }
    }
}
