//! The settings of the service: plain data, created once at start.

mod authorities;
mod mailbox;
mod no_proxy;
mod node_report;
mod oidc;

use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ipnet::IpNet;
use url::Url;

pub use authorities::{Authorities, BadAuthorities};
pub use bellwether_backend_store::{DatabaseConfig, Location, StoreConfig};
pub use bellwether_process::listen::{Hosts, Origins, Proxies};
pub use bellwether_proto::otlp::Settings as LogSettings;
pub use lettre::message::Mailbox;
pub use mailbox::{mailbox, mailboxes};
pub use no_proxy::NoProxy;
pub use node_report::{NodeReport, Telling};
pub use oidc::OidcConfig;

use crate::{domain::SharedSettings, secret::Secret};

/// All settings. [`Config::new`] gives every one but the data folder its default.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder that holds the store and the keys; made when absent.
    pub data_dir: PathBuf,
    /// Where gRPC (and gRPC-Web) is served; port 0 takes a free one.
    pub grpc_listen: SocketAddr,
    /// The address that `link` and `url` in messages start with; empty leaves them empty.
    pub link_base: String,
    /// A template for `link` in messages, for a separate page; empty leads to this service.
    pub link_template: String,
    /// How long links to this service can be followed without a key; zero asks everybody for one.
    pub link_lifetime: Duration,
    /// The store.
    pub store: StoreConfig,
    /// The database that the store is in; none means the data folder.
    pub database: Option<DatabaseConfig>,
    /// What this process has seen the database lose before it started again.
    pub losses: Option<StoreLosses>,
    /// What the file says of the settings that all nodes share; what is stored applies, see
    /// [`crate::ops::settings`].
    pub shared: SharedSettings,
    /// Which of these were given, as files name them; the others are defaults.
    pub given: Vec<String>,
    /// How messages are delivered.
    pub delivery: DeliveryConfig,
    /// Whose pages may call by gRPC-Web; all unless they are named, as each has to bring a key.
    pub origins: Origins,
    /// The names that the service is called by; none are all.
    pub hosts: Hosts,
    /// The proxies that are believed about the address of their clients.
    pub proxies: Proxies,
    /// Where messages may go.
    pub egress: EgressConfig,
    /// The mail server; without it email destinations fail with a sentence saying so.
    pub smtp: Option<SmtpConfig>,
    /// Where the providers are, so that a test can replace them.
    pub providers: ProviderConfig,
    /// The external monitor that this node pings while it is healthy; none unless configured.
    pub ping: Option<PingConfig>,
    /// Where people sign in; with none, only keys are accepted.
    pub oidc: Option<OidcConfig>,
    /// Which log records of OpenTelemetry are accepted, and what they are about.
    pub logs: LogSettings,
}

/// An external monitor that is pinged.
#[derive(Debug, Clone)]
pub struct PingConfig {
    /// Its address, which may hold a secret.
    pub url: Secret,
    /// The time between two pings.
    pub every: Duration,
}

/// Commits that a database has lost, as after a failover to a standby that was behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreLosses {
    /// How often.
    pub count: u64,
    /// What showed the last of them.
    pub why: String,
}

impl Config {
    /// Checks a template for links: an address whose scheme and host are the same for every message.
    ///
    /// # Errors
    /// With what would be right.
    pub fn check_link_template(template: &str) -> Result<(), String> {
        const RIGHT: &str = "expected an address such as \"https://ops.example.net/{{event.id}}\"";
        if template.is_empty() {
            return Ok(());
        }
        let fixed = template.split("{{").next().unwrap_or_default();
        let rest = fixed
            .strip_prefix("https://")
            .or(fixed.strip_prefix("http://"));
        match rest.map(|rest| rest.split_once('/')) {
            None | Some(Some(("", _))) => Err(RIGHT.into()),
            // Without variables, the host may be all there is.
            Some(None) if fixed.len() < template.len() => {
                Err(format!("{RIGHT}, without variables before its path"))
            }
            Some(_) if template.contains("{{{") || template.contains("{{&") => {
                Err(format!("{RIGHT}; every value is escaped"))
            }
            Some(_) => Ok(()),
        }
    }

    /// Where the store is.
    pub fn location(&self) -> Location {
        Location {
            data_dir: self.data_dir.clone(),
            options: self.store,
            database: self.database.clone(),
        }
    }

    /// The defaults, for a data folder.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            grpc_listen: SocketAddr::from(([127, 0, 0, 1], 8481)),
            link_base: String::new(),
            link_template: String::new(),
            link_lifetime: Duration::ZERO,
            store: StoreConfig::default(),
            database: None,
            losses: None,
            shared: SharedSettings::default(),
            given: Vec::new(),
            delivery: DeliveryConfig::default(),
            origins: Origins::All,
            hosts: Hosts::default(),
            proxies: Proxies::default(),
            egress: EgressConfig::default(),
            smtp: None,
            providers: ProviderConfig::default(),
            ping: None,
            oidc: None,
            logs: LogSettings::default(),
        }
    }
}

const HOUR: Duration = Duration::from_secs(3600);

/// How messages are delivered.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryConfig {
    /// How long to wait before each attempt; its length is the number of attempts.
    pub schedule: Vec<Duration>,
    /// The same for pages to people.
    pub page_schedule: Vec<Duration>,
    /// How far a wait may be off, as a share of it.
    pub jitter: f64,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// Timeout of an attempt, unless the destination sets one.
    pub timeout: Duration,
    /// How long a mail server may take to answer the text of a mail, beside that time.
    pub mail_answer_timeout: Duration,
    /// Concurrent attempts, over all destinations.
    pub max_in_flight: usize,
    /// Concurrent attempts to one destination, at most, when it does not say.
    pub max_in_flight_per_destination: u32,
    /// Failures without a success after which a destination is paused.
    pub pause_after: Duration,
}

impl Default for DeliveryConfig {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self {
            schedule: vec![
                Duration::ZERO,
                5 * second,
                300 * second,
                1800 * second,
                2 * HOUR,
                5 * HOUR,
                10 * HOUR,
                10 * HOUR,
            ],
            page_schedule: [0, 5, 10, 15, 30, 60, 120].map(|it| it * second).to_vec(),
            jitter: 0.2,
            connect_timeout: 5 * second,
            timeout: 15 * second,
            mail_answer_timeout: 300 * second,
            max_in_flight: 256,
            max_in_flight_per_destination: 32,
            pause_after: 5 * 24 * HOUR,
        }
    }
}

/// Where messages may go beside what the egress guard lets out, and which authorities are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressConfig {
    /// Networks that messages may go to although the guard would not let them.
    pub allow: Vec<IpNet>,
    /// Host names that messages may go to whatever their address is.
    pub allow_names: Vec<String>,
    /// Listeners of this installation beside the service's own, such as the gateway: no message
    /// may go there, whatever is allowed.
    pub own: Vec<SocketAddr>,
    /// Authorities whose certificates are trusted beside those that the machine trusts.
    pub authorities: Authorities,
    /// What requests go through; none connects itself.
    pub proxy: Option<ProxyConfig>,
    /// Whether the proxy resolves names. The guard judges no address then.
    pub proxy_by_name: bool,
    /// Hosts that are reached without the proxy.
    pub no_proxy: NoProxy,
}

/// An HTTP proxy that forwards requests to `http` addresses, and connects to `https` ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyConfig {
    /// Its host name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The value of `proxy-authorization`; empty shows nothing.
    pub authorization: Secret,
}

impl ProxyConfig {
    /// Reads an address such as `http://user:password@proxy.example.net:3128`.
    ///
    /// # Errors
    /// With what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        const RIGHT: &str = "an address such as \"http://proxy.example.net:3128\"";
        let url = Url::parse(text).map_err(|error| format!("expected {RIGHT}: {error}"))?;
        let host = url.host_str().filter(|host| !host.is_empty());
        let is_bare = matches!(url.path(), "" | "/") && url.query().is_none();
        let (Some(host), "http", true) = (host, url.scheme(), is_bare) else {
            return Err(format!("expected {RIGHT}, without a path"));
        };
        let decoded = |text: &str| {
            let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
            decoded.map(Cow::into_owned)
        };
        let pair = decoded(url.username()).and_then(|user| {
            let password = decoded(url.password().unwrap_or_default())?;
            Ok(format!("{user}:{password}"))
        });
        let pair = pair.map_err(|_not_utf8| format!("expected {RIGHT}"))?;
        let authorization = match &*pair {
            ":" => String::new(),
            pair => format!("Basic {}", STANDARD.encode(pair)),
        };
        Ok(Self {
            host: host.trim_start_matches('[').trim_end_matches(']').into(),
            port: url.port().unwrap_or(80),
            authorization: Secret::new(authorization),
        })
    }
}

/// The mail server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpConfig {
    /// Its host name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the conversation is secured.
    pub security: SmtpSecurity,
    /// Who mails are from, unless the destination says.
    pub from: Mailbox,
    /// The name that the service gives in EHLO; empty gives that of the machine.
    pub hello: String,
    /// How the service authenticates, when the server asks for it.
    pub login: Option<SmtpLogin>,
}

/// How the service authenticates at the mail server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SmtpLogin {
    /// With a user name and a password (PLAIN or LOGIN).
    Password {
        /// The user name.
        user: String,
        /// The password.
        password: Secret,
    },
    /// With a user name and a token of OAuth 2 (XOAUTH2).
    OAuth2 {
        /// The user name, mostly a mail address.
        user: String,
        /// Where tokens come from.
        token_url: String,
        /// The client.
        client_id: String,
        /// What the client shows.
        client_secret: Secret,
        /// A refresh token; empty asks by the client credentials grant.
        refresh_token: Secret,
        /// What the token is to be good for; may be empty.
        scope: String,
    },
}

impl SmtpConfig {
    /// Checks the name that EHLO gives: a host name with a domain, or an address in brackets.
    ///
    /// # Errors
    /// With what would be right.
    pub fn check_hello(name: &str) -> Result<(), String> {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        let address = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let is_right = match address {
            Some(address) => {
                let address = address.strip_prefix("IPv6:").unwrap_or(address);
                address.parse::<IpAddr>().is_ok()
            }
            None => name.is_empty() || (name.len() <= 255 && name.chars().all(is_letter)),
        };
        if is_right {
            return Ok(());
        }
        Err("expected a host name such as \"mail.example.net\", or an address in brackets such as \"[192.0.2.1]\"".into())
    }
}

/// How the conversation with the mail server is secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpSecurity {
    /// Not at all.
    None,
    /// With STARTTLS, which the server must offer.
    StartTls,
    /// With TLS from the first byte.
    Tls,
}

/// Where the providers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    /// The address that Slack's `/api/chat.postMessage` is below.
    pub slack: String,
    /// The address that PagerDuty's `/v2/enqueue` is below.
    pub pagerduty: String,
}

impl Default for ProviderConfig {
    fn default() -> Self {
        Self {
            slack: "https://slack.com".into(),
            pagerduty: "https://events.pagerduty.com".into(),
        }
    }
}
