//! The only place where backend and gateway are combined in one process.

use std::{pin::Pin, sync::Arc, time::Duration};

use bellwether_backend::{
    Backend, Config, ServeError,
    config::StoreLosses,
    server::{self, StartError},
    store::open::OpenError,
    trace::{self, TraceExport},
};
use bellwether_gateway::{Direct, Gateway, UnaryResult, Upstream};
use bellwether_process::metrics::{MetricsPage, MetricsServer, MetricsSource, ProcessMetrics};
use prost::bytes::Bytes;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tonic::{Status, metadata::MetadataMap};

use crate::{
    config::Settings,
    failure::Failure,
    ready::Addresses,
    tls::{self, ServerTls},
    version,
};

/// Time limit for restarting the service after the database has lost commits.
const AGAIN_TIME_MAX: Duration = Duration::from_secs(120);
const AGAIN_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    Both,
    Backend,
    Gateway,
}

pub(crate) struct Service {
    backend: Option<Backend>,
    gateway: Option<Gateway>,
    metrics: Option<MetricsServer>,
    tls: Option<ServerTls>,
    renewal: Arc<Notify>,
    traces: Option<TraceExport>,
}

#[derive(Debug)]
struct DirectCalls(server::Direct);

impl Direct for DirectCalls {
    fn handles_method(&self, path: &str) -> bool {
        path == server::Direct::METHOD
    }

    fn call(
        &self,
        metadata: MetadataMap,
        message: Bytes,
    ) -> Pin<Box<dyn Future<Output = UnaryResult> + Send + '_>> {
        self.0.call(metadata, message)
    }

    fn identify(
        &self,
        metadata: MetadataMap,
    ) -> Pin<Box<dyn Future<Output = Result<(), Status>> + Send + '_>> {
        self.0.identify(metadata)
    }
}

impl Service {
    pub(crate) async fn bind(settings: &Settings, parts: Parts) -> Result<Self, Failure> {
        let traces = settings.traces().filter(|_| parts != Parts::Gateway);
        let traces = traces.map(|config| trace::start_export(&config, version::long_version()));
        let traces = traces.transpose();
        let traces = traces.map_err(|error| Failure::usage_error(error.to_string()))?;
        let service = Self::assemble(settings, parts, None).await?;
        Ok(Self { traces, ..service })
    }

    async fn assemble(
        settings: &Settings,
        parts: Parts,
        losses: Option<StoreLosses>,
    ) -> Result<Self, Failure> {
        let tls = ServerTls::load(settings)?;
        let backend = match parts {
            Parts::Gateway => None,
            Parts::Both | Parts::Backend => {
                let config = Config {
                    losses,
                    ..settings.backend_config()?
                };
                let bound = Backend::bind(config).await;
                Some(bound.map_err(|error| start_failure(&error, settings))?)
            }
        };
        if parts == Parts::Gateway
            && let Ok(address) = settings.backend.parse()
        {
            tls::check_plaintext("backend", &address, settings)?;
        }
        let upstream = match (&backend, parts) {
            (_, Parts::Backend) => None,
            (Some(backend), _) => {
                let direct = Arc::new(DirectCalls(backend.direct_calls()));
                Some(Upstream::in_process_with_direct_calls(
                    backend.routes(),
                    direct,
                ))
            }
            (None, _) => {
                let (tls, verifier) = tls::client_config(settings)?;
                let upstream = Upstream::connect_with_verifier(&settings.backend, tls, verifier);
                Some(upstream.map_err(|error| Failure::new(format!("backend: {error}")))?)
            }
        };
        let gateway = match upstream {
            None => None,
            Some(upstream) => Some(
                Gateway::bind(settings.gateway_config(), upstream)
                    .await
                    .map_err(|error| Failure::from_error(&error))?,
            ),
        };
        let (backend, gateway, metrics) = with_metrics(settings, backend, gateway).await?;
        let service = Self {
            backend: match &tls {
                Some(tls) => backend.map(|backend| backend.with_tls(tls.subscribe())),
                None => backend,
            },
            gateway: match &tls {
                Some(tls) => gateway.map(|gateway| gateway.with_tls(tls.subscribe())),
                None => gateway,
            },
            metrics,
            tls,
            renewal: Arc::default(),
            traces: None,
        };
        if service.backend.is_some() {
            service.addresses().write_notes(settings);
        }
        Ok(service)
    }

    pub(crate) fn addresses(&self) -> Addresses {
        let rest = self.gateway.as_ref().map(Gateway::addr);
        let grpc = self.backend.as_ref().map(Backend::grpc_addr);
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let metrics = self.metrics.as_ref().map(MetricsServer::addr);
        Addresses::new(scheme, rest, grpc, metrics)
    }

    /// Returns a handle that triggers an immediate check for renewed certificate files.
    pub(crate) fn renewal(&self) -> Arc<Notify> {
        Arc::clone(&self.renewal)
    }

    /// Serves until `shutdown`, and returns when both parts have drained. If the database has lost
    /// commits, the parts restart at the same addresses from the current state of the database.
    pub(crate) async fn serve(
        mut self,
        settings: &Settings,
        parts: Parts,
        shutdown: CancellationToken,
    ) -> Result<(), Failure> {
        let traces = self.traces.take();
        let renewal = self.renewal();
        let mut settings = settings.clone();
        self.pin_addresses(&mut settings);
        let mut count = 0;
        let ended = loop {
            match self.serve_once(shutdown.child_token()).await {
                Err(ServeError::StoreWentBack { why }) if !shutdown.is_cancelled() => {
                    count += 1;
                    let losses = StoreLosses { count, why };
                    match restart(&settings, parts, &losses, &shutdown).await {
                        Some(Ok(service)) => self = service,
                        Some(Err(failure)) => break Err(failure),
                        None => break Ok(()),
                    }
                    self.renewal = Arc::clone(&renewal);
                }
                ended => break ended.map_err(|error| Failure::from_error(&error)),
            }
        };
        if let Some(traces) = traces {
            traces.shut_down().await;
        }
        ended
    }

    fn pin_addresses(&self, settings: &mut Settings) {
        if let Some(gateway) = &self.gateway {
            settings.rest_listen = Some(gateway.addr());
        }
        if let Some(backend) = &self.backend {
            settings.grpc_listen = Some(backend.grpc_addr());
        }
        if let Some(metrics) = &self.metrics {
            settings.service.metrics.listen = Some(metrics.addr());
        }
    }

    async fn serve_once(self, shutdown: CancellationToken) -> Result<(), ServeError> {
        // The gateway drains first, because its requests in flight need the backend.
        let drained = CancellationToken::new();
        let gateway = async {
            match self.gateway {
                Some(gateway) => gateway.serve(shutdown.clone()).await,
                None => shutdown.cancelled().await,
            }
            drained.cancel();
        };
        let backend = async {
            let ended = if let Some(backend) = self.backend {
                backend.serve(drained.clone()).await
            } else {
                drained.cancelled().await;
                Ok(())
            };
            shutdown.cancel();
            ended
        };
        let metrics = async {
            if let Some(metrics) = self.metrics {
                let tls = self.tls.as_ref().map(ServerTls::subscribe);
                metrics.serve(tls, shutdown.clone()).await;
            }
        };
        let certificate = async {
            if let Some(tls) = &self.tls {
                tls.watch_files(&self.renewal, shutdown.clone()).await;
            }
        };
        let ((), ended, (), ()) = tokio::join!(gateway, backend, metrics, certificate);
        ended
    }
}

/// Restarts the parts after the database has lost commits. Retries for a while, as a failover may
/// still be in progress. Returns `None` if the service was stopped in the meantime.
async fn restart(
    settings: &Settings,
    parts: Parts,
    losses: &StoreLosses,
    shutdown: &CancellationToken,
) -> Option<Result<Service, Failure>> {
    let deadline = Instant::now() + AGAIN_TIME_MAX;
    loop {
        let service = Box::pin(Service::assemble(settings, parts, Some(losses.clone())));
        match shutdown.run_until_cancelled(service).await? {
            Ok(service) => {
                tracing::warn!("restarted from the current state of the database");
                return Some(Ok(service));
            }
            Err(failure) if Instant::now() > deadline => return Some(Err(failure)),
            Err(failure) => tracing::warn!("failed to restart, will retry: {failure}"),
        }
        shutdown.run_until_cancelled(sleep(AGAIN_PAUSE)).await?;
    }
}

/// Serves the metrics of both parts on one page: at the address set for metrics, else at that of
/// the gateway, else at that of the backend.
async fn with_metrics(
    settings: &Settings,
    backend: Option<Backend>,
    gateway: Option<Gateway>,
) -> Result<(Option<Backend>, Option<Gateway>, Option<MetricsServer>), Failure> {
    let metrics = &settings.service.metrics;
    let mut sources: Vec<Arc<dyn MetricsSource>> = vec![Arc::new(ProcessMetrics::new(
        version::long_version(),
        bellwether_proto::repair::replaced_count,
    ))];
    sources.extend(backend.as_ref().map(Backend::metrics));
    sources.extend(gateway.as_ref().map(Gateway::metrics));
    let key = metrics.key.as_ref().map(|key| key.reveal().to_owned());
    let page = Arc::new(MetricsPage::new(sources, key));
    let server = match metrics.listen {
        None => None,
        Some(addr) => Some(
            MetricsServer::bind(addr, Arc::clone(&page))
                .await
                .map_err(|error| Failure::new(format!("metrics.listen: {addr}: {error}")))?,
        ),
    };
    let page = server.is_none().then_some(page);
    let with_backend = page.clone().filter(|_| gateway.is_none());
    Ok((
        backend.map(|backend| backend.with_metrics(with_backend)),
        gateway.map(|gateway| gateway.with_metrics(page)),
        server,
    ))
}

/// Returns the failure for a backend that did not start. If the folder is in use, it also names the
/// address of the service that uses it.
fn start_failure(error: &StartError, settings: &Settings) -> Failure {
    let failure = Failure::from_error(error);
    let in_use = matches!(error, StartError::Store(OpenError::InUse(_)));
    match Addresses::read_note(settings).and_then(|noted| noted.grpc) {
        Some(address) if in_use => {
            failure.with_clause(&format!("connect with `bellwether --connect {address}`"))
        }
        _ => failure,
    }
}
