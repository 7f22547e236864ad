//! The service as a whole: opened, bound, served and drained.

mod assemble;
mod deadline;
mod decoding;
mod direct;
mod front;
mod listener;
mod panics;
mod work;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bellwether_proto::listen::Listener;
use http::{HeaderName, Method};
use rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_web::GrpcWebLayer;
use tower::Layer;
use tower_http::cors::{Any, CorsLayer};

use crate::{
    clock::{Clock, SystemClock},
    config::Config,
    error::Error,
    store::open::OpenError,
};
pub use direct::Direct;
use front::Front;
use work::Work;

/// How long a browser may remember that it may call.
const CORS_TIME: Duration = Duration::from_secs(3600);

/// Why the service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The address could not be taken.
    #[error("the gRPC address {addr} cannot be taken: {source}")]
    Address {
        /// The address.
        addr: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// What is stored could not be read, or not be prepared.
    #[error("the service could not be prepared: {0}")]
    Prepare(#[from] Error),
}

/// A part of the service ended while it was needed.
#[derive(Debug, thiserror::Error)]
#[error("the service stopped because its {part} ended")]
pub struct ServeError {
    part: &'static str,
}

/// The service: its store is open and its address is taken.
#[derive(Debug)]
pub struct Backend {
    listener: Listener,
    routes: Routes,
    direct: Direct,
    front: Front,
    work: Work,
    /// Ends streams that would go on for ever.
    streams: CancellationToken,
    tls: Option<Arc<ServerConfig>>,
}

impl Backend {
    /// Opens the store and takes the address.
    ///
    /// # Errors
    /// A sentence for people that names what stands in the way; nothing was changed then, except
    /// that a new data folder may have been made.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        Self::bind_at(config, Arc::new(SystemClock)).await
    }

    /// As [`Backend::bind`], with a clock of the caller's.
    ///
    /// # Errors
    /// Those of [`Backend::bind`].
    pub async fn bind_at(config: Config, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        let addr = config.grpc_listen;
        let listener = Listener::bind(addr)
            .await
            .map_err(|source| StartError::Address { addr, source })?;
        let streams = CancellationToken::new();
        let assembled =
            assemble::assemble(&config, clock, listener.addr(), streams.clone()).await?;
        Ok(Self {
            listener,
            routes: assembled.routes,
            direct: assembled.direct,
            front: assembled.front,
            work: assembled.work,
            streams,
            tls: None,
        })
    }

    /// Serves gRPC over TLS alone. What the configuration offers to agree on has to be `h2` and
    /// `http/1.1`, which carries gRPC-Web.
    #[must_use]
    pub fn with_tls(mut self, tls: Arc<ServerConfig>) -> Self {
        self.tls = Some(tls);
        self
    }

    /// The address that gRPC is served at.
    pub fn grpc_addr(&self) -> SocketAddr {
        self.listener.addr()
    }

    /// The services without a socket, behind the same checks. They answer while
    /// [`Backend::serve`] runs.
    pub fn routes(&self) -> Routes {
        self.routes.clone()
    }

    /// Intake without a socket and past HTTP, behind the same checks. It answers while
    /// [`Backend::serve`] runs.
    pub fn direct(&self) -> Direct {
        self.direct.clone()
    }

    /// Serves until `shutdown`; then lets calls under way end, records what is being delivered,
    /// and returns.
    ///
    /// # Errors
    /// When a part of the service ended by itself; everything accepted is on disk all the same.
    pub async fn serve(self, shutdown: CancellationToken) -> Result<(), ServeError> {
        let (closing, stopping) = (CancellationToken::new(), CancellationToken::new());
        let mut work = self.work.start(&stopping);
        let service = listener::Calls(cors().layer(GrpcWebLayer::new().layer(self.front)));
        let limits = listener::LIMITS;
        let serving = self
            .listener
            .serve(service, limits, self.tls, closing.clone());
        let mut serving = std::pin::pin!(serving);
        let ended = tokio::select! {
            () = serving.as_mut() => Some("listener"),
            part = work.failed() => Some(part),
            () = shutdown.cancelled() => None,
        };
        self.streams.cancel();
        closing.cancel();
        if ended != Some("listener") {
            serving.await;
        }
        stopping.cancel();
        work.stop().await;
        match ended {
            None => Ok(()),
            Some(part) => Err(ServeError { part }),
        }
    }
}

/// Keys travel in headers and never in cookies, so any page may call: it has to bring a key.
fn cors() -> CorsLayer {
    let exposed = [
        "grpc-status",
        "grpc-message",
        "grpc-status-details-bin",
        "x-request-id",
        "ratelimit",
        "ratelimit-policy",
        "idempotent-replayed",
    ];
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::POST])
        .allow_headers(Any)
        .expose_headers(exposed.map(HeaderName::from_static))
        .max_age(CORS_TIME)
}
