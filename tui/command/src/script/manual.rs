//! `man`: manual pages, generated from the definition of the command line.

use std::{fmt::Write as _, fs, io, path::Path};

use clap::Command;

use crate::{
    cli::{Cli, script::ManArguments},
    config,
    failure::{ExitStatus, Failure},
    output, ready,
};

const ENVIRONMENT: [(&str, &str); 6] = [
    (
        "BELLWETHER_SECTION_SETTING",
        "A setting: `timeout` in the section [delivery] is BELLWETHER_DELIVERY_TIMEOUT. With the \
         suffix _FILE, the variable names a file with the value.",
    ),
    ("BELLWETHER_CONFIG", "The configuration file."),
    ("BELLWETHER_KEY", "The API key."),
    (
        "RUNTIME_DIRECTORY",
        "Runtime folders, as set by systemd. A service writes its addresses to the first one.",
    ),
    ("EDITOR, VISUAL", "The editor used by the console."),
    ("NO_COLOR", "If not empty, the console uses no colours."),
];

pub(super) fn run_manual(arguments: &ManArguments) -> Result<(), Failure> {
    let command = Cli::visible_command();
    let Some(folder) = &arguments.all else {
        return output::write_output(&render_page(command)?);
    };
    write_all(&command, folder).map_err(|error| {
        let folder = folder.display();
        Failure::usage_error(format!("--all: cannot write to {folder}: {error}"))
    })
}

fn write_all(command: &Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let page =
        render_page(command.clone()).map_err(|failure| io::Error::other(failure.to_string()))?;
    fs::write(folder.join(format!("{}.1", page_name(command))), page)?;
    shown_subcommands(command).try_for_each(|command| write_all(command, folder))
}

fn shown_subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    let all = command.get_subcommands();
    all.filter(|it| !it.is_hide_set() && it.get_name() != "help")
}

/// Returns the name of a page, such as `bellwether-client-create`.
fn page_name(command: &Command) -> &str {
    let name = command.get_display_name();
    name.unwrap_or_else(|| command.get_name())
}

fn render_page(command: Command) -> Result<String, Failure> {
    let title = page_name(&command).to_owned();
    let mut text = Vec::new();
    let rendered = clap_mangen::Man::new(command)
        .title(title)
        .render(&mut text);
    rendered
        .map_err(|error| Failure::new(format!("failed to generate the manual page: {error}")))?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let statuses = ExitStatus::ALL.map(|it| (it.code().to_string(), it.description().to_owned()));
    text += &render_section("EXIT STATUS", &statuses);
    let owned = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
    text += &render_section("ENVIRONMENT", &ENVIRONMENT.map(owned));
    text += &render_section("FILES", &file_entries().map(owned));
    Ok(text)
}

fn file_entries() -> [(&'static str, &'static str); 6] {
    [
        (
            "~/.config/bellwether/bellwether.toml",
            "The user's settings. Folders of settings and data differ on other platforms.",
        ),
        (
            config::SYSTEM_FILE,
            "System-wide settings, for users without a settings file.",
        ),
        (
            "~/.local/share/bellwether",
            "The data folder: the store and its encryption key. `admin.key` is the API key of the \
             first client, `addresses.json` contains the addresses of the running service.",
        ),
        (
            "/var/lib/private/bellwether",
            "The data folder of the packaged service.",
        ),
        (
            ready::RUNTIME_DIR,
            "The runtime folder of the packaged service, with its addresses.",
        ),
        (
            "~/.local/state/bellwether/sign-ins.json",
            "The tokens of `bellwether login`.",
        ),
    ]
}

fn render_section(title: &str, items: &[(String, String)]) -> String {
    let mut text = format!(".SH \"{title}\"\n");
    for (term, meaning) in items {
        let (term, meaning) = (term.replace('-', "\\-"), meaning.replace('-', "\\-"));
        let _ = writeln!(text, ".TP\n{term}\n{meaning}");
    }
    text
}
