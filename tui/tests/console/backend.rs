//! The real service in this process, with a separate store.

use std::{net::SocketAddr, sync::Arc};

pub(crate) use bellwether_backend::clock::{Clock, ManualClock};
use bellwether_backend::{Backend, Config, clock::SystemClock};
use bellwether_proto::{
    cloud::{self, data_receiver_service_client::DataReceiverServiceClient},
    v1::{self, event_query_service_client::EventQueryServiceClient},
};
use bellwether_tui::{Headless, Key, Options, Theme, api::Api};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::{Request, transport::Channel};

/// The text in every secret of these tests, and the signing secret. No frame may contain them.
pub(crate) const SECRET: &str = "qzxv";
pub(crate) const SIGNING_SECRET: &str = "whsec_c2VjcmV0";

pub(crate) struct Real {
    pub(crate) address: SocketAddr,
    key: String,
    _serving: JoinSet<()>,
    _folder: TempDir,
}

impl Real {
    pub(crate) async fn start() -> Self {
        Self::start_at(Arc::new(SystemClock)).await
    }

    pub(crate) async fn console(&self) -> Headless {
        let mut console = Headless::start(self.options(self.address), 120, 36);
        assert!(
            console.shows("connected at").await,
            "{}",
            console.screen_text()
        );
        console
    }

    pub(crate) async fn call(&self, service: &str, method: &str, request: &Value) -> Value {
        let mut api = Api::connect(self.options(self.address)).await.unwrap();
        api.call(service, method, request).await.unwrap()
    }

    /// Starts a service that uses this clock and sends messages to receivers on this machine.
    pub(crate) async fn start_at(clock: Arc<dyn Clock>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::new(folder.path());
        config.grpc_listen = ([127, 0, 0, 1], 0).into();
        config.egress.allow_names = vec!["127.0.0.1".to_owned()];
        let backend = Backend::bind_with_clock(config, clock).await.unwrap();
        let address = backend.grpc_addr();
        let key = std::fs::read_to_string(folder.path().join("admin.key")).unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move { backend.serve(CancellationToken::new()).await.unwrap() });
        Self {
            address,
            key: key.trim().to_owned(),
            _serving: serving,
            _folder: folder,
        }
    }

    pub(crate) fn options(&self, address: SocketAddr) -> Options {
        let mut options = Options::new(&format!("http://{address}")).unwrap();
        options.key = Some(Key::new(&self.key).unwrap());
        options.time_zone = jiff::tz::TimeZone::UTC;
        // Disable keepalive, as for a service in the same process: on a busy machine, a response
        // can take longer than the timeout.
        options.keep_alive = false;
        options.theme = Theme::Terminal;
        options.forbidden = [SECRET, SIGNING_SECRET, &self.key]
            .map(str::to_owned)
            .into();
        options
    }

    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", self.address));
        endpoint.unwrap().connect().await.unwrap()
    }

    pub(crate) fn with_key<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let value = format!("Bearer {}", self.key).parse().unwrap();
        request.metadata_mut().insert("authorization", value);
        request
    }

    pub(crate) async fn send(
        &self,
        severity: cloud::Severity,
        hosts: impl Iterator<Item = String>,
    ) {
        self.send_named("disk", severity, hosts).await;
    }

    pub(crate) async fn send_named(
        &self,
        name: &str,
        severity: cloud::Severity,
        hosts: impl Iterator<Item = String>,
    ) {
        let event = |host: String| cloud::Event {
            name: name.to_owned(),
            summary: format!("the disk of {host} is full"),
            dimensions: [("host".to_owned(), host)].into(),
            severity: severity.into(),
            ..cloud::Event::default()
        };
        let events = cloud::Events {
            events: hosts.map(event).collect(),
            ..cloud::Events::default()
        };
        let mut service = DataReceiverServiceClient::new(self.channel().await);
        let answer = service.put_events(self.with_key(events)).await.unwrap();
        assert_eq!(answer.into_inner().failed, 0);
    }

    pub(crate) async fn occurrences(&self) -> Vec<v1::Occurrence> {
        let query = v1::EventQuery {
            page_input: Some(v1::PageInput {
                limit: 1_000,
                ..v1::PageInput::default()
            }),
            ..v1::EventQuery::default()
        };
        let request = v1::SearchEventsRequest { query: Some(query) };
        let mut service = EventQueryServiceClient::new(self.channel().await);
        let answer = service.search_events(self.with_key(request)).await.unwrap();
        let events = answer.into_inner().results.into_iter();
        events.flat_map(|event| event.occurrences).collect()
    }
}
