//! Joint releases: if a rule without groups releases many notifications together, they are combined
//! as if they were a group.

use std::collections::BTreeMap;

use crate::{
    decide::release_key,
    decision_context::DecisionContext,
    domain::{GroupKey, HeldBy, Occurrence, RecordId, Status},
    error::Error,
    limits::HOLDS_BATCH,
    store::{Direction, Index, engine::Range},
};

/// The groups of notifications that are released together, by rule.
#[derive(Debug, Clone, Default)]
pub(super) struct JointRelease {
    pub(super) groups: BTreeMap<RecordId, GroupKey>,
    /// Whether to release notifications whose silence has ended. Otherwise they stay held, because
    /// releasing them one by one would miss that they end together.
    pub(super) releases_silenced: bool,
}

impl JointRelease {
    /// Finds the rules without groups that release enough notifications together for these to be
    /// combined. Counts only notifications in the range that have no other hold.
    pub(super) async fn find(
        deciding: &DecisionContext,
        index: Index,
        mut range: Range,
        is_freed: &(dyn Fn(&HeldBy) -> bool + Sync),
        releases_silenced: bool,
    ) -> Result<Self, Error> {
        let store = &deciding.store;
        let snapshot = deciding.ruleset.refresh().await?;
        let mut counts: BTreeMap<RecordId, usize> = BTreeMap::new();
        loop {
            let (ascending, most) = (Direction::Ascending, HOLDS_BATCH);
            let found = store.page_by_index::<Occurrence>(index, range.clone(), ascending, most);
            let found = found.await?;
            let Some((last, _)) = found.last() else { break };
            range.exclude_through(last);
            let open = found
                .iter()
                .filter(|(_, it)| it.value.status == Status::Open);
            let waiting = open.flat_map(|(_, it)| &it.value.pending);
            let freed = waiting.filter(|it| it.is_opening && it.held_by.iter().all(is_freed));
            for pending in freed {
                *counts.entry(pending.rule).or_default() += 1;
            }
        }
        counts.retain(|rule, count| {
            let rule = snapshot.rule(*rule);
            *count > snapshot.settings().separate_release_max()
                && rule.is_some_and(|it| it.group.is_none())
        });
        let now_ms = deciding.clock.now_ms();
        let key = |rule| (rule, release_key(rule, now_ms));
        Ok(Self {
            groups: counts.into_keys().map(key).collect(),
            releases_silenced,
        })
    }
}
