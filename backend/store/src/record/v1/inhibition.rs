//! Inhibitions.

use crate::{
    domain::{EqualFields, Inhibition},
    record::table::record,
};

record! { Inhibition {
    1 id, 2 name, 3 description, 4 tags, 5 enabled, 6 source, 7 target, 8 equal, 9 linger_ms,
    10 counted_revision, 11 revision, 12 create_ms, 13 update_ms,
} }

record! { EqualFields { 1 source, 2 target } }
