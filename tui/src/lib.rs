//! The terminal admin console: a pure gRPC client.

pub mod api;
mod client;
mod console;
mod data;
mod document;
mod editor;
mod headless;
mod keymap;
mod kind;
mod limits;
mod model;
mod options;
mod picture;
mod plain;
mod route;
mod terminal;
mod text;
mod theme;
mod view;

use futures_util::future::BoxFuture;

pub use client::{Unlisted, listing, why_broken, why_failed, why_unreachable};
pub use console::ServiceStatus;
pub use document::unified;
pub use headless::{Headless, Snapshot, Step, UnknownScreen, recording, screens, snapshot};
pub use keymap::{KeyProblem, KeySetting, Keymap, Unknown as UnknownKey};
pub use options::{
    Background, Colour, Context, Depth, ESCAPE_DELAY, ESCAPE_DELAY_FAR, ESCAPE_DELAY_MAX, Error,
    Key, Now, Options, Renewal, Renewed, Shell, Theme, View,
};
pub use theme::{has_kitty_keys, is_ascii_alone, is_colourless};

/// Runs a console on this process's terminal until the operator leaves or SIGTERM, SIGHUP or
/// SIGINT comes. The terminal is given back as it was on every way out, also on a panic.
///
/// The service need not be there: the console reports it, keeps trying, and can be left at any
/// time. Returns which of the contexts the operator left for, if for one.
///
/// # Errors
/// There is no terminal, or it is gone.
pub fn run(options: Options) -> BoxFuture<'static, Result<Option<String>, Error>> {
    Box::pin(terminal::run(options))
}

/// Runs a console on lines of text, for screen readers, logs and pipes: commands are read from
/// standard input, and everything is printed to standard output, where nothing moves and nothing is
/// drawn. Ends when the input does, when the operator leaves, or with SIGTERM, SIGHUP or SIGINT.
///
/// # Errors
/// Standard input cannot be read.
pub fn run_plain(options: Options) -> BoxFuture<'static, Result<ServiceStatus, Error>> {
    Box::pin(plain::run(options))
}
