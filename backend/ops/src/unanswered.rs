//! Reports responses that no one acknowledged, as one event of the service for each policy.

use std::{cmp::Reverse, collections::BTreeMap};

use crate::{
    commit::commit,
    decision_context::{DecisionContext, new_id},
    domain::{
        EventId, IncomingEvent, Name, Notified, Occurrence, OwnEvent, RecordId, Response,
        ResponseState, Severity, Status, Value, own_event::NO_RESPONSE, response::POLICY_DIMENSION,
    },
    error::Error,
    find,
    intake::Intake,
    limits::CHAIN_MAX,
    loop_guard::{RecordedReports, is_mark},
    store::{
        Changes, Direction, EngineError, Index, Lane, Store, Stored,
        engine::Range,
        record::{bytes::read_id, response_prefix},
    },
};

/// Records read at a time.
const BATCH: usize = 500;
const OWN_EVENTS_MAX: usize = 2_000;
const NAMED_MAX: usize = 5;
const NAME_CHARACTERS: usize = 100;
/// Dimensions that name the host, in order of preference.
const HOSTS: [&str; 6] = ["host", "hostname", "node", "instance", "device", "server"];

#[derive(Debug, Default)]
struct PolicyCount {
    count: usize,
    /// The most severe responses; among responses with equal severity, the oldest.
    most_severe: Vec<UnansweredResponse>,
}

#[derive(Debug)]
struct UnansweredResponse {
    /// The severity, and the time at which the response began.
    rank: (Reverse<Severity>, i64),
    severity: Severity,
    text: String,
}

/// Returns whether a response became unanswered, or is no longer unanswered, since the last report.
pub(crate) async fn has_unreported_changes(store: &Store) -> Result<bool, EngineError> {
    let all = Range::with_prefix(&[]);
    let found = store.page::<OwnEvent>(all, Direction::Ascending, BATCH);
    Ok(found.await?.iter().any(|it| is_mark(&it.value)))
}

/// If any response is marked, counts the unanswered responses and reports their policies. The
/// commit that stores the reports also deletes the markers, so that none is lost.
pub(crate) async fn report_unanswered(
    deciding: &DecisionContext,
    intake: &Intake,
) -> Result<(), Error> {
    let decide = async || decide_reports(deciding).await;
    let ((reports, closed), _) = commit(&deciding.store, Lane::Bulk, decide).await?;
    intake.report_all(reports);
    for event in closed {
        intake.report(event, Vec::new());
    }
    Ok(())
}

/// Returns the reports, and the closings of the events that earlier versions opened for each
/// response.
async fn decide_reports(
    deciding: &DecisionContext,
) -> Result<(Changes, (RecordedReports, Vec<IncomingEvent>)), Error> {
    let store = &deciding.store;
    let mut changes = store.new_changes();
    let (mut reports, mut closed) = (Vec::new(), Vec::new());
    let stored = own_events(store).await?;
    let marks = stored.iter().filter(|it| is_mark(&it.value));
    let read =
        |store: Store, event: EventId| async move { find::is_event_open(&store, event).await };
    let events = marks.clone().map(|it| it.value.event.id());
    let are_open = store.read_each(events, read).await?;
    let mut policies: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for (mark, is_open) in marks.zip(are_open) {
        let OwnEvent { event, chain, .. } = &mark.value;
        let chains = policies.entry(marker_policy(event)).or_default();
        for rule in chain {
            if !chains.contains(rule) {
                chains.push(*rule);
            }
        }
        let is_over = event.status == Some(Status::Closed);
        if is_over && is_open {
            // Keep the marker until the event is closed, so that the closing survives a crash.
            closed.push(event.clone());
        } else {
            changes.delete(mark);
        }
    }
    if policies.is_empty() {
        return Ok((changes, (RecordedReports::default(), closed)));
    }
    let now_ms = deciding.clock.now_ms();
    let counts = count_by_policy(store).await?;
    if policies.remove("").is_some() {
        for policy in counts.keys() {
            policies.entry(policy.clone()).or_default();
        }
    }
    for (policy, mut chain) in policies {
        let id = NO_RESPONSE.id([&policy]);
        // The new report replaces one that is not ingested yet.
        let is_same = |it: &&Stored<OwnEvent>| it.value.event.id() == id;
        for pending in stored.iter().filter(is_same) {
            changes.delete(pending);
        }
        let event = match counts.get(&policy) {
            Some(count) => opening_event(&policy, count, now_ms),
            None if find::is_event_open(store, id).await? => {
                NO_RESPONSE.closed([&policy], "", now_ms)
            }
            None => continue,
        };
        chain.truncate(CHAIN_MAX);
        let id = new_id(now_ms);
        reports.push(OwnEvent { id, event, chain });
    }
    for report in &reports {
        changes.insert(report);
    }
    Ok((changes, (RecordedReports(reports), closed)))
}

async fn own_events(store: &Store) -> Result<Vec<Stored<OwnEvent>>, EngineError> {
    let mut all = Vec::new();
    let mut pages = store.pages::<OwnEvent>(Range::with_prefix(&[]));
    // The cap loses nothing: markers that are not read here stay stored, and the next review
    // handles them.
    while all.len() < OWN_EVENTS_MAX
        && let Some(page) = pages.next().await?
    {
        all.extend(page);
    }
    Ok(all)
}

/// Returns the policy named by a marker; empty for markers of earlier versions.
fn marker_policy(mark: &IncomingEvent) -> String {
    match mark.metadata.get(POLICY_DIMENSION) {
        Some(Value::Text(policy)) => policy.clone(),
        _ => String::new(),
    }
}

/// Counts the unanswered responses by policy. Responses to drills do not count. Neither do those to
/// such a report; otherwise, two policies could keep the reports about each other open.
async fn count_by_policy(store: &Store) -> Result<BTreeMap<String, PolicyCount>, EngineError> {
    let mut counts: BTreeMap<String, PolicyCount> = BTreeMap::new();
    for state in [ResponseState::Active, ResponseState::Held] {
        let mut range = Range::with_prefix(&response_prefix(state).build());
        loop {
            let (index, ascending) = (Index::OccurrenceByResponse, Direction::Ascending);
            let page = store.page_by_index::<Occurrence>(index, range.clone(), ascending, BATCH);
            let page = page.await?;
            let Some((last, _)) = page.last() else { break };
            range.exclude_through(last);
            for (key, stored) in &page {
                let occurrence = &stored.value;
                let id = read_id(key, 1);
                let mut notified = occurrence.notified.iter();
                let found = notified.find_map(|it| unanswered_response(it, id));
                let is_counted = !occurrence.is_unanswered_report() && !occurrence.is_drill();
                if let Some((entry, response)) = found.filter(|_| is_counted) {
                    let policy = response.policy.to_string();
                    let count = counts.entry(policy).or_default();
                    count.add(occurrence, &entry.rule_name, response);
                }
            }
        }
    }
    Ok(counts)
}

fn unanswered_response(entry: &Notified, id: Option<RecordId>) -> Option<(&Notified, &Response)> {
    let response = entry.response.as_deref().filter(|it| Some(it.id) == id)?;
    response.unanswered_policy().map(|_| (entry, response))
}

impl PolicyCount {
    fn add(&mut self, occurrence: &Occurrence, rule: &Name, response: &Response) {
        self.count += 1;
        let rank = (Reverse(occurrence.severity), response.begin_ms);
        let last = self.most_severe.get(NAMED_MAX - 1);
        if last.is_some_and(|last| last.rank <= rank) {
            return;
        }
        let text = format!(
            "{} {} on {} (rule {rule})",
            occurrence.severity.as_str(),
            truncate_name(&occurrence.name),
            host_text(occurrence)
        );
        let severity = occurrence.severity;
        self.most_severe.push(UnansweredResponse {
            rank,
            severity,
            text,
        });
        self.most_severe.sort_by_key(|it| it.rank);
        self.most_severe.truncate(NAMED_MAX);
    }
}

fn truncate_name(text: &str) -> String {
    text.chars().take(NAME_CHARACTERS).collect()
}

/// Returns the host of an event, or all its dimensions if none of them names a host.
fn host_text(occurrence: &Occurrence) -> String {
    let dimensions = &occurrence.dimensions;
    let host = HOSTS.iter().find_map(|it| dimensions.get(*it));
    let text = host.cloned().unwrap_or_else(|| {
        let pairs = dimensions
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        pairs.collect::<Vec<_>>().join(", ")
    });
    truncate_name(&text)
}

fn opening_event(policy: &str, count: &PolicyCount, now_ms: i64) -> IncomingEvent {
    let most_severe = count.most_severe.first();
    let worst_text = most_severe.map_or("", |it| &it.text);
    let summary = match count.count {
        1 => format!("policy {policy}: no one responded to {worst_text}"),
        count => format!(
            "policy {policy}: no one responded to {count} events; most severe: {worst_text}"
        ),
    };
    let mut lines: Vec<_> = count.most_severe.iter().map(|it| it.text.clone()).collect();
    let others = count.count - lines.len();
    if others > 0 {
        lines.push(format!("and {others} more"));
    }
    let severity = most_severe.map_or(Severity::Info, |it| it.severity);
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53")]
    let number = Value::Number(count.count as f64);
    let named = count
        .most_severe
        .iter()
        .map(|it| Value::Text(it.text.clone()));
    IncomingEvent {
        summary,
        body: lines.join("\n"),
        severity: Some(Severity::Critical),
        metadata: [
            ("responses".to_owned(), number),
            (
                "worstSeverity".to_owned(),
                Value::Text(severity.as_str().into()),
            ),
            ("worst".to_owned(), Value::List(named.collect())),
        ]
        .into(),
        ..NO_RESPONSE.event([policy], now_ms)
    }
}
