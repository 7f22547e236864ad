//! Counts the responses that documents would stop.

use std::collections::BTreeMap;

use super::{Action, Change};
use crate::{
    domain::{Occurrence, RecordId, ResponseState, Rule},
    limits::PAGE_SIZE_MAX,
    resource::Resource,
    store::{
        Direction, EngineError, Index, Store,
        engine::Range,
        record::{bytes::read_id, response_prefix},
    },
};

/// Records how many running responses each rule change stops, by deleting the rule or removing its
/// escalation.
pub(super) async fn count_stopped_responses(
    (before, after): (&Store, &Store),
    changes: &mut [Change],
) -> Result<(), EngineError> {
    let mut stopped: BTreeMap<RecordId, usize> = BTreeMap::new();
    for (at, change) in changes.iter().enumerate() {
        if change.kind != Rule::WORD
            || matches!(change.action, Action::Unchanged | Action::Created(_))
        {
            continue;
        }
        let key: Vec<u8> = change.name.as_str().into();
        let old = before.get::<Rule>(key.clone()).await?;
        let new = after.get::<Rule>(key).await?.map(|it| it.value);
        let Some(old) = old.map(|it| it.value).filter(can_escalate) else {
            continue;
        };
        if !new.is_some_and(|it| it.id == old.id && can_escalate(&it)) {
            stopped.insert(old.id, at);
        }
    }
    if stopped.is_empty() {
        return Ok(());
    }
    for state in ResponseState::ALL.into_iter().filter(|it| !it.has_ended()) {
        let mut range = Range::with_prefix(&response_prefix(state).build());
        loop {
            let (index, ascending) = (Index::OccurrenceByResponse, Direction::Ascending);
            let found =
                before.page_by_index::<Occurrence>(index, range.clone(), ascending, PAGE_SIZE_MAX);
            let found = found.await?;
            let Some((last, _)) = found.last() else { break };
            range.exclude_through(last);
            for (key, stored) in &found {
                let is_it = |id: Option<RecordId>| id.is_some() && id == read_id(key, 1);
                let mut notified = stored.value.notified.iter();
                let notified = notified.find(|it| is_it(it.response.as_ref().map(|it| it.id)));
                if let Some(at) = notified.and_then(|it| stopped.get(&it.rule)) {
                    changes[*at].stopped_responses += 1;
                }
            }
        }
    }
    Ok(())
}

fn can_escalate(rule: &Rule) -> bool {
    rule.enabled && !rule.shadow && rule.escalation_policy.is_some()
}
