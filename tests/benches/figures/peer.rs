//! Alertmanager, if it is installed, as a reference that operators know.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use bellwether_tests::{eventually::eventually, rest::Rest};
use http::Method;

use crate::report::say;

/// A running Alertmanager, which keeps alerts only in memory.
#[derive(Debug)]
pub(crate) struct Alertmanager {
    process: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).flat_map(|folder| {
        ["prometheus-alertmanager", "alertmanager"].map(|name| folder.join(name))
    });
    found.find(|file| file.is_file())
}

impl Alertmanager {
    /// Starts an Alertmanager that sends each alert separately to the address `webhook`, or
    /// nowhere. Returns `None` if Alertmanager is not installed.
    pub(crate) async fn start(webhook: Option<&str>) -> Option<Self> {
        let Some(program) = program() else {
            say("(Alertmanager is not installed: figures without it)");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let settings = match webhook {
            Some(url) => format!(
                "route: {{receiver: r, group_by: ['...'], group_wait: 0s, group_interval: 1h}}\n\
                 receivers: [{{name: r, webhook_configs: [{{url: '{url}', send_resolved: false}}]}}]\n"
            ),
            None => "route: {receiver: r}\nreceivers: [{name: r}]\n".into(),
        };
        std::fs::write(folder.path().join("peer.yml"), settings).expect("its settings");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.expect("a free port").to_string();
        let process = Command::new(program)
            .arg(format!(
                "--config.file={}",
                folder.path().join("peer.yml").display()
            ))
            .arg(format!(
                "--storage.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .arg("--cluster.listen-address=")
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let peer = Self {
            process,
            address,
            _folder: folder,
        };
        let rest = peer.rest();
        eventually("Alertmanager to respond", || async {
            let answer = rest.try_send(Method::GET, "/-/ready", &[], "").await;
            answer.ok().filter(|answer| answer.status == 200)
        })
        .await;
        Some(peer)
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns a client of Alertmanager's API.
    pub(crate) fn rest(&self) -> Rest {
        Rest::new(&self.address, None)
    }
}

fn alerts(first: usize, count: usize) -> String {
    let alert = |number: usize| {
        format!(
            r#"{{"labels":{{"alertname":"bench","host":"h{number}","severity":"warning"}},"annotations":{{"summary":"something happened that somebody may want to know"}}}}"#
        )
    };
    let alerts: Vec<String> = (first..first + count).map(alert).collect();
    format!("[{}]", alerts.join(","))
}

/// Sends alerts numbered from `first` to this service, as Alertmanager's webhook does.
pub(crate) async fn send_webhook(client: Rest, first: usize, count: usize) {
    let alerts = alerts(first, count);
    let body = format!(r#"{{"version":"4","receiver":"bench","alerts":{alerts}}}"#);
    let path = "/v1/intake/alertmanager";
    let answer = client.send(Method::POST, path, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Sends alerts numbered from `first` to Alertmanager.
pub(crate) async fn send(client: Rest, first: usize, count: usize) {
    let body = alerts(first, count);
    let answer = client.send(Method::POST, "/api/v2/alerts", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Pause in which the effects of the previous load end.
pub(crate) const REST: Duration = Duration::from_millis(500);
