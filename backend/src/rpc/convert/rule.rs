//! Conversion of rule previews.

use bellwether_proto::v1;

use super::{json, list::to_i32};
use crate::ops::rule::{Preview, Previews};

impl From<Previews> for v1::PreviewRuleResponse {
    fn from(previews: Previews) -> Self {
        Self {
            previews: previews.previews.into_iter().map(Into::into).collect(),
            warnings: previews.warnings,
        }
    }
}

impl From<Preview> for v1::RulePreview {
    fn from(preview: Preview) -> Self {
        Self {
            destination_name: preview.destination_name.to_string(),
            rendered: preview.rendered.map(json::object),
            size_bytes: Some(to_i32(preview.size_bytes)),
            limit_bytes: preview.limit_bytes.map(to_i32),
            warnings: preview.warnings,
        }
    }
}
