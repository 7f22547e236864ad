//! The commands that look after what a service keeps: they check, back up and restore it.

pub(crate) mod check;
mod progress;
