//! `bellwether serve`, `backend` and `gateway`: parts of the service without a console.

use std::io::{self, Write};

use tokio_util::sync::CancellationToken;

use crate::{
    config::Settings,
    embedded::{Parts, Service},
    failure::Failure,
    log,
};

/// Runs parts of the service until the process is told to end, then drains them.
///
/// Prints one line on standard output when the parts answer.
///
/// # Errors
/// When a part does not start, or ends by itself.
pub(crate) async fn run(settings: &Settings, parts: Parts) -> Result<(), Failure> {
    log::to_standard_error(settings);
    let shutdown = CancellationToken::new();
    let asked = asked_to_end()?;
    let service = Service::bind(settings, parts).await?;
    let ready = service.ready();
    let mut serving = std::pin::pin!(service.serve(shutdown.clone()));
    // The listeners are bound, and their loops begin with the first poll below: whoever reads the
    // line and connects at once is answered.
    writeln!(io::stdout(), "{}", ready.line())
        .map_err(|error| Failure::new(format!("cannot write the ready line: {error}")))?;
    tokio::select! {
        ended = &mut serving => ended,
        () = asked => {
            tracing::info!("draining");
            shutdown.cancel();
            serving.await
        }
    }
}

/// Waits for Ctrl-C, or for the signal by which a process is asked to end.
#[cfg(unix)]
fn asked_to_end() -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};

    let listen = |kind| {
        signal(kind).map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))
    };
    let (mut interrupt, mut terminate) = (
        listen(SignalKind::interrupt())?,
        listen(SignalKind::terminate())?,
    );
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
fn asked_to_end() -> Result<impl Future<Output = ()>, Failure> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
