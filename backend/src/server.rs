//! The service as a whole: opened, bound, served and drained.

mod assemble;
mod counted;
mod deadline;
mod decoding;
mod direct;
mod exposition;
mod front;
mod init;
mod listener;
mod memory;
mod panics;
mod work;

use futures_util::future::BoxFuture;
use std::{net::SocketAddr, sync::Arc};

use bellwether_process::{
    listen::{Cors, Hosts, Listener, Tls},
    metrics::{Page, Source},
};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_web::GrpcWebLayer;
use tower::Layer;

use crate::{
    clock::{Clock, SystemClock},
    config::Config,
    error::Error,
    ops::certificate::CertificateWatch,
    store::{Engine, open::OpenError},
};
pub use direct::Direct;
use exposition::Exposition;
use front::Front;
pub use init::{Made, create_client, init_store};
use work::Work;

/// What pages of other origins may send and read.
const METHODS: &str = "POST";
const TAKEN: &str = "authorization, zenoss-api-key, content-type, grpc-timeout, x-grpc-web, \
                     x-user-agent, idempotency-key, x-request-id, traceparent, tracestate";
const SHOWN: &str = "grpc-status, grpc-message, grpc-status-details-bin, x-request-id, ratelimit, \
                     ratelimit-policy, idempotent-replayed";

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
    /// The threads for searches could not be started.
    #[error("the threads for searches cannot be started: {0}")]
    Threads(std::io::Error),
    /// What is stored could not be read, or not be prepared.
    #[error("the service could not be prepared: {0}")]
    Prepare(#[from] Error),
}

/// Why the service ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A part of it ended while it was needed.
    #[error("the service stopped because its {part} ended")]
    Part {
        /// Which.
        part: &'static str,
    },
    /// The store has gone back to an earlier state: the service must start again from that.
    #[error("the service stopped because the database has lost commits: {why}")]
    StoreWentBack {
        /// What shows it.
        why: String,
    },
}

/// The service: its store is open and its address is taken.
#[derive(Debug)]
pub struct Backend {
    listener: Listener,
    routes: Routes,
    direct: Direct,
    front: Front,
    cors: Cors,
    hosts: Hosts,
    work: Work,
    /// Ends streams that would continue for ever.
    streams: CancellationToken,
    tls: Option<Tls>,
    certificate: CertificateWatch,
    metrics: Arc<Exposition>,
    metrics_page: Option<Arc<Page>>,
    engine: Arc<dyn Engine>,
}

impl Backend {
    /// Opens the store and takes the address.
    ///
    /// # Errors
    /// A sentence for people that names the obstacle; nothing was changed then, except that a new
    /// data folder may have been made.
    pub fn bind(config: Config) -> BoxFuture<'static, Result<Self, StartError>> {
        Self::bind_at(config, Arc::new(SystemClock))
    }

    /// As [`Backend::bind`], with a clock of the caller's.
    ///
    /// # Errors
    /// Those of [`Backend::bind`].
    pub fn bind_at(
        config: Config,
        clock: Arc<dyn Clock>,
    ) -> BoxFuture<'static, Result<Self, StartError>> {
        Box::pin(async move {
            memory::write_no_core_files();
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
                cors: Cors::new(config.origins.clone(), METHODS, TAKEN, SHOWN),
                hosts: config.hosts.clone(),
                work: assembled.work,
                certificate: assembled.certificate,
                streams,
                tls: None,
                metrics: assembled.metrics,
                metrics_page: None,
                engine: assembled.engine,
            })
        })
    }

    /// Serves gRPC over TLS alone. What the configuration offers to agree on has to be `h2` and
    /// `http/1.1`, which carries gRPC-Web. Events of the service report when the certificate ends
    /// soon.
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// What the service counts, and how much there is of what.
    pub fn metrics(&self) -> Arc<dyn Source> {
        Arc::clone(&self.metrics) as _
    }

    /// Shows this page at `/metrics` beside gRPC.
    #[must_use]
    pub fn with_metrics(mut self, page: Option<Arc<Page>>) -> Self {
        self.metrics_page = page;
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
    /// When a part of the service ended automatically; everything accepted is on disk anyway.
    pub fn serve(self, shutdown: CancellationToken) -> BoxFuture<'static, Result<(), ServeError>> {
        Box::pin(async move {
            let (closing, stopping) = (CancellationToken::new(), CancellationToken::new());
            let (mut work, certificate) = (self.work, self.certificate);
            if let Some(tls) = self.tls.clone() {
                work.add("certificate watch", |stop| certificate.run(tls, stop));
            }
            let mut work = work.start(&stopping);
            let service = listener::Calls {
                services: GrpcWebLayer::new().layer(self.front),
                cors: Arc::new(self.cors),
                hosts: Arc::new(self.hosts),
                metrics: self.metrics_page,
            };
            let limits = listener::LIMITS;
            let serving = self
                .listener
                .serve(service, limits, self.tls, closing.clone());
            let mut serving = std::pin::pin!(serving);
            let mut went_back = None;
            let ended = tokio::select! {
                () = serving.as_mut() => Some("listener"),
                part = work.failed() => Some(part),
                why = self.engine.cluster().gone_back() => {
                    tracing::error!(%why, "the database has lost commits");
                    went_back = Some(why);
                    None
                }
                () = shutdown.cancelled() => None,
            };
            self.streams.cancel();
            closing.cancel();
            if ended != Some("listener") {
                serving.await;
            }
            stopping.cancel();
            work.stop().await;
            if let Err(error) = self.engine.close().await {
                tracing::warn!(%error, "the store was not closed; the next start finishes it");
            }
            match (ended, went_back) {
                (_, Some(why)) => Err(ServeError::StoreWentBack { why }),
                (Some(part), None) => Err(ServeError::Part { part }),
                (None, None) => Ok(()),
            }
        })
    }
}
