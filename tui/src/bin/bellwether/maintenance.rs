//! The commands that look after what a service keeps: they check, back up and restore it.

pub(crate) mod backup;
pub(crate) mod check;
mod progress;
pub(crate) mod restore;
pub(crate) mod secrets;
pub(crate) mod store;
