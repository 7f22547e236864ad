//! Triggers: service, validation, storage, views and tests.

use std::pin::Pin;

use bellwether_language::filter;
use bellwether_proto::v1::{self, trigger_service_server::TriggerService, trigger_type::Type};
use futures_util::{Stream, stream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, async_trait};

use crate::{
    clock::DAY_MS,
    domain::{Name, Query, RevisedResource, Trigger},
    error::{Error, Violation},
    etag::compute_etag,
    from_domain::FromDomain,
    limits::TRIGGER_TEST_OCCURRENCES_MAX,
    matching::{self, CompiledQuery},
    notify_open::{OpenNotifier, StoredDefinition},
    references::{ReferencedResource, names_bytes, remove_from_rules, rules_using},
    resource::{AuthoredResource, Origin, Resources, resource},
    search,
    serve::serve,
    store::Changes,
    test_trigger::TestRun,
    validate::Violations,
    wire::{event::event_with_one_occurrence, query, time::timestamp, to_i32},
};

const QUERY_PATH: &str = "type.event.query";

const FILTER_PATH: &str = "type.event.filter";

pub type Triggers = Resources<Trigger>;

resource!(Trigger, v1::Trigger, "trigger", |was| Some(
    RevisedResource::Trigger(was)
));

#[derive(Debug)]
pub struct TriggerApi {
    pub triggers: Triggers,
    pub opens: OpenNotifier,
    /// Ends the streams when it is cancelled.
    pub shutdown: CancellationToken,
}

type TestProgress =
    Pin<Box<dyn Stream<Item = Result<v1::TestTriggerWithProgressResponse, Status>> + Send>>;

async fn next_progress(
    (mut run, is_begun): (TestRun, bool),
) -> (
    Result<v1::TestTriggerWithProgressResponse, Status>,
    Option<(TestRun, bool)>,
) {
    if is_begun && let Err(error) = run.advance().await {
        return (Err(error.into()), None);
    }
    let progress = progress_to_wire(&run);
    let left = (!run.is_finished()).then_some((run, true));
    (Ok(progress), left)
}

#[async_trait]
impl TriggerService for TriggerApi {
    serve! {
        triggers of trigger;
        create_trigger(CreateTriggerRequest) -> CreateTriggerResponse;
        list_triggers(ListTriggersRequest) -> ListTriggersResponse { triggers };
        get_trigger(GetTriggerRequest) -> GetTriggerResponse;
        update_trigger(UpdateTriggerRequest) -> UpdateTriggerResponse;
        delete_trigger(DeleteTriggerRequest) -> DeleteTriggerResponse, |it| it.force;
        stored |api, request, stored| {
            warnings: stored.warnings.clone(),
            notify_count: {
                let stores = StoredDefinition::Trigger(stored.resource.clone());
                let answer = api.opens.notify_or_count(request.notify_open, request.validate_only, stores);
                answer.await?.map(to_i32)
            },
        }
    }

    async fn test_trigger(
        &self,
        request: Request<v1::TestTriggerRequest>,
    ) -> Result<Response<v1::TestTriggerResponse>, Status> {
        let (draft, span) = draft_from_wire(request.into_inner());
        let run = self.triggers.test(&draft, span).await?;
        Ok(Response::new(result_to_wire(&run)))
    }

    async fn test_trigger_with_progress(
        &self,
        request: Request<v1::TestTriggerRequest>,
    ) -> Result<Response<TestProgress>, Status> {
        let (draft, span) = draft_from_wire(request.into_inner());
        let run = self.triggers.begin_test(&draft, span).await?;
        let shutdown = self.shutdown.clone();
        let reported = stream::unfold(Some((run, false)), move |state| {
            let shutdown = shutdown.clone();
            async move {
                let state = state?;
                tokio::select! {
                    reported = next_progress(state) => Some(reported),
                    () = shutdown.cancelled() => {
                        let stops = Error::Unavailable("the service is stopping".into());
                        Some((Err(stops.into()), None))
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(reported)))
    }
}

fn draft_from_wire(wire: v1::TestTriggerRequest) -> (v1::Trigger, (Option<i64>, Option<i64>)) {
    let span = wire.time_range.unwrap_or_default();
    let draft = v1::Trigger {
        name: wire.name,
        r#type: wire.r#type,
        ..v1::Trigger::default()
    };
    (draft, (span.start, span.end))
}

fn progress_to_wire(run: &TestRun) -> v1::TestTriggerWithProgressResponse {
    let test = run.results();
    v1::TestTriggerWithProgressResponse {
        matched: Some(to_i32(test.matched)),
        matched_by_saved: test.matched_by_saved.map(to_i32),
        scanned: Some(to_i32(test.scanned)),
        reached_time: test.reached_ms,
        time_range: Some(span_to_wire(run)),
        result: run.is_finished().then(|| result_to_wire(run)),
    }
}

fn result_to_wire(run: &TestRun) -> v1::TestTriggerResponse {
    let test = run.results();
    let occurrences = test.occurrences.iter().cloned();
    v1::TestTriggerResponse {
        matched: Some(to_i32(test.matched)),
        matched_by_saved: test.matched_by_saved.map(to_i32),
        scanned: Some(to_i32(test.scanned)),
        occurrences: occurrences.map(event_with_one_occurrence).collect(),
        stopped_early: test.stopped_early,
        reached_time: test.reached_ms.filter(|_| test.stopped_early),
        time_range: Some(span_to_wire(run)),
        warnings: test.warnings.clone(),
    }
}

fn span_to_wire(run: &TestRun) -> v1::TimeRange {
    let (start, end) = run.span();
    v1::TimeRange { start, end }
}

impl AuthoredResource for Trigger {
    type Draft = v1::Trigger;
    type View = v1::Trigger;

    async fn from_draft(
        all: &Triggers,
        draft: &v1::Trigger,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut violations = Violations::default();
        let query = violations.read(|it| convert_condition(draft.r#type.clone(), it));
        let name = violations.name(&draft.name, stored.is_none());
        violations.check_texts(&draft.description, &draft.tags);
        compile_query(query.as_ref(), &mut violations);
        let trigger = name.zip(query).map(|(name, query)| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            query,
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((violations.into_result(trigger)?, all.store.new_changes()))
    }

    async fn changes_on_delete(
        all: &Triggers,
        trigger: &Self,
        force: bool,
    ) -> Result<Changes, Error> {
        let mut changes = all.store.new_changes();
        let used = ReferencedResource::Trigger(&trigger.name);
        remove_from_rules(&all.store, used, force, all.clock.now_ms(), &mut changes).await?;
        Ok(changes)
    }

    async fn view(all: &Triggers, trigger: Self) -> Result<(v1::Trigger, usize), Error> {
        let rule_names =
            rules_using(&all.store, ReferencedResource::Trigger(&trigger.name)).await?;
        let bytes = names_bytes(&rule_names);
        let recent = all.recent.count_by_trigger(trigger.id).await?;
        let view = v1::Trigger {
            rule_names: rule_names.iter().map(ToString::to_string).collect(),
            recent_notification_count: Some(to_i32(recent)),
            ..v1::Trigger::from_domain(trigger)
        };
        Ok((view, bytes))
    }

    async fn warnings(&self, all: &Triggers) -> Result<Vec<String>, Error> {
        all.fields.field_warnings(&self.query).await
    }
}

impl FromDomain<Trigger> for v1::Trigger {
    fn from_domain(trigger: Trigger) -> Self {
        Self {
            name: trigger.name.to_string(),
            description: trigger.description,
            tags: trigger.tags,
            r#type: Some(event_type(&trigger.query)),
            rule_names: Vec::new(),
            recent_notification_count: Some(0),
            create_time: Some(timestamp(trigger.create_ms)),
            update_time: Some(timestamp(trigger.update_ms)),
            etag: compute_etag(trigger.id, trigger.revision),
            filter: filter::print_clause(&trigger.query.clause),
        }
    }
}

impl Triggers {
    /// Runs the test that [`Triggers::begin_test`] prepares, within its limits.
    pub async fn test(
        &self,
        draft: &v1::Trigger,
        span: (Option<i64>, Option<i64>),
    ) -> Result<TestRun, Error> {
        let mut run = self.begin_test(draft, span).await?;
        run.run(&*self.clock, TRIGGER_TEST_OCCURRENCES_MAX).await?;
        Ok(run)
    }

    /// Prepares a test of a draft's query on stored occurrences of a time span, compared with the
    /// stored trigger of the same name. The draft is not stored and requires no name. Without start
    /// and end, the span begins 24 hours ago.
    pub async fn begin_test(
        &self,
        draft: &v1::Trigger,
        (start_ms, end_ms): (Option<i64>, Option<i64>),
    ) -> Result<TestRun, Error> {
        let mut violations = Violations::default();
        let drafted = violations.read(|it| convert_condition(draft.r#type.clone(), it));
        let query = compile_query(drafted.as_ref(), &mut violations);
        if start_ms.zip(end_ms).is_some_and(|(start, end)| start > end) {
            violations.add("timeRange", "ends before it starts");
        }
        let query = violations.into_result(query)?;
        let warnings = match &drafted {
            Some(draft) => self.fields.field_warnings(draft).await?,
            None => Vec::new(),
        };
        let saved = match Name::parse(&draft.name) {
            Ok(name) => self.store.get::<Trigger>(name.as_str().into()).await?,
            Err(_error) => None,
        };
        // A stored query that this version no longer accepts matches no occurrence.
        let saved = saved.and_then(|stored| matching::compile(&stored.value.query).ok());
        let day_ago_ms = self.clock.now_ms() - DAY_MS;
        let span = search::Filter {
            start_ms: start_ms.or_else(|| end_ms.is_none().then_some(day_ago_ms)),
            end_ms,
            ..search::Filter::default()
        };
        Ok(TestRun::new(self.store.clone(), query, saved, span).with_warnings(warnings))
    }
}

/// Converts the condition of a trigger. Returns `None` after adding a violation.
fn convert_condition(
    wire: Option<v1::TriggerType>,
    violations: &mut Vec<Violation>,
) -> Option<Query> {
    let refused =
        |kind| format!("this service ingests events; trigger type `{kind}` is not supported");
    let (field, message) = match wire.and_then(|wire| wire.r#type) {
        Some(Type::Event(event)) => return event_condition(event, violations),
        Some(Type::MetricThreshold(_)) => ("type.metricThreshold", refused("metricThreshold")),
        Some(Type::Anomaly(_)) => ("type.anomaly", refused("anomaly")),
        None => {
            let message = "is required: exactly one type, `event`";
            ("type", message.to_owned())
        }
    };
    violations.push(Violation::new(field, message));
    None
}

fn event_condition(event: v1::EventTrigger, violations: &mut Vec<Violation>) -> Option<Query> {
    if event.filter.is_empty() {
        return query::query(event.query, QUERY_PATH, violations);
    }
    if event.query.is_some() {
        let message = "conflicts with `query`; set only one of them";
        violations.push(Violation::new(FILTER_PATH, message));
    }
    let (parsed, _) = query::parse_filter(&event.filter, None, FILTER_PATH, violations)?;
    let clause = parsed.clause;
    Some(Query { clause })
}

pub fn event_type(query: &Query) -> v1::TriggerType {
    let event = v1::EventTrigger {
        query: Some(query::to_wire(query)),
        filter: String::new(),
    };
    v1::TriggerType {
        r#type: Some(Type::Event(event)),
    }
}

/// Compiles the query. Returns `None` if there is none, or after adding violations.
fn compile_query(query: Option<&Query>, violations: &mut Violations) -> Option<CompiledQuery> {
    matching::compile(query?)
        .map_err(|found| violations.add_with_prefix(QUERY_PATH, found))
        .ok()
}
