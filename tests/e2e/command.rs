//! The command line: ready line, exit codes and messages.

use std::{fs, path::Path, process::Output};

use bellwether_tests::{
    engine::Engine,
    process::{self, Service},
    rest::Rest,
    tree,
    world::World,
};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn first_start_logs_fields_without_debug_output() {
    let world = World::start();
    let log = world.service().log();
    let stored = log
        .lines()
        .find(|line| line.contains("shared by all nodes"));
    let stored = stored.unwrap_or_else(|| panic!("{log}"));
    assert!(stored.contains("info_age_max_seconds=14400"), "{stored}");
    assert!(
        !log.contains(" { ") && !log.contains("SharedSettings"),
        "{log}"
    );
}

#[test]
fn documented_exit_codes_match_the_manual_page() {
    let page = fs::read_to_string(tree::root().join("docs/commands.md")).unwrap();
    let section = page.split("## Exit codes").nth(1).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let rows = rows.filter_map(|row| row.strip_suffix(" |")?.split_once(" | "));
    let documented: Vec<_> = rows.skip(1).collect();
    let folder = tempfile::tempdir().unwrap();
    let output = process::run(process::command(folder.path(), ["man"]));
    let manual = String::from_utf8(output.stdout).unwrap();
    let (_, section) = manual.split_once(".SH \"EXIT STATUS\"\n").unwrap();
    let (section, _) = section.split_once(".SH ").unwrap();
    let lines: Vec<_> = section.lines().filter(|line| *line != ".TP").collect();
    let printed: Vec<_> = lines.chunks(2).map(|row| (row[0], row[1])).collect();
    assert_eq!(documented, printed);
    assert_eq!(documented.len(), 6);
}

#[tokio::test]
async fn commands_exit_with_the_documented_codes() {
    let world = World::start();
    let viewer = world.client("viewer", "viewer");
    let key = |key: &str| {
        let file = world.folder().join("a.key");
        fs::write(&file, key).unwrap();
        file.display().to_string()
    };
    let nowhere = "http://127.0.0.1:9";
    let (viewer, wrong) = (key(&viewer), "bw_wrong");
    let cases: [(&[&str], i32); 13] = [
        (&["get", "rules"], 0),
        (&["events"], 1),
        (&["apply"], 2),
        (&["no-such-command"], 2),
        (&["get", "rules", "--theme", "none"], 2),
        (&["get", "rules", "--connect", nowhere], 3),
        (&["client", "list", "--connect", nowhere], 3),
        (&["client", "list", "--key-file", &viewer], 4),
        (&["get", "rule", "unknown"], 5),
        (&["delete", "rule", "unknown"], 5),
        (&["test", "unknown"], 5),
        (&["client", "revoke", "unknown"], 5),
        (&["client", "create", "a/b", "--role", "viewer"], 5),
    ];
    for (arguments, code) in cases {
        let output = process::run(world.command(arguments));
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    for command in [&["get", "rules"][..], &["client", "list"]] {
        let mut command = world.command(command);
        command.args(["--key-file", &key(wrong)]);
        let output = process::run(command);
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    }
}

#[tokio::test]
async fn unused_invalid_settings_do_not_stop_a_command() {
    let world = World::start();
    let unusable = [
        ("BELLWETHER_STORE_PASSWORD_FILE", "/nowhere/password"),
        ("BELLWETHER_STORE_PASSWORD", "secret"),
        ("BELLWETHER_STORE_CACHE_SIZE", "much"),
        ("BELLWETHER_SMTP_HOST", "mail.example.net"),
        ("BELLWETHER_REST_LISTEN", "0.0.0.0:8480"),
        ("BELLWETHER_REST_LISTEN", "name.invalid:8480"),
        ("BELLWETHER_EGRESS_CA_FILE", "/nowhere/ca.pem"),
        ("BELLWETHER_TLS_CLIENT_CRL", "/nowhere/crl.pem"),
    ];
    for (name, value) in unusable {
        for arguments in [
            &["get", "rules"][..],
            &["client", "list"],
            &["health"],
            &["man"],
        ] {
            let mut command = world.command(arguments);
            command.env(name, value);
            let output = process::run(command);
            let said = stderr(&output);
            assert_eq!(
                output.status.code(),
                Some(0),
                "{name} {arguments:?}: {said}"
            );
        }
        for arguments in [&["config", "check"][..], &["serve"]] {
            let mut command = process::command(world.folder(), arguments.iter().copied());
            command.env(name, value);
            let output = process::run(command);
            let said = stderr(&output);
            assert_eq!(
                output.status.code(),
                Some(2),
                "{name} {arguments:?}: {said}"
            );
            let setting = name.strip_prefix("BELLWETHER_").unwrap().to_lowercase();
            let setting = setting.trim_end_matches("_file").replace('_', ".");
            let words = said.to_lowercase().replace('_', ".");
            assert!(
                words.contains(&setting) || words.contains("store.url"),
                "{said}"
            );
        }
    }
    for name in [
        "BELLWETHER_STORE_PASSWORD_FILE",
        "BELLWETHER_STORE_CACHE_SIZE",
    ] {
        let mut command = process::command(world.folder(), ["restore", "/nowhere"]);
        command.env(name, "/nowhere/password");
        let output = process::run(command);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    }
}

#[tokio::test]
async fn serve_prints_one_line_drains_and_exits_cleanly() {
    let mut world = World::start();
    let ready = &world.service().ready;
    let keys: Vec<_> = ready
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect();
    assert_eq!(keys, ["grpc", "ready", "rest"]);
    assert_eq!(ready["ready"], true);
    for part in ["rest", "grpc"] {
        assert!(
            ready[part]
                .as_str()
                .expect("an address")
                .starts_with("http://127.0.0.1:")
        );
    }
    world.rest().get("/v1/notification/rules").await.ok();

    assert_eq!(world.terminate().code(), Some(0));
    world.start_again();
    world.rest().get("/v1/notification/rules").await.ok();
}

#[tokio::test]
async fn backend_and_gateway_run_as_separate_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let data_dir = folder.path().join("data");
    let log = folder.path().join("log");
    let mut backend = process::command(folder.path(), ["backend", "--grpc-listen", "127.0.0.1:0"]);
    backend.arg("--data-dir").arg(&data_dir);
    let backend = Service::start(backend, &log);
    assert_eq!(backend.ready.get("rest"), None);
    let upstream = format!("http://{}", backend.address("grpc"));
    let gateway = [
        "gateway",
        "--rest-listen",
        "127.0.0.1:0",
        "--backend",
        &upstream,
    ];
    let gateway = Service::start(process::command(folder.path(), gateway), &log);
    assert_eq!(gateway.ready.get("grpc"), None);
    let key = fs::read_to_string(data_dir.join("admin.key")).expect("the first key");
    let rest = Rest::new(gateway.address("rest"), Some(key.trim()));

    rest.get("/v1/notification/rules").await.ok();
    assert_eq!(rest.get("/readyz").await.status, 200);
    assert_eq!(backend.terminate().code(), Some(0));

    assert_eq!(rest.get("/healthz").await.status, 200);
    assert_eq!(rest.get("/readyz").await.status, 503);
    let answer = rest.get("/v1/notification/rules").await;
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (503, 14),
        "{}",
        answer.text()
    );
    assert_eq!(gateway.terminate().code(), Some(0));
}

#[test]
fn invalid_configuration_exits_with_2_and_one_sentence() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    let cases: [(&[&str], &str); 5] = [
        (
            &["--rest-listen", "nowhere"],
            "--rest-listen: expected an address",
        ),
        (
            &["--grpc-listen", "0.0.0.0:0"],
            "grpc_listen: other machines reach",
        ),
        (&["--log-format", "xml"], "--log-format: expected"),
        (&["--config", "/no/such/file"], "--config: cannot read"),
        (&["--backend", "ftp://x"], "--backend: expected"),
    ];
    for (arguments, says) in cases {
        let mut command = process::command(home.path(), ["serve"]);
        command.args(arguments).arg("--data-dir").arg(&data);
        let output = process::run(command);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty());
        let sentence = stderr(&output);
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
        assert!(sentence.contains(says), "{arguments:?}: {sentence}");
        assert!(!data.exists(), "{arguments:?}: the data folder was created");
    }
}

#[test]
fn data_folder_in_use_error_explains_how_to_connect() {
    if Engine::only_in_a_folder() {
        return;
    }
    let world = World::start();
    let output = process::run(world.command(&[
        "serve",
        "--grpc-listen",
        "127.0.0.1:0",
        "--rest-listen",
        "127.0.0.1:0",
    ]));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let sentence = stderr(&output);
    assert!(
        sentence.contains(world.data_dir().to_str().expect("a path")),
        "{sentence}"
    );
    assert!(
        sentence.contains(&format!(
            "--connect http://{}",
            world.service().address("grpc")
        )),
        "{sentence}"
    );
    assert!(output.stdout.is_empty());
}

/// Runs a command with an empty home folder and the runtime folder of a service.
fn run_elsewhere(runtime: &Path, arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = process::command(home.path(), arguments);
    command.env("RUNTIME_DIRECTORY", runtime);
    process::run(command)
}

#[test]
fn other_users_find_the_service_through_its_runtime_folder() {
    let runtime = tempfile::tempdir().unwrap();
    let folder = runtime.path().to_str().unwrap().to_owned();
    let variables = vec![("RUNTIME_DIRECTORY", folder)];
    let mut world = World::with_variables(|_| (), "", variables);
    for arguments in [&["health"][..], &["get", "rules"], &["status"], &["check"]] {
        let output = run_elsewhere(runtime.path(), arguments);
        let said = stderr(&output);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
    let console = run_elsewhere(runtime.path(), &["--plain"]);
    assert!(console.status.success(), "{}", stderr(&console));

    let key = world.folder().join("own.key");
    fs::write(&key, world.client("auditor", "viewer")).unwrap();
    let key = key.to_str().unwrap();
    let listed = run_elsewhere(runtime.path(), &["client", "list", "--key-file", key]);
    assert_eq!(listed.status.code(), Some(4), "{}", stderr(&listed));

    world.terminate();
    assert!(!runtime.path().join("addresses.json").exists());
    let stopped = run_elsewhere(runtime.path(), &["get", "rules"]);
    assert_eq!(stopped.status.code(), Some(4), "{}", stderr(&stopped));
}

#[test]
fn console_attaches_to_the_service_of_its_data_folder() {
    if Engine::only_in_a_folder() {
        return;
    }
    let mut world = World::start();
    let console = process::run(world.command(&["--plain"]));
    assert!(console.status.success(), "{}", stderr(&console));
    let said = String::from_utf8(console.stdout).unwrap();
    assert!(said.contains(world.service().address("grpc")), "{said}");
    assert!(!world.data_dir().join("console.log").exists());
    world.terminate();
}

#[test]
fn foreign_folder_is_left_untouched() {
    let home = tempfile::tempdir().expect("a folder");
    let photos = home.path().join("photos");
    fs::create_dir(&photos).expect("a folder");
    fs::write(photos.join("store.redb"), "a photo").expect("a file");
    let mut command = process::command(home.path(), ["backend", "--grpc-listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(&photos);

    let output = process::run(command);

    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains(photos.to_str().expect("a path")),
        "{}",
        stderr(&output)
    );
    let left: Vec<_> = fs::read_dir(&photos).expect("the folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn clients_are_created_listed_and_revoked() {
    let world = World::start();
    let key = world.client("grafana", "viewer");
    assert!(key.len() >= 43, "256 random bits: {key}");

    let run = |arguments: &[&str]| process::run(world.command(arguments));
    let list = String::from_utf8(run(&["client", "list"]).stdout).expect("text");
    let line = list
        .lines()
        .find(|line| line.starts_with("grafana\t"))
        .expect("the client");
    assert!(line.contains("viewer"), "{line}");
    assert!(list.contains("admin\t"), "{list}");
    assert!(!list.contains(&key));

    let duplicate = run(&["client", "create", "grafana", "--role", "viewer"]);
    assert_eq!(duplicate.status.code(), Some(5));
    assert!(
        stderr(&duplicate).contains("grafana"),
        "{}",
        stderr(&duplicate)
    );
    assert!(run(&["client", "revoke", "grafana"]).status.success());
    let unknown = run(&["client", "revoke", "grafana"]);
    assert_eq!(unknown.status.code(), Some(5));
    let only_admin = run(&["client", "revoke", "admin"]);
    assert_eq!(
        only_admin.status.code(),
        Some(5),
        "the last admin is not revoked"
    );
}

#[test]
fn command_without_a_service_explains_how_to_start_one() {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = process::command(
        home.path(),
        ["client", "list", "--connect", "http://127.0.0.1:9"],
    );
    command.env("BELLWETHER_KEY", "x");
    let output = process::run(command);
    assert_eq!(output.status.code(), Some(3), "the service is unreachable");
    assert!(
        stderr(&output).contains("bellwether serve"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn default_settings_are_printed() {
    let home = tempfile::tempdir().expect("a folder");
    let printed = process::run(process::command(home.path(), ["--default-config"]));
    assert_eq!(printed.status.code(), Some(0));
    let text = String::from_utf8(printed.stdout).expect("text");
    assert!(
        text.contains("# rest_listen = \"127.0.0.1:8480\""),
        "{text}"
    );
}
