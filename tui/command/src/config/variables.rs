//! Environment variables with settings: values, files with values, and a check for unknown names.

use std::path::Path;

use bellwether_process::plain_file;

use super::setting;
use super::{ConfigError, VARIABLE_PREFIX, Variables};

const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Suffix of a variable that names a file with the value, as is usual for container secrets.
const FILE_SUFFIX: &str = "_FILE";
pub(super) fn variable_name(key: &str) -> String {
    let key = key.replace('.', "_").to_uppercase();
    format!("{VARIABLE_PREFIX}{key}")
}

fn variable_names(key: &str) -> [String; 2] {
    let name = variable_name(key);
    let file_name = format!("{name}{FILE_SUFFIX}");
    [name, file_name]
}

/// Returns the value of a setting's variable, with the variable's name.
pub(super) fn find_variable(
    variables: &Variables,
    key: &str,
) -> Result<Option<(String, String)>, ConfigError> {
    let name = variable_name(key);
    let file_name = format!("{name}{FILE_SUFFIX}");
    match (variables.get(&name), variables.get(&file_name)) {
        (None, None) => Ok(None),
        (Some(text), None) => Ok(Some((name, text.clone()))),
        (None, Some(path)) => Ok(Some((file_name.clone(), read(&file_name, path)?))),
        (Some(_), Some(_)) => Err(ConfigError(format!(
            "{file_name}: {name} is also set; set only one of them"
        ))),
    }
}

fn read(name: &str, path: &str) -> Result<String, ConfigError> {
    let cannot_read = |error| ConfigError(format!("{name}: cannot read {path}: {error}"));
    let text = plain_file::read_text(Path::new(path), FILE_BYTES_MAX).map_err(cannot_read)?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

/// Rejects unknown variables with the prefix of settings, which are probably misspelled.
///
/// # Errors
/// Returns an error that names the first of them and the nearest known variable.
pub(super) fn reject_unknown_variables(variables: &Variables) -> Result<(), ConfigError> {
    const OTHERS: [&str; 2] = ["BELLWETHER_CONFIG", "BELLWETHER_KEY"];
    const SECRET_PREFIX: &str = "BELLWETHER_SECRET_";

    let known: Vec<String> = setting::all_settings()
        .map(|setting| variable_name(setting.key))
        .collect();
    let ours = variables
        .keys()
        .filter(|it| it.starts_with(VARIABLE_PREFIX));
    let unknown = ours.filter(|it| {
        let setting = it.strip_suffix(FILE_SUFFIX).unwrap_or(it);
        let is_setting = known.iter().any(|known| known == *it || known == setting);
        let is_other = OTHERS.contains(&it.as_str()) || it.starts_with(SECRET_PREFIX);
        !is_setting && !is_other && !is_set_by_kubernetes(it)
    });
    let Some(name) = unknown.into_iter().next() else {
        return Ok(());
    };
    let is_of = |key: &&str| variable_names(key).contains(name);
    if let Some(why) = setting::removed_keys()
        .find(is_of)
        .and_then(setting::removal_message)
    {
        return Err(ConfigError(format!("{name}: {why}")));
    }
    let nearest = known
        .iter()
        .min_by_key(|known| strsim::damerau_levenshtein(known, name))
        .expect("there are settings");
    Err(ConfigError(format!(
        "{name}: unknown setting; the nearest is {nearest}"
    )))
}

/// Whether the variable is one that Kubernetes sets in containers for a Service whose name begins
/// with `bellwether`.
fn is_set_by_kubernetes(name: &str) -> bool {
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let after_port = |rest: &str| {
        let mut words = rest.split('_');
        let number = words.next().unwrap_or_default();
        is_port(number)
            && matches!(words.next(), Some("TCP" | "UDP" | "SCTP"))
            && matches!(words.next(), None | Some("PROTO" | "PORT" | "ADDR"))
            && words.next().is_none()
    };
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name
            .rsplit_once("_PORT_")
            .is_some_and(|(_, rest)| after_port(rest))
        || name
            .match_indices("_PORT_")
            .any(|(at, _)| after_port(&name[at + 6..]))
}
