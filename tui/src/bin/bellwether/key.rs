//! What the console and the commands show to a service: a key that a user gave, else the token of
//! who signed in there, else the key in the data folder. Each is beaten by what was given more
//! explicitly: who runs `bellwether login` wants to be themselves, also on the machine whose data
//! folder has a key.

use std::path::PathBuf;

use bellwether_process::plain_file;

use crate::{
    config::{KeySource, Settings},
    failure::Failure,
    permissions::Permissions,
    sign_ins,
};

/// Bytes of a file with a key.
const KEY_FILE_BYTES_MAX: u64 = 64 * 1024;

/// The file in the data folder that a service writes its first key to.
pub(crate) const ADMIN_KEY_FILE: &str = "admin.key";

/// What is shown to the service at that address; nothing where a certificate is shown, and there is
/// nothing else.
///
/// # Errors
/// When a file cannot be read or is empty, or a sign-in has ended: then no user changes identity by
/// the key in the data folder.
pub(crate) async fn read(settings: &Settings, address: &str) -> Result<Option<String>, Failure> {
    if settings.key.is_unsaid()
        && let Some(token) = sign_ins::token(settings, address).await?
    {
        return Ok(Some(token));
    }
    let is_known_otherwise = settings.key.is_unsaid() && settings.tls.client_cert.is_some();
    if is_known_otherwise && !settings.data_dir.join(ADMIN_KEY_FILE).exists() {
        return Ok(None);
    }
    of_settings(settings).map(Some)
}

/// Reads the API key from where the settings say it is, regardless of the sign-in: for a service
/// that was started in this process, on whose address another one may have been before.
///
/// # Errors
/// When the file cannot be read or is empty.
pub(crate) fn of_settings(settings: &Settings) -> Result<String, Failure> {
    let path: PathBuf = match &settings.key {
        KeySource::Given(key) => return Ok(key.clone()),
        KeySource::File(path) => path.clone(),
        KeySource::DataDir => settings.data_dir.join(ADMIN_KEY_FILE),
    };
    let shown = path.display();
    let read = match settings.key {
        // What is named may be a pipe of the caller's shell.
        KeySource::File(_) => std::fs::read_to_string(&path),
        _ => plain_file::read_text(&path, KEY_FILE_BYTES_MAX),
    };
    let text = read.map_err(|error| {
        Failure::not_allowed(format!(
            "no API key: cannot read {shown} ({error}); name a file with --key-file, set \
             BELLWETHER_KEY, or sign in with `bellwether login`"
        ))
    })?;
    if let Some(mode) = Permissions::at(&path).filter(|mode| mode.lets_others_in()) {
        tracing::warn!("other users may read {shown} (mode {mode}): `chmod 600` it");
    }
    match text.trim() {
        "" => Err(Failure::not_allowed(format!(
            "no API key: {shown} is empty"
        ))),
        key => Ok(key.to_owned()),
    }
}
