//! `completions` and `man`: output generated from the command line's definition.

use clap::CommandFactory;

use crate::{
    cli::{Cli, script::CompletionsArguments},
    failure::{ExitStatus, Failure},
    output,
};

pub(super) fn completions(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Cli::command(),
        "bellwether",
        &mut text,
    );
    output::write(&String::from_utf8_lossy(&text))
}

pub(super) fn man() -> Result<(), Failure> {
    let mut text = Vec::new();
    let rendered = clap_mangen::Man::new(Cli::command()).render(&mut text);
    rendered
        .map_err(|error| Failure::new(format!("failed to generate the manual page: {error}")))?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    text.push_str(".SH \"EXIT STATUS\"\n");
    for status in ExitStatus::ALL {
        text += &[".TP", &status.code().to_string(), status.meaning(), ""].join("\n");
    }
    output::write(&text)
}
