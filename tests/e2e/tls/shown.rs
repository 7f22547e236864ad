//! Client certificates of commands, a gateway and the console.

use std::{os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use bellwether_tests::{
    engine::Engine,
    eventually::eventually,
    process::{self, Service, run},
    rest::Rest,
    terminal::Terminal,
    tls::{Authority, Identity},
};

use super::Secured;

const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);
const ASKING: &str = "tls_client_ca = \"$/ca.crt\"\n";

fn keep(identity: &Identity, folder: &Path, name: &str) -> [String; 2] {
    let files = identity.write(folder, name);
    set_mode(&files[1], 0o600);
    files.map(|file| file.to_str().unwrap().to_owned())
}

fn set_mode(file: &Path, mode: u32) {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs a command in a home without a data folder, and returns the exit code and output.
fn run_command(
    home: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> (Option<i32>, String) {
    let mut command = process::command(home, arguments);
    command.envs(variables.iter().copied());
    let output = run(command);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_console_and_gateway_present_their_certificate() {
    if Engine::only_in_a_folder() {
        return;
    }
    let authority = Authority::new();
    let boss = authority.issue_to(&["boss.example.net"], YEAR);
    let mut secured = Secured::start_as(authority, ASKING);
    let folder = secured.files.path().to_owned();
    let [cert, key] = keep(&boss, &folder, "boss");
    let (url, ca) = (
        format!("https://{}", secured.address("grpc")),
        secured.file("ca.crt"),
    );
    let reach = ["--connect", &url, "--tls-ca", &ca];
    let shown = ["--tls-client-cert", &cert, "--tls-client-key", &key];

    // Present the certificate in addition to the key from the data folder.
    let create = ["client", "create", "boss", "--role", "admin"];
    let certificate = ["--certificate", "dns:boss.example.net"];
    let arguments = [&create[..], &certificate, &reach, &shown].concat();
    let made = run(secured.world.command(&arguments));
    assert!(made.status.success(), "{made:?}");

    // On another machine, there is no key, so the certificate authenticates the client.
    let home = tempfile::tempdir().unwrap();
    for command in [&["client", "list"][..], &["get", "rules"], &["status"]] {
        let (code, reported) = run_command(home.path(), &[command, &reach, &shown].concat(), &[]);
        assert_eq!(code, Some(0), "{command:?}: {reported}");
        assert!(!reported.contains("WARN"), "{command:?}: {reported}");
        let (code, reported) = run_command(home.path(), &[command, &reach].concat(), &[]);
        assert_eq!(code, Some(4), "{command:?}: {reported}");
        assert!(reported.contains("no API key"), "{command:?}: {reported}");
    }
    // A certificate set for clients takes precedence over that of the listeners.
    let foreign = Authority::new().issue();
    let [foreign_cert, foreign_key] = keep(&foreign, &folder, "foreign");
    let listeners = ["--tls-cert", &foreign_cert, "--tls-key", &foreign_key];
    let list = ["client", "list"];
    let both = [&list[..], &reach, &shown, &listeners].concat();
    let (code, reported) = run_command(home.path(), &both, &[]);
    assert_eq!(code, Some(0), "{reported}");

    let mut arguments = [&reach[..], &shown].concat();
    let mut console = Terminal::start(home.path(), &arguments);
    console.shows(&["● connected", "boss (admin)"]);
    console.press("q");
    assert!(console.ended().success());
    arguments.extend(["gateway", "--rest-listen", "127.0.0.1:0", "--backend", &url]);
    let log = home.path().join("log");
    let gateway = Service::start(process::command(home.path(), &arguments), &log);
    let rest = Rest::new(gateway.address("rest"), Some(&secured.world.admin_key()));
    eventually("the gateway to reach the backend", async || {
        (rest.get("/v1/notification/rules").await.status == 200).then_some(())
    })
    .await;

    // Set the certificate in a context of a settings file. The console can switch between contexts.
    let file = home.path().join("settings.toml");
    let context = format!(
        "[contexts.prod]\nconnect = {url:?}\ntls_ca = {ca:?}\ntls_client_cert = {cert:?}\n\
         tls_client_key = {key:?}\n[contexts.lab]\nconnect = {url:?}\ntls_ca = {ca:?}\nkey_file = {cert:?}\n"
    );
    std::fs::write(&file, context).unwrap();
    let config = ["--config", file.to_str().unwrap(), "--context"];
    let (code, reported) = run_command(home.path(), &[&list[..], &config, &["prod"]].concat(), &[]);
    assert_eq!(code, Some(0), "{reported}");
    let mut console = Terminal::start(home.path(), &[&config[..], &["prod"]].concat());
    console.shows(&["◆ prod", "● connected", "boss (admin)"]);
    console.press("q");
    assert!(console.ended().success());

    secured.world.kill();
    let checked = run(secured.world.command(&["check"]));
    assert!(checked.status.success(), "{checked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_client_certificate_is_explained() {
    if Engine::only_in_a_folder() {
        return;
    }
    let secured = Secured::start_as(Authority::new(), ASKING);
    let home = tempfile::tempdir().unwrap();
    let (url, ca) = (
        format!("https://{}", secured.address("grpc")),
        secured.file("ca.crt"),
    );
    let reach = ["--connect", &url, "--tls-ca", &ca];
    // The client may read the alert or the end of the connection first.
    let commands: [&[&str]; 5] = [
        &["client", "list"],
        &["get", "rules"],
        &["status"],
        &["health"],
        &["check"],
    ];
    for command in commands.into_iter().cycle().take(25) {
        let given = [("BELLWETHER_KEY", "bw_x")];
        let (code, reported) = run_command(home.path(), &[command, &reach].concat(), &given);
        assert!(
            matches!(code, Some(1 | 3)),
            "{command:?}: {code:?}: {reported}"
        );
        let why = reported.contains("requires a client certificate")
            || reported.contains("may require a client certificate");
        assert!(why, "{command:?} without a certificate: {reported}");
    }
}

/// Files of a certificate and a key, and the error; `$` represents the folder.
const WRONG: [(&str, &str, &str); 9] = [
    (
        "own.crt",
        "",
        "tls_client_key: required because tls_client_cert is set",
    ),
    (
        "",
        "own.key",
        "tls_client_cert: required because tls_client_key is set",
    ),
    ("absent", "own.key", "tls_client_cert: cannot read $/absent"),
    ("own.crt", "absent", "tls_client_key: cannot read $/absent"),
    (
        "own.crt",
        "other.key",
        "tls_client_key: $/other.key does not match the certificate in $/own.crt",
    ),
    (
        "own.key",
        "own.key",
        "tls_client_cert: $/own.key contains no certificate in PEM format",
    ),
    (
        "own.crt",
        "own.crt",
        "tls_client_key: $/own.crt contains no private key in PEM format",
    ),
    (
        "own.crt",
        "sealed.key",
        "the private key in $/sealed.key has a passphrase; `openssl pkey` removes it",
    ),
    (
        "own.crt",
        "open.key",
        "tls_client_key: $/open.key is world-writable (mode 666); run `chmod 600` on it",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn unusable_client_certificate_is_reported_with_file_and_fix() {
    let authority = Authority::new();
    let (own, other) = (authority.issue(), authority.issue());
    let secured = Secured::start_as(authority, ASKING);
    let folder = secured.files.path();
    keep(&own, folder, "own");
    keep(&other, folder, "other");
    let sealed = own.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    std::fs::write(folder.join("sealed.key"), sealed).unwrap();
    std::fs::write(folder.join("open.key"), &own.key).unwrap();
    set_mode(&folder.join("open.key"), 0o666);
    let url = format!("https://{}", secured.address("grpc"));
    let ca = secured.file("ca.crt");
    let commands: [&[&str]; 4] = [
        &["client", "list", "--connect", &url],
        &["--snapshot", "overview", "--connect", &url],
        &["login", "--connect", &url],
        &["gateway", "--backend", &url, "--rest-listen", "127.0.0.1:0"],
    ];
    for (cert, key, sentence) in WRONG {
        let sentence = sentence.replace('$', folder.to_str().unwrap());
        for command in commands {
            let mut arguments = [command, &["--tls-ca", &ca]].concat();
            let files = [cert, key].map(|name| secured.file(name));
            let named = ["--tls-client-cert", "--tls-client-key"]
                .into_iter()
                .zip(&files);
            for ((flag, file), name) in named.zip([cert, key]) {
                if !name.is_empty() {
                    arguments.extend([flag, file]);
                }
            }
            let given = [("BELLWETHER_KEY", "bw_x")];
            let (code, reported) = run_command(folder, &arguments, &given);
            assert_eq!(code, Some(2), "{arguments:?}: {reported}");
            assert!(reported.contains(&sentence), "{sentence} in {reported}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn private_key_readable_by_others_warns_and_is_used() {
    let authority = Authority::new();
    let own = authority.issue();
    let secured = Secured::start_as(authority, ASKING);
    let folder = secured.files.path();
    let [cert, key] = keep(&own, folder, "own");
    set_mode(Path::new(&key), 0o644);
    let (url, ca) = (
        format!("https://{}", secured.address("grpc")),
        secured.file("ca.crt"),
    );
    let reach = ["--connect", &url, "--tls-ca", &ca];
    let shown = ["--tls-client-cert", &cert, "--tls-client-key", &key];
    let arguments = [&["client", "list"], &reach[..], &shown].concat();
    let listed = run(secured.world.command(&arguments));
    let reported = String::from_utf8(listed.stderr).unwrap();
    let sentence = format!("other users can read {key} (mode 644); run `chmod 600` on it");
    assert!(
        listed.status.success() && reported.contains(&sentence),
        "{reported}"
    );
    // In a terminal, the warning is printed after the console has closed.
    let admin = secured.world.data_dir().join("admin.key");
    let key_file = ["--key-file", admin.to_str().unwrap()];
    let arguments = [&reach[..], &shown, &key_file].concat();
    let mut console = Terminal::start(folder, &arguments);
    console.shows(&["● connected"]);
    console.press("q");
    assert!(console.ended().success());
    // The terminal wraps long lines.
    let written = console.output().replace(['\r', '\n'], "");
    assert!(written.contains(&sentence), "{written}");
}
