//! What every engine must do, as tests that take one.

pub mod change;
pub mod model;
pub mod together;
pub mod walk;

/// Makes the tests for an engine. The expression gives the engine and what must outlive it.
#[macro_export]
macro_rules! conformance {
    ($make:expr, $($module:ident :: $test:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $test() {
                let (engine, _kept) = $make;
                $crate::conformance::$module::$test(&engine).await;
            }
        )+
    };
    ($make:expr) => {
        $crate::conformance!(
            $make,
            change::a_record_reads_as_it_was_written,
            change::a_set_with_one_wrong_expectation_changes_nothing,
            change::a_long_set_that_meets_one_record_or_entry_changes_nothing,
            change::versions_rise_and_are_not_used_again,
            change::a_touch_keeps_the_value_and_raises_the_version,
            change::a_check_writes_nothing_and_holds_the_set_to_the_version,
            change::numbers_are_added_to_whatever_is_there,
            change::nothing_is_added_to_what_holds_no_numbers,
            change::an_addition_goes_with_its_set,
            change::what_rests_on_definitions_conflicts_once_they_changed,
            change::a_conflict_names_the_records_that_are_not_as_expected,
            change::a_record_is_changed_once_in_a_set,
            change::an_entry_leads_to_one_record,
            change::an_entry_to_remove_must_lead_to_its_record,
            walk::records_are_walked_in_both_directions,
            walk::entries_are_walked_in_both_directions,
            walk::the_last_record_is_found_under_each_prefix,
            walk::many_stretches_are_walked_in_one_call,
            walk::kinds_and_indexes_lie_apart,
            walk::what_was_removed_is_passed_over,
            walk::kinds_tell_when_they_were_changed_last,
            walk::the_log_tells_what_changed_since_a_place,
            walk::the_signal_follows_the_log,
            walk::a_delta_tells_records_as_they_are_now,
            together::of_many_inserts_of_one_key_one_succeeds,
            together::no_update_is_lost,
            together::additions_do_not_conflict_and_none_is_lost,
            together::a_conflict_does_not_disturb_its_neighbours,
            model::every_walk_through_the_model_ends_alike,
        );
    };
}

use crate::{Action, Applied, Change, Engine, EngineError, Entry, Expect, Index, Kind, Lane};

/// A change without entries.
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

async fn apply(engine: &dyn Engine, changes: Vec<Change>) -> Result<Applied, EngineError> {
    engine.apply(Lane::Bulk, changes.into()).await
}

fn is_conflict<T>(result: &Result<T, EngineError>) -> bool {
    matches!(result, Err(EngineError::Conflict(_)))
}

/// Value and version of one record.
async fn read(engine: &dyn Engine, kind: Kind, key: &[u8]) -> Option<(Vec<u8>, u64)> {
    let rows = engine.get(kind, &[key.into()]).await.unwrap();
    let row = rows.into_iter().next().unwrap()?;
    Some((row.value, row.version))
}
