//! Setting status, acknowledgement and assignee of occurrences on behalf of operators.

use std::collections::HashSet;

use crate::{
    cause_lookup::decide_with_causes,
    commit::commit,
    decide::Causes,
    decision_context::DecisionContext,
    domain::{Client, CloseReason, Name, Occurrence, OccurrenceId, Status},
    edit::{Edits, OccurrenceTarget},
    error::Error,
    intake::Intake,
    lifecycle::{Assignment, Cause, StateChange},
    loop_guard::{RecordedReports, Reports},
    page_cancel::cancel_pages,
    revision,
    store::{Changes, Lane, Store},
    tag_scope::check_event_owner,
};

#[derive(Debug, Clone)]
pub struct StatusItem {
    pub target: OccurrenceTarget,
    pub change: StateChange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedOccurrence {
    pub id: OccurrenceId,
    /// Whether the occurrence was closed here although its sender did not close it. The sender may
    /// report it again.
    pub may_reopen: bool,
}

/// Changes occurrences in order, in one commit together with the resulting notifications. Returns a
/// result for each item. The result is an error if the occurrence or assignee is unknown, or if the
/// occurrence cannot be reopened because another one of the event is open. The service's own events
/// are sent through the intake.
///
/// # Cancel safety
/// The changes may still be committed after the future is dropped.
pub async fn set_status(
    (deciding, intake): (&DecisionContext, &Intake),
    items: &[StatusItem],
    author: &Name,
) -> Result<Vec<Result<ChangedOccurrence, Error>>, Error> {
    let mut targets: Vec<_> = items.iter().map(|item| item.target).collect();
    // The newest occurrence of each event, which decides whether an older one may be reopened.
    targets.extend(
        items
            .iter()
            .map(|item| OccurrenceTarget::Newest(item.target.event())),
    );
    let decide = async || {
        let causes = Causes::default();
        decide_with_causes(&deciding.store, &causes, || {
            decide_items(deciding, items, &targets, &causes, author)
        })
        .await
    };
    let ((answers, reports), _) = commit(&deciding.store, Lane::Admin, decide).await?;
    intake.report_all(reports);
    Ok(answers)
}

type ItemResults = Vec<Result<ChangedOccurrence, Error>>;

async fn decide_items(
    deciding: &DecisionContext,
    items: &[StatusItem],
    targets: &[OccurrenceTarget],
    causes: &Causes,
    author: &Name,
) -> Result<(Changes, (ItemResults, RecordedReports)), Error> {
    let snapshot = deciding.ruleset.refresh().await?;
    let mut edits = Edits::read(&deciding.store, targets).await?;
    edits.read_reopened(&deciding.store).await?;
    let past =
        revision::read_past_definitions(&deciding.store, &snapshot, edits.occurrences()).await?;
    let past = past.with_causes(causes);
    let unknown = unknown_assignees(&deciding.store, items).await?;
    let mut changes = deciding.store.new_changes();
    changes.depend_on(&snapshot);
    let cause = Cause {
        author: Some(author),
        reason: CloseReason::Operator,
        now_ms: deciding.clock.now_ms(),
    };
    let mut answers = Vec::with_capacity(items.len());
    let mut reports = Reports::default();
    let mut deliveries = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let Some(occurrence) = edits.get(at) else {
            answers.push(Err(item.target.not_found()));
            continue;
        };
        if let Err(outside) = check_event_owner(&mut changes, occurrence) {
            answers.push(Err(outside));
            continue;
        }
        if let Assignment::Client(name) = &item.change.assignment
            && unknown.contains(name)
        {
            let message = format!("client `{name}` not found");
            answers.push(Err(Error::invalid("assignee", message)));
            continue;
        }
        let (id, reopens) = (occurrence.id(), is_reopening(occurrence, &item.change));
        let closes = item.change.status == Some(Status::Closed);
        let changed = ChangedOccurrence {
            id,
            may_reopen: closes && occurrence.status != Status::Closed,
        };
        let allowed = if reopens {
            edits.reopen_occurrence(id)
        } else {
            Ok(())
        };
        let (Some(occurrence), Ok(())) = (edits.get(at), &allowed) else {
            answers.push(allowed.map(|()| changed));
            continue;
        };
        let altered = deciding.apply_change((&snapshot, &past), occurrence, &item.change, cause);
        deliveries.extend(altered.deliveries);
        reports.append(altered.reports);
        answers.push(Ok(changed));
    }
    let (store, now_ms) = (&deciding.store, cause.now_ms);
    let changed = edits.changed_occurrences().collect();
    let new = deliveries.iter_mut().collect();
    cancel_pages(store, changed, new, now_ms, &mut changes).await?;
    for delivery in &deliveries {
        changes.insert(delivery);
    }
    edits.write(&mut changes);
    let reports = reports.record(&mut changes);
    Ok((changes, (answers, reports)))
}

async fn unknown_assignees(store: &Store, items: &[StatusItem]) -> Result<HashSet<Name>, Error> {
    let names = items
        .iter()
        .filter_map(|item| match &item.change.assignment {
            Assignment::Client(name) => Some(name),
            _ => None,
        });
    let mut unknown: HashSet<Name> = names.cloned().collect();
    let keys = unknown.iter().map(|name| name.as_str().into()).collect();
    for found in store.get_many::<Client>(keys).await?.into_iter().flatten() {
        unknown.remove(&found.value.name);
    }
    Ok(unknown)
}

fn is_reopening(occurrence: &Occurrence, change: &StateChange) -> bool {
    let status = change.status.unwrap_or(occurrence.status);
    occurrence.status == Status::Closed && status != Status::Closed
}

#[cfg(test)]
mod tests;
