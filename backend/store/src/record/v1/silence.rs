//! Silences.

use crate::{
    domain::{Comment, Progress, Silence, Stage},
    record::table::{numbers, record},
};

record! {
    Silence as it {
        1 id, 2 name, 3 description, 4 tags, 5 reason, 6 query, 7 rule_names, 8 start_ms, 9 end_ms,
        10 expire_when_idle_ms, 11 warn_before_ms, 12 comments, 13 from_event, 14 author,
        15 last_editor,
        16 stage = it.progress.stage,
        17 counted_revision = it.progress.counted_revision,
        18 has_covered = it.progress.has_covered,
        19 idle_since_ms = it.progress.idle_since_ms,
        20 revision, 21 create_ms, 22 update_ms, 23 calendar,
        // Numbers 24 and 25 belonged to silences that started with an event.
        26 annotations, 27 destination_names,
    } with {
        progress: Progress { stage, counted_revision, has_covered, idle_since_ms },
    }
}

record! { Comment { 1 author, 2 at_ms, 3 text } }

numbers! { Stage }
