//! The product from outside, end to end.
#![expect(clippy::panic, reason = "a test that cannot go on ends")]

mod tidy;
