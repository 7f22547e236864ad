//! The API key that the console and `client` use: where it is, and what to say when it is not.

use std::path::PathBuf;

use crate::{
    config::{KeySource, Settings},
    failure::Failure,
};

/// The file in the data folder that a service writes its first key to.
pub(crate) const ADMIN_KEY_FILE: &str = "admin.key";

/// Reads the API key from where the settings say it is.
///
/// # Errors
/// When the file cannot be read or is empty.
pub(crate) fn read(settings: &Settings) -> Result<String, Failure> {
    let path: PathBuf = match &settings.key {
        KeySource::Given(key) => return Ok(key.clone()),
        KeySource::File(path) => path.clone(),
        KeySource::DataDir => settings.data_dir.join(ADMIN_KEY_FILE),
    };
    let shown = path.display();
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Failure::new(format!(
            "no API key: cannot read {shown} ({error}); name a file with --key-file, or set \
             BELLWETHER_KEY"
        ))
    })?;
    match text.trim() {
        "" => Err(Failure::new(format!("no API key: {shown} is empty"))),
        key => Ok(key.to_owned()),
    }
}
