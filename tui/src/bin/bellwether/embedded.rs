//! The one place where backend and gateway are put together in one process.

use std::{pin::Pin, sync::Arc};

use bellwether_backend::{
    Backend,
    server::{self, StartError},
    store::open::OpenError,
};
use bellwether_gateway::{Answered, Direct, Gateway, Upstream};
use prost::bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;

use crate::{
    config::Settings,
    failure::{Failure, sentence},
    ready::Addresses,
    tls::{self, ServerTls},
};

/// Which parts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    /// Backend and gateway; the gateway calls the backend without a socket.
    Both,
    /// The backend alone.
    Backend,
    /// The gateway alone, before a backend that runs elsewhere.
    Gateway,
}

/// The parts of the service that run in this process, with their listeners bound.
pub(crate) struct Service {
    backend: Option<Backend>,
    gateway: Option<Gateway>,
    tls: Option<ServerTls>,
}

/// The calls that the gateway makes past HTTP, when the backend is in the same process.
#[derive(Debug)]
struct PastHttp(server::Direct);

impl Direct for PastHttp {
    fn takes(&self, path: &str) -> bool {
        path == server::Direct::METHOD
    }

    fn call(
        &self,
        metadata: MetadataMap,
        message: Bytes,
    ) -> Pin<Box<dyn Future<Output = Answered> + Send + '_>> {
        Box::pin(self.0.call(metadata, message))
    }
}

impl Service {
    /// Opens the store and binds the listeners of the parts.
    ///
    /// # Errors
    /// When the data folder or an address cannot be used; the sentence says which and why.
    pub(crate) async fn bind(settings: &Settings, parts: Parts) -> Result<Self, Failure> {
        let tls = ServerTls::load(settings)?;
        let backend = match parts {
            Parts::Gateway => None,
            Parts::Both | Parts::Backend => Some(
                Backend::bind(settings.backend_config()?)
                    .await
                    .map_err(|error| not_started(&error, settings))?,
            ),
        };
        let upstream = match (&backend, parts) {
            (_, Parts::Backend) => None,
            (Some(backend), _) => {
                let direct = Arc::new(PastHttp(backend.direct()));
                Some(Upstream::in_process_with(backend.routes(), direct))
            }
            (None, _) => Some(
                Upstream::connect_with(&settings.backend, tls::client(settings)?)
                    .map_err(|error| Failure::new(format!("backend: {error}")))?,
            ),
        };
        let gateway = match upstream {
            None => None,
            Some(upstream) => Some(
                Gateway::bind(settings.gateway_config(), upstream)
                    .await
                    .map_err(|error| Failure::new(sentence(&error)))?,
            ),
        };
        let service = Self {
            backend: match &tls {
                Some(tls) => backend.map(|backend| backend.with_tls(tls.config())),
                None => backend,
            },
            gateway: match &tls {
                Some(tls) => gateway.map(|gateway| gateway.with_tls(tls.config())),
                None => gateway,
            },
            tls,
        };
        if service.backend.is_some() {
            service.ready().write_note(&settings.data_dir);
        }
        Ok(service)
    }

    /// Where the parts answer.
    pub(crate) fn ready(&self) -> Addresses {
        let rest = self.gateway.as_ref().map(Gateway::addr);
        let grpc = self.backend.as_ref().map(Backend::grpc_addr);
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        Addresses::at(scheme, rest, grpc)
    }

    /// Serves until `shutdown`, and returns when both parts have drained.
    ///
    /// # Errors
    /// When a part ends by itself; the other one is drained then.
    pub(crate) async fn serve(self, shutdown: CancellationToken) -> Result<(), Failure> {
        // The gateway drains first: what it still answers, the backend has to answer.
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
        let certificate = async {
            if let Some(tls) = &self.tls {
                tls.follow(shutdown.clone()).await;
            }
        };
        let ((), ended, ()) = tokio::join!(gateway, backend, certificate);
        ended.map_err(|error| Failure::new(sentence(&error)))
    }
}

/// Why the backend did not start; for a folder in use, also how to work with the service on it.
fn not_started(error: &StartError, settings: &Settings) -> Failure {
    let sentence = sentence(error);
    let in_use = matches!(error, StartError::Store(OpenError::InUse(_)));
    match Addresses::read_note(&settings.data_dir).and_then(|noted| noted.grpc) {
        Some(address) if in_use => Failure::new(format!(
            "{sentence}; connect to it with `bellwether --connect {address}`"
        )),
        _ => Failure::new(sentence),
    }
}
