//! Tests that the documentation matches the repository and the program.

use std::{collections::BTreeSet, path::Path};

use bellwether_tests::{process, tree};

#[test]
fn links_between_documents_resolve() {
    let root = tree::root();
    let mut links = 0;
    for (path, text) in tree::files("md") {
        let folder = Path::new(&path).parent().unwrap();
        for target in targets(&text) {
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = match file {
                "" => root.join(&path),
                relative => root.join(folder).join(relative),
            };
            assert!(file.exists(), "{path} links to {target}");
            if !anchor.is_empty() {
                let linked = std::fs::read_to_string(&file).unwrap();
                assert!(
                    anchors(&linked).contains(anchor),
                    "{path} links to {target}; no heading makes that anchor"
                );
            }
            links += 1;
        }
    }
    assert!(links > 100, "only {links} links were found");
}

/// Returns the relative targets of a document's links and images, outside of code.
pub(crate) fn targets(text: &str) -> Vec<String> {
    let prose: String = text.split("```").step_by(2).collect();
    let text: String = prose.split('`').step_by(2).collect();
    let after = text.split("](").skip(1);
    let targets = after.filter_map(|rest| rest.split_once(')'));
    targets
        .map(|(target, _)| target.to_owned())
        .filter(|target| !target.contains(':') && !target.contains(char::is_whitespace))
        .collect()
}

/// Returns the anchors that a forge generates for a document's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let letters = heading
                .chars()
                .filter(|&letter| letter.is_alphanumeric() || " -_".contains(letter));
            letters
                .map(|letter| if letter == ' ' { '-' } else { letter })
                .collect()
        })
        .collect()
}

#[test]
fn each_error_reason_is_explained_on_the_troubleshooting_page() {
    let explained = anchors(&read("docs/troubleshooting.md"));
    let tables = [
        ("backend/base/src/error/status.rs", 15),
        ("gateway/src/problem.rs", 12),
        ("tui/src/client/failure.rs", 4),
        ("tui/command/src/failure.rs", 7),
        ("tui/command/src/key.rs", 1),
        ("tui/command/src/script/health.rs", 2),
        ("tui/command/src/script/trial.rs", 2),
    ];
    for (file, count) in tables {
        let source = read(file);
        let quoted = source.split('"').skip(1).step_by(2);
        let is_code = |text: &&str| {
            text.len() > 4
                && text.bytes().all(|it| matches!(it, b'A'..=b'Z' | b'_'))
                && !text.ends_with('_')
        };
        let codes: BTreeSet<_> = quoted.filter(is_code).map(str::to_lowercase).collect();
        assert!(codes.len() >= count, "{file}: {codes:?}");
        for code in codes {
            assert!(explained.contains(&code), "{file}: {code} is not explained");
        }
    }
}

#[test]
fn messages_on_the_troubleshooting_page_exist() {
    let sources = tree::files("rs").into_iter();
    let sources = sources.filter(|(path, _)| !path.starts_with("tests/"));
    let unbroken = |text: &str| text.split("\\\n").map(str::trim_start).collect();
    let sources: Vec<String> = sources.map(|(_, text)| unbroken(&text)).collect();
    let page = read("docs/troubleshooting.md");
    let mut messages = 0;
    for row in page.lines().filter(|line| line.contains("](#")) {
        let message = row.split('|').nth(1).unwrap();
        let quoted = message.split('`').skip(1).step_by(2);
        for text in quoted.flat_map(|it| it.split('\u{2026}')) {
            let text = text.trim_matches([' ', ',', '/']);
            if text.len() < 5 {
                continue;
            }
            let exists = sources.iter().any(|it| it.contains(text));
            assert!(exists, "no message contains {text:?}");
            messages += 1;
        }
    }
    assert!(messages > 15, "only {messages} messages were found");
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
    let packages = [
        "proto/", "backend/", "gateway/", "tui/", "tests/", "docs/", ".ci/",
    ];
    packages.iter().any(|package| quoted.starts_with(package))
}

#[test]
fn commands_in_the_readme_exist() {
    let readme = read("README.md");
    let help = process::run(process::command(Path::new("/"), ["--help"]));
    let help = String::from_utf8(help.stdout).unwrap();
    let indented = help.lines().filter_map(|line| line.strip_prefix("  "));
    let known: Vec<_> = indented
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let mut commands = 0;
    for line in readme.lines().map(str::trim) {
        let Some(rest) = line.strip_prefix("bellwether ") else {
            continue;
        };
        if rest.starts_with(' ') {
            continue;
        }
        let word = rest.split_whitespace().next().unwrap();
        let exists = word.starts_with('-') || known.contains(&word);
        assert!(exists, "README.md shows `bellwether {word}`");
        commands += 1;
    }
    assert!(commands > 0, "README.md shows no command");
    for package in ["cargo run", "cargo test"] {
        assert!(
            readme.contains(package),
            "README.md does not show `{package}`"
        );
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(tree::root().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}
