//! The contract's own model, in Python and from its text alone, beside the running service.

use std::process::Command;

use bellwether_tests::{process, tree};

use crate::foreign::python;

#[test]
fn what_the_service_answers_and_sends_is_what_the_model_says() {
    let Some(python) = python("json, http.server") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(python)
        .arg("-B")
        .arg(tree::root().join("tests/model/walk.py"))
        .args([process::binary(), folder.path()])
        .output()
        .expect("python starts");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}{wrong}");
    // What it walked, and what the text leaves open, is of interest when it is run for long.
    eprintln!("{told}");
}
