//! The texts of the product: the filter language, label matchers, and hidden characters.

#![warn(missing_docs)]

pub mod filter;
pub mod matcher;
pub mod text;
