//! The result of an import: documents with valid names, and a report.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

/// Maximum length of a document's name, in characters; a number may be appended.
const NAME_CHARACTERS_MAX: usize = 90;
const DOCUMENTS_MAX: usize = 1_000;

/// Documents, and a report of the parts that were omitted or converted differently.
#[derive(Debug)]
pub struct ImportOutput {
    owner: &'static str,
    with_secrets: bool,
    documents: Vec<(&'static str, Value)>,
    names: HashSet<(&'static str, String)>,
    left_out: Vec<(String, String)>,
    /// Lines already reported. An option that many routes inherit is reported once.
    reported: HashSet<(String, String)>,
    notes: Vec<(String, String)>,
    variables: BTreeMap<String, String>,
}

impl ImportOutput {
    /// Creates an empty result for a product. `with_secrets` includes the values of secrets rather
    /// than names of variables.
    pub(crate) fn new(owner: &'static str, with_secrets: bool) -> Self {
        Self {
            owner,
            with_secrets,
            documents: Vec::new(),
            names: HashSet::new(),
            left_out: Vec::new(),
            reported: HashSet::new(),
            notes: Vec::new(),
            variables: BTreeMap::new(),
        }
    }

    pub(crate) fn unique_name(&mut self, kind: &'static str, wanted: &str) -> String {
        let base = base_name(kind, wanted);
        let mut name = base.clone();
        for number in 2.. {
            let [folded, skeleton] = lookalike_keys(&name);
            let is_used = |shape: &String| self.names.contains(&(kind, shape.clone()));
            if !is_used(&folded) && !is_used(&skeleton) {
                self.names.extend([(kind, folded), (kind, skeleton)]);
                break;
            }
            name = format!("{base}-{number}");
        }
        name
    }

    pub(crate) fn add(&mut self, kind: &'static str, mut body: Value) {
        body["tags"] = json!([format!("owner:{}", self.owner)]);
        self.documents.push((kind, body));
    }

    /// Adds a disabled rule that notifies an escalation policy. It has no triggers: other products
    /// assign events by integration.
    pub(crate) fn add_rule(&mut self, path: &str, wanted: &str, description: &str, policy: &str) {
        let name = self.unique_name("rule", wanted);
        self.add(
            "rule",
            json!({
                "name": name, "description": description, "enabled": false, "sendUpdates": true,
                "escalationPolicyName": policy,
            }),
        );
        let what = "is imported as a disabled rule; add triggers for its events, then enable it";
        self.add_note(path, what);
    }

    pub(crate) fn record_omission(&mut self, path: &str, why: &str) {
        let line = (path.to_owned(), why.to_owned());
        if self.reported.insert(line.clone()) {
            self.left_out.push(line);
        }
    }

    pub(crate) fn add_note(&mut self, path: &str, what: &str) {
        let line = (path.to_owned(), what.to_owned());
        if self.reported.insert(line.clone()) {
            self.notes.push(line);
        }
    }

    /// Returns a secret: its value, or a reference to a variable that `apply` reads.
    pub(crate) fn secret_reference(&mut self, path: &str, words: &[&str], value: String) -> Value {
        if self.with_secrets {
            return Value::String(value);
        }
        self.variable_reference(path, words)
    }

    pub(crate) fn variable_reference(&mut self, path: &str, words: &[&str]) -> Value {
        let base = secret_name(words);
        let mut name = base.clone();
        for number in 2.. {
            if !self.variables.contains_key(&name) {
                break;
            }
            name = format!("{base}_{number}");
        }
        self.variables.insert(name.clone(), path.to_owned());
        json!({"fromEnv": name})
    }

    #[cfg(test)]
    pub(crate) fn omitted_parts(&self) -> Vec<String> {
        self.left_out.iter().map(|(path, _)| path.clone()).collect()
    }

    pub fn documents(&self) -> &[(&'static str, Value)] {
        &self.documents
    }

    #[cfg(test)]
    pub(crate) fn differences(&self) -> Vec<String> {
        let parts = self.left_out.iter().chain(&self.notes);
        parts.map(|(path, why)| format!("{path}: {why}")).collect()
    }

    pub fn report_lines(&self) -> Vec<String> {
        let count = self.documents.len();
        let mut lines = vec![format!("documents: {count}")];
        if count > DOCUMENTS_MAX {
            lines.push(format!(
                "`apply` accepts up to {DOCUMENTS_MAX} documents per call; split them"
            ));
        }
        let mut section = |title: &str, parts: &mut dyn Iterator<Item = (&String, &String)>| {
            let parts: Vec<_> = parts
                .map(|(path, why)| format!("  {path}: {why}"))
                .collect();
            if !parts.is_empty() {
                lines.push(format!("{title}:"));
                lines.extend(parts);
            }
        };
        section(
            "omitted",
            &mut self.left_out.iter().map(|(path, why)| (path, why)),
        );
        section(
            "different",
            &mut self.notes.iter().map(|(path, why)| (path, why)),
        );
        section("variables to set for `apply`", &mut self.variables.iter());
        lines
    }
}

/// Returns the name of the environment variable that `apply` reads a secret from.
pub fn secret_name(path: &[&str]) -> String {
    let letters = path.join("_");
    let letters = letters.chars().map(|letter| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' => letter.to_ascii_uppercase(),
        _ => '_',
    });
    format!("BELLWETHER_SECRET_{}", letters.collect::<String>())
}

fn base_name(kind: &str, wanted: &str) -> String {
    let allowed = |c: char| match c {
        c if c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ') => c,
        _ => '-',
    };
    let name: String = wanted
        .trim()
        .chars()
        .map(allowed)
        .take(NAME_CHARACTERS_MAX)
        .collect();
    let name = name.trim();
    if name.chars().all(|c| matches!(c, '.' | ' ')) {
        kind.to_owned()
    } else {
        name.to_owned()
    }
}

/// Returns the case-folded name and its skeleton. Look-alike names share one of them, and the
/// service rejects such names.
fn lookalike_keys(name: &str) -> [String; 2] {
    let mut skeleton = String::new();
    for c in name.chars() {
        match c {
            '1' | 'I' | 'l' => skeleton.push('l'),
            '0' => skeleton.push('o'),
            'm' => skeleton.push_str("rn"),
            c => skeleton.push(c),
        }
    }
    [name.to_lowercase(), skeleton.to_lowercase()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imported_names_are_valid_and_visually_distinct() {
        let mut imported = ImportOutput::new("test", false);
        let wanted = [
            "db-1", "DB-1", "db-l", "a/b: c", " ", "...", "corn", "com", "db-1",
        ];
        let names = wanted.map(|wanted| imported.unique_name("rule", wanted));
        let expected = [
            "db-1", "DB-1-2", "db-l-3", "a-b- c", "rule", "rule-2", "corn", "com-2", "db-1-4",
        ];
        assert_eq!(names, expected);
        assert_eq!(imported.unique_name("trigger", "db-1"), "db-1");
        assert_eq!(imported.unique_name("rule", &"x".repeat(300)).len(), 90);
    }

    #[test]
    fn secret_becomes_a_variable_unless_values_are_requested() {
        let mut hidden = ImportOutput::new("test", false);
        let variable = hidden.secret_reference("a.b", &["ops", "web-hook"], "s3cret".into());
        assert_eq!(
            variable,
            json!({"fromEnv": "BELLWETHER_SECRET_OPS_WEB_HOOK"})
        );
        let again = hidden.secret_reference("a.c", &["ops", "web-hook"], "other".into());
        assert_eq!(
            again,
            json!({"fromEnv": "BELLWETHER_SECRET_OPS_WEB_HOOK_2"})
        );
        let mut shown = ImportOutput::new("test", true);
        assert_eq!(
            shown.secret_reference("a.b", &["x"], "s3cret".into()),
            "s3cret"
        );
    }
}
