//! Tests in several modes of the service; see [`LIFE`].

use std::{env, process::Command};

use crate::samples::world::LIFE;

#[test]
fn hold_and_group_tests_pass_in_every_mode() {
    for life in ["two nodes", "killed"] {
        let mut tests = Command::new(env::current_exe().unwrap());
        tests.args(["silence::tests::", "group::tests::", "response::tests::"]);
        // Walks are at full length only in the mode without a second node or a kill.
        tests.env(LIFE, life).env_remove("BELLWETHER_TEST_LENGTH");
        let done = tests.output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{life}:\n{said}");
        let passed = said.matches("... ok").count();
        assert!(passed > 60, "{life}: only {passed} tests ran");
    }
}
