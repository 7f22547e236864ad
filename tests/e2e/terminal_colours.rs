//! Tests of the console's colours and keys, which depend on the terminal's responses and on
//! settings.

use std::fs;

use bellwether_tests::{
    eventually::eventually_blocking, process, terminal::Terminal, world::World,
};

fn console(world: &World, arguments: &[&str]) -> Terminal {
    on(world, arguments, &[])
}

fn on(world: &World, arguments: &[&str], environment: &[(&str, &str)]) -> Terminal {
    let address = format!("http://{}", world.service().address("grpc"));
    let key = world.data_dir().join("admin.key");
    let key = key.to_str().expect("a path");
    let own = ["--connect", &address, "--key-file", key];
    let arguments = [&own, arguments].concat();
    Terminal::with_environment(world.folder(), &arguments, environment)
}

#[test]
fn auto_theme_uses_the_terminal_background_without_typing_the_reply() {
    let world = World::start();
    let mut console = on(&world, &["--theme", "auto"], &[("COLORTERM", "truecolor")]);
    console.shows(&["Overview", "connected"]);
    let question = "\x1b]11;?\x1b\\";
    eventually_blocking("the question", || {
        console.output().contains(question).then_some(())
    });
    // The sequence that sets the background of the light theme.
    let light = "48;2;250;250;250";
    assert!(!console.output().contains(light));

    console.press("2\x1b]11;rgb:fdfd/f6f6/e3e3\x1b\\");

    eventually_blocking("the light theme", || {
        console.output().contains(light).then_some(())
    });
    let screen = console.shows(&["Events"]);
    assert!(!screen.contains("f6f6"), "{screen}");
    assert_eq!(console.output().matches(question).count(), 1);
    console.press("q");
    assert!(console.ended().success());
    assert_eq!(console.remaining_modes(), Vec::<String>::new());
}

#[test]
fn background_is_queried_only_if_the_theme_needs_it() {
    let world = World::start();
    let mut console = console(&world, &["--theme", "dark"]);
    console.shows(&["Overview", "connected"]);
    console.press("q");
    assert!(console.ended().success());
    assert!(!console.output().contains("\x1b]11;"));
}

#[test]
fn invalid_keys_end_the_command_with_one_line_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("own.toml");
    let text = "[keys]\nqiut = \"x\"\ncopy = \"q\"\n";
    fs::write(&file, text).expect("a file");
    let mut command = process::command(folder.path(), ["--keys", "--config"]);
    let output = command.arg(&file).output().expect("the command");
    assert_eq!(output.status.code(), Some(2));
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = reported.lines().collect();
    assert_eq!(lines.len(), 2, "{reported}");
    assert!(
        lines[0].contains("own.toml:2: keys.qiut: unknown action"),
        "{reported}"
    );
    assert!(
        lines[1].contains("own.toml:3: keys.copy: `q` is also `quit`"),
        "{reported}"
    );
}

#[test]
fn configured_keys_are_printed_and_work() {
    let world = World::start();
    let file = world.folder().join("own.toml");
    fs::write(&file, "[keys]\ngo_rules = \"ctrl-g r\"\nquit = \"Q\"\n").expect("a file");
    let config = file.to_str().expect("a path");
    let mut command = process::command(world.folder(), ["--keys", "--config", config]);
    let output = command.output().expect("the command");
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        reported.contains("| `ctrl-g r` | Go to Rules | `go_rules` |"),
        "{reported}"
    );

    let mut console = console(&world, &["--config", config]);
    console.shows(&["Overview", "connected"]);
    console.press("\x07r");
    console.shows(&["Rules", "No rules yet"]);
    console.press("qQ");
    assert!(console.ended().success());
}
