//! Expiry and rotation of keys, over REST and gRPC.

use std::{
    os::unix::fs::MetadataExt as _,
    process::{Command, Stdio},
};

use bellwether_tests::{
    engine::Engine,
    eventually::{eventually, eventually_blocking},
    process::{self, Service},
    rest::Rest,
    world::World,
};
use http::Method;

use crate::samples;

fn run(world: &World, arguments: &[&str]) -> Result<String, String> {
    let output = process::run(world.command(arguments));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    if output.status.success() {
        Ok(text(output.stdout).trim().to_owned())
    } else {
        Err(text(output.stderr))
    }
}

async fn status(rest: &Rest) -> (u16, String) {
    let answer = rest.send(Method::GET, "/v1/notification/rules", "").await;
    (answer.status.as_u16(), answer.text())
}

fn over_grpc(world: &World, key: &str) -> Result<String, String> {
    let mut command = world.command(&["audit"]);
    command.env("BELLWETHER_KEY", key);
    let output = process::run(command);
    if output.status.success() {
        Ok(String::new())
    } else {
        Err(String::from_utf8(output.stderr).expect("text"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_key_is_rejected() {
    let mut world = World::start();
    let past = [
        "client",
        "create",
        "late",
        "--role",
        "operator",
        "--expires",
    ];
    let refused = run(&world, &[&past[..], &["2020-01-01T00:00:00Z"]].concat()).unwrap_err();
    assert!(refused.contains("is in the past"), "{refused}");
    let soon = samples::in_seconds(4);
    let create = [
        "client",
        "create",
        "short",
        "--role",
        "operator",
        "--expires",
        &soon,
    ];
    let key = run(&world, &create).expect("it is created");
    let rest = world.rest().with_key(Some(&key));
    assert_eq!(status(&rest).await.0, 200);
    over_grpc(&world, &key).expect("it is accepted");
    let said = eventually("the key to expire", async || {
        let (status, said) = status(&rest).await;
        (status == 401).then_some(said)
    })
    .await;
    assert!(said.contains("the key has expired"), "{said}");
    let refused = over_grpc(&world, &key).unwrap_err();
    assert!(refused.contains("the key has expired"), "{refused}");
    world.kill();
    world.start_again();
    let rest = world.rest().with_key(Some(&key));
    assert_eq!(status(&rest).await.0, 401, "nor after a restart");
    run(&world, &["client", "update", "short", "--no-end"]).expect("it is changed");
    assert_eq!(status(&rest).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn previous_key_is_accepted_during_the_overlap() {
    let world = World::start();
    let old = world.client("sam", "operator");
    let rotate = |overlap: &str| run(&world, &["client", "rotate", "sam", "--overlap", overlap]);
    let new = rotate("5").expect("a key");
    assert_ne!(old, new);
    for key in [&old, &new] {
        assert_eq!(status(&world.rest().with_key(Some(key))).await.0, 200);
        over_grpc(&world, key).expect("it is accepted");
    }
    let rest = world.rest().with_key(Some(&old));
    eventually("the previous key to expire", async || {
        (status(&rest).await.0 == 401).then_some(())
    })
    .await;
    assert_eq!(status(&world.rest().with_key(Some(&new))).await.0, 200);
    let newest = rotate("0").expect("a key");
    assert_eq!(status(&world.rest().with_key(Some(&new))).await.0, 401);
    assert_eq!(status(&world.rest().with_key(Some(&newest))).await.0, 200);
    let refused = rotate("9999999").unwrap_err();
    assert!(refused.contains("overlapSeconds"), "{refused}");
    let listed = run(&world, &["client", "list"]).expect("clients");
    assert!(listed.contains("sam\toperator"), "{listed}");
    let entries = world
        .rest()
        .get("/v1/audit?kinds=client&names=sam")
        .await
        .ok();
    assert_eq!(
        entries["entries"][0]["changedSecrets"][0], "key",
        "{entries}"
    );
    let text = entries.to_string();
    assert!(
        ![&old, &new, &newest]
            .into_iter()
            .any(|key| text.contains(&**key))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn last_admin_with_a_permanent_key_cannot_be_removed() {
    let world = World::start();
    let end = samples::in_seconds(3_600);
    let refused = run(&world, &["client", "update", "admin", "--expires", &end]).unwrap_err();
    assert!(
        refused.contains("the last client with the role `admin`"),
        "{refused}"
    );
    let other = [
        "client",
        "create",
        "other",
        "--role",
        "admin",
        "--expires",
        &end,
    ];
    run(&world, &other).expect("it is created");
    let refused = run(&world, &["client", "revoke", "admin"]).unwrap_err();
    assert!(refused.contains("whose key does not expire"), "{refused}");
    run(&world, &["client", "revoke", "other"]).expect("it is revoked");
}

#[test]
fn service_disables_core_dumps() {
    let world = World::start();
    let limits = format!("/proc/{}/limits", world.service().id());
    // Only Linux shows the limits of another process.
    let Ok(limits) = std::fs::read_to_string(limits) else {
        return;
    };
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let words: Vec<_> = core.expect("a limit").split_whitespace().collect();
    assert_eq!(words[4..6], ["0", "0"], "{words:?}");
}

/// Returns a command without root's privileges over other processes; if the test does not run as
/// root, the command is unchanged.
fn powerless(command: &Command) -> Command {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    let mut program = Command::new(if is_root { "setpriv" } else { "env" });
    if is_root {
        program.args(["--bounding-set=-all", "--inh-caps=-all"]);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => program.env(name, value),
            None => program.env_remove(name),
        };
    }
    program.arg(command.get_program()).args(command.get_args());
    program
}

#[test]
fn process_memory_is_protected_from_other_programs_of_the_user() {
    if Engine::only_in_a_folder() {
        return;
    }
    if !cfg!(target_os = "linux") {
        return;
    }
    let mut world = World::start();
    world.terminate();
    let config = world.folder().join("bellwether.toml");
    let mut serve = process::command(world.folder(), ["serve", "--config"]);
    serve.arg(config);
    let service = Service::start(powerless(&serve), &world.folder().join("log"));
    let address = format!("http://{}", service.address("grpc"));
    let mut watch = powerless(&world.command(&["watch", "--connect", &address]));
    let mut watch = watch.stdout(Stdio::null()).spawn().unwrap();
    let mut other = Command::new("sleep");
    let mut other = powerless(other.arg("60")).spawn().unwrap();

    let can_read = |process: u32| {
        let mut command = Command::new("cat");
        command.arg(format!("/proc/{process}/environ"));
        process::run(powerless(&command)).status.success()
    };
    let is_seen = eventually_blocking("a program that does not buffer its output", || {
        can_read(other.id()).then_some(true)
    });
    assert!(is_seen && !can_read(service.id()));
    eventually_blocking("the command to protect its memory", || {
        (!can_read(watch.id())).then_some(())
    });
    assert!(watch.try_wait().unwrap().is_none(), "it has ended");
    for child in [&mut watch, &mut other] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
