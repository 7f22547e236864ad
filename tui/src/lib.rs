//! The terminal admin console: a pure gRPC client.

pub mod api;
mod attention;
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

pub use attention::{Notices, Popup, QuietHours};
pub use client::{ListError, read_list_json};
pub use console::ServiceStatus;
pub use data::outcome_mark;
pub use document::unified_diff;
pub use headless::{Headless, Snapshot, Step, UnknownScreen, record_steps, screen_names, snapshot};
pub use keymap::{CommandSetting, KeyProblem, KeySetting, Keymap, Unknown as UnknownKey};
pub use options::{
    Background, Colour, Context, Depth, ESCAPE_DELAY, ESCAPE_DELAY_MAX, ESCAPE_DELAY_REMOTE, Error,
    Key, Now, Options, Renewal, RenewedKey, Shell, Theme, View,
};
pub use theme::{has_kitty_keys, is_ascii_only, is_colourless};

/// Runs a console on this process's terminal until the operator quits or SIGTERM, SIGHUP or SIGINT
/// is received. Always restores the terminal, even after a panic.
///
/// If the service is unreachable, the console shows that and retries. Returns the context to switch
/// to, if the operator chose one.
pub fn run(options: Options) -> BoxFuture<'static, Result<Option<String>, Error>> {
    Box::pin(terminal::run(options))
}

/// Runs a console in plain mode, for screen readers, logs and pipes: it reads commands from
/// standard input and prints lines to standard output, without drawing a screen. Ends at the end of
/// the input, when the operator quits, or on SIGTERM, SIGHUP or SIGINT.
pub fn run_plain(options: Options) -> BoxFuture<'static, Result<ServiceStatus, Error>> {
    Box::pin(plain::run(options))
}
