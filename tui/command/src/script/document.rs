//! Documents: resources in files, as `{kind, name, …}` with the fields of REST.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use bellwether_process::plain_file;
use bellwether_tui::api::ConfigKind;
use serde_json::{Map, Value, json};

use super::format;
use crate::{cli::script::Output, failure::Failure, output};

const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
const DEPTH_MAX: usize = 8;
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

#[derive(Debug, Clone)]
pub(super) struct Document {
    /// Position of the document, such as `rules.yaml, document 2`.
    pub(super) source: String,
    pub(super) kind: ConfigKind,
    pub(super) name: String,
    /// The document as written, without its kind; may refer to secrets in variables or files.
    pub(super) body: Value,
}

impl Document {
    pub(super) fn resolve_secrets(&self) -> Result<Value, Failure> {
        let mut body = self.body.clone();
        resolve_secret_fields(&mut body, "").map_err(|why| self.invalid(&why))?;
        Ok(json!({self.kind.singular(): body}))
    }

    pub(super) fn invalid(&self, why: &str) -> Failure {
        let (source, kind, name) = (&self.source, self.kind.singular(), &self.name);
        Failure::usage_error(format!("{source}: {kind} `{name}`: {why}"))
    }
}

/// Prints documents, each a kind and a body, as YAML or as one JSON list.
pub(super) fn write_document(documents: Vec<(&str, Value)>, how: Output) -> Result<(), Failure> {
    let documents = documents
        .into_iter()
        .map(|(kind, body)| split_document(kind, body));
    if matches!(how, Output::Json | Output::Agent) {
        let merged = documents.map(|parts| {
            let fields = parts.into_iter().filter_map(|part| match part {
                Value::Object(fields) => Some(fields),
                _ => None,
            });
            Value::Object(fields.flatten().collect())
        });
        return format::write_formatted(&merged.collect(), how, |_| String::new());
    }
    let mut texts = Vec::with_capacity(documents.len());
    for parts in documents {
        let parts: Result<Vec<_>, _> = parts.iter().map(format::to_yaml).collect();
        texts.push(parts?.concat());
    }
    output::write_output(&texts.join("---\n"))
}

/// Splits a document into its kind, its name and the rest, in the order of printing.
fn split_document(kind: &str, mut body: Value) -> [Value; 3] {
    let name = body.as_object_mut().and_then(|body| body.remove("name"));
    let name = name.unwrap_or_default();
    [json!({"kind": kind}), json!({"name": name}), body]
}

/// Reads documents from files and folders; `-` is standard input.
pub(super) fn read_documents(paths: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    let (mut documents, mut wrong) = (Vec::new(), Vec::new());
    for path in paths {
        if path == Path::new("-") {
            let mut text = String::new();
            let mut input = io::stdin().lock().take(FILE_BYTES_MAX + 1);
            let read = input.read_to_string(&mut text);
            read.map_err(|error| {
                Failure::usage_error(format!("cannot read standard input: {error}"))
            })?;
            check_size("standard input", text.len() as u64)?;
            parse("standard input", &text, false, &mut documents, &mut wrong);
            continue;
        }
        let mut files = BTreeSet::new();
        collect_files(path, 0, &mut files)?;
        for file in files {
            let shown = file.display().to_string();
            let unread =
                |error: io::Error| Failure::usage_error(format!("cannot read {shown}: {error}"));
            let text = read_text(&file).map_err(unread)?;
            let is_json = file.extension().is_some_and(|ending| ending == "json");
            parse(&shown, &text, is_json, &mut documents, &mut wrong);
        }
    }
    if wrong.is_empty() {
        Ok(documents)
    } else {
        Err(Failure::usage_error(wrong.join("\n")))
    }
}

pub(super) fn read_text(file: &Path) -> io::Result<String> {
    let content = plain_file::read_rest(&fs::File::open(file)?, FILE_BYTES_MAX)?;
    plain_file::into_text(content)
}

fn check_size(shown: &str, bytes: u64) -> Result<(), Failure> {
    if bytes <= FILE_BYTES_MAX {
        return Ok(());
    }
    let mib = FILE_BYTES_MAX / (1024 * 1024);
    Err(Failure::usage_error(format!(
        "{shown} is larger than {mib} MiB; split it into several files"
    )))
}

/// Collects document files: the path itself if it is a file, else the files in the folder that are
/// not hidden.
fn collect_files(path: &Path, depth: usize, into: &mut BTreeSet<PathBuf>) -> Result<(), Failure> {
    let unread = |error: io::Error| {
        let shown = path.display();
        Failure::usage_error(format!("cannot read {shown}: {error}"))
    };
    if !fs::metadata(path).map_err(unread)?.is_dir() {
        into.insert(path.to_owned());
        return Ok(());
    }
    if depth == DEPTH_MAX {
        let shown = path.display();
        let message = format!("{shown} is more than {DEPTH_MAX} folders deep");
        return Err(Failure::usage_error(message));
    }
    for entry in fs::read_dir(path).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let below = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let ending = below.extension().and_then(|ending| ending.to_str());
        let is_document = ending.is_some_and(|ending| ENDINGS.contains(&ending));
        // Follows symbolic links, because mounted files can be links.
        let is_folder = fs::metadata(&below).map_err(unread)?.is_dir();
        if is_folder || is_document {
            collect_files(&below, depth + 1, into)?;
        }
    }
    Ok(())
}

fn parse(
    shown: &str,
    text: &str,
    is_json: bool,
    documents: &mut Vec<Document>,
    wrong: &mut Vec<String>,
) {
    let values = if is_json {
        let value = serde_json::from_str(text).map(|value| vec![value]);
        value.map_err(|error| format!("{shown} is not JSON: {error}"))
    } else {
        let values = serde_saphyr::from_multiple::<Value>(text);
        values.map_err(|error| format!("{shown} is not YAML: {error}"))
    };
    let values = match values {
        Ok(values) => values,
        Err(why) => return wrong.push(why),
    };
    let values = values.into_iter().flat_map(|value| match value {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        other => vec![other],
    });
    for (at, value) in values.enumerate() {
        let source = format!("{shown}, document {}", at + 1);
        match parse_document(source, value) {
            Ok(document) => documents.push(document),
            Err(why) => wrong.push(why),
        }
    }
}

/// Converts a value to a document.
///
/// # Errors
/// Returns an error that names the source if the value is not a document.
pub(super) fn parse_document(source: String, value: Value) -> Result<Document, String> {
    let wrong = |why: &str| format!("{source}: {why}");
    let Value::Object(mut fields) = value else {
        return Err(wrong("must be an object with the fields `kind` and `name`"));
    };
    let kinds = || {
        let words: Vec<_> = ConfigKind::iter().map(ConfigKind::singular).collect();
        words.join(", ")
    };
    let kind = match fields.remove("kind") {
        Some(Value::String(word)) => {
            let found = ConfigKind::find(&word);
            found.ok_or_else(|| wrong(&format!("unknown kind `{word}`; expected {}", kinds())))?
        }
        None | Some(Value::Null) => {
            return Err(wrong(&format!("has no `kind`; expected {}", kinds())));
        }
        Some(other) => {
            let found = format::inline_value(&other);
            return Err(wrong(&format!(
                "kind: expected a string, found {found}; expected {}",
                kinds()
            )));
        }
    };
    let name = match fields.get("name") {
        None | Some(Value::Null) => {
            let word = kind.singular();
            return Err(wrong(&format!("the {word} has no `name`")));
        }
        Some(Value::String(name)) => name.clone(),
        // Reported together with all other errors in the documents.
        Some(name @ (Value::Number(_) | Value::Bool(_))) => name.to_string(),
        Some(_) => return Err(wrong("name: expected a string, found a list or object")),
    };
    Ok(Document {
        source,
        kind,
        name,
        body: Value::Object(fields),
    })
}

/// Replaces `{fromEnv: NAME}` and `{fromFile: PATH}` with their values.
fn resolve_secret_fields(value: &mut Value, path: &str) -> Result<(), String> {
    if let Value::Object(fields) = value {
        if let Some(found) = secret_source(fields, path) {
            *value = Value::String(found?);
            return Ok(());
        }
        for (name, value) in fields {
            resolve_secret_fields(value, &format!("{path}.{name}"))?;
        }
    } else if let Value::Array(items) = value {
        for (at, value) in items.iter_mut().enumerate() {
            resolve_secret_fields(value, &format!("{path}[{at}]"))?;
        }
    }
    Ok(())
}

fn secret_source(fields: &Map<String, Value>, path: &str) -> Option<Result<String, String>> {
    let mut pairs = fields.iter();
    let (Some((word, Value::String(named))), None) = (pairs.next(), pairs.next()) else {
        return None;
    };
    let field = path.trim_start_matches('.');
    match word.as_str() {
        "fromEnv" => {
            #[expect(
                clippy::disallowed_methods,
                reason = "the documents select the variables to read"
            )]
            let found = std::env::var(named);
            Some(found.map_err(|_unset| format!("{field}: the variable {named} is not set")))
        }
        "fromFile" => {
            let read = read_text(Path::new(named));
            let text = read.map_err(|error| format!("{field}: cannot read {named}: {error}"));
            // Removes the newline that editors append; it is not part of a secret.
            Some(text.map(|text| text.trim_end_matches(['\n', '\r']).to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_documents(text: &str) -> Result<Vec<Document>, String> {
        let (mut documents, mut wrong) = (Vec::new(), Vec::new());
        parse("it", text, false, &mut documents, &mut wrong);
        if wrong.is_empty() {
            Ok(documents)
        } else {
            Err(wrong.join("\n"))
        }
    }

    #[test]
    fn text_is_one_document_several_or_a_list() {
        let cases = [
            ("kind: rule\nname: a\n", 1),
            ("kind: rule\nname: a\n---\nkind: triggers\nname: b\n", 2),
            ("- {kind: rule, name: a}\n- {kind: trigger, name: b}\n", 2),
            ("{\"kind\": \"rule\", \"name\": \"a\"}", 1),
            ("# nothing\n", 0),
        ];
        for (text, count) in cases {
            assert_eq!(parse_documents(text).unwrap().len(), count, "{text}");
        }
    }

    #[test]
    fn invalid_document_is_rejected_with_guidance() {
        let cases = [
            ("- 5\n", "it, document 1: must be an object"),
            (
                "name: a\n",
                "has no `kind`; expected trigger, destination, rule",
            ),
            ("kind: tigger\nname: a\n", "unknown kind `tigger`"),
            ("kind: rule\n", "the rule has no `name`"),
            ("kind: [rule\n", "is not YAML"),
            ("kind: rule\nname: [a]\n", "name: expected a string, found"),
            (
                "kind: 5\nname: a\n",
                "kind: expected a string, found 5; expected trigger",
            ),
            (
                "kind: tigger\n---\nkind: rule\n",
                "it, document 2: the rule has no",
            ),
        ];
        for (text, says) in cases {
            let message = parse_documents(text).unwrap_err();
            assert!(message.contains(says), "{text}: {message}");
        }
    }

    #[test]
    fn secrets_are_resolved_from_files_and_variables() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "from a file\n").unwrap();
        let mut body = json!({
            "a": [{"fromFile": path}],
            "b": {"fromEnv": "PATH"},
            "c": {"fromEnv": 5},
            "d": {"fromEnv": "x", "other": "y"},
        });
        resolve_secret_fields(&mut body, "").unwrap();
        assert_eq!(body["a"], json!(["from a file"]));
        assert!(body["b"].as_str().unwrap().contains('/'));
        assert_eq!(body["c"], json!({"fromEnv": 5}));
        assert_eq!(body["d"]["fromEnv"], "x");
        let mut body = json!({"type": {"slack": {"token": {"fromEnv": "NOT_SET_ANYWHERE"}}}});
        let message = resolve_secret_fields(&mut body, "").unwrap_err();
        assert!(message.starts_with("type.slack.token: "), "{message}");
    }
}
