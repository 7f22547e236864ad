//! The shell command that sends an event to the service, for a console whose service has none yet.

use std::path::Path;

use crate::{
    config::{KeySource, Settings},
    key,
    ready::Addresses,
};

/// The event that is sent.
const EVENT: &str = r#"{"events": [{"name": "disk", "dimensions": {"host": "db-1"},
    "severity": "SEVERITY_ERROR", "summary": "disk is full"}]}"#;

/// The command for the service at that gRPC address, if its REST address is known: it stands in the
/// data folder of a service of this machine.
pub(super) fn command(settings: &Settings, address: &str) -> Option<String> {
    let noted = Addresses::read_note(&settings.data_dir)?;
    let rest = noted
        .rest
        .filter(|_| noted.grpc.as_deref() == Some(address))?;
    let key = match &settings.key {
        KeySource::Given(_) => "$BELLWETHER_KEY".to_owned(),
        KeySource::File(path) => format!("$(cat {})", quoted(path)),
        KeySource::DataDir => {
            let path = settings.data_dir.join(key::ADMIN_KEY_FILE);
            format!("$(cat {})", quoted(&path))
        }
    };
    Some(format!(
        "curl {rest}/v1/data-receiver/events \\\n  -H \"authorization: Bearer {key}\" \\\n  -d '{EVENT}'"
    ))
}

/// A path as a shell reads it, short when it is below the home folder.
fn quoted(path: &Path) -> String {
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
    let below = home.and_then(|home| path.strip_prefix(home).ok());
    let (start, rest) = match below {
        Some(rest) => ("~/", rest.to_string_lossy()),
        None => ("", path.to_string_lossy()),
    };
    let plain = |char: char| char.is_ascii_alphanumeric() || "/._-+,@:".contains(char);
    if rest.chars().all(plain) {
        format!("{start}{rest}")
    } else {
        format!("{start}'{}'", rest.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_as_a_shell_reads_it() {
        let written = |path: &str| quoted(Path::new(path));
        assert_eq!(
            written("/srv/bell-wether/admin.key"),
            "/srv/bell-wether/admin.key"
        );
        assert_eq!(written("/srv/it's here"), r"'/srv/it'\''s here'");
    }
}
