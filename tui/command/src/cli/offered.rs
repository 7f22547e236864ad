//! Hides the flags that do not apply to a command. They are still accepted everywhere, so that
//! scripts can add them to any command.

use clap::{Arg, Command};

const FILE: &[&str] = &["config", "log_format"];
const STORE: &[&str] = &["data_dir", "store", "secret_key_file"];
const LISTEN: &[&str] = &[
    "grpc_listen",
    "rest_listen",
    "tls_cert",
    "tls_key",
    "tls_client_ca",
    "tls_client_crl",
    "insecure",
];
const CALL: &[&str] = &[
    "data_dir",
    "context",
    "connect",
    "key_file",
    "tls_ca",
    "tls_client_cert",
    "tls_client_key",
    "insecure",
];
const GATEWAY: &[&str] = &[
    "backend",
    "rest_listen",
    "tls_cert",
    "tls_key",
    "tls_client_ca",
    "tls_client_crl",
    "tls_ca",
    "tls_client_cert",
    "tls_client_key",
    "insecure",
];
/// Flags of settings that apply to some commands only.
const PARTIAL: [&[&str]; 5] = [FILE, STORE, LISTEN, CALL, GATEWAY];

/// Returns the groups of settings that apply to a command of `bellwether`.
fn flag_groups(command: &str) -> &'static [&'static [&'static str]] {
    match command {
        "serve" | "backend" => &[FILE, STORE, LISTEN],
        "gateway" => &[FILE, GATEWAY],
        "config" => &PARTIAL,
        // This command can also use the store directly.
        "client" => &[FILE, CALL, STORE],
        "restore" | "store" | "secrets" => &[FILE, STORE],
        "import" => &[FILE],
        "demo" | "completions" | "man" => &[],
        _ => &[FILE, CALL],
    }
}

fn is_applicable(id: &str, offered: &[&[&str]]) -> bool {
    let is_in = |groups: &[&[&str]]| groups.iter().any(|group| group.contains(&id));
    is_in(offered) || !is_in(&PARTIAL)
}

/// Hides the flags that do not apply, on each command of `bellwether`.
pub(super) fn hide_inapplicable_flags(command: Command) -> Command {
    command.mut_subcommands(|command| {
        let offered = flag_groups(command.get_name());
        hide_flag(command, offered)
    })
}

fn hide_flag(command: Command, offered: &[&[&str]]) -> Command {
    let command = command.mut_args(|argument| {
        let is_hidden =
            argument.is_hide_set() || !is_applicable(argument.get_id().as_str(), offered);
        argument.hide(is_hidden)
    });
    command.mut_subcommands(|command| hide_flag(command, offered))
}

/// Replaces the global flags by those that apply to each command. Generators of completions do not
/// omit hidden flags.
pub(super) fn remove_inapplicable_flags(command: Command) -> Command {
    let all = command.get_arguments();
    let global: Vec<_> = all.filter(|it| it.is_global_set()).cloned().collect();
    let global: Vec<_> = global.into_iter().map(|it| it.global(false)).collect();
    let command = command.mut_args(|argument| argument.global(false));
    command.mut_subcommands(|command| {
        let offered = flag_groups(command.get_name());
        add_flags(command, &global, offered)
    })
}

fn add_flags(command: Command, flags: &[Arg], offered: &[&[&str]]) -> Command {
    let own = flags.iter();
    let own = own.filter(|it| is_applicable(it.get_id().as_str(), offered));
    let command = command.args(own.cloned());
    command.mut_subcommands(|command| add_flags(command, flags, offered))
}
