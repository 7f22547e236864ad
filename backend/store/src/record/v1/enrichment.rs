//! Enrichment tables.

use crate::{domain::EnrichmentTable, record::table::record};

record! { EnrichmentTable {
    1 id, 2 name, 3 description, 4 tags, 5 enabled, 6 match_fields, 7 csv, 8 revision, 9 create_ms,
    10 update_ms,
} }
