//! The database address, such as `postgres://bellwether@db1,db2/bellwether?sslmode=verify-full`.

use std::{fmt, net::IpAddr, path::Path, str::FromStr, sync::Arc, time::Duration};

use percent_encoding::percent_decode_str;
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio_postgres::config::{ChannelBinding, Config, Host, SslMode, TargetSessionAttrs};

use super::{
    counters::StoreCounters,
    gate::Gate,
    reach::Reachability,
    tls::{Tls, Verify},
};
use crate::{
    condition::ObservedCondition,
    limits::{
        STORE_CONNECT_TIME_MAX, STORE_CONNECTIONS, STORE_CONNECTIONS_APART, STORE_SILENCE_TIME_MAX,
    },
};

pub const SCHEMA: &str = "bellwether";
/// PostgreSQL's limit on the length of an identifier.
const NAME_BYTES_MAX: usize = 63;
/// Interval between TCP keepalive probes of an idle connection.
const KEEPALIVE: Duration = Duration::from_secs(2);
const KEEPALIVES: u32 = 3;

#[derive(Clone)]
pub struct Address {
    pub(super) config: Config,
    pub(super) tls: Tls,
    pub(super) schema: String,
    pub(super) counters: StoreCounters,
    pub(super) reach: Reachability,
    pub(super) observed: Arc<ObservedCondition>,
    pub(super) gate: Arc<Gate>,
    /// Whether commits must be replicated to a standby.
    pub(super) requires_standby: bool,
    connections: usize,
    shown: String,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.shown).finish()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Address {
    /// Parses an address. The password is separate, so that it does not show up in process
    /// listings.
    pub fn parse(url: &str, password: Option<&str>, schema: &str) -> Result<Self, String> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let scheme = base
            .strip_prefix("postgres://")
            .or_else(|| base.strip_prefix("postgresql://"));
        let Some(rest) = scheme else {
            return Err(
                "expected an address such as \"postgres://bellwether@db.example.net/bellwether\""
                    .into(),
            );
        };
        let user = rest.split_once('@').map_or("", |(user, _)| user);
        if user.contains(':') {
            return Err(
                "it contains a password; set BELLWETHER_STORE_PASSWORD or store.password_file"
                    .into(),
            );
        }
        // The driver's messages can quote the address; it contains no secret here.
        let mut config = Config::from_str(base).map_err(|error| error.to_string())?;
        if config.get_hosts().is_empty() || config.get_user().is_none() {
            return Err("expected a user and a host, as in postgres://USER@HOST/DATABASE".into());
        }
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err("expected a database, as in postgres://USER@HOST/DATABASE".into());
        }
        let tls = parse_tls(&mut config, query)?;
        if let Some(password) = password {
            config.password(password);
        }
        config
            .application_name("bellwether")
            .connect_timeout(STORE_CONNECT_TIME_MAX)
            .tcp_user_timeout(STORE_SILENCE_TIME_MAX)
            .keepalives_idle(STORE_SILENCE_TIME_MAX)
            .keepalives_interval(KEEPALIVE)
            .keepalives_retries(KEEPALIVES)
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        Ok(Self {
            schema: quote_identifier(schema)?,
            counters: StoreCounters::default(),
            reach: Reachability::default(),
            observed: Arc::default(),
            gate: Arc::default(),
            requires_standby: false,
            connections: STORE_CONNECTIONS,
            shown: base.into(),
            config,
            tls,
        })
    }
}

impl Address {
    /// Sets the number of connections of a node, raised to the minimum that a node requires.
    #[must_use]
    pub fn with_connections(self, connections: usize) -> Self {
        Self {
            connections,
            ..self
        }
    }

    #[must_use]
    pub fn with_required_standby(self, requires_standby: bool) -> Self {
        Self {
            requires_standby,
            ..self
        }
    }

    /// Returns the number of connections for reads; each serves many concurrent calls.
    pub(super) fn reader_count(&self) -> usize {
        let apart = STORE_CONNECTIONS_APART;
        self.connections.saturating_sub(apart).max(1)
    }
}

fn quote_identifier(schema: &str) -> Result<String, String> {
    let starts = schema.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    let plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    if !starts || !schema.chars().all(plain) || schema.len() > NAME_BYTES_MAX {
        return Err(format!(
            "expected a name of lower-case letters, digits and underscores that does not begin \
             with a digit, up to {NAME_BYTES_MAX} bytes, not {schema:?}"
        ));
    }
    Ok(format!("\"{schema}\""))
}

fn parse_tls(config: &mut Config, query: &str) -> Result<Tls, String> {
    let (mut mode, mut authorities) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_not_utf8| format!("{name} is not valid UTF-8"))?;
        match name {
            "sslmode" => mode = Some(value.into_owned()),
            "sslrootcert" => authorities = Some(value.into_owned()),
            _ => {
                return Err(format!(
                    "unknown parameter {name:?}; expected sslmode or sslrootcert"
                ));
            }
        }
    }
    let is_local = config.get_hosts().iter().all(is_local);
    let verify = match mode.as_deref() {
        Some("disable") if is_local => None,
        // An address that names authorities implies TLS.
        None if is_local && authorities.is_none() => None,
        None | Some("verify-full") => Some(Verify::Full),
        Some("verify-ca") => Some(Verify::Authority),
        Some(other @ ("disable" | "allow" | "prefer" | "require")) => {
            return Err(format!(
                "sslmode={other} does not verify the identity of the database; use verify-full, \
                 or verify-ca if its certificate is for another name{}",
                if is_local {
                    ", or `disable` on this machine"
                } else {
                    ""
                }
            ));
        }
        Some(other) => {
            return Err(format!(
                "unknown value sslmode={other}; use verify-full or verify-ca"
            ));
        }
    };
    let Some(verify) = verify else {
        config.ssl_mode(SslMode::Disable);
        return Tls::disabled();
    };
    config
        .ssl_mode(SslMode::Require)
        .channel_binding(ChannelBinding::Prefer);
    Tls::new(load_roots(authorities.as_deref())?, verify)
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let address: Option<IpAddr> = name.parse().ok();
            name == "localhost" || address.is_some_and(|it| it.is_loopback())
        }
    }
}

/// Reads the authorities in a file, or else those that the machine trusts.
fn load_roots(file: Option<&str>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        return Ok(roots);
    };
    let message = |what: &dyn fmt::Display| format!("sslrootcert {file}: {what}");
    let certificates =
        CertificateDer::pem_file_iter(Path::new(file)).map_err(|error| message(&error))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| message(&error))?;
        roots.add(certificate).map_err(|error| message(&error))?;
    }
    if roots.is_empty() {
        return Err(message(&"contains no certificate"));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::{Address, SCHEMA};

    #[test]
    fn insecure_or_incomplete_addresses_are_refused() {
        let read = |url: &str| Address::parse(url, None, SCHEMA).map(|address| address.shown);
        for right in [
            "postgres://bellwether@db1,db2:5433/bellwether?sslmode=verify-full",
            "postgres://bellwether@db1/bellwether?sslmode=verify-ca",
            "postgresql://bellwether@db1/bellwether",
            "postgres://bellwether@127.0.0.1/bellwether?sslmode=disable",
            "postgres://bellwether@%2Frun%2Fpostgresql/bellwether",
        ] {
            read(right).unwrap();
        }
        for (wrong, why) in [
            ("postgres://u@db1/b?sslmode=disable", "verify-full"),
            ("postgres://u@db1/b?sslmode=prefer", "verify-full"),
            ("postgres://u@db1/b?sslmode=require", "verify-full"),
            (
                "postgres://u@127.0.0.1,db1/b?sslmode=disable",
                "verify-full",
            ),
            (
                "postgres://u@127.0.0.1/b?sslmode=prefer",
                "`disable` on this",
            ),
            ("postgres://u@db1/b?sslmode=wrong", "unknown value"),
            ("postgres://u@db1/b?connect_timeout=1", "unknown parameter"),
            ("postgres://u@db1/b?sslrootcert=/none/at/all", "sslrootcert"),
            ("postgres://u@localhost/b?sslrootcert=/none", "sslrootcert"),
            ("postgres://u:p@db1/b", "BELLWETHER_STORE_PASSWORD"),
            ("postgres://u@db1", "a database"),
            ("postgres:///b", "a user and a host"),
            ("mysql://u@db1/b", "postgres://"),
        ] {
            let said = read(wrong).unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
            assert!(!said.contains("u:p"), "{said}");
        }
        for schema in ["", "1a", "a\"b", "A", "a b", &"a".repeat(64)] {
            Address::parse("postgres://u@localhost/b", None, schema).unwrap_err();
        }
    }

    #[test]
    fn displayed_address_omits_password() {
        let password = "correct horse";
        let url = "postgres://u@localhost/b";
        let address = Address::parse(url, Some(password), SCHEMA).unwrap();
        assert_eq!(address.to_string(), url);
        assert!(!format!("{address:?}").contains("horse"));
    }
}
