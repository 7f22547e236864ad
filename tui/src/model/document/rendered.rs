//! A rendered message.

use serde_json::Value;

use crate::{
    document::{Document, pretty_body},
    theme::Token,
};

pub(super) fn write_message(into: &mut Document, rendered: &Value) {
    if let Some(fields) = rendered.as_object() {
        for (key, value) in fields {
            match value.as_str() {
                Some(body) if body.contains('\n') || pretty_body(body) != body => {
                    into.text(Token::Dim, 0, key);
                    into.body(2, body);
                }
                _ => into.tree(0, key, value),
            }
        }
    }
}
