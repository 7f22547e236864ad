//! `completions` and `man`: texts built from the command line itself.

use clap::CommandFactory;

use crate::{
    cli::{Cli, script::CompletionsArguments},
    failure::Failure,
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
    let command = Cli::command();
    let rendered = clap_mangen::Man::new(command.clone()).render(&mut text);
    rendered
        .map_err(|error| Failure::new(format!("the manual page cannot be generated: {error}")))?;
    output::write(&String::from_utf8_lossy(&text))
}
