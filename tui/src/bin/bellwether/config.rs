//! The settings: a flag beats a variable, a variable beats the file, the file beats the default.

mod contexts;
mod entry;
mod file;
mod keys;
#[cfg(feature = "embedded")]
mod service;
mod setting;
#[cfg(test)]
#[cfg(feature = "embedded")]
mod tests;
mod value;
mod variables;
mod views;

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use bellwether_process::plain_file;
use bellwether_tui::{
    Background, Depth, ESCAPE_DELAY, ESCAPE_DELAY_FAR, Keymap, Theme, View, has_kitty_keys,
    is_ascii_alone, is_colourless,
};
use directories::ProjectDirs;
use toml::Value;
use tracing_subscriber::filter::Targets;

pub(crate) use self::contexts::Context;
use self::entry::Setting;
use crate::{cli::Flags, permissions::Permissions};

/// Bytes of a file of settings.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A configuration file with every setting, its default and its meaning.
pub(crate) const DEFAULT_FILE: &str = include_str!("../../../bellwether.default.toml");

/// What every variable starts with.
const VARIABLE_PREFIX: &str = "BELLWETHER_";

/// The variables that this process was started with.
pub(crate) type Variables = BTreeMap<String, String>;

/// Settings that cannot be used: for each a line that names it and shows what would be right.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConfigError(pub(crate) String);

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// A part of the program, by what it needs of the settings: each needs those of the parts before it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// A command or a console that uses a running service.
    Client,
    /// A command that works on a store itself.
    Store,
    /// A service.
    Service,
}

/// All settings; those that are used, checked.
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches that have nothing to do with each other"
)]
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The folder of the store and the keys.
    pub(crate) data_dir: PathBuf,
    /// Where gRPC is served; none means the default, from which the console may move away.
    pub(crate) grpc_listen: Option<SocketAddr>,
    /// Where REST is served; none means the default, from which the console may move away.
    pub(crate) rest_listen: Option<SocketAddr>,
    /// The backend that `bellwether gateway` stands before.
    pub(crate) backend: String,
    /// The running service that the console and `client` work on.
    pub(crate) connect: Option<String>,
    /// Services by name, and the one that was chosen.
    pub(crate) contexts: Vec<Context>,
    /// The operator's own views of events.
    pub(crate) views: Vec<View>,
    pub(crate) context: Option<Context>,
    /// Where the API key is.
    pub(crate) key: KeySource,
    /// The file with what signing in gave; none when this user has no home folder.
    pub(crate) sign_ins: Option<PathBuf>,
    /// Whether the console changes nothing.
    pub(crate) read_only: bool,
    /// Whether the console talks in lines instead of drawing screens.
    pub(crate) plain: bool,
    /// Whether clicks and the wheel are the console's.
    pub(crate) mouse: bool,
    /// How long the console waits after Esc for the rest of a sequence.
    pub(crate) escape_delay: Duration,
    /// Whether the terminal has kitty's keyboard protocol.
    pub(crate) kitty_keys: bool,
    /// Whether the console is a wall to look at from afar.
    pub(crate) wall: bool,
    /// How the console looks.
    pub(crate) theme: Theme,
    /// How many colours the terminal has.
    pub(crate) depth: Depth,
    /// Whether the terminal shows ASCII alone.
    pub(crate) is_ascii: bool,
    /// What the terminal writes on, where a variable tells.
    pub(crate) background: Option<Background>,
    /// Which keys do what in the console.
    pub(crate) keys: Keymap,
    /// The command that edits a text for the console.
    pub(crate) editor: String,
    /// How log lines are written.
    pub(crate) log_format: LogFormat,
    /// Which log lines are written.
    pub(crate) log_filter: Targets,
    /// How connections are secured.
    pub(crate) tls: TlsSettings,
    /// Whether to listen unencrypted where other machines reach it.
    pub(crate) insecure: bool,
    /// What others may read of the file with the settings, for the log.
    pub(crate) loose: Vec<String>,
    /// What is wrong with settings of parts that may not be used.
    pub(crate) unusable: Vec<(Part, ConfigError)>,
    /// What was given, in the order in which it was read: a later one beats an earlier one.
    pub(crate) given: Vec<Given>,
    /// What only the parts of the service read.
    #[cfg(feature = "embedded")]
    pub(crate) service: service::ServiceSettings,
}

/// A setting that was given.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) key: &'static str,
    /// Its value as TOML; of a secret a mask.
    pub(crate) shown: String,
    pub(crate) source: Source,
}

/// Where a setting was given.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// In that file.
    File(PathBuf),
    /// In the variable of that name.
    Variable(String),
    /// By that flag.
    Flag(String),
}

impl Source {
    /// What a sentence about the setting begins with.
    fn named(&self, key: &str) -> String {
        match self {
            Self::File(path) => format!("{key} (in {})", path.display()),
            Self::Variable(name) | Self::Flag(name) => name.clone(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "{}", path.display()),
            Self::Variable(name) | Self::Flag(name) => formatter.write_str(name),
        }
    }
}

/// How connections are secured, by files in PEM.
#[derive(Debug, Clone, Default)]
pub(crate) struct TlsSettings {
    /// The certificate that the listeners show.
    pub(crate) cert: Option<PathBuf>,
    /// The key of that certificate.
    pub(crate) key: Option<PathBuf>,
    /// Whose certificates clients have to show.
    pub(crate) client_ca: Option<PathBuf>,
    /// Which of those certificates were revoked.
    pub(crate) client_crl: Option<PathBuf>,
    /// Whether clients without a certificate may connect anyway.
    pub(crate) client_optional: bool,
    /// The certificate that a console, a command or a gateway shows to a service that asks; none means
    /// that of the listeners.
    pub(crate) client_cert: Option<PathBuf>,
    /// The key of that certificate.
    pub(crate) client_key: Option<PathBuf>,
    /// Whose certificate a service has to show; none means one of the system's authorities.
    pub(crate) ca: Option<PathBuf>,
    /// The name in that certificate; none means the host of the address.
    pub(crate) name: Option<String>,
}

impl TlsSettings {
    /// Checks what a listener needs.
    fn check_serving(&self) -> Result<(), ConfigError> {
        let message = match (&self.cert, &self.client_ca, &self.client_crl) {
            (_, None, Some(_)) => "tls_client_ca: missing, and tls_client_crl is given",
            (None, Some(_), _) => "tls_cert: missing, and tls_client_ca is given",
            _ => return Ok(()),
        };
        Err(ConfigError(message.into()))
    }

    fn check(&self) -> Result<(), ConfigError> {
        let message = match (&self.client_cert, &self.client_key) {
            (Some(_), None) => Some("tls_client_key: missing, and tls_client_cert is given"),
            (None, Some(_)) => Some("tls_client_cert: missing, and tls_client_key is given"),
            _ => None,
        };
        if let Some(message) = message {
            return Err(ConfigError(message.into()));
        }
        let message = match (&self.cert, &self.key) {
            (Some(_), None) => "tls_key: missing, and tls_cert is given",
            (None, Some(_)) => "tls_cert: missing, and tls_key is given",
            _ => return Ok(()),
        };
        Err(ConfigError(message.into()))
    }
}

/// Where the API key is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum KeySource {
    /// In `admin.key` in the data folder.
    DataDir,
    /// In that file.
    File(PathBuf),
    /// Given as it is.
    Given(String),
}

impl KeySource {
    /// Whether no one said where it is.
    pub(crate) fn is_unsaid(&self) -> bool {
        *self == Self::DataDir
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataDir => formatter.write_str("DataDir"),
            Self::File(file) => formatter.debug_tuple("File").field(file).finish(),
            Self::Given(_) => formatter.write_str("Given(********)"),
        }
    }
}

impl Settings {
    /// Where gRPC is served when no one says otherwise.
    pub(crate) const GRPC_LISTEN: SocketAddr = loopback(8481);
    /// Where REST is served when no one says otherwise.
    #[cfg(feature = "embedded")]
    pub(crate) const REST_LISTEN: SocketAddr = loopback(8480);

    /// Reads file, variables and flags, in that order. `used` returns the part that uses them, by whether
    /// they name a running service.
    ///
    /// # Errors
    /// When a value that is used cannot be, or a key of the file is not known; naming the setting.
    pub(crate) fn load(
        flags: &Flags,
        variables: &Variables,
        used: impl Fn(bool) -> Part,
    ) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        settings.take_conventions(variables);
        let variable_file = variables.get("BELLWETHER_CONFIG").map(PathBuf::from);
        if let Some(file) = flags.config.clone().or(variable_file) {
            settings.read_file(&file)?;
        } else if let Some(file) =
            convention().map(|folders| folders.config_dir().join("bellwether.toml"))
            && file.exists()
        {
            settings.read_file(&file)?;
        }
        #[cfg(feature = "embedded")]
        variables::check_known(variables)?;
        for setting in setting::all() {
            match variables::find(variables, setting.key) {
                Ok(None) => {}
                Ok(Some((name, text))) => {
                    settings.set(setting, &Value::String(text), Source::Variable(name))?;
                }
                Err(error) => settings.refuse(setting, error)?,
            }
        }
        if let Some(key) = variables.get("BELLWETHER_KEY") {
            settings.key = KeySource::Given(key.trim().to_owned());
        }
        if let Some(context) = &flags.context {
            settings.enter(context)?;
        }
        for (key, text) in flags.given() {
            let setting = setting::find(key).expect("every flag is a setting");
            let name = match key.rsplit_once('.') {
                Some((section, "url")) => section,
                Some((_, name)) => name,
                None => key,
            };
            let flag = Source::Flag(format!("--{}", name.replace('_', "-")));
            settings.set(setting, &Value::String(text.to_owned()), flag)?;
        }
        let part = used(settings.connect.is_some());
        settings.check(part)?;
        Ok(settings)
    }

    /// Takes over the conventional variables of programs in a terminal.
    fn take_conventions(&mut self, variables: &Variables) {
        let message = |name| variables.get(name).filter(|text| !text.is_empty());
        if message("NO_COLOR").is_some() {
            self.theme = Theme::Mono;
        }
        // Such a terminal cannot move its cursor.
        self.plain = message("TERM").is_some_and(|term| term == "dumb");
        let (colorterm, term) = (message("COLORTERM"), message("TERM"));
        self.depth =
            Depth::from_environment(colorterm.map(String::as_str), term.map(String::as_str));
        let term_name = term.map(String::as_str);
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(message);
        self.is_ascii = is_ascii_alone(term_name, locale.map(String::as_str));
        if is_colourless(term_name) {
            self.theme = Theme::Mono;
        }
        let has = |name: &str| variables.get(name).is_some_and(|text| !text.is_empty());
        self.kitty_keys = has_kitty_keys(term.map(String::as_str), &has);
        if has("SSH_CONNECTION") || has("SSH_TTY") {
            self.escape_delay = ESCAPE_DELAY_FAR;
        }
        self.background =
            message("COLORFGBG").and_then(|message| Background::from_environment(message));
        if let Some(editor) = message("VISUAL").or_else(|| message("EDITOR")) {
            self.editor.clone_from(editor);
        }
    }

    fn read_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let shown = path.display();
        let unread = |error| ConfigError(format!("--config: cannot read {shown}: {error}"));
        let file = plain_file::open(path).map_err(unread)?;
        let mode = Permissions::of(&file).map_err(unread)?;
        if mode.lets_all_write() {
            return Err(ConfigError(format!(
                "--config: everybody may write to {shown} (mode {mode}); `chmod 600` it"
            )));
        }
        let text = plain_file::whole(&file, FILE_BYTES_MAX);
        let text = text.and_then(plain_file::text).map_err(unread)?;
        let values = file::values(&text, path)?;
        self.contexts = contexts::read(values.contexts, path)?;
        self.views = views::read(values.views, path)?;
        for (key, value) in values.settings {
            let setting = setting::find(&key).expect("only known keys are handed out");
            if setting.is_secret && mode.lets_others_in() {
                self.loose.push(format!(
                    "other users may read {shown} (mode {mode}), which contains `{key}`: `chmod \
                     600` it"
                ));
            }
            self.set(setting, &value, Source::File(path.to_owned()))?;
        }
        if let Some(keys) = keys::read(&text, path)? {
            self.keys = keys;
        }
        Ok(())
    }

    fn set(&mut self, setting: &Setting, value: &Value, source: Source) -> Result<(), ConfigError> {
        if let Err(problem) = (setting.set)(self, value) {
            let name = source.named(setting.key);
            return self.refuse(setting, ConfigError(format!("{name}: {problem}")));
        }
        self.given.push(Given {
            key: setting.key,
            shown: if setting.is_secret {
                "********".to_owned()
            } else {
                without_user(&value.to_string())
            },
            source,
        });
        Ok(())
    }

    /// Refuses a value, unless only a part needs it that may not be used.
    fn refuse(&mut self, setting: &Setting, error: ConfigError) -> Result<(), ConfigError> {
        match setting::part(setting.key) {
            Part::Client => Err(error),
            part => {
                self.unusable.push((part, error));
                Ok(())
            }
        }
    }

    /// What was given and holds, by key: what beats it has taken its place.
    pub(crate) fn in_force(&self) -> BTreeMap<&'static str, &Given> {
        self.given.iter().map(|given| (given.key, given)).collect()
    }

    fn check(&mut self, part: Part) -> Result<(), ConfigError> {
        if let Some(at) = self.unusable.iter().position(|(of, _)| *of <= part) {
            return Err(self.unusable.swap_remove(at).1);
        }
        // Not in the data folder, which is a service's.
        self.sign_ins = convention().map(|folders| {
            let own = folders.state_dir();
            let own = own.unwrap_or_else(|| folders.config_dir());
            own.join("sign-ins.json")
        });
        if self.data_dir.as_os_str().is_empty() {
            self.data_dir = convention()
                .map(|folders| folders.data_dir().to_owned())
                .ok_or_else(|| {
                    ConfigError(
                        "data_dir: missing, and this user has no home folder to put it in".into(),
                    )
                })?;
        }
        self.tls.check()?;
        if part == Part::Service {
            self.check_serving()?;
        }
        #[cfg(feature = "embedded")]
        self.service.check(part)?;
        Ok(())
    }

    /// Checks what a service needs beyond single values.
    fn check_serving(&self) -> Result<(), ConfigError> {
        self.tls.check_serving()?;
        if !self.insecure && self.tls.cert.is_none() {
            check_loopback("grpc_listen", self.grpc_listen)?;
            check_loopback("rest_listen", self.rest_listen)?;
            #[cfg(feature = "embedded")]
            if self.service.metrics.key.is_some() {
                check_loopback("metrics.listen", self.service.metrics.listen)?;
            }
        }
        Ok(())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::new(),
            grpc_listen: None,
            rest_listen: None,
            backend: format!("http://{}", Self::GRPC_LISTEN),
            connect: None,
            contexts: Vec::new(),
            views: Vec::new(),
            context: None,
            key: KeySource::DataDir,
            sign_ins: None,
            read_only: false,
            plain: false,
            mouse: true,
            escape_delay: ESCAPE_DELAY,
            kitty_keys: false,
            wall: false,
            theme: Theme::Auto,
            depth: Depth::default(),
            is_ascii: false,
            background: None,
            keys: Keymap::default(),
            editor: "vi".into(),
            log_format: LogFormat::Text,
            log_filter: Targets::new().with_default(tracing::Level::INFO),
            tls: TlsSettings::default(),
            insecure: false,
            loose: Vec::new(),
            unusable: Vec::new(),
            given: Vec::new(),
            #[cfg(feature = "embedded")]
            service: service::ServiceSettings::default(),
        }
    }
}

/// A value as it is shown: who is named in an address may be named with a password.
fn without_user(shown: &str) -> String {
    let parts = shown.split_once("://").and_then(|(scheme, rest)| {
        let host = rest.find('/').map_or(rest, |path| &rest[..path]);
        let at = host.rfind('@')?;
        Some((scheme, &rest[at..]))
    });
    match parts {
        Some((scheme, rest)) => format!("{scheme}://********{rest}"),
        None => shown.to_owned(),
    }
}

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::V4(std::net::SocketAddrV4::new(
        std::net::Ipv4Addr::LOCALHOST,
        port,
    ))
}

/// The platform's folders for this program.
fn convention() -> Option<ProjectDirs> {
    ProjectDirs::from("", "", "bellwether")
}

fn check_loopback(setting: &str, listen: Option<SocketAddr>) -> Result<(), ConfigError> {
    match listen {
        Some(address) if !address.ip().is_loopback() => Err(ConfigError(format!(
            "{setting}: other machines reach {address}, and keys would be sent unencrypted; give \
             a certificate with --tls-cert and --tls-key, or accept it with --insecure"
        ))),
        _ => Ok(()),
    }
}
