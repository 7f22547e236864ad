//! Tests that documents, messages and comments use standard English terms, and that names follow
//! the glossary.

use std::collections::BTreeSet;

use bellwether_tests::tree;
use regex::{Regex, RegexSet, RegexSetBuilder};

/// Maximum number of lines with such a phrase in documents, `.proto` comments and string literals.
/// Lower it when the number falls; never raise it.
const READ_MAX: usize = 5;
/// Maximum number of lines with such a phrase in code comments.
const COMMENTS_MAX: usize = 20;
const SHOWN: usize = 50;

const PHRASES: [&str; 34] = [
    r"\b(un)?told\b",
    r"\btells? (of|how|who|what|whether|when|it)\b",
    r"\b(is|are|was|were) (not )?said\b|\bsaid (again|so)\b|\bthat is said\b|\bsays? so\b",
    r"\bfares?\b|\bfared\b",
    r"\bbecomes? of\b|\bbecame of\b|\bcame of\b",
    r"\b(looked|lived|looks|lives|read) through\b",
    r"\bwho(ever)? shows?\b|\bshows? (a|no|its|the|their) (key|certificate|token)\b",
    r"\blets? (in|them in|it in)\b|\blet in\b",
    r"\btak(e|es|en|ing) in\b|\btook in\b",
    r"\bstrangers?\b",
    r"\ball the same\b",
    r"\bgo(es)? on\b|\bgoing on\b|\bwent on\b",
    r"\banew\b",
    r"\bmend(s|ed|ing)?\b",
    r"\bparted by\b",
    r"\bin clear\b",
    r"\bhears? (of|from)\b|\bheard (of|from)\b",
    r"\bowed?\b|\bowes\b",
    r"\bstand(s|ing)?[ -]ins?\b",
    r"\bwhom\b",
    r"\bsomebody\b|\bnobody\b|\bwhoever\b",
    r"\bstands? (once|there|beside|here|in the way)\b",
    r"\bput right\b",
    r"\bas many as\b",
    r"\bgives? (back|late|out)\b",
    r"\bmade (of|new)\b|\bmakes? (of it|one)\b",
    r"\bsay(s)? (who|what|which|how|why|whether)\b",
    r"\bit alone\b|\balone (may|can|is|does)\b",
    r"\bbeyond (that|it|them|which)\b",
    r"\bsee[ns]? (by|to) (nobody|somebody)\b",
    r"\bat once\b",
    r"\bbesides\b",
    r"\bby itself\b",
    r"\bof (its|their|one's) own\b",
];

/// A comment or a string literal (raw, or with escapes). Character literals are matched too, so
/// that `'"'` does not open a text.
const TOKEN: &str = concat!(
    r##"(?s)//[^\n]*|b?r#".*?"#|b?r"[^"]*""##,
    r##"|[bc]?"(?:[^"\\]|\\.)*"|b?'(?:[^'\\\n]|\\.)'"##,
);

/// Lines of a file with their numbers: those that users read, and comments in code.
#[derive(Debug, Default)]
struct Texts {
    read: Vec<(usize, String)>,
    comments: Vec<(usize, String)>,
}

impl Texts {
    fn of(path: &str, text: &str, token: &Regex) -> Self {
        let mut texts = Self::default();
        let lines = (1_usize..).zip(text.lines());
        let ending = path.rsplit('.').next().unwrap();
        match ending {
            "md" | "proto" => {
                texts.read = lines.map(|(at, line)| (at, line.to_owned())).collect();
            }
            "toml" | "yaml" => {
                let comments = lines.filter(|(_, line)| line.trim_start().starts_with('#'));
                texts.read = comments.map(|(at, line)| (at, line.to_owned())).collect();
            }
            _ => {
                let comments = lines.filter(|(_, line)| line.trim_start().starts_with("//"));
                texts.comments = comments.map(|(at, line)| (at, line.to_owned())).collect();
                if !is_test(path) {
                    texts.read = literals(text, token);
                }
            }
        }
        texts
    }
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/")
        || ["/tests/", "/benches/", "/conformance/"]
            .iter()
            .any(|folder| path.contains(folder))
        || ["tests.rs", "samples.rs"]
            .iter()
            .any(|ending| path.ends_with(ending))
}

/// Returns the string literals of a file before its tests, each with the number of its first line.
fn literals(text: &str, token: &Regex) -> Vec<(usize, String)> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
    let mut found = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for part in token.find_iter(code) {
        line += code[counted..part.start()].matches('\n').count();
        counted = part.start();
        let part = part.as_str();
        if !part.starts_with("//") && !part.ends_with('\'') {
            let joined: Vec<_> = part.split("\\\n").map(str::trim_start).collect();
            found.push((line, joined.concat()));
        }
    }
    found
}

/// Returns the lines with such a phrase as `path:line: text`: those that users read, and comments.
fn offending(phrases: &RegexSet) -> (Vec<String>, Vec<String>) {
    let token = Regex::new(TOKEN).unwrap();
    let (mut read, mut comments) = (Vec::new(), Vec::new());
    for ending in ["md", "proto", "toml", "yaml", "rs"] {
        for (path, text) in tree::files(ending) {
            let is_foreign = ["google/", "snapshots", "CHANGELOG.md", "Cargo.toml"]
                .iter()
                .any(|part| path.contains(part));
            if is_foreign || path == "tests/e2e/words.rs" {
                continue;
            }
            let texts = Texts::of(&path, &text, &token);
            for (found, texts) in [(&mut read, texts.read), (&mut comments, texts.comments)] {
                let bad = texts.iter().filter(|(_, text)| phrases.is_match(text));
                found.extend(bad.map(|(line, text)| format!("{path}:{line}: {}", text.trim())));
            }
        }
    }
    (read, comments)
}

#[test]
fn text_uses_standard_terms() {
    let phrases = RegexSetBuilder::new(PHRASES)
        .case_insensitive(true)
        .build()
        .unwrap();
    let (read, comments) = offending(&phrases);
    for (what, found, most) in [
        ("documents, interfaces and messages", read, READ_MAX),
        ("comments", comments, COMMENTS_MAX),
    ] {
        let shown = &found[..found.len().min(SHOWN)];
        assert!(
            found.len() <= most,
            "{} lines of {what} have phrases that operators do not search for; at most {most} may:\n{}",
            found.len(),
            shown.join("\n")
        );
    }
}

/// Words replaced by the glossary, as parts of names. Released fields are exempt.
const REPLACED: [&str; 7] = [
    "told",
    "untold",
    "spared",
    "fare",
    "fares",
    "owed",
    "obligation",
];
const RELEASED: [&str; 2] = ["told", "obligations"];

fn fields() -> BTreeSet<String> {
    let field = Regex::new(r"(?m)^\s*(?:\w[\w.<>, ]*\s)?(\w+) = \d+(?: \[|;)").unwrap();
    let files = tree::files("proto").into_iter();
    let ours = files.filter(|(path, _)| path.starts_with("proto/") && !path.contains("google/"));
    let names = ours.flat_map(|(_, text)| {
        let names = field.captures_iter(&text).map(|found| found[1].to_owned());
        names.collect::<Vec<_>>()
    });
    names.collect()
}

fn metrics() -> BTreeSet<String> {
    let page = include_str!("../../proto/reference/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn glossary_names_exist_and_replaced_words_are_unused() {
    let (fields, metrics) = (fields(), metrics());
    assert!(fields.len() > 500 && metrics.len() > 50);
    let architecture = include_str!("../../ARCHITECTURE.md");
    let (_, glossary) = architecture.split_once("## Glossary").unwrap();
    for name in glossary.split('`').skip(1).step_by(2) {
        let snake: String = name
            .chars()
            .flat_map(|letter| match letter {
                'A'..='Z' => vec!['_', letter.to_ascii_lowercase()],
                _ => vec![letter],
            })
            .collect();
        assert!(
            fields.contains(&snake) || metrics.contains(name),
            "the glossary names `{name}`, which is neither a field nor a metric"
        );
    }
    // These terms are used in the API and in names of metrics.
    for field in ["skipped_count", "shadow", "notified", "assignee"] {
        assert!(fields.contains(field), "{field} is not a field");
    }
    for metric in [
        "bellwether_skipped_total",
        "bellwether_pending",
        "bellwether_holds_total",
    ] {
        assert!(metrics.contains(metric), "{metric} is not a metric");
    }
    let all = fields.iter().chain(&metrics);
    for name in all.filter(|name| !RELEASED.contains(&name.as_str())) {
        let replaced = name.split('_').find(|part| REPLACED.contains(part));
        assert_eq!(
            replaced, None,
            "{name}: see the glossary of ARCHITECTURE.md"
        );
    }
}

#[test]
fn screens_use_glossary_terms() {
    let token = Regex::new(TOKEN).unwrap();
    let replaced = Regex::new(&format!(r"(?i)\b({})\b", REPLACED.join("|"))).unwrap();
    for (path, text) in tree::files("rs") {
        // Skip the findings of the command `check`, which use the names of the API.
        if !path.starts_with("tui/") || is_test(&path) || path.ends_with("maintenance/check.rs") {
            continue;
        }
        for (line, literal) in literals(&text, &token) {
            assert!(!replaced.is_match(&literal), "{path}:{line}: {literal}");
        }
    }
}

/// Maximum words of a sentence on a page for operators.
const SENTENCE_WORDS_MAX: usize = 30;

/// Returns the long sentences of a document's prose, without code, tables and headings.
fn long_sentences(text: &str) -> Vec<String> {
    let prose: String = text.split("```").step_by(2).collect();
    let code = Regex::new("`[^`]*`").unwrap();
    let prose = code.replace_all(&prose, "`code`");
    let mut sentences: Vec<Vec<&str>> = vec![Vec::new()];
    for line in prose.lines().map(str::trim) {
        let is_outside = line.is_empty() || line.starts_with(['|', '#']);
        let item = line.strip_prefix("- ");
        if is_outside || item.is_some() {
            sentences.push(Vec::new());
        }
        let words = item.unwrap_or(line).split_whitespace();
        for word in words.filter(|_| !is_outside) {
            sentences.last_mut().unwrap().push(word);
            if word.ends_with(['.', '!', '?', ':']) {
                sentences.push(Vec::new());
            }
        }
    }
    let long = sentences.iter().filter(|it| it.len() > SENTENCE_WORDS_MAX);
    long.map(|it| it.join(" ")).collect()
}

#[test]
fn sentences_for_operators_have_at_most_30_words() {
    let mut pages = 0;
    for (path, text) in tree::files("md") {
        // Benchmarks are figures with their conditions.
        let is_read = path.starts_with("docs/") || path.starts_with("proto/reference/");
        if !is_read || path == "docs/benchmarks.md" {
            continue;
        }
        let long = long_sentences(&text);
        assert!(long.is_empty(), "{path}:\n{}", long.join("\n"));
        pages += 1;
    }
    assert!(pages > 40, "only {pages} pages were found");
}
