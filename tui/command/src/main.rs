//! The `bellwether` command: reads the command line and the settings, and starts the parts.

mod audit;
mod cli;
mod clients;
mod config;
mod demo;
mod embedded;
mod failure;
mod key;
mod log;
mod login;
mod maintenance;
mod memory;
mod operate;
mod output;
mod permissions;
mod ready;
mod script;
mod serve;
mod sign_ins;
mod store_client;
mod systemd;
mod tls;
mod version;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use crate::{
    cli::{Cli, Command, ConfigCommand, Flags},
    config::{Part, Settings, Variables},
    demo::Demo,
    failure::Failure,
};

/// Threads mostly free memory of events that another thread allocated. mimalloc does this without a
/// lock. `docs/benchmarks.md` compares it with glibc's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    memory::disable_core_dumps();
    let cli = Cli::read();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            for line in failure.to_string().lines() {
                // A failure to write is ignored: there is no other way to report it.
                drop(writeln!(io::stderr(), "bellwether: {line}"));
            }
            failure.exit_code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    if cli.default_config {
        return output::write_output(config::DEFAULT_FILE);
    }
    if let Some(Command::Demo(arguments)) = &cli.command {
        let demo = Demo::prepare(&cli.flags, &environment_variables())?;
        return run_to_completion(false, demo.run(arguments));
    }
    let frame = requested_frame(&cli);
    let used = part_selector(&cli);
    let flags = cli.flags;
    let mut settings = Settings::load(&flags, &environment_variables(), used)?;
    settings.wall = cli.wall;
    if cli.keys {
        return output::write_output(&settings.keys.reference_text());
    }
    let is_only_console = cli.command.is_none() && settings.connect.is_some();
    if is_only_console {
        memory::disable_huge_pages();
    }
    let (command, wall) = (cli.command, cli.wall);
    run_to_completion(is_only_console, async {
        match command {
            None => run_console(flags, wall, settings, frame).await,
            Some(command) => Box::pin(run_command(command, &settings)).await,
        }
    })
}

fn run_to_completion(
    is_only_console: bool,
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let runtime = build_runtime(is_only_console)?;
    let done = runtime.block_on(work);
    // Threads that wait for the disk or the keyboard must not delay the exit.
    runtime.shutdown_background();
    done
}

/// Returns a function that returns the part of the program that will run. If the command may call a
/// running service, the function first sets its address in the settings.
fn part_selector(cli: &Cli) -> fn(&mut Settings) -> Part {
    match &cli.command {
        None => console_part,
        Some(
            Command::Demo(_)
            | Command::Serve(_)
            | Command::Backend(_)
            | Command::Gateway
            | Command::Config(_),
        ) => |_| Part::Service,
        Some(Command::Check(_) | Command::Backup(_)) => |settings| {
            if ready::find_service(settings) {
                Part::Client
            } else {
                Part::Store
            }
        },
        Some(Command::Restore(_) | Command::Store(_) | Command::Secrets(_)) => |_| Part::Store,
        Some(
            Command::Audit(_)
            | Command::Client(_)
            | Command::Login
            | Command::Logout
            | Command::Script(_),
        ) => |settings| {
            ready::find_service(settings);
            Part::Client
        },
    }
}

fn console_part(settings: &mut Settings) -> Part {
    if ready::find_service(settings) {
        Part::Client
    } else {
        Part::Service
    }
}

async fn run_command(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::Demo(_) => unreachable!("the demo already ran"),
        Command::Audit(arguments) => {
            log::log_to_stderr(settings);
            audit::run(arguments, settings, io::stdout()).await
        }
        Command::Client(command) => {
            log::log_to_stderr(settings);
            clients::run_client_command(command, settings, io::stdout()).await
        }
        Command::Login => {
            log::log_to_stderr(settings);
            login::run_login(settings, io::stdout()).await
        }
        Command::Logout => login::run_logout(settings, io::stdout()).await,
        Command::Config(ConfigCommand::Check) => show_config(settings),
        Command::Script(command) => {
            log::log_to_stderr(settings);
            script::run_script(command, settings).await
        }
        Command::Serve(how) => {
            let settings = settings.with_accept_loss(how.accept_loss);
            Box::pin(serve::run_serve(&settings, embedded::Parts::Both)).await
        }
        Command::Backend(how) => {
            let settings = settings.with_accept_loss(how.accept_loss);
            Box::pin(serve::run_serve(&settings, embedded::Parts::Backend)).await
        }
        Command::Gateway => Box::pin(serve::run_serve(settings, embedded::Parts::Gateway)).await,
        Command::Check(arguments) => {
            maintenance::check::run_check(arguments, settings, io::stdout()).await
        }
        Command::Backup(arguments) => {
            maintenance::backup::run_backup(arguments, settings, io::stdout()).await
        }
        Command::Restore(arguments) => {
            maintenance::restore::run_restore(arguments, settings, io::stdout()).await
        }
        Command::Secrets(command) => {
            log::log_to_stderr(settings);
            maintenance::secrets::run(command, settings, io::stdout()).await
        }
        Command::Store(command) => {
            log::log_to_stderr(settings);
            maintenance::store::run(command, settings, io::stdout()).await
        }
    }
}

fn requested_frame(cli: &Cli) -> Option<operate::Frame> {
    let screen = cli.snapshot.clone()?;
    Some(operate::Frame {
        screen,
        size: cli.size,
        json: cli.json,
        svg: cli.svg,
        press: cli.press.clone(),
    })
}

async fn run_console(
    mut flags: Flags,
    wall: bool,
    mut settings: Settings,
    mut frame: Option<operate::Frame>,
) -> Result<(), Failure> {
    while let Some(context) = Box::pin(operate::run(&settings, frame.take())).await? {
        flags.switch_context(context);
        settings = Settings::load(&flags, &environment_variables(), console_part)?;
        settings.wall = wall;
    }
    Ok(())
}

fn build_runtime(is_only_console: bool) -> Result<tokio::runtime::Runtime, Failure> {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    if is_only_console {
        // One worker thread serves the connection; a second one would only cause wake-ups.
        threads.worker_threads(1);
    }
    threads
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("failed to start threads: {error}")))
}

/// Prints the settings with their sources; all of them have been validated.
fn show_config(settings: &Settings) -> Result<(), Failure> {
    tls::check_settings(settings)?;
    let lines = settings.effective().into_values().map(|given| {
        let (key, shown, source) = (given.key, &given.shown, &given.source);
        format!("{key} = {shown}  # {source}\n")
    });
    output::write_output(&format!(
        "{}# all settings are valid\n",
        lines.collect::<String>()
    ))
}

/// Returns the environment variables whose values are valid text.
pub(crate) fn environment_variables() -> Variables {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
