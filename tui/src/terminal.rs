//! The terminal: its modes, keys and signals, and the main loop.

mod background;
mod child;
mod escapes;
mod guard;
mod keys;
mod panic_trigger;
mod program;
mod session;

pub(crate) use child::edit;
pub(crate) use session::run;
