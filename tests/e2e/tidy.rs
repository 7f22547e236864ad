//! The project holds to its own rules.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_tests::tree;

/// Most lines of a source file.
const LINES_MAX: usize = 500;

#[test]
fn every_source_file_says_first_what_it_is_for() {
    for (path, text) in tree::files("rs") {
        assert!(
            text.starts_with("//! "),
            "{path} does not start with what it is for"
        );
    }
}

#[test]
fn no_source_file_is_too_long_to_hold_one_responsibility() {
    for (path, text) in tree::files("rs") {
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{path} has {lines} lines");
    }
}

#[test]
fn nothing_is_left_open_in_the_code() {
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
fn code_is_ascii_but_for_what_people_see_and_tests_on_unicode() {
    let shown = |path: &str| path.starts_with("tui/") || path.contains("test");
    for (path, text) in tree::files("rs").iter().filter(|(path, _)| !shown(path)) {
        // Tests may stand at the end of the file that they test.
        let code = text.split("#[cfg(test)]").next().unwrap();
        let line = code
            .lines()
            .position(|line| !line.is_ascii() && !line.trim_start().starts_with("//"));
        assert_eq!(
            line.map(|line| line + 1),
            None,
            "{path} holds more than ASCII in that line"
        );
    }
}

#[test]
fn every_message_method_field_and_value_of_the_wire_has_a_comment() {
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

/// The packages that each package may be built from.
const CRATE_ARROWS: [(&str, &[&str]); 5] = [
    ("proto", &[]),
    ("backend", &["proto"]),
    ("gateway", &["proto"]),
    // The command, not the console, is what puts backend and gateway in.
    ("tui", &["proto", "backend", "gateway"]),
    ("tests", &["proto", "backend", "gateway", "tui"]),
];

#[test]
fn packages_depend_on_each_other_only_along_the_arrows() {
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

/// The files of the command, and the one that puts a service beside the console of a test: the only
/// ones in `tui` that know the parts of the service.
const COMMAND_FILES: [&str; 2] = ["tui/src/bin/", "tui/tests/console/backend.rs"];

#[test]
fn the_console_knows_the_wire_only() {
    for (path, text) in tree::files("rs") {
        let is_command = COMMAND_FILES.iter().any(|file| path.starts_with(file));
        if path.starts_with("tui/") && !is_command {
            for part in ["bellwether_backend", "bellwether_gateway"] {
                assert!(!text.contains(part), "{path} knows {part}");
            }
        }
    }
}

/// The rooms of the backend, and those that each may look into.
const ROOM_ARROWS: [(&str, &[&str]); 17] = [
    ("clock", &[]),
    ("error", &[]),
    ("limits", &[]),
    ("secret", &[]),
    ("domain", &["limits", "secret"]),
    ("config", &["secret"]),
    ("template", &["domain", "error", "limits"]),
    ("filter", &["domain", "error", "limits"]),
    ("matching", &["domain", "error", "limits"]),
    ("decide", &["domain", "limits", "matching"]),
    ("message", &["domain", "error", "limits", "template"]),
    (
        "destination",
        &[
            "clock", "config", "domain", "error", "limits", "message", "template",
        ],
    ),
    ("store", &["clock", "config", "domain", "error", "limits"]),
    (
        "ops",
        &[
            "clock",
            "config",
            "decide",
            "destination",
            "domain",
            "error",
            "limits",
            "matching",
            "message",
            "store",
            "template",
        ],
    ),
    (
        "delivery",
        &[
            "clock",
            "config",
            "destination",
            "domain",
            "error",
            "limits",
            "ops",
            "store",
        ],
    ),
    (
        "rpc",
        &[
            "clock", "config", "decide", "domain", "error", "filter", "limits", "matching",
            "message", "ops", "store",
        ],
    ),
    (
        "server",
        &[
            "clock",
            "config",
            "decide",
            "delivery",
            "destination",
            "domain",
            "error",
            "limits",
            "matching",
            "ops",
            "rpc",
            "store",
        ],
    ),
];

#[test]
fn the_rooms_of_the_backend_look_into_each_other_only_along_the_arrows() {
    let arrows: BTreeMap<_, _> = ROOM_ARROWS.into_iter().collect();
    let mut wrong = BTreeSet::new();
    for (path, text) in tree::files("rs") {
        let Some(inside) = path.strip_prefix("backend/src/") else {
            continue;
        };
        let room = inside.split(['/', '.']).next().unwrap();
        if ["lib", "main"].contains(&room) || is_test(&path) {
            continue;
        }
        let allowed = arrows
            .get(room)
            .unwrap_or_else(|| panic!("{room} is not on the map"));
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for seen in rooms_seen(code) {
            if arrows.contains_key(seen) && seen != room && !allowed.contains(&seen) {
                wrong.insert(format!("{path} looks into {seen}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The rooms that a source file names, as `crate::room` or in a list `crate::{room…}`.
fn rooms_seen(code: &str) -> Vec<&str> {
    let mut seen = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            seen.extend(
                rest.split(|character: char| !character.is_ascii_alphanumeric())
                    .next(),
            );
            continue;
        };
        let mut depth = 1;
        let mut start = 0;
        for (position, character) in list.char_indices() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if (character == ',' && depth == 1) || depth == 0 {
                let item = list[start..position].trim();
                seen.extend(
                    item.split(|character: char| !character.is_ascii_alphanumeric())
                        .next(),
                );
                start = position + 1;
            }
            if depth == 0 {
                break;
            }
        }
    }
    seen
}

#[test]
fn lists_of_rooms_are_read_whole() {
    let code = "use crate::{domain::{Name, Tag}, store};\nuse crate::ops::page;";
    assert_eq!(rooms_seen(code), ["domain", "store", "ops"]);
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.ends_with("_tests.rs")
}

#[test]
fn every_path_in_the_architecture_exists() {
    let text = read("ARCHITECTURE.md");
    let mut paths = 0;
    for path in text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|quoted| is_path(quoted))
    {
        assert!(
            tree::root().join(path).exists(),
            "ARCHITECTURE.md names {path}"
        );
        paths += 1;
    }
    assert!(paths > 20, "only {paths} paths were found");
}

fn is_path(quoted: &str) -> bool {
    let packages = ["proto/", "backend/", "gateway/", "tui/", "tests/", ".ci/"];
    packages.iter().any(|package| quoted.starts_with(package))
}

#[test]
fn the_commands_of_the_readme_exist() {
    let readme = read("README.md");
    let known = [
        "serve", "backend", "gateway", "client", "check", "backup", "restore",
    ];
    let mut commands = 0;
    for line in readme.lines().map(str::trim) {
        let Some(rest) = line.strip_prefix("bellwether ") else {
            continue;
        };
        if rest.starts_with(' ') {
            continue;
        }
        let word = rest.split_whitespace().next().unwrap();
        let told = word.starts_with('-') || known.contains(&word);
        assert!(told, "README.md tells of `bellwether {word}`");
        commands += 1;
    }
    assert!(commands > 0, "README.md shows no command");
    for package in ["cargo run --release", "cargo test"] {
        assert!(
            readme.contains(package),
            "README.md does not tell of `{package}`"
        );
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(tree::root().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}
