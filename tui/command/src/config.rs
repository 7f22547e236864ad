//! The settings: a flag overrides a variable, a variable the file, and the file the default.

mod commands;
mod contexts;
mod entry;
mod file;
mod keys;
mod service;
mod setting;
#[cfg(test)]
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
    Background, Depth, ESCAPE_DELAY, ESCAPE_DELAY_REMOTE, Keymap, Notices, Theme, View,
    has_kitty_keys, is_ascii_only, is_colourless,
};
use directories::ProjectDirs;
use toml::Value;
use tracing_subscriber::filter::Targets;

pub(crate) use self::contexts::Context;
use self::entry::Setting;
use crate::{cli::Flags, permissions::Permissions};

const FILE_BYTES_MAX: u64 = 1024 * 1024;
const FILE_NAME: &str = "bellwether.toml";
/// The settings of the machine, for users without a personal file.
pub(crate) const SYSTEM_FILE: &str = "/etc/bellwether/bellwether.toml";

pub(crate) const DEFAULT_FILE: &str = include_str!("../bellwether.default.toml");

const VARIABLE_PREFIX: &str = "BELLWETHER_";

pub(crate) type Variables = BTreeMap<String, String>;

/// Invalid settings: one line each, with the setting and the valid form.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConfigError(pub(crate) String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// A part of the program. Each part uses its own settings and the settings of the parts listed
/// before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Client,
    Store,
    Service,
}

/// All settings. The settings that are in use are valid.
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) data_dir: PathBuf,
    /// Runtime folders that the service manager created for this process.
    pub(crate) runtime_dirs: Vec<PathBuf>,
    /// Listen address of gRPC. `None` means the default, which the console may replace if it is in
    /// use.
    pub(crate) grpc_listen: Option<SocketAddr>,
    /// Listen address of REST. `None` means the default, which the console may replace if it is in
    /// use.
    pub(crate) rest_listen: Option<SocketAddr>,
    pub(crate) backend: String,
    pub(crate) connect: Option<String>,
    pub(crate) contexts: Vec<Context>,
    pub(crate) views: Vec<View>,
    pub(crate) context: Option<Context>,
    pub(crate) key: KeySource,
    /// File with the tokens of sign-ins; `None` if the user has no home folder.
    pub(crate) sign_ins: Option<PathBuf>,
    pub(crate) read_only: bool,
    pub(crate) plain: bool,
    pub(crate) mouse: bool,
    /// Time that the console waits after Esc for the rest of a sequence.
    pub(crate) escape_delay: Duration,
    pub(crate) kitty_keys: bool,
    pub(crate) wall: bool,
    pub(crate) theme: Theme,
    pub(crate) depth: Depth,
    pub(crate) is_ascii: bool,
    pub(crate) background: Option<Background>,
    pub(crate) keys: Keymap,
    pub(crate) notices: Notices,
    /// Program that opens a URL in a browser; `None` over ssh and without a display.
    pub(crate) opener: Option<String>,
    pub(crate) editor: String,
    pub(crate) log_format: LogFormat,
    pub(crate) log_filter: Targets,
    pub(crate) tls: TlsSettings,
    /// Whether unencrypted listeners are allowed on non-loopback addresses.
    pub(crate) insecure: bool,
    /// Warnings for the log about parts of the configuration file that other users can read.
    pub(crate) loose: Vec<String>,
    /// Errors in settings of parts that might not run.
    pub(crate) unusable: Vec<(Part, ConfigError)>,
    /// All settings from the file, variables and flags, in the order read; later ones override
    /// earlier ones.
    pub(crate) given: Vec<ConfiguredValue>,
    pub(crate) service: service::ServiceSettings,
}

#[derive(Debug, Clone)]
pub(crate) struct ConfiguredValue {
    pub(crate) key: &'static str,
    /// The value as TOML; masked if it is secret.
    pub(crate) shown: String,
    pub(crate) source: SettingSource,
}

#[derive(Debug, Clone)]
pub(crate) enum SettingSource {
    File(PathBuf),
    Variable(String),
    Flag(String),
}

impl SettingSource {
    fn describe(&self, key: &str) -> String {
        match self {
            Self::File(path) => format!("{key} (in {})", path.display()),
            Self::Variable(name) | Self::Flag(name) => name.clone(),
        }
    }
}

impl fmt::Display for SettingSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "{}", path.display()),
            Self::Variable(name) | Self::Flag(name) => formatter.write_str(name),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct TlsSettings {
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) client_ca: Option<PathBuf>,
    pub(crate) client_crl: Option<PathBuf>,
    pub(crate) client_optional: bool,
    /// Client certificate of a console, command or gateway; `None` means the certificate of the
    /// listeners.
    pub(crate) client_cert: Option<PathBuf>,
    pub(crate) client_key: Option<PathBuf>,
    /// Authorities that verify the service; `None` means the authorities of the system.
    pub(crate) ca: Option<PathBuf>,
    /// Expected name in the service's certificate; `None` means the host of the address.
    pub(crate) name: Option<String>,
}

impl TlsSettings {
    fn check_serving(&self) -> Result<(), ConfigError> {
        let message = match (&self.cert, &self.client_ca, &self.client_crl) {
            (_, None, Some(_)) => "tls_client_ca: required because tls_client_crl is set",
            (None, Some(_), _) => "tls_cert: required because tls_client_ca is set",
            _ => return Ok(()),
        };
        Err(ConfigError(message.into()))
    }

    fn check(&self) -> Result<(), ConfigError> {
        let message = match (&self.client_cert, &self.client_key) {
            (Some(_), None) => Some("tls_client_key: required because tls_client_cert is set"),
            (None, Some(_)) => Some("tls_client_cert: required because tls_client_key is set"),
            _ => None,
        };
        if let Some(message) = message {
            return Err(ConfigError(message.into()));
        }
        let message = match (&self.cert, &self.key) {
            (Some(_), None) => "tls_key: required because tls_cert is set",
            (None, Some(_)) => "tls_cert: required because tls_key is set",
            _ => return Ok(()),
        };
        Err(ConfigError(message.into()))
    }
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum KeySource {
    DataDir,
    File(PathBuf),
    Given(String),
}

impl KeySource {
    pub(crate) fn is_default(&self) -> bool {
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
    pub(crate) const GRPC_LISTEN: SocketAddr = loopback(8481);
    pub(crate) const REST_LISTEN: SocketAddr = loopback(8480);

    /// Reads the file, the variables and the flags, in that order. `used` returns the part of the
    /// program that will run, and may first set the address of a running service.
    ///
    /// # Errors
    /// Returns an error that names the setting if a value in use is invalid, or a key of the file
    /// is unknown.
    pub(crate) fn load(
        flags: &Flags,
        variables: &Variables,
        used: impl Fn(&mut Self) -> Part,
    ) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        settings.apply_conventions(variables);
        let variable_file = variables.get("BELLWETHER_CONFIG").map(PathBuf::from);
        let named = flags.config.clone().or(variable_file);
        let own = project_dirs().map(|folders| folders.config_dir().join(FILE_NAME));
        if let Some(file) = file::select_file(named, own, Path::new(SYSTEM_FILE)) {
            settings.read_file(&file)?;
        }
        variables::reject_unknown_variables(variables)?;
        for setting in setting::all_settings() {
            match variables::find_variable(variables, setting.key) {
                Ok(None) => {}
                Ok(Some((name, text))) => {
                    settings.set_value(
                        setting,
                        &Value::String(text),
                        SettingSource::Variable(name),
                    )?;
                }
                Err(error) => settings.reject(setting, error)?,
            }
        }
        if let Some(key) = variables.get("BELLWETHER_KEY") {
            settings.key = KeySource::Given(key.trim().to_owned());
        }
        if let Some(context) = &flags.context {
            settings.apply_context(context)?;
        }
        for (key, text) in flags.entries() {
            let setting = setting::find_setting(key).expect("every flag is a setting");
            let name = match key.rsplit_once('.') {
                Some((section, "url")) => section,
                Some((_, name)) => name,
                None => key,
            };
            let flag = SettingSource::Flag(format!("--{}", name.replace('_', "-")));
            settings.set_value(setting, &Value::String(text.to_owned()), flag)?;
        }
        settings.locate_folders()?;
        let part = used(&mut settings);
        settings.check(part)?;
        Ok(settings)
    }

    /// Applies conventional variables such as `NO_COLOR`, and those of systemd.
    fn apply_conventions(&mut self, variables: &Variables) {
        let folders = variables.get("RUNTIME_DIRECTORY").into_iter();
        let folders = folders.flat_map(|folders| std::env::split_paths(folders));
        self.runtime_dirs = folders.collect();
        let message = |name| variables.get(name).filter(|text| !text.is_empty());
        if message("NO_COLOR").is_some() {
            self.theme = Theme::Mono;
        }
        // A dumb terminal cannot move its cursor.
        self.plain = message("TERM").is_some_and(|term| term == "dumb");
        let (colorterm, term) = (message("COLORTERM"), message("TERM"));
        self.depth =
            Depth::from_environment(colorterm.map(String::as_str), term.map(String::as_str));
        let term_name = term.map(String::as_str);
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(message);
        self.is_ascii = is_ascii_only(term_name, locale.map(String::as_str));
        if is_colourless(term_name) {
            self.theme = Theme::Mono;
        }
        let has = |name: &str| variables.get(name).is_some_and(|text| !text.is_empty());
        self.kitty_keys = has_kitty_keys(term.map(String::as_str), &has);
        if has("SSH_CONNECTION") || has("SSH_TTY") {
            self.escape_delay = ESCAPE_DELAY_REMOTE;
        } else if cfg!(target_os = "macos") {
            self.opener = Some("open".to_owned());
        } else if has("DISPLAY") || has("WAYLAND_DISPLAY") {
            self.opener = Some("xdg-open".to_owned());
        }
        self.notices.tmux = has("TMUX");
        self.background =
            message("COLORFGBG").and_then(|message| Background::from_environment(message));
        if let Some(editor) = message("VISUAL").or_else(|| message("EDITOR")) {
            self.editor.clone_from(editor);
        }
    }

    fn read_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let shown = path.display();
        let unread = |error| ConfigError(format!("--config: cannot read {shown}: {error}"));
        let file = plain_file::open_file(path).map_err(unread)?;
        let mode = Permissions::of(&file).map_err(unread)?;
        if mode.is_world_writable() {
            return Err(ConfigError(format!(
                "--config: {shown} is world-writable (mode {mode}); run `chmod 600` on it"
            )));
        }
        let text = plain_file::read_rest(&file, FILE_BYTES_MAX);
        let text = text.and_then(plain_file::into_text).map_err(unread)?;
        let values = file::read_values(&text, path)?;
        self.contexts = contexts::parse_contexts(values.contexts, path)?;
        self.views = views::parse_views(values.views, path)?;
        for (key, value) in values.settings {
            let setting = setting::find_setting(&key).expect("only known keys are handed out");
            if setting.is_secret && mode.is_accessible_to_others() {
                self.loose.push(format!(
                    "other users can read {shown} (mode {mode}), which contains `{key}`; run \
                     `chmod 600` on it"
                ));
            }
            self.set_value(setting, &value, SettingSource::File(path.to_owned()))?;
        }
        if let Some(keys) = keys::parse_keymap(&text, path)? {
            self.keys = keys;
        }
        self.keys = commands::add_commands(self.keys.clone(), values.commands, path)?;
        Ok(())
    }

    fn set_value(
        &mut self,
        setting: &Setting,
        value: &Value,
        source: SettingSource,
    ) -> Result<(), ConfigError> {
        if let Err(problem) = (setting.set)(self, value) {
            let name = source.describe(setting.key);
            return self.reject(setting, ConfigError(format!("{name}: {problem}")));
        }
        self.given.push(ConfiguredValue {
            key: setting.key,
            shown: if setting.is_secret {
                "********".to_owned()
            } else {
                strip_user(&value.to_string())
            },
            source,
        });
        Ok(())
    }

    /// Returns the error. If the setting belongs to a part that might not run, records the error
    /// instead.
    fn reject(&mut self, setting: &Setting, error: ConfigError) -> Result<(), ConfigError> {
        match setting::part_of_key(setting.key) {
            Part::Client => Err(error),
            part => {
                self.unusable.push((part, error));
                Ok(())
            }
        }
    }

    pub(crate) fn effective(&self) -> BTreeMap<&'static str, &ConfiguredValue> {
        self.given.iter().map(|given| (given.key, given)).collect()
    }

    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.given.iter().any(|given| given.key == key)
    }

    fn locate_folders(&mut self) -> Result<(), ConfigError> {
        // The file is not in the data folder, because that folder belongs to a service.
        self.sign_ins = project_dirs().map(|folders| {
            let own = folders.state_dir();
            let own = own.unwrap_or_else(|| folders.config_dir());
            own.join("sign-ins.json")
        });
        if self.data_dir.as_os_str().is_empty() {
            self.data_dir = project_dirs()
                .map(|folders| folders.data_dir().to_owned())
                .ok_or_else(|| {
                    ConfigError("data_dir: required because this user has no home folder".into())
                })?;
        }
        Ok(())
    }

    fn check(&mut self, part: Part) -> Result<(), ConfigError> {
        if let Some(at) = self.unusable.iter().position(|(of, _)| *of <= part) {
            return Err(self.unusable.swap_remove(at).1);
        }
        self.tls.check()?;
        if part == Part::Service {
            self.check_serving()?;
        }
        self.service.check(part)?;
        Ok(())
    }

    fn check_serving(&self) -> Result<(), ConfigError> {
        self.tls.check_serving()?;
        if !self.insecure && self.tls.cert.is_none() {
            check_loopback("grpc_listen", self.grpc_listen)?;
            check_loopback("rest_listen", self.rest_listen)?;
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
            runtime_dirs: Vec::new(),
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
            notices: Notices::default(),
            opener: None,
            editor: "vi".into(),
            log_format: LogFormat::Text,
            log_filter: Targets::new().with_default(tracing::Level::INFO),
            tls: TlsSettings::default(),
            insecure: false,
            loose: Vec::new(),
            unusable: Vec::new(),
            given: Vec::new(),
            service: service::ServiceSettings::default(),
        }
    }
}

/// Removes the user, and a password with it, from an address.
fn strip_user(shown: &str) -> String {
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

fn project_dirs() -> Option<ProjectDirs> {
    ProjectDirs::from("", "", "bellwether")
}

fn check_loopback(setting: &str, listen: Option<SocketAddr>) -> Result<(), ConfigError> {
    match listen {
        Some(address) if !address.ip().is_loopback() => Err(ConfigError(format!(
            "{setting}: other machines reach {address}, and keys would be sent unencrypted; give \
             a certificate with --tls-cert and --tls-key, or allow it with --insecure"
        ))),
        _ => Ok(()),
    }
}
