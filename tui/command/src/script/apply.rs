//! `diff` and `apply`: compares documents with the stored configuration and applies them.

mod changes;
mod impact;
mod plan;

use bellwether_tui::api::CallError;
use serde_json::{Value, json};

use super::{Api, connect, document, document::Document, format};
use crate::{
    cli::script::{ApplyArguments, DiffArguments, ImpactArguments, Output, Source},
    config::Settings,
    failure::Failure,
    output,
};

use plan::Plan;

pub(super) struct ApplyRequest {
    documents: Vec<Document>,
    request: Value,
}

impl ApplyRequest {
    pub(super) fn new(documents: Vec<Document>, owner: Option<&str>) -> Result<Self, Failure> {
        let resolved: Result<Vec<_>, _> = documents.iter().map(Document::resolve_secrets).collect();
        let request = json!({"documents": resolved?, "pruneOwner": owner.unwrap_or_default()});
        Ok(Self { documents, request })
    }

    fn from_source(source: &Source) -> Result<Self, Failure> {
        if source.files.is_empty() {
            return Err(Failure::usage_error("specify documents with --file"));
        }
        let documents = document::read_documents(&source.files)?;
        if documents.is_empty() && !source.prune {
            return Err(Failure::usage_error("--file: contains no documents"));
        }
        Self::new(documents, source.owner.as_deref())
    }

    pub(super) async fn call(
        &mut self,
        api: &mut Api,
        validate_only: bool,
    ) -> Result<Vec<Value>, Failure> {
        self.request["validateOnly"] = validate_only.into();
        let answer = api
            .call_checked("ConfigService", "ApplyConfig", &self.request)
            .await;
        match answer.map_err(|error| self.call_failure(error))?["changes"].take() {
            Value::Array(changes) => Ok(changes),
            _ => Ok(Vec::new()),
        }
    }

    async fn estimate_impact(
        &self,
        api: &mut Api,
        arguments: &ImpactArguments,
    ) -> Result<Option<Value>, Failure> {
        let Some(days) = arguments.impact else {
            return Ok(None);
        };
        let request = impact::impact_request(&self.request, days);
        let answer = api.call("ConfigService", "PreviewImpact", &request).await;
        Ok(Some(answer.map_err(|error| self.call_failure(error))?))
    }

    /// Converts an error of the service. Documents are named by their position in the files.
    fn call_failure(&self, error: CallError) -> Failure {
        let named = |field: &str| {
            let (at, below) = field.strip_prefix("documents[")?.split_once(']')?;
            let document = self.documents.get(at.parse::<usize>().ok()?)?;
            let (source, kind, name) = (&document.source, document.kind.singular(), &document.name);
            let field = below.trim_start_matches('.');
            let field = field.strip_prefix(kind).unwrap_or(field);
            let field = field.trim_start_matches('.');
            Some(format!("{source}: {kind} `{name}`: {field}"))
        };
        let count = error.fields.len();
        let fields: Vec<_> = error
            .fields
            .into_iter()
            .map(|(field, why)| (named(&field).unwrap_or(field), why))
            .collect();
        let message = match count {
            0 => error.message,
            1 => "a document is invalid; nothing was changed".to_owned(),
            _ => format!("{count} errors in documents; nothing was changed"),
        };
        CallError {
            message,
            fields,
            ..error
        }
        .into()
    }
}

pub(super) async fn run_diff(arguments: DiffArguments, settings: &Settings) -> Result<(), Failure> {
    let mut request = ApplyRequest::from_source(&arguments.source)?;
    let mut api = connect(settings).await?.with_call_timeout(impact::PATIENCE);
    let changes = request.call(&mut api, true).await?;
    let impact = request.estimate_impact(&mut api, &arguments.impact).await?;
    if let Some(file) = &arguments.save {
        let owner = arguments.source.owner.as_deref();
        Plan::new(&request.documents, &changes, owner).save(file)?;
    }
    write_changes(&changes, impact.as_ref(), arguments.output)?;
    if let Some(impact) = &impact {
        impact::check(impact, &arguments.impact)?;
    }
    let differs = changes.iter().any(|change| !changes::is_unchanged(change));
    // The changes have been printed, so the failure only sets the exit code.
    if differs {
        Err(Failure::without_message())
    } else {
        Ok(())
    }
}

pub(super) async fn run_apply(
    arguments: ApplyArguments,
    settings: &Settings,
) -> Result<(), Failure> {
    let plan = arguments.plan.as_deref().map(Plan::read).transpose()?;
    let mut request = match &plan {
        Some(plan) => ApplyRequest::new(plan.documents()?, plan.owner())?,
        None => ApplyRequest::from_source(&arguments.source)?,
    };
    let mut api = connect(settings).await?.with_call_timeout(impact::PATIENCE);
    if let Some(plan) = &plan {
        plan.set_expected_etags(&mut request.request);
        plan.check(&request.call(&mut api, true).await?)?;
    }
    let impact = request.estimate_impact(&mut api, &arguments.impact).await?;
    if let Some(impact) = &impact
        && let Err(refused) = impact::check(impact, &arguments.impact)
    {
        write_changes(&[], Some(impact), arguments.output)?;
        return Err(refused);
    }
    let changes = request.call(&mut api, arguments.dry_run).await?;
    write_changes(&changes, impact.as_ref(), arguments.output)
}

pub(super) fn write_changes(
    changes: &[Value],
    impact: Option<&Value>,
    how: Output,
) -> Result<(), Failure> {
    if let Output::Text = how {
        let impact = impact.map(impact::impact_text).unwrap_or_default();
        return output::write_output(&(changes::changes_text(changes)? + &impact));
    }
    let mut all = json!({"changes": changes});
    if let Some(impact) = impact {
        all["impact"] = impact.clone();
    }
    format::write_formatted(&all, how, |_| String::new())
}
