//! Conversion shared by all lists of named resources.

use crate::ops::{page::PageRequest, resource::Filter};

pub use crate::ops::wire::to_i32;

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
