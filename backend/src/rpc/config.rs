//! `ConfigService`.

use std::sync::Arc;

use bellwether_proto::v1::{
    self, ConfigAction, config_document::Resource, config_service_server::ConfigService,
};
use tonic::{Request, Response, Status, async_trait};

use super::{access::caller, convert::to_i32};
use crate::{
    error::{Error, Violation},
    ops::{
        config::{Action, Change, Configuration, Document, Impacts},
        subject,
    },
};

#[derive(Debug)]
pub struct ConfigApi {
    pub(crate) configuration: Configuration,
    pub(crate) impacts: Arc<Impacts>,
}

#[async_trait]
impl ConfigService for ConfigApi {
    async fn apply_config(
        &self,
        request: Request<v1::ApplyConfigRequest>,
    ) -> Result<Response<v1::ApplyConfigResponse>, Status> {
        let role = caller(&request)?.role;
        let request = request.into_inner();
        let (documents, shown) = (parse_documents(request.documents)?, request.validate_only);
        let changes = self
            .configuration
            .apply(&documents, (&request.prune_owner, role), shown)
            .await?;
        let changed = |change: &&Change| !matches!(change.action, Action::Unchanged);
        let count = changes.iter().filter(changed).count();
        let answer = v1::ApplyConfigResponse {
            changes: changes
                .into_iter()
                .map(|it| change_to_wire(it, shown))
                .collect(),
        };
        let summary = format!("{count} resources");
        Ok(subject::mutation_response(
            shown || count == 0,
            summary,
            answer,
        ))
    }

    async fn preview_impact(
        &self,
        request: Request<v1::PreviewImpactRequest>,
    ) -> Result<Response<v1::PreviewImpactResponse>, Status> {
        let request = request.into_inner();
        let documents = parse_documents(request.documents)?;
        let scope = (&documents[..], &*request.prune_owner);
        let impact = self.impacts.preview(scope, request.days);
        Ok(Response::new(impact.await?))
    }
}

fn parse_documents(documents: Vec<v1::ConfigDocument>) -> Result<Vec<Document>, Error> {
    let mut violations = Vec::new();
    let mut read = Vec::with_capacity(documents.len());
    for (at, document) in documents.into_iter().enumerate() {
        let Some(definition) = document.resource else {
            violations.push(Violation::new(
                format!("documents[{at}]"),
                "is empty; expected `trigger`, `destination`, `rule`, `calendar`, `inhibition`, \
                 `mapping`, `view`, `heartbeat`, `contact`, `schedule`, `policy`, `drill`, `silence` or \
                 `settings`",
            ));
            continue;
        };
        read.push(Document {
            definition,
            must_be_new: document.must_be_new,
        });
    }
    if violations.is_empty() {
        return Ok(read);
    }
    Err(Error::Invalid(violations))
}

/// Converts a change. The resource is included only if `shown`.
fn change_to_wire(change: Change, shown: bool) -> v1::ConfigChange {
    let (action, before, after, changed_secrets) = match change.action {
        Action::Unchanged => (ConfigAction::Unchanged, None, None, Vec::new()),
        Action::Created(new) => (ConfigAction::Created, None, Some(new), Vec::new()),
        Action::Updated {
            before,
            after,
            changed_secrets,
        } => (
            ConfigAction::Updated,
            Some(before),
            Some(after),
            changed_secrets,
        ),
        Action::Deleted(old) => (ConfigAction::Deleted, Some(old), None, Vec::new()),
    };
    let document = |definition: Option<Box<Resource>>| {
        let definition = definition.filter(|_| shown)?;
        Some(v1::ConfigDocument {
            resource: Some(*definition),
            must_be_new: false,
        })
    };
    v1::ConfigChange {
        kind: change.kind.to_owned(),
        name: change.name,
        action: action.into(),
        before: document(before),
        after: document(after),
        changed_secrets,
        etag: change.etag,
        stopped_responses: to_i32(change.stopped_responses),
    }
}
