//! Tests of the real program while system calls on files fail. Either the program succeeds and all
//! data is on disk, or it reports an error and can be run again. It repeats interrupted calls.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use bellwether_tests::{
    engine::Engine,
    eventually::{eventually, eventually_blocking},
    process::{self, run, signal},
    programs::{Running, programs},
    receiver::Receiver,
    small_disk::SmallDisk,
    walks::walk_length,
    world::World,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::{crash, journey, samples, upgrade};

/// Calls on files. Those with a question mark do not exist on some architectures.
const ALL_CALLS: &str = "openat,read,pread64,write,pwrite64,fsync,fdatasync,ftruncate,?rename,\
    renameat,?renameat2,?unlink,unlinkat,?mkdir,mkdirat,getdents64,copy_file_range";
const WRITING_CALLS: &str = "openat,write,pwrite64,fsync,fdatasync,ftruncate,?rename,renameat,\
    ?renameat2,?mkdir,mkdirat,copy_file_range";
const SLOW_CALLS: &str = "openat,read,pread64,write,pwrite64,fsync,fdatasync,ftruncate,\
    copy_file_range";
/// Folders within the folder of a case, and files in each of them, on which calls fail.
const FOLDERS: [&str; 4] = ["copy", "data", "data/layout-1.new", "data/layout-1"];
const FILES: [&str; 20] = [
    "",
    "admin.key",
    "admin.key.new",
    "format",
    "format.new",
    "lock",
    "manifest.json",
    "manifest.json.new",
    "piece-000001",
    "restore.unfinished",
    "restore.unfinished.new",
    "secret.key",
    "secret.key.new",
    "store.journal",
    "store.journal.new",
    "store.log.0",
    "store.log.1",
    "store.redb",
    "store.redb.new",
    "store.sums",
];
const COUNTED: [&str; 5] = ["client", "destination", "occurrence", "rule", "trigger"];
const DISK_MEBIBYTES: u32 = 64;

enum Fault {
    Nothing,
    /// Makes these calls fail with this error, at the invocations that a strace expression selects.
    Calls(&'static str, &'static str, String),
    /// Makes all writes fail that need more than this many bytes.
    Space(u64),
}

struct Fixture {
    strace: PathBuf,
    folder: TempDir,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Start,
    Upgrade,
    Rotate,
    Backup,
    Restore,
}

impl Fixture {
    async fn new(strace: PathBuf) -> Self {
        let receiver = Receiver::start().await;
        let mut world = World::start();
        journey::set_up(&world.rest(), &receiver).await;
        let text = "x".repeat(1_000);
        let event =
            |number| samples::event("full", &format!("host-{number}"), "SEVERITY_ERROR", &text);
        let events: Vec<_> = (0..300).map(event).collect();
        let body = samples::events(&events);
        let answer = world.rest().post("/v1/data-receiver/events", &body).await;
        assert_eq!(answer.ok()["succeeded"], 300);
        world.terminate();
        let folder = tempfile::tempdir().unwrap();
        copy(&world.data_dir(), &folder.path().join("data"));
        let fixture = Self { strace, folder };
        let backup = Operation::Backup.arguments(&fixture, fixture.folder.path());
        let made = run(process::command(fixture.folder.path(), backup));
        assert!(made.status.success(), "{made:?}");
        fixture
    }

    fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().unwrap().to_owned()
    }
}

struct Ended {
    is_success: bool,
    error: String,
    calls: usize,
    failed: usize,
}

impl Operation {
    fn prepare(self, fixture: &Fixture, case: &Path) {
        match self {
            Self::Rotate => copy(&fixture.folder.path().join("data"), &case.join("data")),
            Self::Upgrade => upgrade::unpack("0.1.0", &case.join("data")),
            Self::Start | Self::Backup | Self::Restore => {}
        }
    }

    fn arguments(self, fixture: &Fixture, case: &Path) -> Vec<String> {
        let path = |name: &str| case.join(name).to_str().unwrap().to_owned();
        let (data, copy) = (path("data"), path("copy"));
        let (used, backup) = (fixture.path("data"), fixture.path("copy"));
        let arguments = match self {
            Self::Start => vec!["serve", "--data-dir", &data],
            Self::Upgrade | Self::Rotate => {
                vec!["secrets", "rotate", "--forget", "--data-dir", &data]
            }
            Self::Restore => vec!["restore", &backup, "--data-dir", &data],
            Self::Backup => vec!["backup", &copy, "--with-keys", "--data-dir", &used],
        };
        arguments.into_iter().map(Into::into).collect()
    }

    /// Counts the records on disk; `None` if they are not intact.
    fn check(self, case: &Path) -> Option<Value> {
        let path = case.join(if self == Self::Backup { "copy" } else { "data" });
        let option = if self == Self::Backup {
            "--backup"
        } else {
            "--data-dir"
        };
        let mut command = process::command(case, ["check", "--json", option]);
        command.arg(path);
        let mut found = counts(&run(command))?;
        if self == Self::Start {
            // The service may have reported an event about its disk.
            found.as_object_mut()?.remove("occurrence");
        }
        Some(found)
    }

    fn run(self, fixture: &Fixture, case: &Path, fault: &Fault) -> Ended {
        let log = fixture.folder.path().join("calls");
        let mut command = Command::new(&fixture.strace);
        command.args(["-f", "--seccomp-bpf", "-qq", "-e", "signal=none"]);
        let calls = match fault {
            Fault::Calls(calls, ..) => calls,
            Fault::Nothing | Fault::Space(_) => ALL_CALLS,
        };
        command.arg("-e").arg(format!("trace={calls}"));
        if let Fault::Calls(calls, error, when) = fault {
            command.arg("-e");
            command.arg(format!("inject={calls}:error={error}:when={when}"));
        }
        // Opening a local folder is never interrupted by a signal.
        let is_interrupted = matches!(fault, Fault::Calls(_, "EINTR", _));
        for path in paths(case).filter(|it| !(is_interrupted && is_folder(case, it))) {
            command.arg("-P").arg(path);
        }
        command.arg("-o").arg(&log);
        let traced = process::command(case, self.arguments(fixture, case));
        command.arg(traced.get_program()).args(traced.get_args());
        for (name, value) in traced.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let output = match self {
            Self::Start => start_and_stop(command),
            Self::Upgrade | Self::Rotate | Self::Backup | Self::Restore => run(command),
        };
        let log = fs::read_to_string(&log).unwrap();
        // A line begins with the thread id; strace counts the calls of each thread separately.
        let mut calls = BTreeMap::new();
        for line in log.lines().filter(|line| line.contains('(')) {
            *calls.entry(line.split(' ').next()).or_insert(0) += 1;
        }
        Ended {
            is_success: output.status.success(),
            error: String::from_utf8_lossy(&output.stderr).into_owned(),
            calls: calls.into_values().max().unwrap_or_default(),
            failed: log.matches("(INJECTED)").count(),
        }
    }
}

fn start_and_stop(mut command: Command) -> Output {
    command.args([
        "--grpc-listen",
        "127.0.0.1:0",
        "--rest-listen",
        "127.0.0.1:0",
    ]);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tracer = command.spawn().unwrap();
    let mut line = String::new();
    let mut ready = BufReader::new(tracer.stdout.take().unwrap());
    ready.read_line(&mut line).unwrap();
    if !line.is_empty() {
        let id = tracer.id();
        let traced = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        // The process may have exited in the meantime.
        drop(Command::new("kill").args(["-TERM", traced.trim()]).status());
    }
    tracer.wait_with_output().unwrap()
}

fn paths(case: &Path) -> impl Iterator<Item = PathBuf> {
    let files = |folder| FILES.map(|file| case.join(folder).join(file));
    let paths = FOLDERS.into_iter().flat_map(files);
    // Folders are named without a trailing slash.
    paths.map(|path| path.components().collect())
}

fn is_folder(case: &Path, path: &Path) -> bool {
    FOLDERS.iter().any(|folder| case.join(folder) == path)
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}

fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let sizes = entries.map(|entry| entry.unwrap().metadata().unwrap().len());
    sizes.sum()
}

/// Returns the number of records counted by a check: by kind, or in total for a backup. `None` if
/// the check found damage.
fn counts(checked: &Output) -> Option<Value> {
    let mut found: Value = serde_json::from_slice(&checked.stdout).ok()?;
    let is_intact = checked.status.success() && found["whole"] == true;
    let mut records = found["records"].take();
    if let Some(records) = records.as_object_mut() {
        records.retain(|kind, _| COUNTED.contains(&kind.as_str()));
    }
    is_intact.then_some(records)
}

/// Returns positions of failing calls, spread evenly.
fn positions(calls: usize) -> impl Iterator<Item = usize> {
    let cases = usize::try_from(walk_length("BELLWETHER_FAILED_CALLS")).unwrap();
    // Use the middle of each part, so that short walks avoid the first and last calls.
    (0..cases.min(calls)).map(move |case| 1 + (2 * case + 1) * calls / (2 * cases.min(calls)))
}

/// Runs a command with a fault in a new folder, and again without it if the command reports an
/// error. Checks the results.
fn judge(
    fixture: &Fixture,
    operation: Operation,
    expected: Option<&Value>,
    fault: &Fault,
    context: &str,
) -> Ended {
    let case = tempfile::tempdir().unwrap();
    let disk = match fault {
        Fault::Space(_) => SmallDisk::mount(case.path(), DISK_MEBIBYTES),
        Fault::Nothing | Fault::Calls(..) => None,
    };
    operation.prepare(fixture, case.path());
    if let (Some(disk), Fault::Space(free)) = (&disk, fault) {
        disk.fill(*free);
    }
    let ended = operation.run(fixture, case.path(), fault);
    assert!(
        !ended.error.contains("panicked"),
        "{context}: {}",
        ended.error
    );
    if let Some(disk) = disk.as_ref() {
        disk.free();
    }
    if !ended.is_success {
        assert!(!ended.error.is_empty(), "{context}: no error is shown");
        let found = operation.check(case.path());
        match operation {
            Operation::Rotate | Operation::Upgrade => {
                assert_eq!(found.as_ref(), expected, "{context}: the previous state");
            }
            Operation::Backup | Operation::Restore => {
                assert_eq!(found, None, "{context}: nothing unfinished remains");
            }
            // The start may have failed while the service was being stopped.
            Operation::Start => {}
        }
        let again = operation.run(fixture, case.path(), &Fault::Nothing);
        assert!(again.is_success, "{context}, repeated: {}", again.error);
    }
    let found = operation.check(case.path());
    assert_eq!(found.as_ref(), expected, "{context}");
    ended
}

/// Injects every kind of fault into a command.
fn survives(fixture: &Fixture, operation: Operation) {
    let measured = tempfile::tempdir().unwrap();
    operation.prepare(fixture, measured.path());
    let ended = operation.run(fixture, measured.path(), &Fault::Nothing);
    assert!(ended.is_success, "{operation:?}: {}", ended.error);
    let expected = operation.check(measured.path());
    assert!(expected.is_some(), "{operation:?}");
    let judge = |fault: Fault, context: &str| {
        let context = format!("{operation:?}, {context}");
        let ended = judge(fixture, operation, expected.as_ref(), &fault, &context);
        (ended.failed, ended.is_success)
    };
    let (failed, is_success) = judge(
        Fault::Calls(SLOW_CALLS, "EINTR", "1+2".into()),
        "every other call is interrupted",
    );
    assert!(
        failed > 5 && is_success,
        "{operation:?}: {failed} interrupted"
    );
    let mut noticed = 0;
    for (calls, error) in [(ALL_CALLS, "EIO"), (WRITING_CALLS, "ENOSPC")] {
        let case = tempfile::tempdir().unwrap();
        operation.prepare(fixture, case.path());
        let none = Fault::Calls(calls, error, "1000000".into());
        let count = operation.run(fixture, case.path(), &none).calls;
        for call in positions(count) {
            for more in ["", "+"] {
                let when = format!("{call}{more}");
                let context = format!("{error} at call {when} of {count}");
                let (_, is_success) = judge(Fault::Calls(calls, error, when), &context);
                noticed += usize::from(!is_success);
            }
        }
    }
    assert!(noticed > 0, "{operation:?}: no error is reported");
    if matches!(operation, Operation::Backup | Operation::Restore) {
        let target = if operation == Operation::Backup {
            "copy"
        } else {
            "data"
        };
        let size = bytes(&measured.path().join(target));
        for part in positions(100) {
            let free = size * part as u64 / 100;
            let _ = judge(
                Fault::Space(free),
                &format!("{free} of {size} bytes are free"),
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_tolerate_failing_system_calls_or_can_be_repeated() {
    if Engine::only_in_a_folder() {
        return;
    }
    let Some([strace]) = programs(["strace"]) else {
        return;
    };
    let fixture = Fixture::new(strace).await;
    let operations = [
        Operation::Start,
        Operation::Upgrade,
        Operation::Rotate,
        Operation::Backup,
        Operation::Restore,
    ];
    let judged = tokio::task::spawn_blocking(move || {
        for operation in operations {
            survives(&fixture, operation);
        }
    });
    judged.await.unwrap();
}

async fn send(world: &World, host: &str) -> bool {
    let event = samples::event("full", host, "SEVERITY_ERROR", "disk is full");
    let body = samples::events(&[event]);
    let answer = world.rest().post("/v1/data-receiver/events", &body).await;
    match answer.status.as_u16() {
        200 => answer.ok()["succeeded"] == 1,
        500..=599 => false,
        other => panic!("{other}: {}", answer.text()),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "one scenario")]
async fn service_recovers_from_failing_system_calls_without_losing_events() {
    if Engine::only_in_a_folder() {
        return;
    }
    let Some([strace]) = programs(["strace"]) else {
        return;
    };
    let mut world = World::start();
    let mut accepted = BTreeSet::new();
    for (round, (error, when)) in [
        ("EINTR", "1+2"),
        ("EIO", "2+5"),
        ("EIO", "10+"),
        ("ENOSPC", "10+"),
    ]
    .into_iter()
    .enumerate()
    {
        let calls = "write,pwrite64,fsync,fdatasync,ftruncate";
        let mut arguments = vec![
            "-f".into(),
            "-qq".into(),
            "-e".into(),
            format!("trace={calls}"),
        ];
        let inject = format!("inject={calls}:error={error}:when={when}");
        let service = world.service().id();
        arguments.extend(["-e".into(), inject, "-p".into(), service.to_string()]);
        for path in paths(world.folder()) {
            arguments.extend(["-P".into(), path.to_str().unwrap().to_owned()]);
        }
        let tracer = Running::start(world.folder(), &strace, &arguments);
        let traced_by = || {
            let status = fs::read_to_string(format!("/proc/{service}/status")).unwrap();
            let line = status.lines().find(|line| line.starts_with("TracerPid:"));
            line.unwrap()
                .trim_start_matches("TracerPid:")
                .trim()
                .to_owned()
        };
        eventually_blocking("strace to attach", || (traced_by() != "0").then_some(()));
        let mut refused = 0;
        for number in 0..25 {
            let host = format!("{round}-{number}");
            if send(&world, &host).await {
                accepted.insert(host);
            } else {
                refused += 1;
            }
        }
        signal("-INT", tracer.id());
        eventually_blocking("strace to detach", || (traced_by() == "0").then_some(()));
        // The service repeats a write that fails once, in the other log file.
        let is_expected = match when {
            "10+" => refused > 0,
            _ => error == "EIO" || refused == 0,
        };
        assert!(is_expected, "{error} at {when}: {refused} rejected");
        let mut number = 0;
        eventually("events to be accepted again", async || {
            number += 1;
            send(&world, &format!("{round}-after-{number}"))
                .await
                .then_some(())
        })
        .await;
        world.kill();
        world.start_again();
        let stored = crash::stored_hosts(&world.rest()).await;
        let lost: Vec<_> = accepted.difference(&stored).collect();
        assert!(lost.is_empty(), "{error} at {when}: {lost:?} are lost");
    }
    world.terminate();
    let checked = run(world.command(&["check", "--json"]));
    assert!(counts(&checked).is_some(), "{checked:?}");
}
