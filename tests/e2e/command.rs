//! The command as a user meets it: its one line, its exit codes, its sentences.

use std::process::Output;

use bellwether_tests::{
    engine::Engine,
    process::{self, Service},
    rest::Rest,
    world::World,
};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn serve_prints_one_line_drains_and_ends_well() {
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
async fn the_parts_run_apart() {
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
    let key = std::fs::read_to_string(data_dir.join("admin.key")).expect("the first key");
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
fn a_configuration_that_cannot_be_used_ends_with_2_and_one_sentence() {
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
        assert!(!data.exists(), "{arguments:?}: the data folder was made");
    }
}

#[test]
fn a_data_folder_in_use_is_left_alone_and_says_how_to_connect() {
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

#[test]
fn a_folder_that_is_not_ours_is_left_alone() {
    let home = tempfile::tempdir().expect("a folder");
    let photos = home.path().join("photos");
    std::fs::create_dir(&photos).expect("a folder");
    std::fs::write(photos.join("store.redb"), "a photo").expect("a file");
    let mut command = process::command(home.path(), ["backend", "--grpc-listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(&photos);

    let output = process::run(command);

    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains(photos.to_str().expect("a path")),
        "{}",
        stderr(&output)
    );
    let left: Vec<_> = std::fs::read_dir(&photos).expect("the folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn clients_are_made_listed_and_revoked() {
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

    let taken = run(&["client", "create", "grafana", "--role", "viewer"]);
    assert_eq!(taken.status.code(), Some(1));
    assert!(stderr(&taken).contains("grafana"), "{}", stderr(&taken));
    assert!(run(&["client", "revoke", "grafana"]).status.success());
    let unknown = run(&["client", "revoke", "grafana"]);
    assert_eq!(unknown.status.code(), Some(1));
    let only_admin = run(&["client", "revoke", "admin"]);
    assert_eq!(
        only_admin.status.code(),
        Some(1),
        "the last admin is not revoked"
    );
}

#[test]
fn without_a_service_the_command_says_how_to_start_one() {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = process::command(
        home.path(),
        ["client", "list", "--connect", "http://127.0.0.1:9"],
    );
    command.env("BELLWETHER_KEY", "x");
    let output = process::run(command);
    assert_eq!(output.status.code(), Some(3), "the service is away");
    assert!(
        stderr(&output).contains("bellwether serve"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_default_settings_are_printed() {
    let home = tempfile::tempdir().expect("a folder");
    let printed = process::run(process::command(home.path(), ["--default-config"]));
    assert_eq!(printed.status.code(), Some(0));
    let text = String::from_utf8(printed.stdout).expect("text");
    assert!(
        text.contains("# rest_listen = \"127.0.0.1:8480\""),
        "{text}"
    );
}
