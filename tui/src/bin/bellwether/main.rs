//! The `bellwether` command: reads the command line and the settings, and sets the parts going.

mod cli;
mod clients;
mod config;
#[cfg(feature = "embedded")]
mod embedded;
mod failure;
mod key;
mod log;
#[cfg(feature = "embedded")]
mod maintenance;
mod operate;
mod output;
mod ready;
#[cfg(feature = "embedded")]
mod serve;
mod tls;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;

use crate::{
    cli::{Cli, Command},
    config::{Settings, Variables},
    failure::Failure,
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            for line in failure.to_string().lines() {
                // Nobody is left to tell when standard error is gone too.
                drop(writeln!(io::stderr(), "bellwether: {line}"));
            }
            failure.exit_code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    if cli.default_config {
        return output::write(config::DEFAULT_FILE);
    }
    let settings = Settings::load(&cli.flags, &variables())?;
    if cli.keys {
        return output::write(&settings.keys.reference());
    }
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    if cli.command.is_none() && settings.connect.is_some() {
        // One carries the link beside the loop; a second one would only be woken to look.
        threads.worker_threads(1);
    }
    let runtime = threads
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    let done = runtime.block_on(async {
        match cli.command {
            None => {
                let frame = cli.snapshot.map(|screen| operate::Frame {
                    screen,
                    size: cli.size,
                    json: cli.json,
                });
                operate::run(&settings, frame).await
            }
            Some(Command::Client(command)) => {
                log::to_standard_error(&settings);
                clients::run(command, &settings, io::stdout()).await
            }
            #[cfg(feature = "embedded")]
            Some(Command::Serve) => serve::run(&settings, embedded::Parts::Both).await,
            #[cfg(feature = "embedded")]
            Some(Command::Backend) => serve::run(&settings, embedded::Parts::Backend).await,
            #[cfg(feature = "embedded")]
            Some(Command::Gateway) => serve::run(&settings, embedded::Parts::Gateway).await,
            #[cfg(feature = "embedded")]
            Some(Command::Check(arguments)) => {
                maintenance::check::run(arguments, &settings, io::stdout()).await
            }
            #[cfg(feature = "embedded")]
            Some(Command::Backup(arguments)) => {
                maintenance::backup::run(arguments, &settings, io::stdout()).await
            }
            #[cfg(feature = "embedded")]
            Some(Command::Restore(arguments)) => {
                maintenance::restore::run(arguments, &settings, io::stdout()).await
            }
            #[cfg(not(feature = "embedded"))]
            Some(
                Command::Serve
                | Command::Backend
                | Command::Gateway
                | Command::Check(_)
                | Command::Backup(_)
                | Command::Restore(_),
            ) => Err(Failure::new(
                "this program was built without the service (feature `embedded`); it is a console \
                 for a service that runs elsewhere",
            )),
        }
    });
    // A thread that waits for the disk or the keyboard does not hold the end up.
    runtime.shutdown_background();
    done
}

/// The variables that can be settings: those whose name and value are text.
fn variables() -> Variables {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
