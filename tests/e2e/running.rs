//! Running the program: notifications to a service manager, its settings, and bug reports.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, net::UnixDatagram},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use bellwether_tests::{
    engine::Engine,
    process::{self, Service, signal},
    programs::programs,
    tree,
    world::World,
};
use serde_json::json;

/// Generous timeout for an operation that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

fn stdout(command: Command) -> (i32, String, String) {
    let output = process::run(command);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

fn expect_notice(manager: &UnixDatagram, wanted: &str) -> String {
    let start = Instant::now();
    let mut bytes = [0; 1024];
    while start.elapsed() < PATIENCE {
        let length = manager.recv(&mut bytes).unwrap();
        let reported = String::from_utf8(bytes[..length].to_vec()).unwrap();
        if reported.contains(wanted) {
            return reported;
        }
    }
    panic!("{wanted} did not appear");
}

#[test]
fn service_manager_is_notified_of_every_state() {
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut serve = process::command(
        home.path(),
        [
            "serve",
            "--grpc-listen",
            "127.0.0.1:0",
            "--rest-listen",
            "127.0.0.1:0",
        ],
    );
    serve
        .arg("--data-dir")
        .arg(home.path().join("data"))
        .env("NOTIFY_SOCKET", &socket)
        .env("WATCHDOG_USEC", "200000")
        .env_remove("WATCHDOG_PID");
    let log = home.path().join("log");
    let service = Service::start(serve, &log);

    expect_notice(&manager, "READY=1");
    expect_notice(&manager, "WATCHDOG=1");
    expect_notice(&manager, "WATCHDOG=1");
    signal("-HUP", service.id());
    let reported = expect_notice(&manager, "RELOADING=1");
    assert!(reported.contains("MONOTONIC_USEC="), "{reported}");
    expect_notice(&manager, "READY=1");
    assert_eq!(service.terminate().code(), Some(0));
    expect_notice(&manager, "STOPPING=1");

    let log = fs::read_to_string(log).unwrap();
    let started = log.lines().find(|line| line.contains("serving")).unwrap();
    for part in ["version=", "data_dir=", "rest=", "grpc="] {
        assert!(started.contains(part), "{started}");
    }
}

#[test]
fn config_check_lists_settings_with_their_source() {
    let home = tempfile::tempdir().unwrap();
    let password = home.path().join("password");
    fs::write(&password, "hush-hush\n").unwrap();
    let file = home.path().join("bellwether.toml");
    let data_dir = home.path().join("data");
    fs::write(
        &file,
        "tenant = \"file\"\n[smtp]\nhost = \"mail.example.net\"\nfrom = \"a@example.net\"\nuser = \"a\"\n",
    )
    .unwrap();
    let check = |variables: &[(&str, &str)]| {
        let mut command = process::command(home.path(), ["config", "check", "--config"]);
        command.arg(&file).arg("--data-dir").arg(&data_dir);
        command.envs(variables.iter().copied());
        stdout(command)
    };
    let from_file = ("BELLWETHER_SMTP_PASSWORD_FILE", password.to_str().unwrap());

    let (code, out, err) = check(&[from_file, ("BELLWETHER_TENANT", "variable")]);
    assert_eq!(code, 0, "{err}");
    for line in [
        "tenant = \"variable\"  # BELLWETHER_TENANT",
        "smtp.password = ********  # BELLWETHER_SMTP_PASSWORD_FILE",
    ] {
        assert!(out.contains(line), "{line} in {out}");
    }
    assert!(!out.contains("hush-hush"), "{out}");
    assert!(
        out.contains("smtp.host = \"mail.example.net\"  # "),
        "{out}"
    );
    assert!(!data_dir.exists(), "a check creates nothing");

    let cases = [
        (
            vec![from_file, ("BELLWETHER_SMTP_PASSWORD", "x")],
            "BELLWETHER_SMTP_PASSWORD_FILE: BELLWETHER_SMTP_PASSWORD is also set",
        ),
        (
            vec![("BELLWETHER_SMTP_PASSWORD_FILE", "/nowhere")],
            "BELLWETHER_SMTP_PASSWORD_FILE: cannot read /nowhere",
        ),
        (
            vec![from_file, ("BELLWETHER_DELIVRY_TIMEOUT", "5s")],
            "BELLWETHER_DELIVRY_TIMEOUT: unknown setting; the nearest is \
             BELLWETHER_DELIVERY_TIMEOUT",
        ),
        (
            vec![
                from_file,
                ("BELLWETHER_TLS_CERT", "/nowhere"),
                ("BELLWETHER_TLS_KEY", "/nowhere"),
            ],
            "tls_cert: cannot read /nowhere",
        ),
    ];
    for (variables, sentence) in cases {
        let (code, _, err) = check(&variables);
        assert_eq!(code, 2, "{variables:?}: {err}");
        assert!(err.contains(sentence), "{sentence} in {err}");
    }
}

#[test]
fn config_check_masks_secrets() {
    let home = tempfile::tempdir().unwrap();
    for (name, value, code, sentence) in [
        ("METRICS_KEY", "hush-hush", 0, "metrics.key = ********"),
        (
            "EGRESS_PROXY",
            "http://ada:hush-hush@proxy.example.net:3128",
            0,
            "egress.proxy = \"http://********@proxy.example.net:3128\"",
        ),
        (
            "TRACES_ENDPOINT",
            "http://ada:hush-hush@127.0.0.1:4317",
            2,
            "BELLWETHER_TRACES_ENDPOINT: expected an address without a user",
        ),
        (
            "STORE_URL",
            "postgres://ada:hush-hush@db.example.net/b",
            2,
            "BELLWETHER_STORE_URL: it contains a password",
        ),
    ] {
        let mut command = process::command(home.path(), ["config", "check"]);
        command.env(format!("BELLWETHER_{name}"), value);
        let (found, out, err) = stdout(command);
        let reported = out + &err;
        assert_eq!(found, code, "{name}: {reported}");
        assert!(
            reported.contains(sentence) && !reported.contains("hush-hush"),
            "{reported}"
        );
    }
}

#[test]
fn readable_secret_files_warn_and_world_writable_ones_are_rejected() {
    let mut world = World::with_settings("[metrics]\nkey = \"hush-hush\"");
    let (config, key) = (
        world.folder().join("bellwether.toml"),
        world.data_dir().join("admin.key"),
    );
    let set_mode = |file: &Path, mode| {
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    };
    let list = |world: &World| {
        let mut command = world.command(&["client", "list"]);
        command.arg("--config").arg(&config);
        command.arg("--key-file").arg(&key);
        stdout(command)
    };
    for file in [&config, &key] {
        set_mode(file, 0o600);
    }
    let (code, _, reported) = list(&world);
    assert!(code == 0 && !reported.contains("WARN"), "{reported}");
    set_mode(&config, 0o644);
    set_mode(&key, 0o640);
    let (code, _, reported) = list(&world);
    assert_eq!(code, 0, "{reported}");
    let (config_shown, key_shown) = (config.display(), key.display());
    for sentence in [
        format!("other users can read {config_shown} (mode 644), which contains `metrics.key`"),
        format!("other users can read {key_shown} (mode 640); run `chmod 600` on it"),
    ] {
        assert!(reported.contains(&sentence), "{sentence} in {reported}");
    }
    assert!(!reported.contains("hush-hush"), "{reported}");
    set_mode(&config, 0o646);
    let (code, _, reported) = list(&world);
    assert_eq!(code, 2, "{reported}");
    let sentence = format!("--config: {config_shown} is world-writable (mode 646)");
    assert!(reported.contains(&sentence), "{reported}");
    // The service logs it too.
    set_mode(&config, 0o644);
    world.terminate();
    world.start_again();
    let log = world.service().log();
    assert!(log.contains("which contains `metrics.key`"), "{log}");
}

#[test]
fn secret_and_kubernetes_variables_are_not_settings() {
    let home = tempfile::tempdir().unwrap();
    let mut command = process::command(home.path(), ["config", "check"]);
    command.envs([
        ("BELLWETHER_SECRET_DESTINATION_OPS_SLACK_TOKEN", "x"),
        ("BELLWETHER_SERVICE_HOST", "10.0.0.7"),
        ("BELLWETHER_SERVICE_PORT_REST", "8480"),
        ("BELLWETHER_PORT", "tcp://10.0.0.7:8480"),
        ("BELLWETHER_PORT_8480_TCP", "tcp://10.0.0.7:8480"),
        ("BELLWETHER_PORT_8480_TCP_ADDR", "10.0.0.7"),
    ]);
    let (code, out, err) = stdout(command);
    assert_eq!(code, 0, "{err}");
    assert_eq!(out, "# all settings are valid\n");
}

#[tokio::test]
async fn doctor_output_hides_secrets_addresses_and_names() {
    if Engine::only_in_a_folder() {
        return;
    }
    let mut world = World::with_settings("tenant = \"hidden-tenant\"");
    let destination = json!({"name": "hidden-name",
        "type": {"webhook": {"url": "http://127.0.0.1:9/hidden-path",
            "headers": {"x-key": "hidden-header"}}}});
    let rest = world.rest();
    rest.post("/v1/notification/destinations", &destination)
        .await
        .ok();

    let doctor = |world: &World| {
        let mut command = world.command(&["doctor"]);
        command
            .arg("--config")
            .arg(world.folder().join("bellwether.toml"));
        stdout(command)
    };
    let (code, out, err) = doctor(&world);
    assert_eq!(code, 0, "{err}");
    for part in [
        "bellwether: 0.",
        "system: linux ",
        "settings: ",
        "tenant (file)",
        "store.redb ",
        "service: responded in ",
        "1 destinations (1 webhook)",
    ] {
        assert!(out.contains(part), "{part} in {out}");
    }
    for hidden in ["hidden", "127.0.0.1"] {
        assert!(!out.contains(hidden), "{hidden} in {out}");
    }

    world.terminate();
    let (code, out, _) = doctor(&world);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("service: does not respond"), "{out}");
}

#[test]
fn version_shows_build_information() {
    let home = tempfile::tempdir().unwrap();
    let (_, short, _) = stdout(process::command(home.path(), ["-V"]));
    let (_, long, _) = stdout(process::command(home.path(), ["--version"]));
    assert_eq!(
        short,
        concat!("bellwether ", env!("CARGO_PKG_VERSION"), "\n")
    );
    if cfg!(debug_assertions) {
        assert!(long.contains("(development build)"), "{long}");
    } else {
        assert!(long.contains("rustc 1."), "{long}");
    }
}

const UNIT: &str = "tui/packaging/bellwether.service";

#[test]
fn systemd_unit_is_valid() {
    let Some([analyze]) = programs(["systemd-analyze"]) else {
        return;
    };
    // Simulate a system with the programs and units to which the unit refers.
    let system = tempfile::tempdir().unwrap();
    let units = system.path().join("usr/lib/systemd/system");
    fs::create_dir_all(&units).unwrap();
    for target in [
        "basic",
        "multi-user",
        "network-online",
        "shutdown",
        "sysinit",
    ] {
        fs::write(units.join(format!("{target}.target")), "[Unit]\n").unwrap();
    }
    for program in ["usr/bin/bellwether", "bin/kill"] {
        let file = system.path().join(program);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::copy(tree::root().join(UNIT), units.join("bellwether.service")).unwrap();
    let mut verify = Command::new(analyze);
    verify.args(["verify", "--man=no", "bellwether.service"]);
    verify.arg(format!("--root={}", system.path().display()));
    let output = verify.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn systemd_unit_sandbox_is_tight() {
    let Some([analyze]) = programs(["systemd-analyze"]) else {
        return;
    };
    let mut security = Command::new(analyze);
    security.args(["security", "--offline=true", "--no-pager", "--threshold=12"]);
    let output = security.arg(tree::root().join(UNIT)).output().unwrap();
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}");
}

#[test]
fn files_are_private_regardless_of_umask() {
    if Engine::only_in_a_folder() {
        return;
    }
    let mut world = World::wrapped("sh", &["-c", "umask 0; exec \"$@\"", "sh"]);
    assert!(world.terminate().success());
    let mut seen = Vec::new();
    for entry in fs::read_dir(world.data_dir()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        let name = entry.file_name().into_string().unwrap();
        assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
        seen.push(name);
    }
    for name in [
        "addresses.json",
        "format",
        "secret.key",
        "store.redb",
        "admin.key",
    ] {
        assert!(seen.iter().any(|it| it == name), "{name}: {seen:?}");
    }
}

#[test]
fn pipe_in_place_of_a_file_is_rejected_without_blocking() {
    if Engine::only_in_a_folder() {
        return;
    }
    let mut world = World::start();
    assert!(world.terminate().success());
    let data_dir = world.data_dir();
    let pipe = |path: &Path| {
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    };
    let start = || {
        let mut serve = process::command(world.folder(), ["serve", "--config"]);
        serve.arg(world.folder().join("bellwether.toml"));
        // If the command blocks on the pipe, the timeout kills it, and there is no output.
        let mut limited = Command::new("timeout");
        limited.args(["--signal=KILL", "20"]);
        limited.arg(serve.get_program()).args(serve.get_args());
        for (name, value) in serve.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        stdout(limited)
    };
    let names = [
        "format",
        "addresses.json",
        "secret.key",
        "admin.key",
        "store.redb",
        "store.log.0",
        "store.sums",
        "store.journal",
        "lock",
    ];
    for name in names {
        let path = data_dir.join(name);
        let original = fs::read(&path).ok();
        drop(fs::remove_file(&path));
        pipe(&path);
        let (code, _, said) = start();
        assert!(
            code > 0 && said.contains("regular file"),
            "{name}: {code} {said}"
        );
        fs::remove_file(&path).unwrap();
        if let Some(original) = original {
            fs::write(&path, original).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
    let settings = world.folder().join("bellwether.toml");
    fs::rename(&settings, world.folder().join("kept.toml")).unwrap();
    pipe(&settings);
    let (code, _, said) = start();
    assert!(code > 0 && said.contains("regular file"), "{code} {said}");
}
