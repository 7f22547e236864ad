//! Views.

use super::occurrence::record_id;
use crate::domain::{Name, SavedView, SortField};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ViewV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    description: String,
    #[prost(string, repeated, tag = "4")]
    tags: Vec<String>,
    #[prost(string, tag = "5")]
    filter: String,
    /// By its name.
    #[prost(string, tag = "6")]
    sort: String,
    #[prost(bool, tag = "7")]
    ascending: bool,
    #[prost(bool, tag = "8")]
    includes_closed: bool,
    #[prost(string, tag = "9")]
    group_by: String,
    #[prost(string, repeated, tag = "10")]
    columns: Vec<String>,
    #[prost(uint64, tag = "11")]
    revision: u64,
    #[prost(int64, tag = "12")]
    create_ms: i64,
    #[prost(int64, tag = "13")]
    update_ms: i64,
}

impl From<&SavedView> for ViewV1 {
    fn from(view: &SavedView) -> Self {
        Self {
            id: view.id.to_bytes().into(),
            name: view.name.to_string(),
            description: view.description.clone(),
            tags: view.tags.clone(),
            filter: view.filter.clone(),
            sort: view.sort.word().to_owned(),
            ascending: view.ascending,
            includes_closed: view.includes_closed,
            group_by: view.group_by.clone().unwrap_or_default(),
            columns: view.columns.clone(),
            revision: view.revision,
            create_ms: view.create_ms,
            update_ms: view.update_ms,
        }
    }
}

impl ViewV1 {
    pub(crate) fn into_view(self) -> Option<SavedView> {
        Some(SavedView {
            id: record_id(self.id)?,
            name: Name::parse(&self.name).ok()?,
            description: self.description,
            tags: self.tags,
            filter: self.filter,
            sort: SortField::from_word(&self.sort).ok()?,
            ascending: self.ascending,
            includes_closed: self.includes_closed,
            group_by: Some(self.group_by).filter(|it| !it.is_empty()),
            columns: self.columns,
            revision: self.revision,
            create_ms: self.create_ms,
            update_ms: self.update_ms,
        })
    }
}
