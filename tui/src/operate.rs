//! `bellwether` without a command: the console, on a running service or on one in this process.

#[cfg(feature = "embedded")]
mod own_service;

use std::io::{self, Write};

use bellwether_tui::{Key, Options};

use crate::{
    cli::Size,
    config::Settings,
    failure::{Failure, sentence},
    key, tls,
};

/// A screen to draw once instead of opening the console.
pub(crate) type Frame = Option<(String, Size)>;

/// Opens the console and returns when the operator leaves, or draws one frame.
///
/// # Errors
/// When there is no key, no terminal, or the service in this process does not start.
pub(crate) async fn run(settings: &Settings, frame: Frame) -> Result<(), Failure> {
    match &settings.connect {
        Some(address) => open(settings, address, frame).await,
        #[cfg(feature = "embedded")]
        None => own_service::open(settings, frame).await,
        #[cfg(not(feature = "embedded"))]
        None => Err(Failure::new(
            "this console was built without the service (feature `embedded`); name one with \
             --connect",
        )),
    }
}

/// Opens the console on the service at that address.
async fn open(settings: &Settings, address: &str, frame: Frame) -> Result<(), Failure> {
    let failed = |error: bellwether_tui::Error| Failure::new(sentence(&error));
    let mut options = Options::new(address).map_err(failed)?;
    options.endpoint = tls::secure(options.endpoint, settings)?;
    options.key = Some(Key::new(&key::read(settings)?).map_err(failed)?);
    options.read_only = settings.read_only;
    options.theme = settings.theme;
    options.depth = settings.depth;
    options.background = settings.background;
    options.keys = settings.keys.clone();
    options.editor.clone_from(&settings.editor);
    match frame {
        None => bellwether_tui::run(options).await.map_err(failed),
        Some((screen, Size { columns, rows })) => {
            let drawn = bellwether_tui::snapshot(options, &screen, columns, rows).await;
            let drawn = drawn.map_err(|unknown| Failure::new(format!("--snapshot: {unknown}")))?;
            io::stdout()
                .write_all(drawn.as_bytes())
                .map_err(|error| Failure::new(format!("cannot write the frame: {error}")))
        }
    }
}
