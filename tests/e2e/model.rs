//! An independent model of the API contract, written in Python from the documentation, compared
//! with the running service on every engine.

use std::process::Command;

use bellwether_tests::{
    engine::{self, Engine},
    process, tree,
};

use crate::foreign::python;

/// Runs the model and returns its summary; `None` without Python.
fn walk(engine: Engine) -> Option<String> {
    let python = python("json, http.server")?;
    let folder = tempfile::tempdir().expect("a folder");
    let mut walk = Command::new(python);
    walk.arg("-B")
        .arg(tree::root().join("tests/model/walk.py"))
        .args([process::binary(), folder.path()]);
    if engine == Engine::Database {
        let store = engine::in_database(folder.path()).into_iter();
        let store: serde_json::Value = store
            .map(|(name, value)| (name.to_owned(), serde_json::Value::from(value)))
            .collect();
        walk.env("BELLWETHER_MODEL_STORE", store.to_string());
    }
    let output = walk.output().expect("python starts");
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{engine:?}: {reported}{wrong}");
    Some(reported)
}

#[test]
fn service_matches_the_model() {
    for engine in Engine::usable() {
        // In long runs, the summary shows what was covered.
        eprintln!("{engine:?}: {}", walk(engine).unwrap_or_default());
    }
}
