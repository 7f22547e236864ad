//! The command line.

mod offered;
pub(crate) mod script;

use std::path::PathBuf;

use crate::version;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

/// The whole command line.
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[derive(Debug, Parser)]
#[command(
    name = "bellwether",
    version,
    long_version = version::long_version(),
    about = "Events in, messages out: a notification service with a terminal console.",
    long_about = "Events in, messages out: a notification service with a terminal console.\n\n\
        Without a command it opens the console. If no service is running, it also starts one \
        inside this process.",
    after_help = "Every setting can be set in bellwether.toml or in an environment variable: \
        `delivery.timeout` is BELLWETHER_DELIVERY_TIMEOUT. Flags override variables, variables \
        override the file. `bellwether --default-config` prints a file with all settings and \
        their meaning."
)]
pub(crate) struct Cli {
    /// Print a configuration file with every setting, its default and its meaning, and exit.
    #[arg(long)]
    pub(crate) default_config: bool,

    /// Print the console's keys, including configured ones, as a Markdown table, and exit.
    #[arg(long)]
    pub(crate) keys: bool,

    /// Open the console as a wall display: the overview without a cursor, cycling through time
    /// spans.
    #[arg(long, conflicts_with = "snapshot")]
    pub(crate) wall: bool,

    /// Draw one frame of a screen as text and exit: overview, events, triggers, destinations,
    /// rules, deliveries, clients or reference.
    #[arg(long, value_name = "SCREEN")]
    pub(crate) snapshot: Option<String>,

    /// Print the items of the screen as JSON, with the field names of REST, instead of drawing it.
    #[arg(long, requires = "snapshot")]
    pub(crate) json: bool,

    /// Write the frame as an SVG image instead of text.
    #[arg(long, requires = "snapshot", conflicts_with = "json")]
    pub(crate) svg: bool,

    /// Press keys on the screen first, in steps separated by spaces, such as
    /// `j j /host=db-1<Enter> x`: the image shows a frame after each step. Changes that the keys
    /// make are real.
    #[arg(
        long,
        requires = "snapshot",
        conflicts_with = "json",
        value_name = "KEYS"
    )]
    pub(crate) press: Option<String>,

    /// Set the size of the frame, in columns and rows.
    #[arg(long, value_name = "SIZE", default_value = "120x40", value_parser = Size::parse)]
    pub(crate) size: Size,

    /// Flags that are settings.
    #[command(flatten)]
    pub(crate) flags: Flags,

    /// The command; without one the console opens.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// Parses the command line of this process. Exits if it is invalid, or if only the help or the
    /// version is requested.
    pub(crate) fn read() -> Self {
        let matches = Self::visible_command().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// The command line, with the flags hidden on commands to which they do not apply.
    pub(crate) fn visible_command() -> clap::Command {
        let mut command = Self::command();
        // Only `build` propagates global arguments to the subcommands.
        command.build();
        offered::hide_inapplicable_flags(command)
    }

    /// The command line, with flags only on commands to which they apply.
    pub(crate) fn offered_command() -> clap::Command {
        offered::remove_inapplicable_flags(Self::command())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

impl Size {
    fn parse(text: &str) -> Result<Self, String> {
        let cells = |text: &str| text.parse().ok().filter(|cells| (1..=500).contains(cells));
        text.split_once('x')
            .and_then(|(columns, rows)| {
                Some(Self {
                    columns: cells(columns)?,
                    rows: cells(rows)?,
                })
            })
            .ok_or_else(|| "expected columns and rows up to 500, such as 80x24".to_owned())
    }
}

/// Flags that set a setting. They are read as text, because one reader parses the values from all
/// sources.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Flags {
    /// Data folder, with the store and the keys [default: the platform's data folder].
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) data_dir: Option<String>,
    /// PostgreSQL database of the store, such as `postgres://bellwether@db.example.net/bellwether`
    /// [default: the store is in the data folder].
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// File with the encryption keys of a store in PostgreSQL; must be the same on every node.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) secret_key_file: Option<String>,
    /// Listen address of gRPC and gRPC-Web [default: 127.0.0.1:8481].
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub(crate) grpc_listen: Option<String>,
    /// Listen address of REST [default: 127.0.0.1:8480].
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub(crate) rest_listen: Option<String>,
    /// gRPC address that `bellwether gateway` forwards to.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) backend: Option<String>,
    /// Use the service with this name in the configuration file: `[contexts.NAME]`.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// gRPC address of a running service [default: the service of the data folder, else that of this
    /// machine].
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) connect: Option<String>,
    /// TLS certificate of gRPC and REST, in PEM.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_cert: Option<String>,
    /// Private key of the certificate in --tls-cert, in PEM.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_key: Option<String>,
    /// Certificate authorities, in PEM, that must have signed client certificates.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_client_ca: Option<String>,
    /// Certificate revocation lists of the authorities in --tls-client-ca, in PEM.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_client_crl: Option<String>,
    /// Client certificate of the console, a command or a gateway, in PEM [default: that of
    /// --tls-cert].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_client_cert: Option<String>,
    /// Private key of the certificate in --tls-client-cert, in PEM.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_client_key: Option<String>,
    /// Certificate authorities, in PEM, that verify an `https` service [default: those of the
    /// system].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_ca: Option<String>,
    /// File with the API key [default: `admin.key` in the data folder].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) key_file: Option<String>,
    /// Configuration file [default: `bellwether.toml` in the platform's configuration folder, else
    /// /etc/bellwether/bellwether.toml].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Theme of the console: auto, terminal, dark, light, contrast, dusk or mono.
    #[arg(long, value_name = "NAME")]
    pub(crate) theme: Option<String>,
    /// Log format: `text` or `json`.
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
    /// Disable all changes in the console, whatever the key allows.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Print lines instead of drawing screens: for screen readers, logs and pipes.
    #[arg(long)]
    pub(crate) plain: bool,
    /// Allow unencrypted connections on addresses that other machines can reach.
    #[arg(long, global = true)]
    pub(crate) insecure: bool,
}

impl Flags {
    /// Switches to the service of a context, in place of the service that these flags name.
    pub(crate) fn switch_context(&mut self, context: String) {
        self.context = Some(context);
        (self.connect, self.key_file, self.tls_ca) = (None, None, None);
        (self.tls_client_cert, self.tls_client_key) = (None, None);
    }

    /// Returns the settings given as flags, by key.
    pub(crate) fn entries(&self) -> Vec<(&'static str, &str)> {
        let texts = [
            ("data_dir", &self.data_dir),
            ("store.url", &self.store),
            ("store.secret_key_file", &self.secret_key_file),
            ("grpc_listen", &self.grpc_listen),
            ("rest_listen", &self.rest_listen),
            ("backend", &self.backend),
            ("connect", &self.connect),
            ("tls_cert", &self.tls_cert),
            ("tls_key", &self.tls_key),
            ("tls_client_ca", &self.tls_client_ca),
            ("tls_client_crl", &self.tls_client_crl),
            ("tls_client_cert", &self.tls_client_cert),
            ("tls_client_key", &self.tls_client_key),
            ("tls_ca", &self.tls_ca),
            ("key_file", &self.key_file),
            ("theme", &self.theme),
            ("log_format", &self.log_format),
        ];
        let mut given: Vec<_> = texts
            .into_iter()
            .filter_map(|(key, text)| Some((key, text.as_deref()?)))
            .collect();
        let switches = [
            ("read_only", self.read_only),
            ("plain", self.plain),
            ("insecure", self.insecure),
        ];
        let switched_on = switches.into_iter().filter(|(_, on)| *on);
        given.extend(switched_on.map(|(key, _)| (key, "true")));
        given
    }
}

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Serve without a console until stopped; print the addresses and the file with the key.
    #[arg(long)]
    pub(crate) serve: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the console on a service with simulated incidents. Nothing leaves this machine, and nothing is kept.
    Demo(DemoArguments),
    /// Run the service: backend and REST gateway, without a console.
    Serve(ServeArguments),
    /// Run the backend only (gRPC).
    Backend(ServeArguments),
    /// Run the REST gateway only, for the backend at --backend.
    Gateway,
    /// Verify a data folder, a backup or a running service, without changing it.
    Check(CheckArguments),
    /// Back up a running service, or a data folder that is not in use. Resumes an interrupted
    /// backup when rerun.
    Backup(BackupArguments),
    /// Restore a backup into an empty or new data folder (--data-dir), or an empty database schema
    /// (--store).
    Restore(RestoreArguments),
    /// Manage a store in a database (--store).
    #[command(subcommand)]
    Store(StoreCommand),
    /// Manage the encryption keys of a store.
    #[command(subcommand)]
    Secrets(SecretsCommand),
    /// Print the audit log, newest first, as JSON lines.
    Audit(AuditArguments),
    /// Manage the clients of a service.
    #[command(subcommand)]
    Client(ClientCommand),
    /// Sign in with the OpenID Connect provider of a service, in a browser on any machine, instead
    /// of using a key.
    Login,
    /// Sign out: delete the stored token of a service.
    Logout,
    /// Inspect the settings.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Commands for scripts.
    #[command(flatten)]
    Script(script::Script),
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Create the schema with its tables, the encryption key file (--secret-key-file) if it is
    /// missing, and the client `admin`. Completes an interrupted run.
    Init {
        /// Write the key of the client `admin` to this file.
        #[arg(long, value_name = "FILE")]
        admin_key_file: PathBuf,
        /// Exit with 0 if the store already exists, without changing it.
        #[arg(long)]
        if_absent: bool,
    },
    /// Migrate the schema to the layout of this version. Refuses to remove running nodes of another
    /// version, and lists them.
    Migrate {
        /// Print the SQL statements instead of executing them, for the owner of the schema.
        #[arg(long)]
        print_sql: bool,
        /// Refuse a migration while nodes of another version are running.
        #[arg(long, conflicts_with = "print_sql")]
        if_stopped: bool,
        /// Remove running nodes of another version that cannot use the new layout.
        #[arg(long, conflicts_with_all = ["print_sql", "if_stopped"])]
        force: bool,
    },
    /// Show layout, size, newest position and nodes of the store.
    Status,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretsCommand {
    /// Rotate the encryption key: encrypt and authenticate the whole store with a new key.
    /// Stop the service first.
    Rotate {
        /// Remove the older keys from the file; backups made with the older keys require a copy of
        /// it.
        #[arg(long)]
        forget: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting and where it comes from: file, variable or flag. Exit code 2: a setting
    /// is invalid.
    Check,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Start without the lost data if a part of the store in the data folder is missing.
    #[arg(long)]
    pub(crate) accept_loss: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Verify the backup in this folder instead of the data folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) backup: Option<PathBuf>,
    /// Verify with this `secret.key` of the backed-up service that the backup was not modified.
    #[arg(long, value_name = "FILE", requires = "backup")]
    pub(crate) secret_key: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("keys").required(true))]
pub(crate) struct BackupArguments {
    /// A new or empty folder.
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// Include `secret.key` and `admin.key` in the backup: anyone with it can read its secrets.
    #[arg(long, group = "keys")]
    pub(crate) with_keys: bool,
    /// Omit the keys: keep a copy of `secret.key` elsewhere.
    #[arg(long, group = "keys")]
    pub(crate) without_keys: bool,
    /// Read at most this many MiB per second from a running service [default: 32].
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub(crate) rate: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The folder of the backup.
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// Use this `secret.key` of the backed-up service, for a backup without keys.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_key: Option<PathBuf>,
    /// Accept a backup of an earlier version, which is not authenticated.
    #[arg(long)]
    pub(crate) accept_unproven: bool,
    /// Start quiet: no messages are sent until `bellwether quiet off`. Deliveries that are due,
    /// which may have been sent after the backup, are held until they are resent. For drills and
    /// copies.
    #[arg(long)]
    pub(crate) hold_deliveries: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// Print only changes by these clients.
    #[arg(long = "client", value_name = "NAME")]
    pub(crate) clients: Vec<String>,
    /// Print only changes of these kinds, such as `rule`.
    #[arg(long = "kind", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    /// Print only changes of resources with these names.
    #[arg(long = "name", value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Print only entries since this time, such as 2026-11-22T09:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<jiff::Timestamp>,
    /// Print only entries before this time.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<jiff::Timestamp>,
}

#[derive(Debug, Args)]
pub(crate) struct NewClient {
    /// The name of the client.
    pub(crate) name: String,
    /// The role of the client.
    #[arg(long)]
    pub(crate) role: Role,
    /// Limit requests per second [default: no limit].
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(crate) requests_per_second: u32,
    /// Limit events per second [default: no limit].
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(crate) events_per_second: u32,
    /// Allow a dialect of other products, such as prometheus or pagerduty; repeatable.
    #[arg(long = "dialect", value_name = "NAME")]
    pub(crate) dialects: Vec<String>,
    /// Set the expiry of the key, such as 2027-01-31T00:00:00Z [default: never].
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<jiff::Timestamp>,
    /// Restrict changes to definitions with this tag; repeatable.
    #[arg(long = "scope-tag", value_name = "TAG")]
    pub(crate) scope_tags: Vec<String>,
    /// Restrict sending to events with this `source`; repeatable.
    #[arg(long = "scope-source", value_name = "SOURCE")]
    pub(crate) scope_sources: Vec<String>,
    /// Authenticate the client by this certificate, such as dns:sender.example.net; repeatable.
    #[arg(long = "certificate", value_name = "NAME")]
    pub(crate) certificates: Vec<String>,
}

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one field per command-line flag"
)]
pub(crate) struct ClientChange {
    /// The name of the client.
    pub(crate) name: String,
    /// Limit requests per second; 0 removes the limit.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) requests_per_second: Option<u32>,
    /// Limit events per second; 0 removes the limit.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) events_per_second: Option<u32>,
    /// Replace the allowed dialects; repeatable.
    #[arg(long = "dialect", value_name = "NAME")]
    pub(crate) dialects: Vec<String>,
    /// Remove all dialects: allow native events only.
    #[arg(long, conflicts_with = "dialects")]
    pub(crate) no_dialect: bool,
    /// Set the expiry of the key, such as 2027-01-31T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<jiff::Timestamp>,
    /// Remove the expiry.
    #[arg(long, conflicts_with = "expires")]
    pub(crate) no_end: bool,
    /// Replace the tags of the restriction; repeatable.
    #[arg(long = "scope-tag", value_name = "TAG")]
    pub(crate) scope_tags: Vec<String>,
    /// Replace the sources of the restriction; repeatable.
    #[arg(long = "scope-source", value_name = "SOURCE")]
    pub(crate) scope_sources: Vec<String>,
    /// Remove the restriction to tags and sources.
    #[arg(long, conflicts_with_all = ["scope_tags", "scope_sources"])]
    pub(crate) no_scope: bool,
    /// Replace the certificates of the client; repeatable.
    #[arg(long = "certificate", value_name = "NAME")]
    pub(crate) certificates: Vec<String>,
    /// Remove all certificates of the client.
    #[arg(long, conflicts_with = "certificates")]
    pub(crate) no_certificate: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Create a client and print its key, which is shown only once. Without a running service it is
    /// created in the data folder, or with --store and --secret-key-file in the database.
    Create(NewClient),
    /// Change the rate limits, scopes, certificates and expiry of a client, from its next request
    /// on.
    #[command(arg_required_else_help = true)]
    Update(ClientChange),
    /// List clients.
    List,
    /// Rotate a client's key and print the new one, which is shown only once; the old one stays
    /// valid for an overlap.
    Rotate {
        /// The name of the client.
        name: String,
        /// Seconds for which the previous key stays valid; 0 revokes it immediately [default:
        /// 86400].
        #[arg(long, value_name = "SECONDS")]
        overlap: Option<u32>,
    },
    /// Revoke a client's key immediately.
    Revoke {
        /// The name of the client.
        name: String,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Role {
    /// Send events.
    Ingest,
    /// Read.
    Viewer,
    /// Read, annotate, set status, resend, test.
    Operator,
    /// Like operator, and change definitions.
    Editor,
    /// Like editor, and manage clients.
    Admin,
}
