//! What a console is started with, and what can go wrong with starting one.

use std::{fmt, io, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use jiff::{Timestamp, tz::TimeZone};
use tonic::{
    metadata::{Ascii, MetadataValue},
    transport::Endpoint,
};

use crate::keymap::Keymap;
pub use crate::theme::{Background, Colour, Depth, Theme};

/// An API key. It is never shown.
#[derive(Clone)]
pub struct Key(MetadataValue<Ascii>);

impl Key {
    /// A key as it was handed out; white space around it is dropped.
    ///
    /// # Errors
    /// The text has a character that no API key contains.
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

/// Asks for the key again: it may have been renewed, or a user may have signed in meanwhile.
#[derive(Clone)]
pub struct Renewal(Arc<dyn Fn() -> Renewed + Send + Sync>);

/// The key as it is by now, if one is shown at all; or why there is none, for people.
pub type Renewed = BoxFuture<'static, Result<Option<Key>, String>>;

impl Renewal {
    /// Asks by that.
    pub fn new(ask: impl Fn() -> Renewed + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    pub(crate) fn ask(&self) -> Renewed {
        (self.0)()
    }
}

impl fmt::Debug for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Renewal(…)")
    }
}

/// Tells the time.
#[derive(Clone)]
pub struct Now(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Now {
    /// Milliseconds since 1970, as this tells them.
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

/// A service by the name that its operator gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Its name.
    pub name: String,
    /// What its name stands on.
    pub colour: Option<Colour>,
}

/// A way to look at the list of events, in the service's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Its name.
    pub name: String,
    /// Which events; empty means all.
    pub filter: String,
    /// `lastSeen`, `startTime` or `severity`; empty means `lastSeen`.
    pub sort: String,
    /// Whether the oldest or least severe come first.
    pub ascending: bool,
    /// Whether closed ones are shown as well.
    pub includes_closed: bool,
    /// The field that they are counted by; empty shows the events themselves.
    pub group_by: String,
    /// The titles of the columns that are shown; empty leaves the choice to the console.
    pub columns: Vec<String>,
}

impl View {
    /// What events can be sorted by, the usual one first.
    pub const SORTS: &[&str] = &["lastSeen", "startTime", "severity"];
}

/// How a shell reaches the service, in its own words.
#[derive(Clone, Debug)]
pub struct Shell {
    /// The address of REST, if it is known.
    pub rest: Option<String>,
    /// The key, as a word that a shell expands between double quotes.
    pub key: String,
    /// The `bellwether` command with what leads it to the service.
    pub bellwether: String,
}

impl Default for Shell {
    fn default() -> Self {
        Self {
            rest: None,
            key: "$BELLWETHER_KEY".to_owned(),
            bellwether: "bellwether".to_owned(),
        }
    }
}

/// How long Esc waits on a terminal of this machine.
pub const ESCAPE_DELAY: Duration = Duration::from_millis(40);
/// How long it waits over ssh.
pub const ESCAPE_DELAY_FAR: Duration = Duration::from_millis(100);
/// How long it may be set to wait.
pub const ESCAPE_DELAY_MAX: Duration = Duration::from_secs(1);

/// What a console is started with.
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches that have nothing to do with each other"
)]
#[derive(Clone, Debug)]
pub struct Options {
    /// The service's gRPC address, with TLS settings if any.
    pub endpoint: Endpoint,
    /// The key every call carries; none is sent without one.
    pub key: Option<Key>,
    /// Asks for it again before each connection, and now and then while one stands; without it, it
    /// stays as it is.
    pub renewal: Option<Renewal>,
    /// Whether the service is asked for signs of life, so that a connection that broke unnoticed is
    /// found out within 3 s. For a service in this process it wakes an idle console for nothing.
    pub keep_alive: bool,
    /// Whether nothing may be changed, whatever the key allows.
    pub read_only: bool,
    /// Whether clicks and the wheel are the console's from the start; else the terminal's.
    pub mouse: bool,
    /// How long to wait after Esc for the rest of a sequence that it may begin; zero waits for nothing.
    pub escape_delay: Duration,
    /// Whether the terminal has kitty's keyboard protocol, which tells Esc from what begins with it.
    pub kitty_keys: bool,
    /// Whether it is a wall that no one stands before: the overview alone, going through its spans.
    pub wall: bool,
    /// How it looks.
    pub theme: Theme,
    /// How many colours the terminal has.
    pub depth: Depth,
    /// Whether it shows ASCII alone.
    pub is_ascii: bool,
    /// What the terminal writes on, if that is known. It is asked when the theme depends on it.
    pub background: Option<Background>,
    /// A shell command that sends an event to the service, for the screen that lacks one.
    pub sending: Option<String>,
    /// How a shell reaches the service, for commands that are copied.
    pub shell: Shell,
    /// What the service is called, and how it is distinguished from others.
    pub context: Option<Context>,
    /// The names of the contexts that can be gone to; empty where leaving would end the service.
    pub contexts: Vec<String>,
    /// The operator's own views of events; those that people share come from the service.
    pub views: Vec<View>,
    /// Which keys do what.
    pub keys: Keymap,
    /// The zone that moments are shown in.
    pub time_zone: TimeZone,
    /// The one clock of the console.
    pub now: Now,
    /// The command that edits a text file, as `$VISUAL` or `$EDITOR` name it; it may have
    /// arguments.
    pub editor: String,
}

impl Options {
    /// A console on this service, with the defaults: no key, may write, the terminal's colours, the
    /// system's time zone, `vi`.
    ///
    /// # Errors
    /// The address is not a URI.
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
            sending: None,
            shell: Shell::default(),
            context: None,
            contexts: Vec::new(),
            views: Vec::new(),
            keys: Keymap::default(),
            time_zone: TimeZone::system(),
            now: Now::default(),
            editor: "vi".to_owned(),
        })
    }
}

/// Why a console could not start, or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Give another address.
    #[error("`{address}` is not an address such as http://127.0.0.1:8481")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it.
        source: tonic::transport::Error,
    },
    /// Give another key.
    #[error("invalid character in the API key")]
    Key,
    /// There is no terminal, or it is gone.
    #[error("failed to use the terminal")]
    Terminal(#[source] io::Error),
}
