//! `bellwether serve`, `backend` and `gateway`: parts of the service without a console.

use std::io::{self, Write};

use tokio_util::sync::CancellationToken;

use crate::{
    config::Settings,
    embedded::{Parts, Service},
    failure::Failure,
    log,
    ready::Addresses,
    systemd::Notifier,
    version,
};

/// Runs parts of the service until the process is stopped, then drains them.
///
/// Prints one line on standard output when the parts are ready.
pub(crate) async fn run_serve(settings: &Settings, parts: Parts) -> Result<(), Failure> {
    log::log_to_stderr(settings);
    let shutdown = CancellationToken::new();
    let mut signals = Signals::install()?;
    let notifier = Notifier::from_environment();
    let service = Service::bind(settings, parts).await?;
    let (ready, renewal) = (service.addresses(), service.renewal());
    let mut serving = Box::pin(service.serve(settings, parts, shutdown.clone()));
    tracing::info!(
        version = version::long_version(),
        data_dir = %settings.data_dir.display(),
        rest = ready.rest.as_deref(),
        grpc = ready.grpc.as_deref(),
        metrics = ready.metrics.as_deref(),
        "serving"
    );
    // The listeners are already bound, so a client that reads the line and connects immediately is
    // served.
    writeln!(io::stdout(), "{}", ready.ready_line())
        .map_err(|error| Failure::new(format!("failed to write the ready line: {error}")))?;
    Notifier::notify_ready();
    let ended = loop {
        tokio::select! {
            ended = &mut serving => break Some(ended),
            () = notifier.next_watchdog_ping() => Notifier::watchdog_ping(),
            signal = signals.next() => match signal {
                SignalRequest::Reload => {
                    Notifier::notify_reloading();
                    tracing::info!("reloading certificates");
                    renewal.notify_one();
                    Notifier::notify_ready();
                }
                SignalRequest::End => break None,
            }
        }
    };
    Addresses::remove_shared_note(settings);
    if let Some(ended) = ended {
        return ended;
    }
    tracing::info!("draining");
    Notifier::notify_stopping();
    shutdown.cancel();
    serving.await
}

/// Waits for a signal to stop.
///
/// # Errors
/// Returns an error if signals cannot be received.
pub(crate) async fn wait_for_stop_signal() -> Result<(), Failure> {
    let mut signals = Signals::install()?;
    while let SignalRequest::Reload = signals.next().await {}
    Ok(())
}

enum SignalRequest {
    /// SIGHUP: reload renewed files.
    Reload,
    End,
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn install() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};

        let listen = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(format!("failed to register signal handlers: {error}"))
            })
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.interrupt.recv() => SignalRequest::End,
            _ = self.terminate.recv() => SignalRequest::End,
            _ = self.hangup.recv() => SignalRequest::Reload,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the signature of the Unix variant"
    )]
    fn install() -> Result<Self, Failure> {
        Ok(Self)
    }

    async fn next(&mut self) -> SignalRequest {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        SignalRequest::End
    }
}
