//! Options of a console, and errors of starting one.

use std::{fmt, io, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use jiff::{Timestamp, tz::TimeZone};
use tonic::{
    metadata::{Ascii, MetadataValue},
    transport::Endpoint,
};

pub use crate::theme::{Background, Colour, Depth, Theme};
use crate::{attention::Notices, keymap::Keymap};

/// An API key. Never displayed.
#[derive(Clone)]
pub struct Key(MetadataValue<Ascii>);

impl Key {
    /// Creates a key from text; white space around it is removed.
    pub fn new(text: &str) -> Result<Self, Error> {
        let value = format!("Bearer {}", text.trim());
        let mut value: MetadataValue<Ascii> = value.parse().map_err(|_characters| Error::Key)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    pub(crate) fn into_value(self) -> MetadataValue<Ascii> {
        self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// A function that re-reads the key, which may have been renewed, or replaced by a new sign-in.
#[derive(Clone)]
pub struct Renewal(Arc<dyn Fn() -> RenewedKey + Send + Sync>);

/// The current key; `None` if no key is needed. The error is the reason why the key is not
/// available.
pub type RenewedKey = BoxFuture<'static, Result<Option<Key>, String>>;

impl Renewal {
    pub fn new(ask: impl Fn() -> RenewedKey + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    pub(crate) fn renew(&self) -> RenewedKey {
        (self.0)()
    }
}

impl fmt::Debug for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Renewal(…)")
    }
}

#[derive(Clone)]
pub struct Now(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Now {
    /// Wraps a function that returns milliseconds since 1970.
    pub fn new(now_ms: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now_ms))
    }

    pub(crate) fn ms(&self) -> i64 {
        (self.0)()
    }
}

impl Default for Now {
    fn default() -> Self {
        Self::new(|| Timestamp::now().as_millisecond())
    }
}

impl fmt::Debug for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Now(…)")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    pub name: String,
    pub colour: Option<Colour>,
}

/// A view of the list of events, in terms of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    pub name: String,
    /// The filter; empty for all events.
    pub filter: String,
    /// Sort key: `lastSeen`, `startTime` or `severity`; empty for `lastSeen`.
    pub sort: String,
    pub ascending: bool,
    pub includes_closed: bool,
    /// Field to count events by; empty to list them.
    pub group_by: String,
    /// Titles of the visible columns; empty for the console's choice.
    pub columns: Vec<String>,
}

impl View {
    pub const SORTS: &[&str] = &["lastSeen", "startTime", "severity"];
}

/// Access to the service from a shell.
#[derive(Clone, Debug)]
pub struct Shell {
    pub rest: Option<String>,
    /// The key, as shell text for use within double quotes.
    pub key: String,
    /// The `bellwether` command with the flags for this service.
    pub bellwether: String,
}

impl Shell {
    /// Returns a command that sends an event: with curl if the REST address is known, else over
    /// gRPC.
    pub(crate) fn send_command(&self) -> String {
        let Self {
            key, bellwether, ..
        } = self;
        match &self.rest {
            Some(rest) => format!(
                "curl {rest}/v1/data-receiver/events \\\n  -H \"authorization: Bearer {key}\" \\\n  \
                 -d '{EVENT}'"
            ),
            None => format!(
                "{bellwether} \\\n  send disk -d host=db-1 --severity error --summary 'disk is full'"
            ),
        }
    }
}

const EVENT: &str = r#"{"events": [{"name": "disk", "dimensions": {"host": "db-1"},
    "severity": "SEVERITY_ERROR", "summary": "disk is full"}]}"#;

impl Default for Shell {
    fn default() -> Self {
        Self {
            rest: None,
            key: "$BELLWETHER_KEY".to_owned(),
            bellwether: "bellwether".to_owned(),
        }
    }
}

/// Default time to wait after Esc on a local terminal.
pub const ESCAPE_DELAY: Duration = Duration::from_millis(40);
/// Default time to wait after Esc over ssh.
pub const ESCAPE_DELAY_REMOTE: Duration = Duration::from_millis(100);
pub const ESCAPE_DELAY_MAX: Duration = Duration::from_secs(1);

#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[derive(Clone, Debug)]
pub struct Options {
    /// gRPC address of the service, with TLS settings if any.
    pub endpoint: Endpoint,
    /// API key sent with every call; `None` to send none.
    pub key: Option<Key>,
    /// Reads the key again before each connection and periodically; `None` if it never changes.
    pub renewal: Option<Renewal>,
    /// Name of the program on whose behalf calls are made, for the audit log.
    pub agent: Option<MetadataValue<Ascii>>,
    /// Whether to ping the service, so that a broken connection is detected within 3 s. For a
    /// service in this process, pings would only wake an idle console.
    pub keep_alive: bool,
    /// Whether changes are disabled, regardless of the key's role.
    pub read_only: bool,
    /// Whether the console handles clicks and the wheel from the start; otherwise the terminal
    /// does.
    pub mouse: bool,
    /// Time to wait after Esc for the rest of a sequence; zero to treat it as a key immediately.
    pub escape_delay: Duration,
    /// Whether the terminal supports kitty's keyboard protocol, which distinguishes Esc from the
    /// start of a sequence.
    pub kitty_keys: bool,
    /// Whether the console is an unattended wall display, which shows only the overview and cycles
    /// through its periods.
    pub wall: bool,
    pub theme: Theme,
    pub depth: Depth,
    /// Whether the terminal supports ASCII only.
    pub is_ascii: bool,
    /// Background of the terminal, if known. Otherwise the terminal is queried if the theme depends
    /// on it.
    pub background: Option<Background>,
    /// Access to the service from a shell, for copied commands.
    pub shell: Shell,
    pub context: Option<Context>,
    /// Contexts to which the console can switch; empty if leaving it would stop the service.
    pub contexts: Vec<String>,
    /// Views of events from the configuration file, in addition to shared ones from the service.
    pub views: Vec<View>,
    pub keys: Keymap,
    pub notices: Notices,
    /// Program that opens a URL in a browser; `None` if no browser is available on this machine.
    pub opener: Option<String>,
    pub time_zone: TimeZone,
    pub now: Now,
    /// Command of the external editor, such as from `$VISUAL` or `$EDITOR`; may contain arguments.
    pub editor: String,
    /// Texts that no frame of a [`Headless`](crate::Headless) console may contain, such as the
    /// secrets of a test.
    pub forbidden: Vec<String>,
}

impl Options {
    /// Returns the default options for a service: no key, writable, the terminal's colours, the
    /// system's time zone, `vi`.
    pub fn new(address: &str) -> Result<Self, Error> {
        let endpoint =
            Endpoint::from_shared(address.to_owned()).map_err(|source| Error::Address {
                address: address.to_owned(),
                source,
            })?;
        Ok(Self {
            endpoint,
            key: None,
            renewal: None,
            agent: None,
            keep_alive: true,
            read_only: false,
            mouse: true,
            escape_delay: ESCAPE_DELAY,
            kitty_keys: false,
            wall: false,
            theme: Theme::default(),
            depth: Depth::default(),
            is_ascii: false,
            background: None,
            shell: Shell::default(),
            context: None,
            contexts: Vec::new(),
            views: Vec::new(),
            keys: Keymap::default(),
            notices: Notices::default(),
            opener: None,
            time_zone: TimeZone::system(),
            now: Now::default(),
            editor: "vi".to_owned(),
            forbidden: Vec::new(),
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("`{address}` is not a URL such as http://127.0.0.1:8481")]
    Address {
        address: String,
        source: tonic::transport::Error,
    },
    #[error("invalid character in the API key")]
    Key,
    /// There is no terminal, or it was closed.
    #[error("cannot use the terminal")]
    Terminal(#[source] io::Error),
}
