//! The settings that only the service reads: backend, delivery, mail, gateway, metrics.

mod database;
mod oidc;
mod smtp;
mod unit;

use std::{net::SocketAddr, path::Path, str::FromStr, sync::Arc, time::Duration};

use bellwether_backend::{
    config::{
        Authorities, Config, DeliveryConfig, EgressConfig, Hosts, NoProxy, Origins, PingConfig,
        ProviderConfig, Proxies, ProxyConfig, SmtpConfig, SmtpSecurity, StoreConfig,
    },
    domain::{Secret, SharedSettings},
    limits::{
        MAIL_ANSWER_TIMEOUT_MAX, PING_EVERY_MAX, PING_EVERY_MIN, STORE_CONNECTIONS_APART,
        STORE_CONNECTIONS_MAX, TOGETHER_FROM_MAX,
    },
    trace::TraceConfig,
};

use bellwether_gateway::{Config as GatewayConfig, Severity};
use bellwether_process::plain_file;

use super::{
    ConfigError, ConfiguredValue, Part, SettingSource,
    entry::{Setting, set},
    value::{self, Read},
};

const PING_EVERY: Duration = Duration::from_secs(60);
const ATTEMPTS_MAX: usize = 50;
const IN_FLIGHT_MAX: usize = 10_000;

const CA_FILE_BYTES_MAX: u64 = 1024 * 1024;
const CONNECTIONS_MAX: usize = 1_000_000;

#[derive(Debug, Clone, Default)]
pub(crate) struct ServiceSettings {
    shared: SharedSettings,
    link_base: String,
    link_template: String,
    link_lifetime: Duration,
    store: StoreConfig,
    database: database::Database,
    delivery: DeliveryConfig,
    egress: EgressConfig,
    smtp: smtp::Smtp,
    oidc: oidc::Oidc,
    providers: ProviderConfig,
    gateway: GatewayConfig,
    pub(crate) metrics: MetricsSettings,
    traces: TraceSettings,
    ping: PingSettings,
    origins: Option<Origins>,
    hosts: Hosts,
    proxies: Proxies,
}

#[derive(Debug, Clone, Default)]
struct PingSettings {
    url: Secret,
    every: Option<Duration>,
}

#[derive(Debug, Clone, Default)]
struct TraceSettings {
    endpoint: String,
    sample: Option<f64>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct MetricsSettings {
    /// Separate listen address; `None` means the address of the other endpoints.
    pub(crate) listen: Option<SocketAddr>,
    /// Key required to read the metrics; `None` if no key is required.
    pub(crate) key: Option<Secret>,
}

pub(super) const SETTINGS: &[Setting] = &[
    set!("tenant" => service.shared.tenant: unit::parse_tenant),
    set!("link_base" => service.link_base: unit::text_or_empty),
    Setting::new("link_template", |settings, value| {
        let template = unit::text_or_empty(value)?;
        Config::check_link_template(&template)?;
        settings.service.link_template = template;
        Ok(())
    }),
    set!("link_lifetime" => service.link_lifetime: unit::parse_duration),
    Setting::new("templates", |settings, value| {
        settings.service.shared.templates = Arc::new(unit::parse_templates(value)?);
        Ok(())
    }),
    set!("store.cache_size" => service.store.cache_bytes: unit::parse_size),
    set!("store.free_space_floor" => service.store.free_space_floor_bytes: unit::parse_size),
    set!("store.url" => service.database.url: database::parse_url),
    set!("store.password" => Some(service.database.password): parse_password).with_secrecy(),
    set!("store.schema" => Some(service.database.schema): database::parse_schema),
    set!("store.node_name" => Some(service.database.node_name): value::parse_text),
    set!("store.secret_key_file" => Some(service.database.secret_key_file): value::parse_path),
    Setting::new("store.connections", |settings, value| {
        let bounds = STORE_CONNECTIONS_APART + 1..=STORE_CONNECTIONS_MAX;
        settings.service.database.connections = Some(unit::parse_number(value, bounds)?);
        Ok(())
    }),
    set!("store.require_standby" => service.database.require_standby: value::parse_flag),
    set!("lifetime.info_age_max" => service.shared.info_age_max: unit::parse_retention, true),
    set!("lifetime.warning_age_max" => service.shared.warning_age_max: unit::parse_retention, true),
    set!("lifetime.error_age_max" => service.shared.error_age_max: unit::parse_retention, true),
    set!("lifetime.retention" => service.shared.event_retention: unit::parse_retention, true),
    set!("release.together_from" => service.shared.together_from:
        unit::parse_number, 0..=TOGETHER_FROM_MAX),
    set!("delivery.schedule" => service.delivery.schedule: parse_schedule),
    set!("delivery.page_schedule" => service.delivery.page_schedule: parse_schedule),
    set!("delivery.jitter" => service.delivery.jitter: unit::parse_fraction),
    set!("delivery.connect_timeout" => service.delivery.connect_timeout:
        unit::parse_positive_duration),
    set!("delivery.timeout" => service.delivery.timeout: unit::parse_positive_duration),
    Setting::new("delivery.mail_answer_timeout", |settings, value| {
        let timeout = unit::parse_positive_duration(value)?;
        if timeout > MAIL_ANSWER_TIMEOUT_MAX {
            return Err(format!(
                "expected at most {MAIL_ANSWER_TIMEOUT_MAX:?}, found {timeout:?}"
            ));
        }
        settings.service.delivery.mail_answer_timeout = timeout;
        Ok(())
    }),
    set!("delivery.max_in_flight" => service.delivery.max_in_flight:
        unit::parse_number, 1..=IN_FLIGHT_MAX),
    set!("delivery.max_in_flight_per_destination" => service.delivery.max_in_flight_per_destination:
        unit::parse_number, 1..=64),
    set!("delivery.pause_after" => service.delivery.pause_after: unit::parse_positive_duration),
    set!("delivery.retention" => service.shared.delivery_retention: unit::parse_retention, false),
    set!("audit.retention" => service.shared.audit_retention: unit::parse_retention, false),
    set!("egress.allow" => service.egress.allow: parse_networks),
    set!("egress.allow_names" => service.egress.allow_names: unit::parse_list, value::parse_text),
    Setting::new("egress.ca_file", |settings, value| {
        settings.service.egress.authorities = parse_authorities(&unit::text_or_empty(value)?)?;
        Ok(())
    }),
    Setting::new("egress.proxy", |settings, value| {
        let proxy = unit::text_or_empty(value)?;
        let proxy = (!proxy.is_empty()).then(|| ProxyConfig::parse(&proxy));
        settings.service.egress.proxy = proxy.transpose()?;
        Ok(())
    }),
    set!("egress.proxy_by_name" => service.egress.proxy_by_name: value::parse_flag),
    Setting::new("egress.no_proxy", |settings, value| {
        let hosts = unit::parse_list(value, value::parse_text)?;
        let hosts = hosts.iter().map(String::as_str);
        settings.service.egress.no_proxy = NoProxy::parse(hosts)?;
        Ok(())
    }),
    set!("smtp.host" => Some(service.smtp.host): value::parse_text),
    set!("smtp.port" => Some(service.smtp.port): unit::parse_number, 1..=u16::MAX),
    Setting::new("smtp.security", |settings, value| {
        let words = [
            ("tls", SmtpSecurity::Tls),
            ("starttls", SmtpSecurity::StartTls),
            ("none", SmtpSecurity::None),
        ];
        settings.service.smtp.security = Some(value::one_of_names(value, &words)?);
        Ok(())
    }),
    set!("smtp.from" => Some(service.smtp.from): value::parse_text),
    Setting::new("smtp.hello", |settings, value| {
        let name = unit::text_or_empty(value)?;
        SmtpConfig::check_hello(&name)?;
        settings.service.smtp.hello = name;
        Ok(())
    }),
    set!("smtp.user" => Some(service.smtp.user): value::parse_text),
    set!("smtp.password" => Some(service.smtp.password): parse_password).with_secrecy(),
    Setting::new("smtp.oauth_token_url", |settings, value| {
        let url = unit::text_or_empty(value)?;
        if !url.is_empty() {
            value::parse_url(value)?;
        }
        settings.service.smtp.oauth.token_url = url;
        Ok(())
    }),
    set!("smtp.oauth_client_id" => service.smtp.oauth.client_id: unit::text_or_empty),
    set!("smtp.oauth_client_secret" => service.smtp.oauth.client_secret: secret_or_empty)
        .with_secrecy(),
    set!("smtp.oauth_refresh_token" => service.smtp.oauth.refresh_token: secret_or_empty)
        .with_secrecy(),
    set!("smtp.oauth_scope" => service.smtp.oauth.scope: unit::text_or_empty),
    set!("providers.slack" => service.providers.slack: value::parse_url),
    set!("providers.pagerduty" => service.providers.pagerduty: value::parse_url),
    set!("oidc.issuer" => service.oidc.issuer: oidc::parse_issuer),
    set!("oidc.client_id" => service.oidc.client_id: value::parse_text),
    set!("oidc.audience" => service.oidc.audience: unit::text_or_empty),
    set!("oidc.role_claim" => service.oidc.role_claim: value::parse_text),
    set!("oidc.admins" => service.oidc.admins: unit::parse_list, value::parse_text),
    set!("oidc.editors" => service.oidc.editors: unit::parse_list, value::parse_text),
    set!("oidc.operators" => service.oidc.operators: unit::parse_list, value::parse_text),
    set!("oidc.viewers" => service.oidc.viewers: unit::parse_list, value::parse_text),
    set!("oidc.name_claim" => service.oidc.name_claim: unit::text_or_empty),
    set!("oidc.scopes" => service.oidc.scopes: value::parse_text),
    set!("oidc.page" => service.oidc.page: oidc::parse_page_url),
    set!("gateway.body_limit" => service.gateway.body_limit_bytes: unit::parse_size),
    set!("gateway.header_limit" => service.gateway.header_limit_bytes: unit::parse_size),
    set!("gateway.deadline" => service.gateway.deadline: unit::parse_positive_duration),
    set!("gateway.header_timeout" => service.gateway.header_timeout: unit::parse_positive_duration),
    set!("gateway.drain" => service.gateway.drain: unit::parse_positive_duration),
    set!("gateway.max_connections" => service.gateway.max_connections:
        unit::parse_number, 1..=CONNECTIONS_MAX),
    set!("gateway.max_in_flight" => service.gateway.max_in_flight:
        unit::parse_number, 1..=IN_FLIGHT_MAX),
    set!("metrics.listen" => Some(service.metrics.listen): value::parse_address),
    Setting::new("metrics.key", |settings, value| {
        // The value is not repeated in the error: it may be most of a key.
        let key = value::parse_text(value)
            .ok()
            .filter(|key| !key.trim().is_empty());
        let key = key.ok_or("expected a string that is not empty")?;
        settings.service.metrics.key = Some(Secret::new(key));
        Ok(())
    })
    .with_secrecy(),
    Setting::new("heartbeat.url", |settings, value| {
        let text = unit::text_or_empty(value).unwrap_or_default();
        // The value is not repeated in the error: it may contain a key.
        if !text.is_empty() && value::parse_url(value).is_err() {
            return Err("expected an address such as \"https://hc-ping.com/…\"".into());
        }
        settings.service.ping.url = Secret::new(text);
        Ok(())
    })
    .with_secrecy(),
    Setting::new("heartbeat.every", |settings, value| {
        let every = unit::parse_positive_duration(value)?;
        if !(PING_EVERY_MIN..=PING_EVERY_MAX).contains(&every) {
            return Err(format!(
                "expected {PING_EVERY_MIN:?} to {PING_EVERY_MAX:?}, found {every:?}"
            ));
        }
        settings.service.ping.every = Some(every);
        Ok(())
    }),
    Setting::new("traces.endpoint", |settings, value| {
        let endpoint = unit::text_or_empty(value)?;
        let is_address = endpoint.starts_with("http://") || endpoint.starts_with("https://");
        if !is_address && !endpoint.is_empty() {
            return Err("expected an address such as \"http://127.0.0.1:4317\"".into());
        }
        let host = endpoint.split('/').nth(2).unwrap_or_default();
        if host.contains('@') {
            // The value is not repeated in the error: it may contain a password. A password would
            // not be sent to the collector anyway.
            return Err("expected an address without a user".into());
        }
        settings.service.traces.endpoint = endpoint;
        Ok(())
    }),
    set!("traces.sample" => Some(service.traces.sample): unit::parse_fraction),
    Setting::new("cors.origins", |settings, value| {
        settings.service.origins =
            Some(parse_origins(unit::parse_list(value, value::parse_text)?)?);
        Ok(())
    }),
    Setting::new("hosts", |settings, value| {
        let names = unit::parse_list(value, value::parse_text)?;
        settings.service.hosts = Hosts::new(names).map_err(|name| {
            format!(
                "`{name}` is not a host name; expected a name such as \"ops.example.net\" or \"*.lan\""
            )
        })?;
        Ok(())
    }),
    Setting::new("trusted_proxies", |settings, value| {
        settings.service.proxies = Proxies(parse_networks(value)?);
        Ok(())
    }),
    set!("senders.replica_labels" => service.gateway.senders.replica_labels:
        unit::parse_list, value::parse_text),
    set!("senders.fold_labels" => service.gateway.senders.fold_labels:
        unit::parse_list, value::parse_text),
    set!("senders.alert_severity" => service.gateway.senders.alert_severity: parse_severity),
    Setting::new("senders.log_floor", |settings, value| {
        settings.service.gateway.senders.logs.floor = parse_severity(value)?.into();
        Ok(())
    }),
    set!("senders.log_dimensions" => service.gateway.senders.logs.dimensions:
        unit::parse_list, value::parse_text),
];

fn parse_schedule(value: &toml::Value) -> Read<Vec<Duration>> {
    let schedule = unit::parse_list(value, unit::parse_duration)?;
    if schedule.is_empty() || schedule.len() > ATTEMPTS_MAX {
        let attempts = schedule.len();
        return Err(format!(
            "expected 1 to {ATTEMPTS_MAX} durations, found {attempts}"
        ));
    }
    Ok(schedule)
}

fn parse_origins(listed: Vec<String>) -> Read<Origins> {
    if listed.is_empty() {
        return Ok(Origins::None);
    }
    if listed == ["*"] {
        return Ok(Origins::All);
    }
    let is_origin = |text: &str| {
        let parts = text.split_once("://");
        parts.is_some_and(|(scheme, host)| {
            let is_of_host = |it: char| it.is_ascii_alphanumeric() || ".-:[]".contains(it);
            ["http", "https"].contains(&scheme) && !host.is_empty() && host.chars().all(is_of_host)
        })
    };
    match listed.iter().find(|text| !is_origin(text)) {
        None => Ok(Origins::These(listed)),
        Some(wrong) => Err(format!(
            "`{wrong}` is not an origin; expected an origin such as \
             \"https://console.example.net\", without a path; [\"*\"] allows all"
        )),
    }
}

fn parse_severity(value: &toml::Value) -> Read<Severity> {
    value::one_of_names(
        value,
        &Severity::ALL.map(|severity| (severity.as_str(), severity)),
    )
}

fn parse_authorities(path: &str) -> Read<Authorities> {
    if path.is_empty() {
        return Ok(Authorities::default());
    }
    let cannot_read = |error| format!("cannot read {path}: {error}");
    let text = plain_file::read_file(Path::new(path), CA_FILE_BYTES_MAX).map_err(cannot_read)?;
    Authorities::from_pem(&text).map_err(|error| format!("{path} is unusable: {error}"))
}

impl ServiceSettings {
    pub(super) fn check(&self, part: Part) -> Result<(), ConfigError> {
        if part >= Part::Store {
            self.database.without_key().config()?;
        }
        if part < Part::Service {
            return Ok(());
        }
        let refused = self.gateway.validate().err();
        if let Some(error) = refused {
            return Err(ConfigError(format!("gateway: {error}")));
        }
        self.oidc.config(&self.egress.authorities)?;
        self.smtp.config().map(|_| ())
    }
}

fn missing_error(setting: &str, because: &str) -> ConfigError {
    ConfigError(format!("{setting}: required because {because} is set"))
}

impl PingSettings {
    fn config(&self) -> Option<PingConfig> {
        (!self.url.is_empty()).then(|| PingConfig {
            url: self.url.clone(),
            every: self.every.unwrap_or(PING_EVERY),
        })
    }
}

fn parse_networks<N: FromStr>(value: &toml::Value) -> Read<Vec<N>> {
    unit::parse_list(value, |item| {
        value::parse_from_str(item, "a network such as \"10.0.0.0/8\"")
    })
}

/// Parses a password. The value is not repeated in the error: it may be most of a password.
fn parse_password(value: &toml::Value) -> Read<Secret> {
    let password = value::parse_text(value).ok().ok_or("expected a string")?;
    Ok(Secret::new(password))
}

fn secret_or_empty(value: &toml::Value) -> Read<Secret> {
    let text = unit::text_or_empty(value).ok();
    Ok(Secret::new(text.ok_or("expected a string")?))
}

impl super::Settings {
    pub(crate) fn store_config(&self) -> Result<Config, ConfigError> {
        let mut config = Config::new(&self.data_dir);
        config.store = self.service.store;
        config.database = self.service.database.config()?;
        Ok(config)
    }

    pub(crate) fn backend_config(&self) -> Result<Config, ConfigError> {
        let service = &self.service;
        let mut config = self.store_config()?;
        config.grpc_listen = self.grpc_listen.unwrap_or(Self::GRPC_LISTEN);
        config.shared.clone_from(&service.shared);
        let is_set = |key: &&str| self.given.iter().any(|it| it.key == *key);
        let shared = SharedSettings::KEYS.iter().map(|(key, _)| *key);
        config.given = shared.filter(is_set).map(str::to_owned).collect();
        config.link_base.clone_from(&service.link_base);
        config.link_template.clone_from(&service.link_template);
        config.link_lifetime = service.link_lifetime;
        config.delivery = service.delivery.clone();
        config.egress = service.egress.clone();
        if let Some(origins) = &service.origins {
            config.origins = origins.clone();
        }
        config.hosts = service.hosts.clone();
        config.proxies = service.proxies.clone();
        config.logs = service.gateway.senders.logs.clone();
        let own = &mut config.egress.own;
        own.push(self.rest_listen.unwrap_or(Self::REST_LISTEN));
        own.extend(service.metrics.listen);
        config.smtp = service.smtp.config()?;
        config.oidc = service.oidc.config(&service.egress.authorities)?;
        config.providers = service.providers.clone();
        config.ping = service.ping.config();
        Ok(config)
    }

    pub(crate) fn with_accept_loss(&self, accept_loss: bool) -> Self {
        let mut settings = self.clone();
        settings.service.store.accept_loss = accept_loss;
        settings
    }

    pub(crate) fn selects_store(&self) -> bool {
        let is_flag = |it: &ConfiguredValue| {
            it.key == "store.url" && matches!(it.source, SettingSource::Flag(_))
        };
        self.given.iter().any(is_flag)
    }

    /// Returns a copy for access to a database that needs no encryption key.
    pub(crate) fn without_store_key(&self) -> Self {
        let mut settings = self.clone();
        settings.service.database = self.service.database.without_key();
        settings
    }

    pub(crate) fn traces(&self) -> Option<TraceConfig> {
        let TraceSettings { endpoint, sample } = &self.service.traces;
        (!endpoint.is_empty()).then(|| TraceConfig {
            endpoint: endpoint.clone(),
            sample: sample.unwrap_or(1.0),
        })
    }

    pub(crate) fn gateway_config(&self) -> GatewayConfig {
        GatewayConfig {
            listen: self.rest_listen.unwrap_or(Self::REST_LISTEN),
            origins: self.service.origins.clone().unwrap_or_default(),
            hosts: self.service.hosts.clone(),
            proxies: self.service.proxies.clone(),
            ..self.service.gateway.clone()
        }
    }
}
