//! The commands that check, back up and restore a store.

pub(crate) mod backup;
pub(crate) mod check;
mod progress;
pub(crate) mod restore;
pub(crate) mod secrets;
pub(crate) mod store;
