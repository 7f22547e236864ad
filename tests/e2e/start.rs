//! The commands of `docs/start.md`, executed literally on a new service.

use bellwether_tests::{
    eventually::eventually,
    page,
    programs::programs,
    receiver::{Received, Receiver},
    world::World,
};

const PAGE: &str = include_str!("../../docs/start.md");

/// Returns the commands in order, without those of programs that are not installed.
fn commands() -> String {
    let mut commands = String::new();
    for block in page::code_blocks(PAGE) {
        let Some(program) = block.info.strip_prefix("sh run") else {
            continue;
        };
        let program = program.trim();
        if program.is_empty() || programs([program]).is_some() {
            commands += &block.code;
        }
    }
    commands
}

#[tokio::test]
async fn getting_started_commands_work_and_alerts_arrive() {
    let world = World::start();
    let receiver = Receiver::start().await;
    let commands = commands()
        .replace("127.0.0.1:8480", world.service().address("rest"))
        .replace("127.0.0.1:9000", &receiver.address().to_string());
    // Ignore the exit code of the last command: a destination may have no delivery yet.
    let commands = commands.replace("\nbellwether status", "\nbellwether status || true");
    let output = page::run_script(world.folder(), &world.data_dir(), &commands);
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");

    // The events are the backup alarm with its closing, the disk, and alerts over three paths, two
    // of which create the same event. Two rules send messages, one to the on-call contact.
    let messages = eventually("the messages", async || {
        let received = receiver.received();
        (received.len() >= 9).then_some(received)
    })
    .await;
    let texts: Vec<_> = messages
        .iter()
        .map(|it| it.json()["rule"]["message"].as_str().unwrap().to_owned())
        .collect();
    let count = |text: &str| texts.iter().filter(|it| it.contains(text)).count();
    assert_eq!(count("error: the backup of db-1 failed"), 2, "{texts:?}");
    assert_eq!(count("error: /var is 98% full"), 1, "{texts:?}");
    assert_eq!(
        count("error: nightly-backup reported a failure"),
        1,
        "{texts:?}"
    );
    let messages = messages.iter().map(Received::text);
    let behind = messages.filter(|it| it.contains("db-1 is 40 min behind"));
    assert_eq!(behind.count(), 2);
    assert_eq!(
        count("critical: the shop answers after 4 s"),
        3,
        "{texts:?}"
    );
}
