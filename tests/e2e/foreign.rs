//! A gRPC client that shares no code with the service: Python, with stubs from the `.proto` files.

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Output},
};

use bellwether_tests::{tree, world::World};
use serde_json::{Value, json};

/// A Python that has gRPC: the one that is named, the one that `.ci/run` has made, or the machine's.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("BELLWETHER_TEST_PYTHON").map(PathBuf::from);
    let made = tree::root().join("target/ci/python/bin/python");
    let has_grpc = |python: &PathBuf| {
        let import = Command::new(python)
            .args(["-c", "import grpc, grpc_tools"])
            .output();
        import.is_ok_and(|output: Output| output.status.success())
    };
    named
        .into_iter()
        .chain([made, "python3".into()])
        .find(has_grpc)
}

#[tokio::test]
async fn a_client_in_python_creates_lists_and_sends() {
    let Some(python) = python() else {
        // Written past the capture of the test's output: a skipped test is seen.
        let notice = "skipped: no Python with grpcio here; `.ci/run` installs it\n";
        std::io::stderr()
            .write_all(notice.as_bytes())
            .expect("standard error");
        return;
    };
    let world = World::start();
    let stubs = tempfile::tempdir().expect("a folder");
    let root = tree::root();

    let output = Command::new(python)
        .arg(root.join("tests/e2e/foreign.py"))
        .arg(root.join("proto"))
        .arg(stubs.path())
        .args([world.service().address("grpc"), &world.admin_key()])
        .output()
        .expect("python starts");

    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let told: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let expected = json!({
        "created": "from python",
        "listed": ["from python"],
        "refused": "NOT_FOUND",
        "succeeded": 1,
    });
    assert_eq!(told, expected);
    let count = world.rest().post("/v1/events:count", &json!({})).await.ok();
    assert_eq!(count["count"], 1);
}
