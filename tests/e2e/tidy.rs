//! Tests that the project follows its own rules.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_tests::{modules::Modules, tree};

#[test]
fn every_source_file_starts_with_a_module_comment() {
    for (path, text) in tree::files("rs") {
        assert!(
            text.starts_with("//! "),
            "{path} does not start with its purpose"
        );
    }
}

#[test]
fn code_has_no_leftover_markers() {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("dbg", "!("),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("#[ig", "nore"),
    ];
    for (path, text) in tree::files("rs") {
        for mark in marks {
            assert!(!text.contains(mark), "{path} contains {mark}");
        }
    }
}

#[test]
fn headings_of_doc_comments_are_separate_lines() {
    for (path, text) in tree::files("rs") {
        let headings = text
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("/// # "));
        for heading in headings {
            let known = ["Cancel safety", "Errors", "Panics"];
            assert!(known.contains(&heading), "{path} has the heading {heading}");
        }
    }
}

#[test]
fn product_code_is_ascii() {
    let shown = |path: &str| path.starts_with("tui/") || path.contains("test");
    for (path, text) in tree::files("rs").iter().filter(|(path, _)| !shown(path)) {
        // Tests may be at the end of the file that they test.
        let code = text.split("#[cfg(test)]").next().unwrap();
        let line = code
            .lines()
            .position(|line| !line.is_ascii() && !line.trim_start().starts_with("//"));
        assert_eq!(
            line.map(|line| line + 1),
            None,
            "{path} has a non-ASCII line"
        );
    }
}

#[test]
fn every_proto_element_has_a_comment() {
    for (path, text) in tree::files("proto") {
        let others = ["proto/google/", "proto/src/"];
        if !path.starts_with("proto/") || others.iter().any(|other| path.starts_with(other)) {
            continue;
        }
        let mut before = "";
        let mut options = 0_usize;
        for (number, line) in text.lines().map(str::trim).enumerate() {
            let inside_option = options > 0;
            if inside_option || line.starts_with("option (") {
                options += line.matches('{').count();
                options -= line.matches('}').count();
            } else if needs_comment(line) {
                let number = number + 1;
                assert!(
                    before.starts_with("//"),
                    "{path}:{number} has no comment: {line}"
                );
            }
            before = line;
        }
    }
}

fn needs_comment(line: &str) -> bool {
    let declares = ["message ", "service ", "enum ", "rpc ", "oneof "];
    let is_field = line.ends_with(';') && line.contains(" = ");
    let is_file_level = ["syntax", "package", "import", "option", "reserved", "//"]
        .iter()
        .any(|start| line.starts_with(start));
    !is_file_level && (is_field || declares.iter().any(|start| line.starts_with(start)))
}

/// Packages, each with the packages it may depend on.
const CRATE_ARROWS: [(&str, &[&str]); 16] = [
    ("proto", &["language"]),
    ("proto/language", &[]),
    ("proto/process", &[]),
    ("backend/engine", &[]),
    ("backend/model", &["language", "proto"]),
    (
        "backend/store",
        &["process", "backend-engine", "backend-model"],
    ),
    (
        "backend/testing",
        &["backend-engine", "backend-model", "backend-store"],
    ),
    (
        "backend/base",
        &[
            "language",
            "process",
            "proto",
            "backend-engine",
            "backend-model",
            "backend-store",
        ],
    ),
    (
        "backend/send",
        &[
            "process",
            "proto",
            "backend-base",
            "backend-engine",
            "backend-model",
            "backend-store",
        ],
    ),
    (
        "backend/ops",
        &[
            "language",
            "process",
            "proto",
            "backend-base",
            "backend-engine",
            "backend-model",
            "backend-send",
            "backend-store",
        ],
    ),
    (
        "backend",
        &[
            "language",
            "process",
            "proto",
            "backend-base",
            "backend-engine",
            "backend-model",
            "backend-ops",
            "backend-send",
            "backend-store",
        ],
    ),
    ("gateway", &["language", "process", "proto"]),
    ("tui", &["language", "process", "proto"]),
    ("tui/import", &["language", "proto"]),
    (
        "tui/command",
        &[
            "language", "process", "proto", "backend", "gateway", "import", "tui",
        ],
    ),
    ("tests", &["language", "proto", "backend", "gateway", "tui"]),
];

#[test]
fn crates_depend_only_along_allowed_edges() {
    for (package, allowed) in CRATE_ARROWS {
        let manifest = read(&format!("{package}/Cargo.toml"));
        let (_, dependencies) = manifest.split_once("[dependencies]").unwrap();
        let (dependencies, _) = dependencies.split_once("\n[").unwrap_or((dependencies, ""));
        for line in dependencies.lines() {
            if let Some(name) = line.strip_prefix("bellwether-") {
                let name = name.split(['.', ' ']).next().unwrap();
                assert!(allowed.contains(&name), "{package} depends on {name}");
            }
        }
    }
}

/// The files in `tui` that may use the service's crates: those of the command, and the one that
/// adds a service to a console test.
const COMMAND_FILES: [&str; 2] = ["tui/command/", "tui/tests/console/backend.rs"];

#[test]
fn console_does_not_use_backend_or_gateway() {
    for (path, text) in tree::files("rs") {
        let is_command = COMMAND_FILES.iter().any(|file| path.starts_with(file));
        if path.starts_with("tui/") && !is_command {
            for part in ["bellwether_backend", "bellwether_gateway"] {
                assert!(!text.contains(part), "{path} refers to {part}");
            }
        }
    }
}

#[test]
fn architecture_diagram_matches_the_allowed_edges() {
    let text = read("ARCHITECTURE.md");
    let (_, picture) = text.split_once("flowchart TD\n").unwrap();
    let (picture, _) = picture.split_once("```").unwrap();
    let arrows = picture.lines().filter_map(|line| line.split_once(" --> "));
    let arrows = arrows.flat_map(|(from, to)| to.split(" & ").map(|to| (from.trim(), to.trim())));
    // The tests' crate is not part of the service.
    let crates = CRATE_ARROWS
        .iter()
        .filter(|(package, _)| package.starts_with("backend") && *package != "backend/testing");
    let crates: BTreeMap<_, _> = crates
        .map(|(package, allowed)| (package.trim_start_matches("backend/"), *allowed))
        .collect();
    let mut shown = BTreeSet::new();
    for (from, to) in arrows {
        assert!(
            crates[from].contains(&&*format!("backend-{to}")),
            "the diagram has an arrow {from} --> {to}"
        );
        shown.extend([from, to]);
    }
    assert_eq!(shown, crates.into_keys().collect());
}

const CRATES: [&str; 20] = [
    "proto/src",
    "proto/language/src",
    "proto/process/src",
    "backend/base/src",
    "backend/engine/src",
    "backend/model/src",
    "backend/ops/src",
    "backend/send/src",
    "backend/store/src",
    "backend/testing/src",
    "backend/src",
    "gateway/src",
    "tui/src",
    "tui/command/src",
    "tui/import/src",
    "tests/src",
    "tests/e2e",
    "tests/benches/figures",
    "tests/benches/growth",
    "tests/benches/console",
];

#[test]
fn sibling_modules_have_no_cycles() {
    let circles = CRATES
        .iter()
        .flat_map(|folder| Modules::of(folder).cycles());
    let circles: Vec<_> = circles.collect();
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn modules_import_items_from_their_defining_module() {
    let detours = CRATES
        .iter()
        .flat_map(|folder| Modules::of(folder).detours());
    let detours: Vec<_> = detours.collect();
    assert!(detours.is_empty(), "{detours:#?}");
}

fn read(path: &str) -> String {
    std::fs::read_to_string(tree::root().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

const FLAKY_DAYS: i32 = 60;

#[test]
fn flaky_tests_are_dated_and_recent() {
    let today = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    let sources = tree::files("rs");
    for line in read("tests/flaky.txt").lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (day, rest) = line.split_once(' ').expect("a day and a name");
        let day: jiff::civil::Date = day.parse().expect("a day as 2026-11-26");
        let (name, seen) = rest.split_once(": ").expect("a name and an observation");
        let function = name.rsplit("::").next().unwrap_or(name);
        let test = format!("fn {function}(");
        assert!(!seen.is_empty(), "{name}: the observation is missing");
        assert!(
            sources.iter().any(|(_, text)| text.contains(&test)),
            "no test has the name {name}; take its line out"
        );
        let age = today.since(day).map_or(0, |it| it.get_days());
        assert!(
            age <= FLAKY_DAYS,
            "{name} has been flaky since {day}: find out why"
        );
    }
}
