//! Triggers.

use crate::{domain::Trigger, record::table::record};

record! { Trigger {
    1 id, 2 name, 3 description, 4 tags, 5 query, 6 revision, 7 create_ms, 8 update_ms,
} }
