//! Tests of destinations: one message sent through the regular delivery code and recorded as a
//! test.

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use bellwether_backend_base::config::DeliveryConfig;
use tokio::{sync::oneshot, task::JoinSet};

use crate::{
    clock::Clock,
    commit::commit,
    decide::NO_ENRICHMENTS,
    delivery::attempt,
    destination::tested_drafts::TestedDrafts,
    domain::{
        Attempt, Close, CloseReason, Delivery, DeliverySettings, DeliveryState, Destination,
        DestinationKind, EventId, Health, HealthState, IncomingEvent, Occurrence, Outcome,
        PagedContact, RecordId, SharedSettings, Status, TemplateLanguage, delivery::Request,
        destination::KeptValues,
    },
    error::Error,
    find,
    lifecycle::{Arrival, EventEffect, apply_event},
    limits::{TESTS_MAX, TESTS_RETRY_AFTER},
    message::sample,
    send::{self as destination, ExchangeTimes, RenderedView, SendRequest, Sender},
    store::{Changes, Lane, Store, audit},
    tag_scope::{TagScope, check_owner},
};

/// The dimension that sets the event of a test apart from a real one.
const TEST_DIMENSION: &str = "test";

#[derive(Debug)]
pub struct Tester {
    runner: TestRunner,
    /// Recently tested drafts; a result is used when its draft is stored.
    drafts: TestedDrafts,
    /// Tests in flight. They complete and are recorded even if the caller has disconnected.
    running: Mutex<JoinSet<()>>,
}

#[derive(Debug, Clone)]
struct TestRunner {
    store: Store,
    clock: Arc<dyn Clock>,
    sender: Sender,
    config: DeliveryConfig,
}

#[derive(Debug, Clone)]
pub struct Test {
    pub target: TestTarget,
    /// Template of the message, as in a rule; empty for the default.
    pub message: String,
    pub message_language: TemplateLanguage,
    pub about: TestSubject,
    /// The contact whose variables are available to templates, if any.
    pub contact: Option<PagedContact>,
}

#[derive(Debug, Clone)]
pub enum TestTarget {
    Stored(String),
    /// A validated draft with secrets filled in.
    Draft {
        /// Name; may be empty.
        name: String,
        kind: Box<DestinationKind>,
        language: TemplateLanguage,
        settings: DeliverySettings,
    },
}

/// A message of a test, and the attempt to send it.
#[derive(Debug, Clone)]
pub struct SentTest {
    pub delivery: Delivery,
    pub attempt: Attempt,
    pub times: Option<ExchangeTimes>,
}

#[derive(Debug, Clone)]
pub struct CompletedTest {
    pub opening: SentTest,
    /// The lasting effect of the opening message at the receiver; empty if there is none.
    pub lasting_effect: String,
    /// The message that closes it again; `None` if the opening message was not accepted, or opens
    /// nothing.
    pub closing: Option<SentTest>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RenderedTest {
    /// The request with secrets masked; `None` if rendering failed.
    pub request: Option<Request>,
    /// Problems in rendering the message, and reasons why it could not be sent.
    pub warnings: Vec<String>,
    /// Size of the message in bytes, without HTTP or SMTP overhead.
    pub size_bytes: usize,
    /// Size limit of the provider in bytes; `None` if unknown.
    pub limit_bytes: Option<usize>,
    /// The lasting effect that the message would have at the receiver; empty if there is none.
    pub lasting_effect: String,
    /// The occurrence that an `event` destination would open.
    pub event: Option<Box<Occurrence>>,
}

#[derive(Debug, Clone)]
pub enum TestSubject {
    Sample,
    Stored(EventId),
    Incoming(Box<IncomingEvent>),
}

impl Tester {
    /// Creates a tester that sends in the same way as regular deliveries.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        sender: Sender,
        config: DeliveryConfig,
    ) -> Self {
        Self {
            runner: TestRunner {
                store,
                clock,
                sender,
                config,
            },
            drafts: TestedDrafts::default(),
            running: Mutex::default(),
        }
    }

    /// Applies the result of a recent test of the same draft to a destination that was just stored
    /// and to which nothing has been sent yet. Returns whether it did.
    pub async fn apply_draft_result(&self, name: &str) -> Result<bool, Error> {
        let store = &self.runner.store;
        let decide = || async {
            let mut changes = store.new_changes();
            let now_ms = self.runner.clock.now_ms();
            let Some(stored) = store.get::<Destination>(name.into()).await? else {
                return Ok((changes, false));
            };
            let id = stored.value.id;
            let known = store.get::<Health>(id.to_bytes().into()).await?;
            let tested = self.drafts.find_recent(&stored.value.kind, now_ms);
            let Some(tested) = tested.filter(|_| known.is_none()) else {
                return Ok((changes, false));
            };
            changes.touch_record(&stored);
            changes.insert(&health_after_test(
                Health::new_unattempted(id, now_ms),
                &tested.attempt,
                now_ms,
            ));
            Ok((changes, true))
        };
        Ok(commit(store, Lane::Admin, decide).await?.0)
    }

    pub fn now_ms(&self) -> i64 {
        self.runner.clock.now_ms()
    }

    pub async fn render_test(&self, test: Test) -> Result<RenderedTest, Error> {
        self.runner.render(test).await
    }

    /// Sends a message, then a closing message if the first one opened something at the receiver.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if the destination or event does not exist, [`Error::Exhausted`]
    /// while too many tests are running, and an error if the store fails. A failed attempt is not
    /// an error.
    ///
    /// # Cancel safety
    /// If the future is dropped, the test continues and is recorded.
    pub async fn run_test(&self, test: Test) -> Result<CompletedTest, Error> {
        let (answer, answered) = oneshot::channel();
        {
            let running = self.running.lock();
            let mut running = running.unwrap_or_else(PoisonError::into_inner);
            while running.try_join_next().is_some() {}
            if running.len() >= TESTS_MAX {
                return Err(Error::Exhausted {
                    message: format!("{TESTS_MAX} tests of destinations are already in progress"),
                    retry_after: Some(TESTS_RETRY_AFTER),
                });
            }
            let (runner, drafts) = (self.runner.clone(), self.drafts.clone());
            running.spawn(audit::with_current_actor(async move {
                let draft = match &test.target {
                    TestTarget::Draft { kind, .. } => Some((**kind).clone()),
                    TestTarget::Stored(_) => None,
                };
                let tested = runner.run_test(test).await;
                if let (Some(kind), Ok(tested)) = (draft, &tested) {
                    let attempt = tested.opening.attempt.clone();
                    drafts.remember_test(kind, attempt, runner.clock.now_ms());
                }
                // The caller may have disconnected.
                drop(answer.send(tested));
            }));
        }
        let stopping = |_ended| Error::Unavailable("the service is stopping".into());
        answered.await.map_err(stopping)?
    }
}

impl TestRunner {
    async fn run_test(&self, test: Test) -> Result<CompletedTest, Error> {
        let now_ms = self.clock.now_ms();
        let (planned, kind, settings) = self.plan_delivery(test, now_ms).await?;
        let lasting_effect = destination::lasting_effect(&kind).to_owned();
        let opening = self.send_planned(planned, (&kind, settings), None);
        let (opening, kept) = Box::pin(opening).await?;
        let is_refused = matches!(
            opening.attempt.outcome,
            Some(Outcome::Rejected | Outcome::Unreachable | Outcome::Blocked)
        );
        let closing = if is_refused || !destination::keeps_state(&kind) {
            None
        } else {
            let closing = closing_delivery(&opening.delivery, self.clock.now_ms());
            let closing = self.send_planned(closing, (&kind, settings), Some(&kept));
            Some(Box::pin(closing).await?.0)
        };
        Ok(CompletedTest {
            opening,
            lasting_effect,
            closing,
        })
    }

    async fn send_planned(
        &self,
        planned: Delivery,
        (kind, settings): (&DestinationKind, DeliverySettings),
        kept: Option<&KeptValues>,
    ) -> Result<(SentTest, KeptValues), Error> {
        let now_ms = self.clock.now_ms();
        let longest = attempt::timeouts(&self.config, settings, kind).longest;
        let mut request = self.send_request(&planned, kind, settings);
        request.kept = kept;
        self.render_for_test(request).await?;
        let (begun, attempt) = attempt::begin_attempt(&planned, longest, now_ms);
        let mut changes = self.store.new_changes();
        self.set_owner(&begun, &mut changes).await?;
        changes.insert(&begun);
        changes.insert(&attempt);
        self.store.apply(Lane::Admin, changes).await?;
        (request.content, request.destination_name) = (&begun.content, &begun.destination_name);
        let report = self.sender.send(request).await;
        let times = report.times;
        let attempt = attempt::ended_attempt(&attempt, &report, false);
        let ended = self.end_delivery(&begun, &attempt);
        if let Err(error) = self.record_attempt(&ended, &attempt).await {
            // The response contains the result even if it is not recorded.
            tracing::warn!(%error, delivery = %ended.id, "failed to record the result of a test");
        }
        let sent = SentTest {
            delivery: ended,
            attempt,
            times,
        };
        Ok((sent, report.verdict.kept))
    }

    async fn render(&self, test: Test) -> Result<RenderedTest, Error> {
        let now_ms = self.clock.now_ms();
        let (planned, kind, settings) = self.plan_delivery(test, now_ms).await?;
        let request = self.send_request(&planned, &kind, settings);
        let event = self.sender.created_event(request).await?;
        let rendered = self.render_for_test(request).await?;
        let (verdict, transcript) = self.sender.build_request(request).await;
        let mut warnings = rendered.warnings;
        if verdict.outcome != Outcome::Delivered {
            warnings.push(verdict.explanation);
        }
        Ok(RenderedTest {
            request: transcript.request,
            warnings,
            size_bytes: rendered.size_bytes,
            limit_bytes: rendered.limit_bytes,
            lasting_effect: destination::lasting_effect(&kind).to_owned(),
            event: event.map(|event| Box::new(unstored_occurrence(&event, now_ms))),
        })
    }

    async fn plan_delivery(
        &self,
        test: Test,
        now_ms: i64,
    ) -> Result<(Delivery, DestinationKind, DeliverySettings), Error> {
        let (event, mut occurrence) = self.occurrence(test.about, now_ms).await?;
        let destination = self.resolve_target(test.target, now_ms).await?;
        let id = RecordId::from_parts(now_ms.unsigned_abs(), rand::random());
        if destination::keeps_state(&destination.kind) {
            isolate_test_occurrence(&mut occurrence, id);
        }
        let mut content =
            sample::sample_content(occurrence, destination.kind.clone(), test.message);
        content.template_language = destination.language;
        content.rule.template_language = test.message_language;
        content.contact = test.contact;
        let planned = Delivery {
            event,
            test: true,
            ..Delivery::new(id, (destination.id, destination.name), content, now_ms)
        };
        Ok((planned, destination.kind, destination.settings))
    }

    fn send_request<'a>(
        &self,
        planned: &'a Delivery,
        kind: &'a DestinationKind,
        settings: DeliverySettings,
    ) -> SendRequest<'a> {
        SendRequest {
            delivery: planned.id,
            rule: None,
            destination_name: &planned.destination_name,
            content: &planned.content,
            kind,
            template_language: planned.content.template_language,
            opening: None,
            opening_content: None,
            thread: None,
            kept: None,
            recipients: &planned.recipients,
            is_reduced: false,
            timeout: settings.timeout.unwrap_or(self.config.timeout),
            is_fresh: true,
        }
    }

    /// Renders the message of a test. A regular delivery falls back to the default message; here
    /// the author must see the error.
    async fn render_for_test(&self, request: SendRequest<'_>) -> Result<RenderedView, Error> {
        let rendered = self.sender.render(request).await?;
        match rendered.exceeded {
            Some(exceeded) => {
                let field = if exceeded.of_rule { "message" } else { "type" };
                Err(Error::invalid(field, exceeded.message))
            }
            None => Ok(rendered),
        }
    }

    fn end_delivery(&self, begun: &Delivery, attempt: &Attempt) -> Delivery {
        let is_delivered = attempt.outcome == Some(Outcome::Delivered);
        let (state, last_error) = if is_delivered {
            (DeliveryState::Delivered, String::new())
        } else {
            (DeliveryState::Dead, attempt.explanation.clone())
        };
        Delivery {
            state,
            last_error,
            end_ms: Some(self.clock.now_ms()),
            ..begun.clone()
        }
    }

    async fn record_attempt(&self, ended: &Delivery, attempt: &Attempt) -> Result<(), Error> {
        let store = &self.store;
        let decide = || async {
            let mut changes = store.new_changes();
            let old = store.get::<Delivery>(ended.id.to_bytes().into()).await?;
            let key = attempt::attempt_key(ended.id, 1);
            let old_attempt = store.get::<Attempt>(key).await?;
            if let (Some(old), Some(old_attempt)) = (old, old_attempt) {
                self.set_owner(&old.value, &mut changes).await?;
                changes.update(&old, ended);
                changes.update(&old_attempt, attempt);
                self.update_health(&mut changes, ended, attempt).await?;
            }
            Ok((changes, ()))
        };
        commit(store, Lane::Admin, decide).await?;
        Ok(())
    }

    /// Records the owner of a test for access control: the test's destination, or the caller for a
    /// draft.
    async fn set_owner(&self, test: &Delivery, changes: &mut Changes) -> Result<(), Error> {
        let name = test.destination_name.as_bytes().to_vec();
        let stored = self.store.get::<Destination>(name).await?;
        if let Some(stored) = stored.filter(|it| it.value.id == test.destination) {
            return check_owner(changes, "name", &stored);
        }
        changes.set_owner_caller();
        Ok(())
    }

    async fn update_health(
        &self,
        changes: &mut Changes,
        ended: &Delivery,
        attempt: &Attempt,
    ) -> Result<(), Error> {
        let name = ended.destination_name.as_bytes().to_vec();
        let stored = self.store.get::<Destination>(name).await?;
        let Some(stored) = stored.filter(|it| it.value.id == ended.destination) else {
            return Ok(());
        };
        let key = ended.destination.to_bytes().into();
        let old = self.store.get::<Health>(key).await?;
        let now_ms = self.clock.now_ms();
        let next = match &old {
            Some(old) if old.value.state == HealthState::Paused => return Ok(()),
            Some(old) => old.value.clone(),
            None => Health::new_unattempted(ended.destination, now_ms),
        };
        let next = health_after_test(next, attempt, now_ms);
        if let Some(old) = &old {
            changes.update(old, &next);
        } else {
            // A destination that is deleted concurrently must not leave its health behind.
            changes.touch_record(&stored);
            changes.insert(&next);
        }
        Ok(())
    }

    async fn occurrence(
        &self,
        about: TestSubject,
        now_ms: i64,
    ) -> Result<(Option<EventId>, Occurrence), Error> {
        match about {
            TestSubject::Sample => Ok((None, sample::sample_occurrence(now_ms))),
            TestSubject::Stored(event) => {
                let newest = find::newest_occurrence(&self.store, event).await?;
                let mut newest =
                    newest.ok_or_else(|| Error::NotFound(format!("event `{event}` not found")))?;
                newest.history.clear();
                newest.notified.clear();
                Ok((Some(event), newest))
            }
            TestSubject::Incoming(event) => Ok((None, unstored_occurrence(&event, now_ms))),
        }
    }

    async fn resolve_target(
        &self,
        target: TestTarget,
        now_ms: i64,
    ) -> Result<TestedDestination, Error> {
        match target {
            TestTarget::Stored(name) => {
                let found = self
                    .store
                    .get::<Destination>(name.as_bytes().to_vec())
                    .await?;
                let found = found
                    .ok_or_else(|| Error::NotFound(format!("destination `{name}` not found")))?;
                if let Some(scope) = TagScope::from_caller() {
                    scope.check("name", &found.value)?;
                }
                Ok(TestedDestination {
                    id: found.value.id,
                    name,
                    kind: found.value.kind,
                    language: found.value.template_language,
                    settings: found.value.delivery,
                })
            }
            TestTarget::Draft {
                name,
                kind,
                language,
                settings,
            } => Ok(TestedDestination {
                id: RecordId::from_parts(now_ms.unsigned_abs(), rand::random()),
                name,
                kind: *kind,
                language,
                settings,
            }),
        }
    }
}

/// Gives the occurrence of a test a separate identity, so that its closing message does not close
/// the alert of a real event at the receiver.
fn isolate_test_occurrence(occurrence: &mut Occurrence, test: RecordId) {
    let dimensions = &mut occurrence.dimensions;
    dimensions.insert(TEST_DIMENSION.into(), test.to_string());
    occurrence.event = EventId::derive(&occurrence.name, dimensions);
    occurrence.status = Status::Open;
    occurrence.close = None;
    occurrence.acknowledged = false;
}

fn closing_delivery(opening: &Delivery, now_ms: i64) -> Delivery {
    let mut content = opening.content.clone();
    content.clear = true;
    content.occurrence.status = Status::Closed;
    content.occurrence.close = Some(Close {
        at_ms: now_ms,
        reason: CloseReason::Operator,
    });
    let destination = (opening.destination, opening.destination_name.clone());
    let id = RecordId::from_parts(now_ms.unsigned_abs(), rand::random());
    Delivery {
        event: opening.event,
        test: true,
        ..Delivery::new(id, destination, content, now_ms)
    }
}

fn health_after_test(mut health: Health, attempt: &Attempt, now_ms: i64) -> Health {
    let is_delivered = attempt.outcome == Some(Outcome::Delivered);
    let (state, last_error) = if is_delivered {
        health.failures = 0;
        (HealthState::Healthy, "")
    } else {
        (HealthState::Failing, attempt.explanation.as_str())
    };
    if health.state != state {
        (health.state, health.since_ms) = (state, now_ms);
    }
    last_error.clone_into(&mut health.last_error);
    health.record_attempt(attempt.duration.unwrap_or_default(), is_delivered, now_ms);
    health
}

struct TestedDestination {
    id: RecordId,
    name: String,
    kind: DestinationKind,
    language: TemplateLanguage,
    settings: DeliverySettings,
}

fn unstored_occurrence(event: &IncomingEvent, now_ms: i64) -> Occurrence {
    let arrival = Arrival {
        enrichments: &NO_ENRICHMENTS,
        trace: None,
        event,
        author: None,
        chain: &[],
        now_ms,
    };
    let key = RecordId::first_at_time(now_ms.unsigned_abs());
    match apply_event(None, &arrival, &SharedSettings::default(), key) {
        EventEffect::Opened(occurrence) => *occurrence,
        EventEffect::Repeated(_) | EventEffect::Counted => {
            unreachable!("an event without an occurrence opens one")
        }
    }
}
