//! Conformance tests for engines.

pub mod change;
pub mod model;
pub mod together;
pub mod walk;

/// Defines the conformance tests for an engine. The expression returns the engine, and a guard that
/// must live longer than the engine.
#[macro_export]
macro_rules! conformance {
    ($make:expr, $($module:ident :: $test:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $test() {
                let (engine, _guard) = $make;
                $crate::conformance::$module::$test(&engine).await;
            }
        )+
    };
    ($make:expr) => {
        $crate::conformance!(
            $make,
            change::written_records_read_back_unchanged,
            change::failed_expectation_rejects_the_whole_set,
            change::one_conflict_rejects_a_long_set,
            change::versions_increase_and_are_never_reused,
            change::touch_keeps_value_and_raises_version,
            change::check_makes_no_change_and_enforces_the_version,
            change::additions_accumulate_and_zero_counters_are_removed,
            change::addition_to_a_non_numeric_value_is_refused,
            change::addition_is_applied_only_with_its_set,
            change::set_conflicts_once_its_definitions_changed,
            change::conflict_names_unexpected_records,
            change::set_changes_a_record_at_most_once,
            change::entry_points_to_one_record,
            change::removed_entry_must_belong_to_the_changed_record,
            walk::records_are_paged_in_both_directions,
            walk::entries_are_listed_in_both_directions,
            walk::last_record_is_found_under_each_prefix,
            walk::many_ranges_are_listed_in_one_call,
            walk::kinds_and_indexes_are_separate,
            walk::removed_records_are_skipped,
            walk::last_change_is_reported_per_kind,
            walk::log_reports_changes_since_a_position,
            walk::log_signal_follows_log_head,
            walk::delta_returns_current_records,
            together::one_of_many_concurrent_inserts_succeeds,
            together::concurrent_updates_are_not_lost,
            together::concurrent_additions_neither_conflict_nor_get_lost,
            together::conflict_does_not_affect_other_sets,
            model::random_walks_match_the_model,
        );
    };
}

use crate::{Action, ApplyResult, Change, Engine, EngineError, Entry, Expect, Index, Kind, Lane};

/// Returns a change without index entries.
fn change(kind: Kind, key: &[u8], expect: Expect, action: Action) -> Change {
    Change {
        is_logged: kind.is_logged(),
        ..Change::new(kind, key, expect, action)
    }
}

fn insert(kind: Kind, key: &[u8], value: &[u8]) -> Change {
    change(kind, key, Expect::Absent, Action::Put(value.into()))
}

fn entry(index: Index, key: &[u8]) -> Entry {
    Entry {
        index,
        key: key.into(),
    }
}

async fn apply(engine: &dyn Engine, changes: Vec<Change>) -> Result<ApplyResult, EngineError> {
    engine.apply(Lane::Bulk, changes.into()).await
}

fn is_conflict<T>(result: &Result<T, EngineError>) -> bool {
    matches!(result, Err(EngineError::Conflict(_)))
}

/// Reads the value and version of a record.
async fn read(engine: &dyn Engine, kind: Kind, key: &[u8]) -> Option<(Vec<u8>, u64)> {
    let rows = engine.get(kind, &[key.into()]).await.unwrap();
    let row = rows.into_iter().next().unwrap()?;
    Some((row.value, row.version))
}
