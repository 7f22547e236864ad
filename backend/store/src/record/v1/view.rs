//! Views.

use crate::{domain::SavedView, record::table::record};

record! { SavedView {
    1 id, 2 name, 3 description, 4 tags, 5 filter, 6 sort, 7 ascending, 8 includes_closed,
    9 group_by as OptionalForm, 10 columns, 11 revision, 12 create_ms, 13 update_ms,
} }
