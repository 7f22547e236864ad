//! Programs that share no code with the service: a gRPC client with stubs from the `.proto` files,
//! and an OpenAPI validator, both in Python.

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use bellwether_tests::{tree, world::World};
use serde_json::{Value, json};

/// Returns a Python with these modules: a configured one, the one installed by `.ci/run`, or the
/// system's. Without one, the test is skipped with a message.
pub(crate) fn python(modules: &str) -> Option<PathBuf> {
    let named = std::env::var_os("BELLWETHER_TEST_PYTHON").map(PathBuf::from);
    let made = tree::root().join("target/ci/python/bin/python");
    let has_them = |python: &PathBuf| {
        let import = format!("import {modules}");
        let import = Command::new(python).args(["-c", &import]).output();
        import.is_ok_and(|output: Output| output.status.success())
    };
    let mut candidates = named.into_iter().chain([made, "python3".into()]);
    let found = candidates.find(has_them);
    if found.is_none() {
        // Write to standard error directly, so that a skipped test is visible.
        let notice = format!("skipped: no Python with {modules} here; `.ci/run` installs it\n");
        std::io::stderr()
            .write_all(notice.as_bytes())
            .expect("standard error");
    }
    found
}

#[tokio::test]
async fn openapi_document_passes_an_independent_validator() {
    let Some(python) = python("openapi_spec_validator") else {
        return;
    };
    let world = World::start();
    let document = world.rest().get("/openapi.json").await;
    let mut validator = Command::new(python)
        .arg(tree::root().join("tests/e2e/openapi.py"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut input = validator.stdin.take().expect("standard input");
    // A validator that ends early reports the reason on standard error.
    drop(input.write_all(&document.body));
    drop(input);
    let output = validator.wait_with_output().expect("python ends");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test]
async fn python_client_creates_and_lists_resources_and_sends_events() {
    let Some(python) = python("grpc, grpc_tools") else {
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
    let reported: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let expected = json!({
        "created": "from python",
        "listed": ["from python"],
        "refused": "NOT_FOUND",
        "succeeded": 1,
    });
    assert_eq!(reported, expected);
    let count = world.rest().post("/v1/events:count", &json!({})).await.ok();
    assert_eq!(count["count"], 1);
}
