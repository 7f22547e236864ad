//! Setup of measurements: services, their consoles, the empty program, and events.

use std::{collections::BTreeMap, ffi::OsString, path::Path, time::Duration};

use bellwether_proto::cloud::{self, data_receiver_service_client::DataReceiverServiceClient};
use bellwether_tests::{
    eventually::eventually, grpc::Grpc, process, receiver::Receiver, world::World,
};
use portable_pty::CommandBuilder;
use serde_json::json;
use tokio::{runtime::Handle, task::JoinSet};

use crate::{
    empty,
    pty::{Pty, shows},
};

/// Events per request, and requests in flight, while events are created.
const BATCH: usize = 500;
const IN_FLIGHT: usize = 16;

/// Returns a command that is isolated from the settings of this machine.
fn command(program: &Path, home: &Path) -> CommandBuilder {
    let mut command = CommandBuilder::new(program);
    command.env_clear();
    command.env("HOME", home);
    command.env("TERM", "xterm-256color");
    command
}

/// Returns the command of the empty program.
pub(crate) fn empty_program() -> CommandBuilder {
    let program = std::env::current_exe().expect("this program");
    let mut command = command(&program, Path::new("/"));
    command.arg(empty::FLAG);
    command
}

/// Returns the command of a console connected to `address`, with the key of `world`.
pub(crate) fn console(world: &World, address: &str) -> CommandBuilder {
    let mut command = command(process::binary(), world.folder());
    command.args(["--connect", &format!("http://{address}"), "--key-file"]);
    command.arg(world.data_dir().join("admin.key"));
    command
}

/// Returns the command of a console with its own service in `folder`.
pub(crate) fn own_service(folder: &Path) -> CommandBuilder {
    let mut command = command(process::binary(), folder);
    command.args(["--grpc-listen", "127.0.0.1:0"]);
    command.args(["--rest-listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(folder.join("data"));
    command
}

/// Starts a console that shows the events of `world`, which must have some.
pub(crate) fn console_on_events(world: &World, address: &str) -> Pty {
    let (mut pty, _) = Pty::start(console(world, address), "", shows("connected"));
    pty.press("2", shows("\u{25b6}"));
    pty
}

/// Creates a rule that has notified about an event; without one, the overview shows the first
/// steps.
pub(crate) fn enable_a_rule(world: &World) {
    let rest = world.rest();
    let trigger = json!({"name": "once", "type": {"event": {"filter": "name=once"}}});
    let rule = json!({
        "name": "once",
        "enabled": true,
        "triggerNames": ["once"],
        "destinationNames": ["hook"],
    });
    Handle::current().block_on(async {
        let receiver = Receiver::start().await;
        let hook = json!({"name": "hook", "type": {"webhook": {"url": receiver.url("/")}}});
        for (path, body) in [
            ("triggers", trigger),
            ("destinations", hook),
            ("rules", rule),
        ] {
            let path = format!("/v1/notification/{path}");
            rest.post(&path, &body).await.ok();
        }
        let event =
            json!({"name": "once", "dimensions": {"host": "h"}, "severity": "SEVERITY_INFO"});
        let events = json!({"events": [event]});
        rest.post("/v1/data-receiver/events", &events).await.ok();
        receiver.wait_for(1).await;
        eventually("the delivery to be counted", async || {
            let overview = rest.get("/v1/overview").await.ok();
            (overview["destinations"][0]["deliveredCount"] == 1).then_some(())
        })
        .await;
    });
}

/// Returns the address of a world's service.
pub(crate) fn address(world: &World) -> String {
    world.service().address("grpc").to_owned()
}

/// Creates events numbered from `from` to `to`.
pub(crate) fn fill(world: &World, from: usize, to: usize) {
    Handle::current().block_on(async {
        let mut calls = JoinSet::new();
        for first in (from..to).step_by(BATCH) {
            calls.spawn(send(world.grpc(), first, BATCH.min(to - first)));
            if calls.len() >= IN_FLIGHT {
                calls.join_next().await.expect("a call").expect("no panic");
            }
        }
        calls.join_all().await;
    });
}

/// Sends events numbered from `first`, each with a separate identity.
pub(crate) async fn send(channel: Grpc, first: usize, count: usize) {
    let event = |number: usize| cloud::Event {
        name: "bench".into(),
        dimensions: [("host".to_owned(), format!("h{number}"))].into(),
        summary: format!("something {number:07} happened that somebody may want to know"),
        severity: cloud::Severity::Warning.into(),
        ..cloud::Event::default()
    };
    let request = cloud::Events {
        detailed_response: false,
        events: (first..first + count).map(event).collect(),
    };
    let answer = DataReceiverServiceClient::new(channel)
        .put_events(request)
        .await;
    let succeeded = answer.expect("an answer").into_inner().succeeded;
    assert_eq!(usize::try_from(succeeded), Ok(count));
}

/// Pauses between two measurements for a varying time, so that they are not in step with the
/// console's own timers.
pub(crate) fn pause(number: usize) {
    let milliseconds = 10 + number * 37 % 41;
    std::thread::sleep(Duration::from_millis(milliseconds as u64));
}

/// Returns the CPU time of a process so far.
pub(crate) fn cpu(process: u32) -> Duration {
    let threads = of_threads(process, "schedstat", cpu_seconds);
    Duration::from_secs_f64(threads.values().sum())
}

/// Parses the CPU time of a thread from its `schedstat`.
pub(crate) fn cpu_seconds(schedstat: &str) -> Option<f64> {
    let nanoseconds: f64 = schedstat.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

/// Reads a number that the kernel reports for each thread of a process.
pub(crate) fn of_threads(
    process: u32,
    file: &str,
    read: impl Fn(&str) -> Option<f64>,
) -> BTreeMap<OsString, f64> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    // Skip threads that have ended in the meantime.
    let number = |thread: std::io::Result<std::fs::DirEntry>| {
        let thread = thread.ok()?;
        let reported = std::fs::read_to_string(thread.path().join(file)).ok()?;
        Some((thread.file_name(), read(&reported)?))
    };
    threads.filter_map(number).collect()
}
