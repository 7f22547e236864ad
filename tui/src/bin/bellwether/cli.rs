//! What can be said on the command line.

pub(crate) mod script;

use std::path::PathBuf;

use crate::version;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

/// The whole command line.
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches that have nothing to do with each other"
)]
#[derive(Debug, Parser)]
#[command(
    name = "bellwether",
    version,
    long_version = version::long(),
    about = "Events in, messages out: a notification service with a console in the terminal.",
    long_about = "Events in, messages out: a notification service with a console in the terminal.\n\n\
        Without a command it opens the console; without --connect it also starts a service inside \
        this process.",
    after_help = "Every setting can stand in bellwether.toml or in a variable: `delivery.timeout` \
        is BELLWETHER_DELIVERY_TIMEOUT. A flag beats a variable, a variable beats the file. \
        `bellwether --default-config` prints a file with all settings and what they mean."
)]
pub(crate) struct Cli {
    /// Print a configuration file with every setting, its default and its meaning, and exit.
    #[arg(long)]
    pub(crate) default_config: bool,

    /// Print the console's keys, with those that were set, as a table in Markdown, and exit.
    #[arg(long)]
    pub(crate) keys: bool,

    /// Open the console as a wall to look at from afar: the overview without a cursor, going through
    /// its spans of time.
    #[arg(long, conflicts_with = "snapshot")]
    pub(crate) wall: bool,

    /// Draw one frame of a screen as text and exit: overview, events, triggers, destinations, rules,
    /// deliveries, clients, map or reference.
    #[arg(long, value_name = "SCREEN")]
    pub(crate) snapshot: Option<String>,

    /// Write what that screen lists as JSON, with the names of REST, instead of drawing it.
    #[arg(long, requires = "snapshot")]
    pub(crate) json: bool,

    /// Write that frame as a picture with its colours (SVG) instead of text.
    #[arg(long, requires = "snapshot", conflicts_with = "json")]
    pub(crate) svg: bool,

    /// Keys that are pressed on that screen, in steps separated by spaces, as
    /// `j j /host=db-1<Enter> x`: the picture shows a frame after each, one after the other. What
    /// they do is done.
    #[arg(
        long,
        requires = "snapshot",
        conflicts_with = "json",
        value_name = "KEYS"
    )]
    pub(crate) press: Option<String>,

    /// The size of that frame, in columns and rows.
    #[arg(long, value_name = "SIZE", default_value = "120x40", value_parser = Size::parse)]
    pub(crate) size: Size,

    /// Flags that are settings.
    #[command(flatten)]
    pub(crate) flags: Flags,

    /// What to do; nothing opens the console.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// Reads the command line of this process; ends it when there is nothing to do or it is wrong.
    pub(crate) fn read() -> Self {
        let matches = Self::shown().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// The command line, on which commands that only talk to a service do not show how one is served.
    fn shown() -> clap::Command {
        const SERVING: [&str; 9] = [
            "store",
            "secret_key_file",
            "grpc_listen",
            "rest_listen",
            "backend",
            "tls_cert",
            "tls_key",
            "tls_client_ca",
            "tls_client_crl",
        ];
        let mut command = Self::command();
        // What is global is on the commands only from then on.
        command.build();
        let clients = script::Script::augment_subcommands(clap::Command::new("scripts"));
        for client in clients.get_subcommands() {
            command = command.mut_subcommand(client.get_name(), |client| {
                client.mut_args(|argument| {
                    let is_serving = SERVING.contains(&argument.get_id().as_str());
                    let is_hidden = is_serving || argument.is_hide_set();
                    argument.hide(is_hidden)
                })
            });
        }
        command
    }
}

/// Columns and rows of a screen.
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

/// Flags that are settings, as text: one reader makes values of all of them.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Flags {
    /// Folder of the store and the keys [default: by the platform's convention].
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) data_dir: Option<String>,
    /// Database that holds the store, such as `postgres://bellwether@db.example.net/bellwether`
    /// [default: the store is in the data folder].
    #[cfg(feature = "embedded")]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// File with the keys that seal secrets in that store; its copies must be the same everywhere.
    #[cfg(feature = "embedded")]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) secret_key_file: Option<String>,
    /// Where gRPC and gRPC-Web are served [default: 127.0.0.1:8481].
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub(crate) grpc_listen: Option<String>,
    /// Where REST is served [default: 127.0.0.1:8480].
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub(crate) rest_listen: Option<String>,
    /// gRPC address of the backend that `bellwether gateway` stands before.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) backend: Option<String>,
    /// The service of that name in the configuration file: `[contexts.NAME]`.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// gRPC address of a running service, for the console and `client`.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) connect: Option<String>,
    /// Certificate in PEM that gRPC and REST are served with over TLS.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_cert: Option<String>,
    /// Private key in PEM of that certificate.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_key: Option<String>,
    /// Authorities in PEM, one of which has to have signed the certificate that each client shows.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_client_ca: Option<String>,
    /// Lists in PEM of the certificates that those authorities revoked.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_client_crl: Option<String>,
    /// Certificate in PEM that a console, a command or a gateway shows to a service that asks for one
    /// [default: that of --tls-cert].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_client_cert: Option<String>,
    /// Private key in PEM of that certificate.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_client_key: Option<String>,
    /// Authorities in PEM that an `https` service is trusted by [default: those of the system].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_ca: Option<String>,
    /// File that holds the API key [default: `admin.key` in the data folder].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) key_file: Option<String>,
    /// Configuration file [default: `bellwether.toml` in the platform's configuration folder].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How the console looks: auto, terminal, dark, light, contrast, dusk or mono.
    #[arg(long, value_name = "NAME")]
    pub(crate) theme: Option<String>,
    /// How log lines are written: `text` or `json`.
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
    /// Change nothing from the console, whatever the key allows.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Talk in lines instead of drawing screens: for screen readers, logs and pipes.
    #[arg(long)]
    pub(crate) plain: bool,
    /// Listen on addresses that other machines reach, although nothing is encrypted.
    #[arg(long, global = true)]
    pub(crate) insecure: bool,
}

impl Flags {
    /// Another service, instead of the one that these name.
    pub(crate) fn enter(&mut self, context: String) {
        self.context = Some(context);
        (self.connect, self.key_file, self.tls_ca) = (None, None, None);
        (self.tls_client_cert, self.tls_client_key) = (None, None);
    }

    /// The settings that were given, by key.
    pub(crate) fn given(&self) -> Vec<(&'static str, &str)> {
        let texts = [
            ("data_dir", &self.data_dir),
            #[cfg(feature = "embedded")]
            ("store.url", &self.store),
            #[cfg(feature = "embedded")]
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

/// What to do instead of opening the console.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the service: backend and REST gateway, without a console.
    Serve,
    /// Run the backend alone (gRPC).
    Backend,
    /// Run the REST gateway alone, before the backend at --backend.
    Gateway,
    /// Read a data folder, or a running service, through and show what is wrong with it; nothing is
    /// changed.
    Check(CheckArguments),
    /// Write a backup of a running service, or of a data folder that is not in use. Resumes an
    /// interrupted one when rerun.
    Backup(BackupArguments),
    /// Make an empty or new data folder (--data-dir) out of a backup, or a store in a schema of a database
    /// (--store) that holds none.
    Restore(RestoreArguments),
    /// Look after a store in a database (--store).
    #[cfg(feature = "embedded")]
    #[command(subcommand)]
    Store(StoreCommand),
    /// Look after the keys that seal the secrets of a store.
    #[cfg(feature = "embedded")]
    #[command(subcommand)]
    Secrets(SecretsCommand),
    /// Print who changed what, the newest first, as a line of JSON each.
    Audit(AuditArguments),
    /// Manage the clients of a running service.
    #[command(subcommand)]
    Client(ClientCommand),
    /// Sign in at the provider of identities of a service, in a browser on any machine; it takes that in
    /// place of a key.
    Login,
    /// Forget what signing in at a service gave.
    Logout,
    /// Look at the settings.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Commands for scripts.
    #[command(flatten)]
    Script(script::Script),
}

/// What to do with a store in a database.
#[cfg(feature = "embedded")]
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Make the schema and its tables, the file with the key that seals secrets (--secret-key-file)
    /// unless it is there, and the client `admin`. What was begun is finished.
    Init {
        /// Where to write the key of the client `admin`.
        #[arg(long, value_name = "FILE")]
        admin_key_file: PathBuf,
        /// Leave a store that is there as it is, and end with 0.
        #[arg(long)]
        if_absent: bool,
    },
    /// Raise the tables to the layout that this version needs. Stop the node that uses them first.
    Migrate {
        /// Print the statements in place of carrying them out, for the owner of the schema.
        #[arg(long)]
        print_sql: bool,
    },
    /// Show what is there: layout, size, the newest place, and which node has the store.
    Status,
}

/// What to do with the keys that seal secrets.
#[cfg(feature = "embedded")]
#[derive(Debug, Subcommand)]
pub(crate) enum SecretsCommand {
    /// Make another key, and seal and prove everything in the store with it. Stop the service first.
    Rotate {
        /// Remove the older keys from the file: backups made with them need a copy of it.
        #[arg(long)]
        forget: bool,
    },
}

/// What to do with the settings.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Read file, variables and flags as the service would, and write what was given and where.
    /// Exit code 2: something cannot be used.
    Check,
}

/// How to check.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Check the backup in that folder in place of the data folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) backup: Option<PathBuf>,
    /// The file `secret.key` of the service that was backed up: it proves that the backup is
    /// unmodified.
    #[arg(long, value_name = "FILE", requires = "backup")]
    pub(crate) secret_key: Option<PathBuf>,
    /// Answer in JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How to back up.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("keys").required(true))]
pub(crate) struct BackupArguments {
    /// A new or empty folder.
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// Put `secret.key` and `admin.key` into the backup: anyone with it can read its secrets.
    #[arg(long, group = "keys")]
    pub(crate) with_keys: bool,
    /// Leave the keys out: a copy of `secret.key` must be kept elsewhere.
    #[arg(long, group = "keys")]
    pub(crate) without_keys: bool,
    /// MiB a second that are read from a running service at most [default: 32].
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub(crate) rate: Option<u64>,
}

/// How to restore.
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The folder of the backup.
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// The file `secret.key` of the service that was backed up, for a backup without keys.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_key: Option<PathBuf>,
    /// Take a backup that an earlier version made, which nothing proves to be unchanged.
    #[arg(long)]
    pub(crate) accept_unproven: bool,
    /// Do not send what was due by now, which may have been sent after the backup, until a user
    /// sends it again.
    #[arg(long)]
    pub(crate) hold_deliveries: bool,
}

/// Which entries of the audit log to print.
#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// Only what these clients did.
    #[arg(long = "client", value_name = "NAME")]
    pub(crate) clients: Vec<String>,
    /// Only what was done to these kinds of things, such as `rule`.
    #[arg(long = "kind", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    /// Only what was done to things of these names.
    #[arg(long = "name", value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Only from this moment on, such as 2026-11-22T09:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<jiff::Timestamp>,
    /// Only before this moment.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<jiff::Timestamp>,
}

/// A client to be made.
#[derive(Debug, Args)]
pub(crate) struct NewClient {
    /// Its name.
    pub(crate) name: String,
    /// What it may do.
    #[arg(long)]
    pub(crate) role: Role,
    /// How many calls it may make in a second [default: as many as it likes].
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(crate) requests_per_second: u32,
    /// How many events it may send in a second [default: as many as it likes].
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(crate) events_per_second: u32,
    /// What it may send as other services do, such as prometheus or pagerduty; several times.
    #[arg(long = "dialect", value_name = "NAME")]
    pub(crate) dialects: Vec<String>,
    /// When its key ends, such as 2027-01-31T00:00:00Z [default: never].
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<jiff::Timestamp>,
    /// A tag: it changes only what carries this one, or another that is named; several times.
    #[arg(long = "scope-tag", value_name = "TAG")]
    pub(crate) scope_tags: Vec<String>,
    /// A source: it sends only events of this one, or another that is named; several times.
    #[arg(long = "scope-source", value_name = "SOURCE")]
    pub(crate) scope_sources: Vec<String>,
    /// A certificate that stands for it, such as dns:sender.example.net; several times.
    #[arg(long = "certificate", value_name = "NAME")]
    pub(crate) certificates: Vec<String>,
}

/// What of a client is to change.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a flag each, as they are given"
)]
pub(crate) struct ClientChange {
    /// Its name.
    pub(crate) name: String,
    /// How many calls it may make in a second; 0 takes the limit away.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) requests_per_second: Option<u32>,
    /// How many events it may send in a second; 0 takes the limit away.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) events_per_second: Option<u32>,
    /// What it may send as other services do, in place of what it might before; several times.
    #[arg(long = "dialect", value_name = "NAME")]
    pub(crate) dialects: Vec<String>,
    /// Allow it to send as here only.
    #[arg(long, conflicts_with = "dialects")]
    pub(crate) no_dialect: bool,
    /// When its key ends, such as 2027-01-31T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<jiff::Timestamp>,
    /// Let its key end never.
    #[arg(long, conflicts_with = "expires")]
    pub(crate) no_end: bool,
    /// A tag that it is kept to, in place of those before; several times.
    #[arg(long = "scope-tag", value_name = "TAG")]
    pub(crate) scope_tags: Vec<String>,
    /// A source that it is kept to, in place of those before; several times.
    #[arg(long = "scope-source", value_name = "SOURCE")]
    pub(crate) scope_sources: Vec<String>,
    /// Keep it to no tags and no sources.
    #[arg(long, conflicts_with_all = ["scope_tags", "scope_sources"])]
    pub(crate) no_scope: bool,
    /// A certificate that stands for it, in place of those before; several times.
    #[arg(long = "certificate", value_name = "NAME")]
    pub(crate) certificates: Vec<String>,
    /// Let no certificate stand for it.
    #[arg(long, conflicts_with = "certificates")]
    pub(crate) no_certificate: bool,
}

/// What to do with clients.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Make a client and print its key, this once.
    Create(NewClient),
    /// Change how much a client may ask for, what it may send and change, and when its key ends, from its
    /// next call on.
    #[command(arg_required_else_help = true)]
    Update(ClientChange),
    /// List the clients.
    List,
    /// Give a client another key and print it, this once; the one before is accepted for a while.
    Rotate {
        /// Its name.
        name: String,
        /// Seconds that the previous key stays valid; 0 ends it immediately [default: 86400].
        #[arg(long, value_name = "SECONDS")]
        overlap: Option<u32>,
    },
    /// Revoke a client's key immediately.
    Revoke {
        /// Its name.
        name: String,
    },
}

/// What a client may do.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Role {
    /// Send events.
    Ingest,
    /// Read.
    Viewer,
    /// Read, annotate, set status, send again, test.
    Operator,
    /// As operator, and change triggers, destinations and rules.
    Editor,
    /// All, and manage clients.
    Admin,
}
