//! What the lists of named resources have in common on the wire.

use crate::ops::{page::PageRequest, resource::Filter};

pub use crate::ops::wire::{count, number};

/// Which page, and which resources, a list asks for.
pub fn page_and_filter(
    (size, token): (i32, String),
    names: Vec<String>,
    tags: Vec<String>,
    text: String,
) -> (PageRequest, Filter) {
    (
        PageRequest { size, token },
        Filter {
            names,
            tags,
            text,
            others: Vec::new(),
        },
    )
}
