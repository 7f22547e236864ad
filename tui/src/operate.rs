//! `bellwether` without a command: the console, on a running service or on one in this process.

#[cfg(feature = "embedded")]
mod own_service;

use bellwether_tui::{Key, Options};

use crate::{config::Settings, failure::Failure, key};

/// Opens the console and returns when the operator leaves.
///
/// # Errors
/// When there is no key, no terminal, or the service in this process does not start.
pub(crate) async fn run(settings: &Settings) -> Result<(), Failure> {
    match &settings.connect {
        Some(address) => open(settings, address).await,
        #[cfg(feature = "embedded")]
        None => own_service::open(settings).await,
        #[cfg(not(feature = "embedded"))]
        None => Err(Failure::new(
            "this console was built without the service (feature `embedded`); name one with \
             --connect",
        )),
    }
}

/// Opens the console on the service at that address.
async fn open(settings: &Settings, address: &str) -> Result<(), Failure> {
    let failed = |error: bellwether_tui::Error| Failure::new(error.to_string());
    let mut options = Options::new(address).map_err(failed)?;
    options.key = Some(Key::new(&key::read(settings)?).map_err(failed)?);
    options.read_only = settings.read_only;
    options.theme = settings.theme;
    options.editor.clone_from(&settings.editor);
    bellwether_tui::run(options).await.map_err(failed)
}
