//! The service: opening, binding, serving and draining.

mod assemble;
mod counted;
mod deadline;
mod decoding;
mod direct;
mod exposition;
mod front;
mod health;
mod init;
mod listener;
mod memory;
mod panics;
mod reflection;
mod work;

use futures_util::future::BoxFuture;
use std::{net::SocketAddr, sync::Arc};

use bellwether_process::{
    listen::{Cors, Hosts, Listener, Tls},
    metrics::{MetricsPage, MetricsSource},
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
pub use init::{CreatedStore, create_client, init_store};
use work::TaskSet;

/// CORS: methods and headers available to pages of other origins.
const METHODS: &str = "POST";
const ACCEPTED_HEADERS: &str = "authorization, zenoss-api-key, content-type, grpc-timeout, x-grpc-web, \
                     x-user-agent, idempotency-key, x-request-id, traceparent, tracestate";
const SHOWN: &str = "grpc-status, grpc-message, grpc-status-details-bin, x-request-id, ratelimit, \
                     ratelimit-policy, idempotent-replayed";

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error("cannot listen on the gRPC address {addr}: {source}")]
    Address {
        addr: SocketAddr,
        source: std::io::Error,
    },
    #[error("cannot start search threads: {0}")]
    Threads(std::io::Error),
    #[error("cannot start the service: {0}")]
    Prepare(#[from] Error),
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the service stopped because its {part} ended unexpectedly")]
    Part { part: &'static str },
    /// The store reverted to an earlier state, so the service must be restarted.
    #[error("the service stopped because the database has lost commits: {why}")]
    StoreWentBack { why: String },
}

/// The service, with an open store and a bound address.
#[derive(Debug)]
pub struct Backend {
    listener: Listener,
    routes: Routes,
    direct: Direct,
    front: Front,
    cors: Cors,
    hosts: Hosts,
    work: TaskSet,
    /// Ends streams that would run forever.
    streams: CancellationToken,
    tls: Option<Tls>,
    certificate: CertificateWatch,
    metrics: Arc<Exposition>,
    metrics_page: Option<Arc<MetricsPage>>,
    engine: Arc<dyn Engine>,
}

impl Backend {
    /// Opens the store and binds the address.
    ///
    /// # Errors
    /// Returns an error whose message explains the problem to an operator. Nothing was changed,
    /// except that a new data folder may have been created.
    pub fn bind(config: Config) -> BoxFuture<'static, Result<Self, StartError>> {
        Self::bind_with_clock(config, Arc::new(SystemClock))
    }

    /// Opens and binds like [`Backend::bind`] with the caller's clock.
    pub fn bind_with_clock(
        config: Config,
        clock: Arc<dyn Clock>,
    ) -> BoxFuture<'static, Result<Self, StartError>> {
        Box::pin(async move {
            memory::disable_core_files();
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
                cors: Cors::new(config.origins.clone(), METHODS, ACCEPTED_HEADERS, SHOWN),
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

    /// Serves only TLS. The configuration must offer the ALPN protocols `h2` and `http/1.1`;
    /// gRPC-Web uses the latter. The service creates events before the certificate expires.
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    pub fn metrics(&self) -> Arc<dyn MetricsSource> {
        Arc::clone(&self.metrics) as _
    }

    /// Serves this page at `/metrics` on the gRPC address.
    #[must_use]
    pub fn with_metrics(mut self, page: Option<Arc<MetricsPage>>) -> Self {
        self.metrics_page = page;
        self
    }

    pub fn grpc_addr(&self) -> SocketAddr {
        self.listener.addr()
    }

    /// Returns the services without a socket, with the same checks. They work while
    /// [`Backend::serve`] runs.
    pub fn routes(&self) -> Routes {
        self.routes.clone()
    }

    /// Returns intake without a socket and HTTP, with the same checks. It works while
    /// [`Backend::serve`] runs.
    pub fn direct_calls(&self) -> Direct {
        self.direct.clone()
    }

    /// Serves until `shutdown` is cancelled, then waits for calls in flight, records deliveries in
    /// progress, and returns.
    ///
    /// # Errors
    /// Returns an error if a part of the service stopped unexpectedly. All accepted events are on
    /// disk.
    pub fn serve(self, shutdown: CancellationToken) -> BoxFuture<'static, Result<(), ServeError>> {
        Box::pin(async move {
            let (closing, stopping) = (CancellationToken::new(), CancellationToken::new());
            let (mut work, certificate) = (self.work, self.certificate);
            if let Some(tls) = self.tls.clone() {
                work.add("certificate watch", |stop| certificate.run(tls, stop));
            }
            let mut work = work.start(&stopping);
            let service = Arc::new(listener::CallServer {
                services: GrpcWebLayer::new().layer(self.front),
                cors: Arc::new(self.cors),
                hosts: Arc::new(self.hosts),
                metrics: self.metrics_page,
            });
            let limits = listener::LIMITS;
            let serving = self
                .listener
                .serve(service, limits, self.tls, closing.clone());
            let mut serving = std::pin::pin!(serving);
            let mut went_back = None;
            let ended = tokio::select! {
                () = serving.as_mut() => Some("listener"),
                part = work.failed_task() => Some(part),
                why = self.engine.cluster().wait_until_reverted() => {
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
                tracing::warn!(%error, "failed to close the store; the next start recovers");
            }
            match (ended, went_back) {
                (_, Some(why)) => Err(ServeError::StoreWentBack { why }),
                (Some(part), None) => Err(ServeError::Part { part }),
                (None, None) => Ok(()),
            }
        })
    }
}
