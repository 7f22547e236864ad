//! The text of an object for `$EDITOR`, with a header and with errors as comments. Also parses the
//! edited text.

use bellwether_proto::json;

use crate::{
    client::malformed_response,
    data::{Failure, Kind, Object},
    kind,
};

const MARK: &str = "//";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Path such as `type.webhook.url`; empty if the problem concerns no single field.
    path: String,
    line: Option<usize>,
    message: String,
}

impl Problem {
    pub(crate) fn new(path: &str, message: &str) -> Self {
        Self {
            path: path.to_owned(),
            line: None,
            message: message.to_owned(),
        }
    }
}

pub(crate) fn check_editor(draft: &Object) -> Result<(), Failure> {
    let message = format!("bellwether.v1.{}", kind::spec(draft.kind).message);
    let wire = json::wire_from_json(&message, draft.json.to_string().as_bytes());
    wire.map(drop).map_err(|error| malformed_response(&error))
}

/// Parses an edited text; lines that begin with `//` are comments.
pub(crate) fn parse_text(kind: Kind, text: &str) -> Result<Object, Vec<Problem>> {
    let blank = |line: &str| {
        if line.trim_start().starts_with(MARK) {
            ""
        } else {
            line
        }
        .to_owned()
    };
    let bare: Vec<String> = text.lines().map(blank).collect();
    let json = serde_json::from_str(&bare.join("\n")).map_err(|error| {
        vec![Problem {
            path: String::new(),
            line: Some(error.line()),
            message: error.to_string(),
        }]
    })?;
    let draft = Object { kind, json };
    check_editor(&draft).map_err(|failure| field_problems(&failure))?;
    Ok(draft)
}

pub(crate) fn field_problems(failure: &Failure) -> Vec<Problem> {
    let fields = failure.fields.iter();
    let problems: Vec<_> = fields
        .map(|field| Problem::new(&field.path, &field.message))
        .collect();
    if problems.is_empty() {
        return vec![Problem::new("", &failure.message)];
    }
    problems
}

/// Adds errors as comments above their lines, and removes earlier comments.
pub(crate) fn annotate_text(text: &str, problems: &[Problem]) -> String {
    let old: Vec<&str> = text.lines().collect();
    let mut comments: Vec<(usize, String)> = problems
        .iter()
        .map(|problem| {
            let at = problem
                .line
                .map(|line| line - 1)
                .or_else(|| find_line(&old, &problem.path));
            let path = if problem.path.is_empty() {
                String::new()
            } else {
                format!("{}: ", problem.path)
            };
            (
                at.unwrap_or(0),
                format!("{MARK} ✗ {path}{}", problem.message.replace('\n', " ")),
            )
        })
        .collect();
    comments.sort();
    let mut out = String::new();
    for (index, line) in old.iter().enumerate() {
        for (_, comment) in comments.iter().filter(|(at, _)| *at == index) {
            out.push_str(comment);
            out.push('\n');
        }
        if !line.trim_start().starts_with(MARK) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

fn find_line(lines: &[&str], path: &str) -> Option<usize> {
    let mut found = None;
    for key in path.split(['.', '[', ']']).filter(|key| !key.is_empty()) {
        let from = found.unwrap_or(0);
        let quoted = format!("\"{key}\"");
        match lines
            .iter()
            .enumerate()
            .skip(from)
            .find(|(_, line)| line.contains(&quoted))
        {
            Some((at, _)) => found = Some(at),
            None => break,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\n  \"name\": \"a\",\n  \"type\": {\n    \"webhook\": {\n      \"url\": \"x\"\n    }\n  }\n}\n";

    #[test]
    fn service_error_is_inserted_above_its_line() {
        let marked = annotate_text(
            TEXT,
            &[Problem::new("type.webhook.url", "must be http or https")],
        );
        let lines: Vec<&str> = marked.lines().collect();
        assert_eq!(lines[4], "// ✗ type.webhook.url: must be http or https");
        assert_eq!(lines[5].trim(), "\"url\": \"x\"");
    }

    #[test]
    fn error_comments_are_stripped_on_read_and_annotate() {
        let marked = annotate_text(TEXT, &[Problem::new("name", "is taken")]);
        let draft = parse_text(Kind::Destination, &marked).unwrap();
        assert_eq!(draft.name(), "a");
        assert_eq!(annotate_text(&marked, &[]), TEXT);
    }

    #[test]
    fn syntax_error_is_reported_at_its_line() {
        let text = "{\n  \"name\": \"r\",\n  \"enabld\": true\n}\n";
        let slips = parse_text(Kind::Rule, text).unwrap_err();
        let marked = annotate_text(text, &slips);
        assert!(
            marked.lines().nth(2).unwrap().contains("enabled"),
            "{marked}"
        );
        let slips = parse_text(Kind::Rule, "{\n  \"name\": oops\n}").unwrap_err();
        assert_eq!(slips[0].line, Some(2));
    }
}
