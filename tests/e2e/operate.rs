//! Runs the commands in the documentation of concepts and operation as they are written.

use std::{fs, path::Path};

use bellwether_tests::{
    engine::Engine,
    page,
    postgres::{PASSWORD, Postgres},
    process,
    programs::{port, programs},
    smtp::MailServer,
    tree,
    world::World,
};
use serde_json::Value;

/// Replacements for the commands of a machine's administrator, since no systemd service runs here.
const SYSTEMD: &str = "systemctl() { :; }
sudo() { [ \"$1\" != -u ] || shift 2; \"$@\"; }
";

/// Shell commands that wait for the ready line of a service in the background, and end the service
/// with the script.
const UNTIL_READY: &str = "service=$!
trap 'kill $service' EXIT
until grep -q '\"ready\":true' ready; do kill -0 $service; sleep 0.1; done
";

fn read(path: &str) -> String {
    fs::read_to_string(tree::root().join(path)).unwrap()
}

/// Returns the code of all blocks of a page whose opening fence is followed by one of these words.
fn blocks(path: &str, infos: &[&str]) -> String {
    let blocks = page::code_blocks(&read(path)).into_iter();
    let wanted = blocks.filter(|it| infos.contains(&it.info.as_str()));
    let code: String = wanted.map(|it| it.code).collect();
    assert!(!code.is_empty(), "{path} has no block {infos:?}");
    code
}

/// Runs a script and returns its output.
fn run(folder: &Path, data_dir: &Path, script: &str) -> String {
    let output = page::run_script(folder, data_dir, &format!("{SYSTEMD}{script}"));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{printed}\n{errors}");
    printed
}

fn run_in(world: &World, script: &str) -> String {
    run(world.folder(), &world.data_dir(), script)
}

/// Replaces the data folder in a script with that of `world`, and other folders with new ones.
fn here(world: &World, script: &str) -> String {
    let folder = world.folder().display();
    script
        .replace("/var/lib/bellwether", &world.data_dir().to_string_lossy())
        .replace("/backups", &format!("{folder}/backups"))
        .replace("/mnt/other", &format!("{folder}/other"))
        .replace("/etc/bellwether", &format!("{folder}/etc"))
}

#[test]
fn documented_first_event_is_held_by_the_delay() {
    let world = World::start();
    let printed = run_in(&world, &blocks("docs/concepts.md", &["sh run"]));
    assert!(printed.contains("Held: delay"), "{printed}");
}

#[test]
fn documented_fixes_can_be_applied() {
    let world = World::start();
    run_in(&world, "bellwether quiet on");
    let printed = run_in(&world, &blocks("docs/troubleshooting.md", &["sh run"]));
    assert!(printed.contains("everything is sent"), "{printed}");
}

#[test]
fn documented_mail_settings_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bellwether.toml");
    let mut examples = 0;
    for block in page::code_blocks(&read("docs/operate/mail.md")) {
        if block.info != "toml settings" {
            continue;
        }
        fs::write(&file, &block.code).unwrap();
        let mut check = process::command(folder.path(), ["config", "check", "--config"]);
        check.arg(&file);
        if block.code.contains("oauth") {
            check.env("BELLWETHER_SMTP_OAUTH_CLIENT_SECRET", "secret");
        } else if block.code.contains("user = ") {
            check.env("BELLWETHER_SMTP_PASSWORD", "secret");
        }
        let output = process::run(check);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}\n{errors}", block.code);
        examples += 1;
    }
    assert_eq!(examples, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_test_mail_arrives() {
    let server = MailServer::start().await;
    let world = World::with_settings(&format!(
        "[smtp]\nhost = \"127.0.0.1\"\nport = {}\nsecurity = \"none\"\nfrom = \"b@example.net\"\n",
        server.port()
    ));
    let printed = run_in(&world, &blocks("docs/operate/mail.md", &["sh run"]));
    assert!(printed.contains("delivered"), "{printed}");
    assert_eq!(server.mails()[0].to, ["duty@example.net"]);
}

#[test]
fn documented_self_signed_certificate_works() {
    let folder = tempfile::tempdir().unwrap();
    if programs(["openssl", "curl"]).is_none() {
        return;
    }
    let page = page::code_blocks(&read("docs/operate/tls.md")).into_iter();
    let parts = page.filter_map(|block| match block.info.as_str() {
        "sh run" => Some(block.code),
        "sh serve" => {
            let command = block.code.trim_end();
            Some(format!("{command} >ready 2>log &\n{UNTIL_READY}"))
        }
        _ => None,
    });
    let script = parts
        .collect::<String>()
        .replace("0.0.0.0:", "127.0.0.1:")
        .replace(":8480", &format!(":{}", port()))
        .replace(":8481", &format!(":{}", port()));
    let printed = run(folder.path(), &folder.path().join("data"), &script);
    assert!(printed.contains("serving"), "{printed}");
    assert!(printed.contains("DNS:bellwether.example.net"), "{printed}");
}

#[test]
fn documented_certbot_hook_installs_the_certificate() {
    const PAGE: &str = "docs/operate/tls.md";
    if programs(["openssl"]).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let here = |text: String| {
        let etc = folder.path().join("etc");
        text.replace("/etc/bellwether", &etc.to_string_lossy())
    };
    let settings = here(blocks(PAGE, &["toml settings"]));
    fs::write(folder.path().join("bellwether.toml"), settings).unwrap();
    // The group exists only if the package is installed.
    let hook = here(blocks(PAGE, &["sh hook"])).replace(" -g bellwether", "");
    let renewal = "mkdir etc live\nexport RENEWED_LINEAGE=$PWD/live\n\
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -subj /CN=example.net -keyout live/privkey.pem -out live/fullchain.pem\n";
    let script = format!("{renewal}{hook}bellwether config check --config bellwether.toml\n");
    let printed = run(folder.path(), &folder.path().join("data"), &script);
    assert!(printed.contains("tls_key"), "{printed}");
}

#[test]
fn documented_steps_replace_lost_keys() {
    const PAGE: &str = "docs/operate/lost-key.md";
    if Engine::only_in_a_folder() {
        return;
    }
    let mut world = World::start();
    let block = |world: &World, info| here(world, &blocks(PAGE, &[info]));
    let script = format!(
        "bellwether client create scripts --role ingest\n{}",
        block(&world, "sh run")
    );
    run_in(&world, &script);

    world.terminate();
    run_in(&world, &block(&world, "sh rescue"));
    world.start_again();
    let printed = run_in(&world, &block(&world, "sh revoke"));
    assert!(printed.contains("\"clientName\":\"admin\""), "{printed}");

    world.terminate();
    let script = format!(
        "bellwether backup /backups/monday --with-keys\nrm /var/lib/bellwether/secret.key\n{}",
        blocks(PAGE, &["sh restore"])
    );
    let printed = run_in(&world, &here(&world, &script));
    assert!(printed.contains("is intact"), "{printed}");
}

#[test]
fn documented_steps_save_disk_space() {
    const PAGE: &str = "docs/operate/disk-full.md";
    if Engine::only_in_a_folder() {
        return;
    }
    let mut world = World::start();
    run_in(&world, &here(&world, &blocks(PAGE, &["sh run"])));
    let printed = run_in(&world, "bellwether get settings service");
    assert!(printed.contains("deliveryRetention: 604800s"), "{printed}");
    world.terminate();
    run_in(&world, &here(&world, &blocks(PAGE, &["sh shrink"])));
    assert!(world.folder().join("other/bellwether/store.redb").exists());
}

#[test]
fn documented_searches_find_a_person() {
    let world = World::start();
    let prepare = "bellwether apply -f - <<'END'
kind: destination
name: phone
type: {webhook: {url: \"http://127.0.0.1:9/\"}}
---
kind: contact
name: ana
methods: [{destinationName: phone}]
END
bellwether send login -d host=db-1 --summary 'ana signed in'
";
    let searches = blocks("docs/operate/personal-data.md", &["sh run"]);
    let printed = run_in(&world, &format!("{prepare}{searches}"));
    for found in ["name: ana", "ana signed in", "\"kind\":\"contact\""] {
        assert!(printed.contains(found), "{found}:\n{printed}");
    }
}

#[test]
fn documented_move_to_a_database_keeps_the_clients() {
    const PAGE: &str = "docs/operate/three-nodes.md";
    if Engine::only_in_a_folder() {
        return;
    }
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let mut world = World::start();
    world.client("moved", "viewer");
    world.terminate();
    let folder = world.folder().join("etc");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("store-password"), PASSWORD).unwrap();
    let address = "postgres://bellwether@db.example.net/bellwether?sslmode=verify-full";
    let script = here(&world, &blocks(PAGE, &["sh stop", "sh run"]));
    let script = script.replace(address, &postgres.url());
    // Start a node in the background, to show that the store is complete.
    let serve =
        "bellwether serve --rest-listen 127.0.0.1:0 --grpc-listen 127.0.0.1:0 >ready 2>log &";
    let nodes = blocks(PAGE, &["sh nodes"]);
    let script = format!("{script}{serve}\n{UNTIL_READY}bellwether client list\n{nodes}");
    let printed = run_in(&world, &script);
    assert!(printed.contains("moved\tviewer"), "{printed}");
    assert!(printed.contains("commits behind"), "{printed}");
}

#[tokio::test]
async fn documented_alert_from_kubernetes_is_stored() {
    const PAGE: &str = "docs/kubernetes.md";
    let world = World::start();
    let yaml = |info: &str| -> Value { serde_saphyr::from_str(&blocks(PAGE, &[info])).unwrap() };
    let receivers = yaml("yaml values")["alertmanager"]["config"]["receivers"].clone();
    let resource = yaml("yaml resource");
    let webhook = &resource["spec"]["receivers"][0]["webhookConfigs"][0];
    let url = receivers[0]["webhook_configs"][0]["url"].as_str().unwrap();
    assert_eq!(webhook["url"], url);
    let path = url
        .strip_prefix("http://bellwether.monitoring.svc:8480")
        .unwrap();
    let script = blocks(PAGE, &["sh run"]);
    assert!(script.contains(path), "{path}");

    fs::copy(
        world.data_dir().join("admin.key"),
        world.folder().join("admin.key"),
    )
    .unwrap();
    let script = script
        .replace("localhost:8480", world.service().address("rest"))
        .replace("localhost:8481", world.service().address("grpc"));
    let printed = run_in(&world, &script);
    assert!(printed.contains("Pod is crash looping."), "{printed}");
}
