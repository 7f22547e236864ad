//! The real terminal: its modes, its keys, its signals, and the loop that joins them to a console.

mod background;
mod child;
mod escapes;
mod fault;
mod guard;
mod keys;
mod session;

pub(crate) use child::edit;
pub(crate) use session::run;
