//! `bellwether secrets`: rotates the encryption keys of a store.

use std::io::Write;

use bellwether_backend::store::open::rotate_key;

use crate::{cli::SecretsCommand, config::Settings, failure::Failure};

pub(crate) async fn run(
    command: SecretsCommand,
    settings: &Settings,
    mut out: impl Write,
) -> Result<(), Failure> {
    let SecretsCommand::Rotate { forget } = command;
    let config = settings.store_config()?;
    let rotated = rotate_key(&config.location(), forget).await;
    let rotated = rotated.map_err(|error| Failure::from_error(&error))?;
    let file = match &config.database {
        Some(database) => database.secret_key_file.clone(),
        None => config.data_dir.join("secret.key"),
    };
    let file = file.display();
    let older = if forget {
        "the older keys were removed; backups made with them require the old file"
    } else {
        "it still contains the older keys, for backups made with them"
    };
    let number = rotated.number;
    writeln!(
        out,
        "everything is encrypted with key {number} of {file}; {older}"
    )
    .map_err(|error| Failure::new(format!("failed to write the output: {error}")))
}
