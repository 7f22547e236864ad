//! `bellwether` without a command: the console of a running service, or of one in this process.

pub(crate) mod own_service;
mod sending;

use std::{
    io::{self, IsTerminal, Write as _},
    sync::Arc,
};

use bellwether_tui::{Depth, Key, ListError, Options, Renewal, ServiceStatus, Step};

use crate::{
    cli::Size,
    config::Settings,
    failure::{Failure, to_sentence},
    key, output,
    ready::{self, Addresses},
    sign_ins, tls,
};

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) screen: String,
    pub(crate) size: Size,
    pub(crate) json: bool,
    pub(crate) svg: bool,
    pub(crate) press: Option<String>,
}

/// Opens the console until the operator leaves, or draws one frame. If the operator switches to
/// another context, returns that context.
pub(crate) async fn run(
    settings: &Settings,
    frame: Option<Frame>,
) -> Result<Option<String>, Failure> {
    let running = || match frame {
        Some(_) => Addresses::read_note(settings)?.grpc,
        None => ready::running_service(settings),
    };
    let Some(address) = settings.connect.clone().or_else(running) else {
        let own = Box::pin(own_service::open_with_own_service(settings, frame));
        return own.await.map(|()| None);
    };
    open_console(settings, &address, true, frame).await
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature that `map_err` requires"
)]
fn startup_failure(error: bellwether_tui::Error) -> Failure {
    Failure::from_error(&error)
}

/// Returns the connection options for the service at this address; without a key if a certificate
/// authenticates the caller.
pub(crate) fn connect_options(
    settings: &Settings,
    address: &str,
    key: Option<&str>,
) -> Result<Options, Failure> {
    let mut options = Options::new(address).map_err(startup_failure)?;
    options.endpoint = tls::secure_endpoint(options.endpoint, settings)?;
    options.key = key.map(Key::new).transpose().map_err(startup_failure)?;
    Ok(options)
}

/// Re-reads the key from its source, so that an open console picks up a renewed or new sign-in.
fn token_renewal(settings: &Settings, address: &str) -> Renewal {
    let found = Arc::new((settings.clone(), address.to_owned()));
    Renewal::new(move || {
        let found = Arc::clone(&found);
        Box::pin(async move {
            let (settings, address) = &*found;
            let key = key::read_key(settings, address).await;
            let key = key.map_err(|failure| failure.to_string())?;
            let key = key.as_deref().map(Key::new).transpose();
            key.map_err(|error| to_sentence(&error))
        })
    })
}

/// Opens the console for the service in this process.
///
/// # Errors
/// Returns an error if there is no terminal.
pub(crate) async fn open_own_console(settings: &Settings, address: &str) -> Result<(), Failure> {
    open_console(settings, address, false, None).await.map(drop)
}

/// Opens the console for the service at this address. `far` is set if the service runs in another
/// process.
async fn open_console(
    settings: &Settings,
    address: &str,
    far: bool,
    frame: Option<Frame>,
) -> Result<Option<String>, Failure> {
    let signed_in = far && sign_ins::has_stored_sign_in(settings, address);
    let key = if far {
        key::read_key(settings, address).await?
    } else {
        Some(key::read_api_key(settings)?)
    };
    let mut options = connect_options(settings, address, key.as_deref())?;
    options.keep_alive = far;
    if far {
        options.renewal = Some(token_renewal(settings, address));
        if let Some(message) = tls::key_permission_warning(settings) {
            // The operator can read the message after closing the console.
            drop(writeln!(io::stderr(), "bellwether: {message}"));
        }
        let others = settings.contexts.iter();
        options.contexts = others.map(|it| it.name.clone()).collect();
    }
    options.context = settings
        .context
        .as_ref()
        .map(|context| bellwether_tui::Context {
            name: context.name.clone(),
            colour: context.colour,
        });
    options.views.clone_from(&settings.views);
    options.read_only = settings.read_only;
    options.shell = sending::shell_settings(settings, address, signed_in);
    options.mouse = settings.mouse;
    options.escape_delay = settings.escape_delay;
    options.kitty_keys = settings.kitty_keys;
    options.wall = settings.wall;
    options.theme = settings.theme;
    options.depth = settings.depth;
    options.is_ascii = settings.is_ascii;
    options.background = settings.background;
    options.keys = settings.keys.clone();
    options.notices = settings.notices.clone();
    options.opener.clone_from(&settings.opener);
    options.editor.clone_from(&settings.editor);
    let plain = settings.plain || !io::stdout().is_terminal();
    match frame {
        None if plain => {
            let status = bellwether_tui::run_plain(options)
                .await
                .map_err(startup_failure)?;
            // On a terminal, the exit code is not needed: the operator has seen the status on the
            // screen.
            if io::stdin().is_terminal() {
                return Ok(None);
            }
            exit_status(status)?;
        }
        None => return bellwether_tui::run(options).await.map_err(startup_failure),
        Some(frame) if frame.json => print_list(options, &frame.screen).await?,
        Some(frame) => draw_frame(options, frame).await?,
    }
    Ok(None)
}

/// Draws one frame. Returns an error if the frame shows no data from the service.
async fn draw_frame(mut options: Options, frame: Frame) -> Result<(), Failure> {
    // A frame is UTF-8 text, whatever the terminal supports.
    options.is_ascii = false;
    if frame.svg {
        // An image has full colour depth, whatever the terminal supports.
        options.depth = Depth::Full;
    }
    let Size { columns, rows } = frame.size;
    let drawn = match &frame.press {
        None => bellwether_tui::snapshot(options, &frame.screen, columns, rows).await,
        Some(keys) => {
            let steps = Step::read(keys);
            let steps = steps.map_err(|unknown| Failure::new(format!("--press: {unknown}")))?;
            bellwether_tui::record_steps(options, &frame.screen, &steps, columns, rows).await
        }
    };
    let drawn = drawn.map_err(|unknown| Failure::new(format!("--snapshot: {unknown}")))?;
    output::write_output(if frame.svg {
        &drawn.picture
    } else {
        &drawn.frame
    })?;
    exit_status(drawn.status)
}

async fn print_list(options: Options, screen: &str) -> Result<(), Failure> {
    let json = bellwether_tui::read_list_json(options, screen).await;
    let json = json.map_err(|unlisted| match unlisted {
        ListError::Unknown { .. } => Failure::new(format!("--json: {unlisted}")),
        ListError::Unreachable(sentence) => Failure::unreachable(sentence),
        ListError::NotAllowed(sentence) => Failure::permission_denied(sentence),
        ListError::Failed(sentence) => Failure::new(sentence),
    })?;
    let json = output::escape_controls(&json);
    output::write_output(&format!("{json}\n"))
}

fn exit_status(status: ServiceStatus) -> Result<(), Failure> {
    match status {
        ServiceStatus::Up => Ok(()),
        ServiceStatus::Unreachable(sentence) => Err(Failure::unreachable(sentence)),
        ServiceStatus::NotAllowed(sentence) => Err(Failure::permission_denied(sentence)),
    }
}
