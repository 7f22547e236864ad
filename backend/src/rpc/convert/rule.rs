//! Conversion of rule previews.

use bellwether_proto::v1;

use super::{json, list::to_i32};
use crate::ops::rule::{Preview, Previews};

/// Converts the previews of a draft, which may have no name.
pub fn preview_response(previews: Previews, rule: &str) -> v1::PreviewRuleResponse {
    let reaches = previews.reaches.iter().map(|it| it.to_wire(rule));
    v1::PreviewRuleResponse {
        reaches: reaches.collect(),
        previews: previews.rendered.into_iter().map(Into::into).collect(),
        warnings: previews.warnings,
    }
}

impl From<Preview> for v1::RulePreview {
    fn from(preview: Preview) -> Self {
        Self {
            destination_name: preview.destination_name.to_string(),
            contact_name: preview
                .contact_name
                .map(|it| it.to_string())
                .unwrap_or_default(),
            rendered: preview.rendered.map(json::object),
            size_bytes: Some(to_i32(preview.size_bytes)),
            limit_bytes: preview.limit_bytes.map(to_i32),
            warnings: preview.warnings,
        }
    }
}
