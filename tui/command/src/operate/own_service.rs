//! The console with a service in this process.

use std::{
    io::{self, Write},
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Frame;
use crate::{
    config::Settings,
    embedded::{Parts, Service},
    failure::Failure,
    log,
};

/// Log file of the service, in the data folder; the console occupies the terminal.
const LOG_FILE: &str = "console.log";
/// Time limit for draining the service after the operator has left the console. Interrupted work
/// resumes at the next start, as after a crash.
const DRAIN_MAX: Duration = Duration::from_secs(5);
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Starts a service, opens the console, and drains the service when the operator leaves.
pub(super) async fn open_with_own_service(
    settings: &Settings,
    frame: Option<Frame>,
) -> Result<(), Failure> {
    if frame.is_some() {
        let folder = settings.data_dir.display();
        return Err(Failure::unreachable(format!(
            "no service runs on the data folder {folder}; start one with `bellwether serve`, or \
             name one with --connect"
        )));
    }
    let service = Box::pin(bind_service(settings)).await?;
    log::log_to_file(settings, &settings.data_dir.join(LOG_FILE))?;
    serve_during(settings, service, async |address| {
        super::open_own_console(settings, address).await
    })
    .await
}

/// Serves while the future returned by `work` runs, and then drains the service. `work` receives
/// the gRPC address.
///
/// # Errors
/// Returns the error of `work`, or else of the service.
pub(crate) async fn serve_during(
    settings: &Settings,
    service: Service,
    work: impl AsyncFnOnce(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let address = service
        .addresses()
        .grpc
        .expect("the backend is one of the parts");
    let shutdown = CancellationToken::new();
    let mut serving = JoinSet::new();
    let (own, stop) = (settings.clone(), shutdown.clone());
    serving.spawn(async move { Box::pin(service.serve(&own, Parts::Both, stop)).await });

    let done = work(&address).await;

    shutdown.cancel();
    let drained = tokio::time::timeout(DRAIN_MAX, serving.join_next()).await;
    done?;
    match drained {
        Ok(Some(Ok(served))) => served,
        Ok(Some(Err(panic))) => Err(Failure::new(format!("the service crashed: {panic}"))),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Binds the default addresses, or free ports if another program uses them.
async fn bind_service(settings: &Settings) -> Result<Service, Failure> {
    let mut settings = settings.clone();
    let mut moved = false;
    for (listen, default) in [
        (&mut settings.grpc_listen, Settings::GRPC_LISTEN),
        (&mut settings.rest_listen, Settings::REST_LISTEN),
    ] {
        if listen.is_none() && is_in_use(default).await {
            *listen = Some(ANY_PORT);
            moved = true;
        }
    }
    let service = Service::bind(&settings, Parts::Both).await?;
    if moved {
        let ready = service.addresses();
        let (rest, grpc) = (
            ready.rest.unwrap_or_default(),
            ready.grpc.unwrap_or_default(),
        );
        // The operator can read the message after closing the console.
        let message =
            format!("bellwether: default ports are in use; REST is on {rest}, gRPC on {grpc}");
        drop(writeln!(io::stderr(), "{message}"));
    }
    Ok(service)
}

async fn is_in_use(address: SocketAddr) -> bool {
    tokio::net::TcpListener::bind(address)
        .await
        .is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}
