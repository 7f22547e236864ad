//! Settings of the service: plain data, created once at start.

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

pub use authorities::{Authorities, AuthoritiesError};
pub use bellwether_backend_store::{DatabaseConfig, Location, StoreConfig};
pub use bellwether_process::listen::{Hosts, Origins, Proxies};
pub use bellwether_proto::otlp::ConversionSettings as LogSettings;
pub use lettre::message::Mailbox;
pub use mailbox::{parse_mailbox, parse_mailboxes};
pub use no_proxy::NoProxy;
pub use node_report::{NodeReport, ReportPublisher};
pub use oidc::OidcConfig;

use crate::{domain::SharedSettings, secret::Secret};

/// All settings. [`Config::new`] sets the defaults for a data folder.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder of the store and the keys; created if missing.
    pub data_dir: PathBuf,
    /// Address of gRPC (and gRPC-Web); port 0 selects a free one.
    pub grpc_listen: SocketAddr,
    /// Base URL of `link` and `url` in messages; if empty, both are empty.
    pub link_base: String,
    /// Template for `link` in messages, for pages of another service. If empty, links lead to this
    /// service.
    pub link_template: String,
    /// Time for which signed links can be opened without a key; zero disables them.
    pub link_lifetime: Duration,
    pub store: StoreConfig,
    /// The database of the store; `None` if it is in the data folder.
    pub database: Option<DatabaseConfig>,
    pub losses: Option<StoreLosses>,
    /// Values in this node's file for settings that all nodes share. Stored values take precedence.
    pub shared: SharedSettings,
    /// Names of the settings that are set explicitly.
    pub given: Vec<String>,
    pub delivery: DeliveryConfig,
    /// Origins whose pages may use gRPC-Web. All are allowed by default, because each call requires
    /// a key.
    pub origins: Origins,
    /// Host names of the service; an empty list accepts all.
    pub hosts: Hosts,
    /// Trusted proxies, whose forwarded client addresses are used.
    pub proxies: Proxies,
    pub egress: EgressConfig,
    /// The mail server; without it, deliveries to email destinations fail.
    pub smtp: Option<SmtpConfig>,
    /// Base URLs of providers, which tests can replace.
    pub providers: ProviderConfig,
    /// The external monitor that this node pings while it is healthy; `None` if not configured.
    pub ping: Option<PingConfig>,
    /// The identity provider; `None` if only keys are accepted.
    pub oidc: Option<OidcConfig>,
    /// Filter and dimensions for OpenTelemetry log records.
    pub logs: LogSettings,
}

#[derive(Debug, Clone)]
pub struct PingConfig {
    pub url: Secret,
    pub every: Duration,
}

/// Commits that a database lost, for example by a failover to a standby that lagged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreLosses {
    pub count: u64,
    pub why: String,
}

impl Config {
    /// Checks a link template: a URL with a fixed scheme and host.
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
            // Without variables, the URL may consist of the host only.
            Some(None) if fixed.len() < template.len() => {
                Err(format!("{RIGHT}, without variables before its path"))
            }
            Some(_) if template.contains("{{{") || template.contains("{{&") => {
                Err(format!("{RIGHT}; unescaped variables are not allowed"))
            }
            Some(_) => Ok(()),
        }
    }

    pub fn location(&self) -> Location {
        Location {
            data_dir: self.data_dir.clone(),
            options: self.store,
            database: self.database.clone(),
        }
    }

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

#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryConfig {
    /// Delay before each attempt; the length is the number of attempts.
    pub schedule: Vec<Duration>,
    /// Delay before each attempt of a page to a person.
    pub page_schedule: Vec<Duration>,
    /// Maximum random deviation of a delay, as a fraction of the delay.
    pub jitter: f64,
    pub connect_timeout: Duration,
    /// Timeout of an attempt, unless the destination sets one.
    pub timeout: Duration,
    /// Additional timeout for the mail server to respond to the message text.
    pub mail_answer_timeout: Duration,
    /// Maximum concurrent attempts in total.
    pub max_in_flight: usize,
    /// Default maximum of concurrent attempts per destination.
    pub max_in_flight_per_destination: u32,
    /// Time of continuous failure after which a destination is paused.
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

/// Exceptions from the egress guard, and trusted authorities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressConfig {
    /// Networks that the guard allows although it blocks them by default.
    pub allow: Vec<IpNet>,
    /// Host names that the guard allows, regardless of their address.
    pub allow_names: Vec<String>,
    /// Other listeners of this installation, such as the gateway, which are always blocked.
    pub own: Vec<SocketAddr>,
    /// Authorities trusted in addition to those of the machine.
    pub authorities: Authorities,
    /// Proxy for requests; `None` connects directly.
    pub proxy: Option<ProxyConfig>,
    /// Whether the proxy resolves host names. If so, the guard checks no addresses.
    pub proxy_by_name: bool,
    pub no_proxy: NoProxy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyConfig {
    pub host: String,
    pub port: u16,
    /// Value of `proxy-authorization`; empty sends none.
    pub authorization: Secret,
}

impl ProxyConfig {
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpConfig {
    pub host: String,
    pub port: u16,
    pub security: SmtpSecurity,
    /// Sender of emails, unless the destination sets one.
    pub from: Mailbox,
    /// Host name in EHLO; if empty, the name of the machine.
    pub hello: String,
    /// Credentials, used if the server supports authentication.
    pub login: Option<SmtpLogin>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SmtpLogin {
    /// User name and password (PLAIN or LOGIN).
    Password { user: String, password: Secret },
    /// User name and OAuth 2 token (XOAUTH2).
    OAuth2 {
        user: String,
        token_url: String,
        client_id: String,
        client_secret: Secret,
        /// Refresh token; if empty, the client credentials grant is used.
        refresh_token: Secret,
        scope: String,
    },
}

impl SmtpConfig {
    /// Checks a host name for EHLO: a fully qualified name, or an address in brackets.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpSecurity {
    None,
    /// STARTTLS, which the server must offer.
    StartTls,
    Tls,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    /// Base URL of Slack, for `/api/chat.postMessage`.
    pub slack: String,
    /// Base URL of PagerDuty, for `/v2/enqueue`.
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
