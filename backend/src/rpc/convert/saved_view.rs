//! Views between the wire and the domain.

use bellwether_proto::v1;

use super::time::timestamp;
use crate::{
    domain::SavedView,
    ops::{etag::etag, saved_view::ViewDraft},
};

impl From<v1::View> for ViewDraft {
    fn from(wire: v1::View) -> Self {
        Self {
            name: wire.name,
            description: wire.description,
            tags: wire.tags,
            filter: wire.filter,
            sort: wire.sort,
            ascending: wire.ascending,
            includes_closed: wire.includes_closed,
            group_by: wire.group_by,
            columns: wire.columns,
            etag: wire.etag,
        }
    }
}

impl From<SavedView> for v1::View {
    fn from(view: SavedView) -> Self {
        Self {
            name: view.name.to_string(),
            description: view.description,
            tags: view.tags,
            filter: view.filter,
            sort: view.sort.word().to_owned(),
            ascending: view.ascending,
            includes_closed: view.includes_closed,
            group_by: view.group_by.unwrap_or_default(),
            columns: view.columns,
            create_time: Some(timestamp(view.create_ms)),
            update_time: Some(timestamp(view.update_ms)),
            etag: etag(view.id, view.revision),
        }
    }
}
