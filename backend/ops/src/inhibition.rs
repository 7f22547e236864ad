//! Inhibitions: service, storage, editing, deletion, and previews on open events.

mod preview;

use std::time::Duration;

use bellwether_language::filter;
use bellwether_proto::v1::{self, inhibition_service_server::InhibitionService};
use tonic::{Request, Response, Status, async_trait};

use crate::{
    domain::{Inhibition, Query, inhibition::EqualFields},
    error::Error,
    etag::compute_etag,
    from_domain::FromDomain,
    limits::{
        INHIBITION_EQUAL_MAX, INHIBITION_LINGER_DEFAULT, INHIBITION_LINGER_MAX, INHIBITIONS_MAX,
    },
    matching::{self, field::Field},
    resource::{AuthoredResource, Origin, Resources, resource},
    serve::serve,
    store::Changes,
    tag_scope::TagScope,
    validate::Violations,
    wire::{
        query,
        time::{self, timestamp},
    },
};

pub use preview::InhibitionPreviews;

pub type Inhibitions = Resources<Inhibition>;

resource!(Inhibition, v1::Inhibition, "inhibition", |_| None);

#[derive(Debug)]
pub struct InhibitionApi {
    pub inhibitions: Inhibitions,
    pub previews: InhibitionPreviews,
}

#[async_trait]
impl InhibitionService for InhibitionApi {
    serve! {
        inhibitions of inhibition;
        create_inhibition(CreateInhibitionRequest) -> CreateInhibitionResponse;
        list_inhibitions(ListInhibitionsRequest) -> ListInhibitionsResponse { inhibitions };
        get_inhibition(GetInhibitionRequest) -> GetInhibitionResponse;
        update_inhibition(UpdateInhibitionRequest) -> UpdateInhibitionResponse;
        delete_inhibition(DeleteInhibitionRequest) -> DeleteInhibitionResponse, |it| it.force;
        stored |_api, _request, stored| { warnings: stored.warnings.clone() }
    }

    async fn preview_inhibition(
        &self,
        request: Request<v1::PreviewInhibitionRequest>,
    ) -> Result<Response<v1::PreviewInhibitionResponse>, Status> {
        let wire = request.into_inner().inhibition.unwrap_or_default();
        Ok(Response::new(self.previews.preview(wire).await?))
    }
}

impl AuthoredResource for Inhibition {
    type Draft = v1::Inhibition;
    type View = v1::Inhibition;

    async fn from_draft(
        all: &Inhibitions,
        draft: &v1::Inhibition,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut violations = Violations::default();
        let source = (draft.source.clone(), &*draft.source_filter);
        let source =
            violations.read(|it| query::query_or_filter(source, ("source", "sourceFilter"), it));
        let target = (draft.target.clone(), &*draft.target_filter);
        let target =
            violations.read(|it| query::query_or_filter(target, ("target", "targetFilter"), it));
        let name = violations.name(&draft.name, stored.is_none());
        violations.check_texts(&draft.description, &draft.tags);
        let source = check_query("source", source, &mut violations);
        let target = check_query("target", target, &mut violations);
        let equal = equal_fields(&draft.equal, &mut violations);
        let linger_ms = check_linger(
            draft.linger.as_ref().map(time::duration_to_ms),
            &mut violations,
        );
        all.check_room(stored, INHIBITIONS_MAX).await?;
        if let (Some(scope), Some(target)) = (TagScope::from_caller(), &target) {
            scope.check_query("target", target)?;
        }
        let queries = source.zip(target);
        let inhibition = name.zip(queries).map(|(name, (source, target))| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            enabled: draft.enabled.unwrap_or_default(),
            source,
            target,
            equal,
            linger_ms,
            counted_revision: stored.map_or(0, |it| it.counted_revision),
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((violations.into_result(inhibition)?, all.store.new_changes()))
    }

    async fn warnings(&self, all: &Inhibitions) -> Result<Vec<String>, Error> {
        let mut warnings = all.fields.field_warnings(&self.source).await?;
        warnings.extend(all.fields.field_warnings(&self.target).await?);
        Ok(warnings)
    }
}

impl FromDomain<Inhibition> for v1::Inhibition {
    fn from_domain(inhibition: Inhibition) -> Self {
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
            source_filter: filter::print_clause(&inhibition.source.clause),
            target: Some(query::to_wire(&inhibition.target)),
            target_filter: filter::print_clause(&inhibition.target.clause),
            equal: inhibition.equal.into_iter().map(equal).collect(),
            linger: Some(time::duration_from_ms(inhibition.linger_ms)),
            state: state.into(),
            create_time: Some(timestamp(inhibition.create_ms)),
            update_time: Some(timestamp(inhibition.update_ms)),
            etag: compute_etag(inhibition.id, inhibition.revision),
        }
    }
}

fn check_query(path: &str, query: Option<Query>, violations: &mut Violations) -> Option<Query> {
    let Some(query) = query else {
        violations.add_new(path, "is required");
        return None;
    };
    if let Err(found) = matching::compile(&query) {
        violations.add_with_prefix(path, found);
        return None;
    }
    Some(query)
}

/// Converts the fields that must be equal. Without a target field, the name of the source field is
/// used.
fn equal_fields(wire: &[v1::EqualFields], violations: &mut Violations) -> Vec<EqualFields> {
    if !(1..=INHIBITION_EQUAL_MAX).contains(&wire.len()) {
        let count = wire.len();
        let message = format!(
            "has {count} fields; expected 1 to {INHIBITION_EQUAL_MAX} that relate causes to effects"
        );
        violations.add("equal", message);
        return Vec::new();
    }
    let mut equal = Vec::with_capacity(wire.len());
    for (at, fields) in wire.iter().enumerate() {
        let source = fields.source.clone();
        let target = match &*fields.target {
            "" => source.clone(),
            target => target.to_owned(),
        };
        for (side, name) in [("source", &source), ("target", &target)] {
            if let Err(message) = Field::parse(name) {
                violations.add(format!("equal[{at}].{side}"), message);
            }
        }
        equal.push(EqualFields { source, target });
    }
    equal
}

fn check_linger(requested_ms: Option<i64>, violations: &mut Violations) -> i64 {
    let millis = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    let linger_ms = requested_ms.unwrap_or(millis(INHIBITION_LINGER_DEFAULT));
    if !(0..=millis(INHIBITION_LINGER_MAX)).contains(&linger_ms) {
        let most = INHIBITION_LINGER_MAX.as_secs();
        let found = linger_ms / 1_000;
        violations.add("linger", format!("is {found} s; expected 0 to {most} s"));
    }
    linger_ms
}
