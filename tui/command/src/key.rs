//! Credentials of the console and the commands, in order of precedence: a key set explicitly, the
//! token of a sign-in at the service, and the key in the data folder. A user who ran `bellwether
//! login` expects to act under their own identity, even on a machine whose data folder has a key.

use std::{io::ErrorKind, path::PathBuf};

use bellwether_process::plain_file;

use crate::{
    config::{KeySource, Settings},
    failure::Failure,
    permissions::Permissions,
    sign_ins,
};

const SCHEME: &str = "Bearer ";
const KEY_FILE_BYTES_MAX: u64 = 64 * 1024;

/// The file in the data folder in which a service stores the key of its first client.
pub(crate) const ADMIN_KEY_FILE: &str = "admin.key";

/// Returns the credential for the service at this address; `None` if only a client certificate is
/// used.
///
/// # Errors
/// Returns an error if a file is unreadable or empty, or a sign-in has expired. The key in the data
/// folder is not used then, so that the identity does not change unnoticed.
pub(crate) async fn read_key(
    settings: &Settings,
    address: &str,
) -> Result<Option<String>, Failure> {
    if settings.key.is_default()
        && let Some(token) = sign_ins::current_token(settings, address).await?
    {
        return Ok(Some(token));
    }
    let is_known_otherwise = settings.key.is_default() && settings.tls.client_cert.is_some();
    if is_known_otherwise && !settings.data_dir.join(ADMIN_KEY_FILE).exists() {
        return Ok(None);
    }
    read_api_key(settings).map(Some)
}

/// Reads the API key from its configured source and ignores sign-ins. For a service started in this
/// process: a stored sign-in for its address may belong to another service.
pub(crate) fn read_api_key(settings: &Settings) -> Result<String, Failure> {
    let path: PathBuf = match &settings.key {
        KeySource::Given(key) => return Ok(key.clone()),
        KeySource::File(path) => path.clone(),
        KeySource::DataDir => settings.data_dir.join(ADMIN_KEY_FILE),
    };
    let shown = path.display();
    let read = match settings.key {
        // The file may be a pipe from the caller's shell.
        KeySource::File(_) => std::fs::read_to_string(&path),
        _ => plain_file::read_text(&path, KEY_FILE_BYTES_MAX),
    };
    let text = read.map_err(|error| {
        let administrator = match error.kind() {
            ErrorKind::PermissionDenied => {
                "; as root, `bellwether client create NAME --role ROLE` prints a key"
            }
            _ => "",
        };
        Failure::permission_denied(format!(
            "no API key: cannot read {shown} ({error}); name a file with --key-file, set \
             BELLWETHER_KEY, or sign in with `bellwether login`{administrator}"
        ))
        .with_code("NO_KEY")
    })?;
    if let Some(mode) = Permissions::at(&path).filter(|mode| mode.is_accessible_to_others()) {
        tracing::warn!("other users can read {shown} (mode {mode}); run `chmod 600` on it");
    }
    parse_single_key(&text).map_err(|problem| {
        Failure::permission_denied(format!("no API key: {shown} {problem}")).with_code("NO_KEY")
    })
}

/// Returns the key of a file, without the scheme of an `authorization` header.
fn parse_single_key(text: &str) -> Result<String, String> {
    let text = text.trim_start();
    let is_scheme = |start: &&str| start.eq_ignore_ascii_case(SCHEME);
    let key = match text.get(..SCHEME.len()).filter(is_scheme) {
        Some(_) => text[SCHEME.len()..].trim(),
        None => text.trim_end(),
    };
    match key.lines().count() {
        0 => Err("is empty".into()),
        1 => Ok(key.to_owned()),
        lines => Err(format!("has {lines} lines; expected only the key")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_file_contains_one_key_with_or_without_scheme() {
        for text in ["bw_key\n", " bw_key ", "Bearer bw_key\n", "bearer  bw_key"] {
            assert_eq!(parse_single_key(text).as_deref(), Ok("bw_key"), "{text}");
        }
        for (text, problem) in [
            ("", "is empty"),
            ("Bearer \n", "is empty"),
            ("bw_key\nbw_other\n", "has 2 lines; expected only the key"),
        ] {
            assert_eq!(parse_single_key(text), Err(problem.to_owned()), "{text}");
        }
    }
}
