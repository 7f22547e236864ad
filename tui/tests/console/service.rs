//! The real service in this process, with sample data, behind a connection that can be cut.

use std::{collections::BTreeMap, sync::Arc};

use bellwether_proto::cloud::{self, data_receiver_service_client::DataReceiverServiceClient};
use bellwether_tui::{Key, Options};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
};

use crate::{
    backend::{Clock, Real},
    proxy::{Fault, Proxy},
};

const REFUSAL: &str = "no such hook";

pub(crate) struct Service {
    pub(crate) real: Real,
    /// Base URL of the receivers: `/audit` accepts, all other paths reject permanently.
    pub(crate) receivers: String,
    link: Proxy,
    _receiving: JoinSet<()>,
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::behind(Real::start().await, REFUSAL).await
    }

    pub(crate) async fn start_at(clock: Arc<dyn Clock>) -> Self {
        Self::behind(Real::start_at(clock).await, REFUSAL).await
    }

    pub(crate) async fn refused_with(refusal: &'static str) -> Self {
        Self::behind(Real::start().await, refusal).await
    }

    async fn behind(real: Real, refusal: &'static str) -> Self {
        let link = Proxy::start(real.address).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receivers = format!("http://{}", listener.local_addr().unwrap());
        let mut receiving = JoinSet::new();
        receiving.spawn(receive(listener, refusal));
        Self {
            real,
            receivers,
            link,
            _receiving: receiving,
        }
    }

    /// Starts a service with 40 open events. The newest has notified one receiver that accepts and
    /// one that rejects.
    pub(crate) async fn stocked() -> Self {
        let service = Self::start().await;
        service.events(0..39).await;
        let disks = json!({"contains": {"field": "summary", "value": "disk"}});
        let disks = json!({"event": {"query": {"clause": disks}}});
        service
            .create("Trigger", &json!({"name": "disk-full", "type": disks}))
            .await;
        for name in ["audit", "pager"] {
            service.destination(name).await;
        }
        let rule = json!({
            "name": "night",
            "enabled": true,
            "triggerNames": ["disk-full"],
            "destinationNames": ["pager", "audit"],
            "repeatInterval": 3600,
            "sendUpdates": true,
        });
        service.create("Rule", &rule).await;
        service.events(39..40).await;
        service.settle(2).await;
        service
    }

    /// Creates a webhook destination; rejected messages become dead letters.
    pub(crate) async fn destination(&self, name: &str) {
        let destination = json!({
            "name": name,
            "type": {"webhook": {"url": format!("{}/{name}", self.receivers)}},
            "delivery": {"maxAttempts": 1},
        });
        self.create("Destination", &destination).await;
    }

    pub(crate) async fn create(&self, kind: &str, resource: &Value) {
        let request = json!({kind.to_lowercase(): resource});
        let (service, method) = (format!("{kind}Service"), format!("Create{kind}"));
        self.real.call(&service, &method, &request).await;
    }

    pub(crate) async fn stored(&self, kind: &str) -> BTreeMap<String, Value> {
        let (service, method) = (format!("{kind}Service"), format!("List{kind}s"));
        let mut found = self.real.call(&service, &method, &json!({})).await;
        let found = found[format!("{}s", kind.to_lowercase())].take();
        let found = found.as_array().cloned().unwrap_or_default().into_iter();
        found
            .map(|it| (it["name"].as_str().unwrap().to_owned(), it))
            .collect()
    }

    pub(crate) async fn deliveries(&self) -> Vec<Value> {
        let request = json!({"pageSize": 100});
        let mut found = self
            .real
            .call("DeliveryService", "ListDeliveries", &request)
            .await;
        let found = found["deliveries"].take();
        found.as_array().cloned().unwrap_or_default()
    }

    pub(crate) async fn settle(&self, wanted: usize) {
        let is_over = |row: &&Value| row["state"] == "DELIVERED" || row["state"] == "DEAD";
        let mut found = Vec::new();
        for _ in 0..600 {
            found = self.deliveries().await;
            if found.iter().filter(is_over).count() == wanted {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(found.iter().filter(is_over).count(), wanted, "{found:?}");
    }

    pub(crate) async fn events(&self, numbers: std::ops::Range<u32>) {
        let events = numbers.map(|number| event(number, &format!("disk {number} is full")));
        self.send(events.collect()).await;
    }

    pub(crate) async fn send(&self, events: Vec<cloud::Event>) {
        let count = i32::try_from(events.len()).unwrap();
        let events = cloud::Events {
            events,
            ..cloud::Events::default()
        };
        let mut service = DataReceiverServiceClient::new(self.real.channel().await);
        let answer = service.put_events(self.real.with_key(events)).await;
        let answer = answer.unwrap().into_inner();
        assert_eq!(answer.succeeded, count, "{answer:?}");
    }

    pub(crate) fn options(&self) -> Options {
        self.real.options(self.link.address)
    }

    pub(crate) async fn viewer(&self) -> Options {
        let request = json!({"name": "a-viewer", "role": "ROLE_VIEWER"});
        let answer = self.real.call("ClientService", "CreateClient", &request);
        let mut options = self.options();
        options.key = Some(Key::new(answer.await["key"].as_str().unwrap()).unwrap());
        options
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        self.link.set(if is_cut { Fault::Cut } else { Fault::None });
    }
}

/// Creates the event of a disk, with host and severity derived from its number.
pub(crate) fn event(number: u32, summary: &str) -> cloud::Event {
    use cloud::Severity::{Critical, Error, Info, Warning};

    let severity = [Critical, Error, Warning, Info][number as usize % 4];
    let dimensions = [
        ("host", format!("db{}", number % 7)),
        ("disk", number.to_string()),
    ];
    cloud::Event {
        name: "disk-full".to_owned(),
        summary: summary.to_owned(),
        dimensions: dimensions
            .map(|(key, value)| (key.to_owned(), value))
            .into(),
        severity: severity.into(),
        ..cloud::Event::default()
    }
}

/// Runs the receivers: one path accepts, all others reject permanently.
pub(crate) async fn receive(listener: TcpListener, refusal: &'static str) {
    let mut connections = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        connections.spawn(async move {
            let mut chunk = vec![0; 64 * 1024];
            let length = client.read(&mut chunk).await.unwrap_or_default();
            let request = String::from_utf8_lossy(&chunk[..length]);
            let (status, body) = match request.split(' ').nth(1) {
                Some("/audit") => ("200 OK", "taken"),
                _ => ("403 Forbidden", refusal),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _closed = client.write_all(answer.as_bytes()).await;
        });
    }
}
