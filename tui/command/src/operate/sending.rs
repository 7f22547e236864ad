//! Shell access to the service, for commands that the console shows and copies.

use std::path::Path;

use bellwether_tui::Shell;

use crate::{
    config::{KeySource, Settings},
    key,
    ready::Addresses,
};

/// Returns the shell access to the service at this gRPC address. It contains the REST address if
/// the service runs on this machine and its data folder is readable. `bellwether` commands use the
/// token of a sign-in automatically.
pub(super) fn shell_settings(settings: &Settings, address: &str, signed_in: bool) -> Shell {
    let noted = Addresses::read_note(settings);
    let noted = noted.filter(|noted| noted.grpc.as_deref() == Some(address));
    let file = match &settings.key {
        KeySource::Given(_) => None,
        KeySource::DataDir if signed_in => None,
        KeySource::File(path) => Some(shell_quote(path)),
        KeySource::DataDir => Some(shell_quote(&settings.data_dir.join(key::ADMIN_KEY_FILE))),
    };
    let key = match &file {
        Some(file) => format!("$(cat {file})"),
        None => "$BELLWETHER_KEY".to_owned(),
    };
    let key_file = file.map_or_else(String::new, |file| format!(" --key-file {file}"));
    Shell {
        rest: noted.and_then(|noted| noted.rest),
        key,
        bellwether: format!("bellwether --connect {address}{key_file}"),
    }
}

/// Quotes a path for a shell, with `~` for the home folder.
fn shell_quote(path: &Path) -> String {
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
    fn path_is_quoted_for_the_shell() {
        let written = |path: &str| shell_quote(Path::new(path));
        assert_eq!(
            written("/srv/bell-wether/admin.key"),
            "/srv/bell-wether/admin.key"
        );
        assert_eq!(written("/srv/it's here"), r"'/srv/it'\''s here'");
    }
}
