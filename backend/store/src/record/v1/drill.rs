//! Drills.

use crate::{
    domain::{Drill, DrillEvent, DrillResult, DrillRun},
    record::table::{numbers, record},
};

record! { Drill {
    1 id, 2 name, 3 description, 4 tags, 5 enabled, 6 cron, 7 time_zone, 8 every_ms, 9 event,
    10 acknowledge_ms, 11 failed_severity, 12 due_ms, 13 runs, 14 revision, 15 create_ms,
    16 update_ms,
} }

record! { DrillEvent { 1 name, 2 kind, 3 severity, 4 summary, 5 dimensions } }

record! { DrillRun {
    1 due_ms, 2 result, 3 start_ms, 4 event, 5 since_service_ms, 6 acknowledged_by,
    7 acknowledged_after_ms, 8 reason,
} }

numbers! {
    DrillResult { 1 Running, 2 Acknowledged, 3 Missed, 4 NotRouted, 5 Silenced, 6 Skipped }
}
