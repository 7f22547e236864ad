//! The part of the command line that scripts use.

use std::{ffi::OsStr, path::PathBuf};

use bellwether_tui::api::ConfigKind;
use clap::{
    Arg, ArgGroup, Args, Subcommand, ValueEnum,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use clap_complete::Shell;

const GET_EXAMPLES: &str = "Examples:\n  \
    bellwether get rules\n  \
    bellwether get destination ops -o yaml";

const EXPORT_EXAMPLES: &str = "Secrets are never printed: {fromEnv: NAME} replaces them, so that \
    `apply` reads them from the environment.\n\n\
    Examples:\n  \
    bellwether export > bellwether.yaml\n  \
    bellwether export rules triggers --output json";

const DIFF_EXAMPLES: &str = "Examples:\n  \
    bellwether diff -f config/\n  \
    bellwether diff -f config/ --save plan.json && less plan.json\n  \
    bellwether diff -f config/ --impact 7d --max-messages 500\n  \
    bellwether export | bellwether diff -f -";

const APPLY_EXAMPLES: &str = "A document is {kind, name, …} with the fields of the REST API, \
    in YAML or JSON. A secret can be read from elsewhere: {fromEnv: NAME} or {fromFile: PATH}.\n\n\
    Examples:\n  \
    bellwether apply -f config/\n  \
    bellwether apply -f config/ --prune --owner team-a\n  \
    bellwether diff -f config/ --save plan.json; bellwether apply --plan plan.json";

const PRESET_EXAMPLES: &str = "A preset is a document for `apply`. Its secrets come from --set, or from \
    the variables that `show` names.\n\n\
    Examples:\n  \
    bellwether preset apply slack-webhook --set url=https://hooks.slack.com/services/T0/B0/XXXX\n  \
    TELEGRAM_URL=… bellwether preset apply telegram --set chat_id=@alerts --set name=alerts\n  \
    bellwether preset show ntfy > ntfy.yaml; edit it; bellwether apply -f ntfy.yaml";

const IMPORT_EXAMPLES: &str = "Standard error lists the fields that have no counterpart, with their \
    path in the file, and the variables to set for `apply`. Nothing is sent to a service.\n\n\
    Examples:\n  \
    bellwether import alertmanager alertmanager.yml > imported.yaml\n  \
    bellwether import opsgenie OpsGenieBackups/ > imported.yaml\n  \
    bellwether diff -f imported.yaml --impact 7d";

const SEND_EXAMPLES: &str = "Name and dimensions identify the event: sending them again repeats \
    it.\n\n\
    Examples:\n  \
    bellwether send backup-failed -d host=db-1 --severity error --summary 'no space left'\n  \
    bellwether send backup-failed -d host=db-1 --close\n  \
    some-program | bellwether send --lines";

const EVENTS_EXAMPLES: &str = "Examples:\n  \
    bellwether events\n  \
    bellwether events 'severity>=error host=db-* since=2h' --output json\n  \
    bellwether events status=closed --limit 20";

const WATCH_EXAMPLES: &str = "Examples:\n  \
    bellwether watch 'severity>=error'\n  \
    bellwether watch --token-file /var/lib/me/token | while read -r line; do …; done";

const TRY_EXAMPLES: &str = "Examples:\n  \
    bellwether try disk-full --since 7d\n  \
    bellwether try --file new-trigger.yaml";

const REPORT_EXAMPLES: &str = "Examples:\n  \
    bellwether report noise --by event-name --since 30d --time-zone Europe/Berlin\n  \
    bellwether report noise --by rule --since 90d --csv > noise.csv\n  \
    bellwether export rules > rules.yaml; edit it; bellwether diff -f rules.yaml --impact 7d";

const MCP_EXAMPLES: &str = "A write takes two calls: the first shows its effect and returns a token, and \
    `confirm` with the token performs it. A write that covers more than 20 events is refused.\n\n\
    Examples:\n  \
    bellwether mcp --key-file /etc/bellwether/agent.key\n  \
    bellwether mcp --context prod --write";

const COMPLETIONS_EXAMPLES: &str = "Resource names are completed with those of the running service.\n\n\
    Examples:\n  \
    bellwether completions bash > /etc/bash_completion.d/bellwether\n  \
    bellwether completions zsh > /usr/local/share/zsh/site-functions/_bellwether\n  \
    bellwether completions fish > ~/.config/fish/completions/bellwether.fish";

#[derive(Debug, Subcommand)]
pub(crate) enum Script {
    /// Print the stored resources of a kind, or one of them.
    #[command(after_help = GET_EXAMPLES)]
    Get(GetArguments),
    /// Print the configuration as documents for `apply`.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArguments),
    /// Delete a stored resource.
    Delete(DeleteArguments),
    /// Show the changes that `apply` would make. Exit code 0: no changes, 1: changes.
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(DiffArguments),
    /// Apply configuration documents: all of them or none.
    #[command(after_help = APPLY_EXAMPLES)]
    Apply(ApplyArguments),
    /// Show and apply ready-made destinations and ingest mappings for other products.
    #[command(subcommand, after_help = PRESET_EXAMPLES)]
    Preset(PresetCommand),
    /// Print the configuration of another product as documents for `apply`.
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArguments),
    /// Send an event, or events from standard input. Exit code 5: one was rejected.
    #[command(after_help = SEND_EXAMPLES)]
    Send(SendArguments),
    /// Search events, newest first. Exit code 1: no events found.
    #[command(after_help = EVENTS_EXAMPLES)]
    Events(EventsArguments),
    /// Watch for changes to events, printed as JSON lines, until the service ends the stream.
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(WatchArguments),
    /// Show why rules did or did not notify about an event.
    Explain(ExplainArguments),
    /// Send a test message to a stored destination. Exit code 1: it was not delivered.
    Test(TestArguments),
    /// Show the stored events that a trigger, stored or in a document, would have matched.
    #[command(after_help = TRY_EXAMPLES)]
    Try(TryArguments),
    /// Show the messages that a stored rule would send to its destinations.
    Preview(PreviewArguments),
    /// Report how many notifications were noise.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArguments),
    /// Show the status of the service. Exit code 1: events are refused, the service is quiet, a
    /// destination is failing, or there are dead letters.
    Status(StatusArguments),
    /// Send no messages until switched off, for example on a copy of a service.
    Quiet(QuietArguments),
    /// Probe the service, without a key. Exit code 3: it is not serving.
    Health,
    /// Describe the program, settings, data folder and service for a bug report, without secrets,
    /// addresses or names.
    Doctor,
    /// Serve AI agents over standard input and output (Model Context Protocol). Read-only by default.
    #[command(after_help = MCP_EXAMPLES)]
    Mcp(McpArguments),
    /// Print shell completions.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArguments),
    /// Print the manual page, or write those of all commands to a folder.
    Man(ManArguments),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Output {
    /// Human-readable text.
    #[default]
    Text,
    /// JSON as in REST.
    Json,
    /// YAML.
    Yaml,
    /// JSON on one line, for language models.
    Agent,
}

#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// Set the output format.
    #[arg(long, short, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct McpArguments {
    /// Also offer the changes that an operator can make: silences, acknowledgements, closings,
    /// notes, deliveries.
    #[arg(long)]
    pub(crate) write: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GetArguments {
    /// The kind, in the singular or plural.
    #[arg(value_parser = KindParser)]
    pub(crate) kind: ConfigKind,
    /// The name of a resource [default: all].
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// The kinds [default: all].
    #[arg(value_parser = KindParser)]
    pub(crate) kinds: Vec<ConfigKind>,
    /// Set the format.
    #[arg(long, short, value_enum, default_value_t = Output::Yaml)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArguments {
    /// The kind, in the singular or plural.
    #[arg(value_parser = KindParser)]
    pub(crate) kind: ConfigKind,
    /// The name of the resource.
    pub(crate) name: String,
    /// Also remove the resource from the rules that use it.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Source {
    /// A file, a folder, or - for standard input; repeatable.
    #[arg(long = "file", short = 'f', value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// Delete definitions with the tag `owner:NAME` of --owner that no document describes.
    #[arg(long, requires = "owner")]
    pub(crate) prune: bool,
    /// Require the tag `owner:NAME` on each document.
    #[arg(long, value_name = "NAME", requires = "prune")]
    pub(crate) owner: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    #[command(flatten)]
    pub(crate) source: Source,
    /// Save the changes as a plan for `apply --plan`, without the secrets of `fromEnv` and
    /// `fromFile`.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) impact: ImpactArguments,
    /// Set the format.
    #[arg(long, short, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct ImpactArguments {
    /// Replay the past days, such as 7d: show the number of messages, and events that would no
    /// longer notify anyone.
    #[arg(long, value_name = "DAYS", value_parser = parse_days)]
    pub(crate) impact: Option<u32>,
    /// Apply no changes and exit with 5 if there would have been more messages than this.
    #[arg(long, value_name = "NUMBER", requires = "impact")]
    pub(crate) max_messages: Option<u64>,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["files", "plan"]).required(true))]
pub(crate) struct ApplyArguments {
    #[command(flatten)]
    pub(crate) source: Source,
    /// Apply a plan of `diff --save`; refused if the stored configuration has changed since.
    #[arg(long, value_name = "FILE", conflicts_with = "prune")]
    pub(crate) plan: Option<PathBuf>,
    /// Only show the changes.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) impact: ImpactArguments,
    /// Set the format.
    #[arg(long, short, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PresetCommand {
    /// List the presets: name, kind and description.
    List,
    /// Print a preset as a document for `apply`.
    Show {
        /// The name of the preset.
        name: String,
    },
    /// Store a preset, or update it.
    Apply(PresetApplyArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PresetApplyArguments {
    /// The name of the preset.
    pub(crate) name: String,
    /// Set a parameter: `name`, `url`, a header such as `authorization`, or a constant of the
    /// message such as `chat_id`; repeatable.
    #[arg(long = "set", value_name = "PARAMETER=VALUE", value_parser = parse_pair)]
    pub(crate) values: Vec<(String, String)>,
    /// Only show what would change.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Set the format.
    #[arg(long, short, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    #[command(subcommand)]
    pub(crate) source: ImportSource,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportSource {
    /// Convert routes, receivers, inhibitions and time intervals of Alertmanager.
    Alertmanager {
        /// The configuration file, such as alertmanager.yml.
        file: PathBuf,
        #[command(flatten)]
        printed: ImportedArguments,
    },
    /// Convert users, teams, schedules and escalations of Opsgenie.
    Opsgenie {
        /// The folder with the Opsgenie configuration export; contains the folders `users`,
        /// `teams`, `schedules` and `escalations`.
        folder: PathBuf,
        /// Set the format.
        #[arg(long, short, value_enum, default_value_t = Output::Yaml)]
        output: Output,
    },
    /// Convert users, schedules, escalation policies and services of PagerDuty.
    Pagerduty {
        /// The folder with responses of the PagerDuty REST API, such as users.json.
        folder: PathBuf,
        /// Set the format.
        #[arg(long, short, value_enum, default_value_t = Output::Yaml)]
        output: Output,
    },
    /// Convert users, schedules, escalation chains, integrations and routes of Grafana OnCall.
    #[command(name = "grafana-oncall")]
    GrafanaOnCall {
        /// The folder with responses of the Grafana OnCall API, such as users.json.
        folder: PathBuf,
        /// Set the format.
        #[arg(long, short, value_enum, default_value_t = Output::Yaml)]
        output: Output,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ImportedArguments {
    /// Print the values of secrets instead of {fromEnv: NAME}.
    #[arg(long)]
    pub(crate) with_secrets: bool,
    /// Set the format.
    #[arg(long, short, value_enum, default_value_t = Output::Yaml)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct SendArguments {
    /// The event's name.
    #[arg(required_unless_present = "lines", conflicts_with = "lines")]
    pub(crate) name: Option<String>,
    /// A dimension, such as host=db-1; repeatable.
    #[arg(long = "dimension", short, value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub(crate) dimensions: Vec<(String, String)>,
    /// The severity: debug, info, warning, error or critical.
    #[arg(long, short)]
    pub(crate) severity: Option<String>,
    /// The one-line summary.
    #[arg(long, short = 'm')]
    pub(crate) summary: Option<String>,
    /// The body with details.
    #[arg(long)]
    pub(crate) body: Option<String>,
    /// The event's type.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// A metadata field, JSON or text; repeatable.
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub(crate) metadata: Vec<(String, String)>,
    /// Close the event.
    #[arg(long)]
    pub(crate) close: bool,
    /// Read events from standard input, one JSON object per line, as accepted by REST.
    #[arg(long, conflicts_with_all = ["dimensions", "severity", "summary", "body", "kind", "metadata", "close"])]
    pub(crate) lines: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArguments {
    /// The filter, such as `severity>=error host=db-*` [default: open and suppressed events].
    pub(crate) filter: Option<String>,
    /// Limit the number of events.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
    /// Select statuses, unless the filter does.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) status: StatusChoice,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    /// The filter [default: all events].
    pub(crate) filter: Option<String>,
    /// Store the position in this file, and resume from it.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// The event's id, or that of one of its occurrences.
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// The destination.
    pub(crate) name: String,
    /// Use this stored event instead of a sample.
    #[arg(long, value_name = "ID")]
    pub(crate) event: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TryArguments {
    /// The stored trigger.
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    pub(crate) name: Option<String>,
    /// A file with one trigger's document.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Set the length of the period: a number and m, h or d.
    #[arg(long, default_value = "24h", value_parser = parse_span)]
    pub(crate) since: i64,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct PreviewArguments {
    /// The rule.
    pub(crate) name: String,
    /// Use this stored event instead of a sample.
    #[arg(long, value_name = "ID")]
    pub(crate) event: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    #[command(subcommand)]
    pub(crate) report: ReportCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReportCommand {
    /// Count notifications, and how many were acknowledged, closed soon or never acted on.
    Noise(NoiseArguments),
}

#[derive(Debug, Args)]
pub(crate) struct TableArguments {
    /// Print CSV.
    #[arg(long, conflicts_with = "output")]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct NoiseArguments {
    /// Set the grouping of the rows.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) by: NoiseGroupingArgument,
    /// Set the length of the period, up to 399d: a number and m, h or d.
    #[arg(long, default_value = "7d", value_parser = parse_span)]
    pub(crate) since: i64,
    /// Set the time zone of the night, 22:00 to 07:00 [default: UTC].
    #[arg(long, value_name = "ZONE")]
    pub(crate) time_zone: Option<String>,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum NoiseGroupingArgument {
    /// Rules.
    #[default]
    Rule,
    /// Triggers.
    Trigger,
    /// Destinations.
    Destination,
    /// Names of events.
    EventName,
    /// Contacts.
    Contact,
}

impl NoiseGroupingArgument {
    /// Returns the name on the wire.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "RULE",
            Self::Trigger => "TRIGGER",
            Self::Destination => "DESTINATION",
            Self::EventName => "EVENT_NAME",
            Self::Contact => "CONTACT",
        }
    }
}

/// The output format.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct QuietArguments {
    /// Whether the service is to be quiet.
    pub(crate) switch: QuietChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum QuietChoice {
    /// Send no messages; escalation steps, alarms of heartbeats and closings by age wait.
    On,
    /// Send all messages, including those that became due in the meantime.
    Off,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    pub(crate) shell: Shell,
    /// Print the names that can follow these words of a command line, instead of the script.
    #[arg(last = true, hide = true)]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write the manual pages of all commands to this folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) all: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum StatusChoice {
    /// Open and suppressed.
    #[default]
    Current,
    /// Closed too.
    All,
}

/// Parses a kind of configuration. The possible values appear in the help and in completions.
#[derive(Debug, Clone)]
struct KindParser;

impl TypedValueParser for KindParser {
    type Value = ConfigKind;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<ConfigKind, clap::Error> {
        let parse = |word: String| {
            ConfigKind::find(&word).ok_or_else(|| {
                let words: Vec<_> = ConfigKind::iter().map(ConfigKind::singular).collect();
                format!("expected one of {}", words.join(", "))
            })
        };
        let parser = StringValueParser::new().try_map(parse);
        parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = ConfigKind::iter().map(ConfigKind::singular);
        Some(Box::new(words.map(PossibleValue::new)))
    }
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("expected KEY=VALUE, such as host=db-1")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Parses a number of days.
fn parse_days(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('d').and_then(|it| it.parse().ok());
    number
        .filter(|it| (1..=30).contains(it))
        .ok_or_else(|| "expected 1d to 30d".into())
}

/// Parses a span and returns it in milliseconds.
fn parse_span(text: &str) -> Result<i64, String> {
    let wrong = || "expected a number followed by m, h or d, such as 24h".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let unit_ms: i64 = match unit {
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return Err(wrong()),
    };
    let number: i64 = text[..text.len() - 1].parse().map_err(|_none| wrong())?;
    let length = number.checked_mul(unit_ms).filter(|length| *length > 0);
    length.ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_of_documents_lists_every_kind() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = folder.join("../../docs/operate/documents.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (first, _) = page.split_once("can be kept in").unwrap();
        for kind in ConfigKind::iter() {
            let plural = kind.plural();
            assert!(first.to_lowercase().contains(plural), "{plural}: {first}");
        }
    }

    #[test]
    fn duration_is_a_number_and_a_unit() {
        assert_eq!(parse_span("90m"), Ok(5_400_000));
        assert_eq!(parse_span("7d"), Ok(604_800_000));
        for wrong in [
            "",
            "h",
            "-1h",
            "0h",
            "5",
            "5 weeks",
            "9999999999999999d",
            "5\u{e9}",
        ] {
            assert!(parse_span(wrong).is_err(), "{wrong}");
        }
    }
}
