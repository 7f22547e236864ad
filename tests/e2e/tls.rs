//! Both listeners over TLS, with every kind of client.

mod clients;
mod hostile;
mod shown;
mod trusted;

use std::{path::Path, time::Duration};

use bellwether_proto::v1::{GetCallerRequest, client_service_client::ClientServiceClient};
use bellwether_tests::{
    eventually::eventually,
    process::{self, Service, run},
    tls::{Authority, Identity},
    world::World,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::client::TlsStream;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

/// A folder with an authority and a certificate, and a service that presents it.
struct Secured {
    authority: Authority,
    files: TempDir,
    world: World,
}

impl Secured {
    /// Starts a service with additional settings; `$` represents the folder.
    fn start(lines: &str) -> Self {
        Self::start_as(Authority::new(), lines)
    }

    fn start_as(authority: Authority, lines: &str) -> Self {
        let files = tempfile::tempdir().unwrap();
        std::fs::write(files.path().join("ca.crt"), authority.pem()).unwrap();
        authority.issue().write(files.path(), "server");
        let folder = files.path().to_str().unwrap();
        let lines = format!("tls_cert = \"$/server.crt\"\ntls_key = \"$/server.key\"\n{lines}");
        let world = World::with_settings(&lines.replace('$', folder));
        Self {
            authority,
            files,
            world,
        }
    }

    fn address(&self, part: &str) -> &str {
        let url = self.world.service().address(part);
        url.strip_prefix("https://")
            .expect("it is reported to be TLS")
    }

    fn file(&self, name: &str) -> String {
        self.files.path().join(name).to_str().unwrap().to_owned()
    }

    async fn channel(&self) -> Channel {
        let ca = Certificate::from_pem(self.authority.pem());
        let tls = ClientTlsConfig::new().ca_certificate(ca);
        let endpoint = Endpoint::from_shared(format!("https://{}", self.address("grpc")));
        let endpoint = endpoint.unwrap().tls_config(tls).unwrap();
        endpoint.connect().await.unwrap()
    }

    async fn request(&self, part: &str, request: &[u8]) -> String {
        let address = self.address(part);
        let connected = self.authority.connect(address, &["http/1.1"], None).await;
        let mut stream = connected.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        // Ignore errors: a server may close the connection without a TLS shutdown.
        drop(stream.read_to_end(&mut answer).await);
        String::from_utf8_lossy(&answer).into_owned()
    }

    async fn shown(&self, part: &str) -> Vec<u8> {
        let address = self.address(part);
        let connected = self.authority.connect(address, &["h2"], None).await;
        leaf(&connected.unwrap())
    }
}

fn leaf<Io>(stream: &TlsStream<Io>) -> Vec<u8> {
    let (_, connection) = stream.get_ref();
    connection.peer_certificates().unwrap()[0].to_vec()
}

const HEALTHZ: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn rest_grpc_and_grpc_web_are_served_only_over_tls() {
    let secured = Secured::start("");
    for part in ["rest", "grpc"] {
        for protocol in ["h2", "http/1.1"] {
            let address = secured.address(part);
            let connected = secured.authority.connect(address, &[protocol], None).await;
            let stream = connected.unwrap();
            let agreed = stream.get_ref().1.alpn_protocol();
            assert_eq!(agreed, Some(protocol.as_bytes()), "{part}");
        }
    }
    let answer = secured.request("rest", HEALTHZ).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");

    let mut client = ClientServiceClient::new(secured.channel().await);
    let mut request = tonic::Request::new(GetCallerRequest {});
    let bearer = format!("Bearer {}", secured.world.admin_key());
    let metadata = request.metadata_mut();
    metadata.insert("authorization", bearer.parse().unwrap());
    let caller = client.get_caller(request).await.unwrap().into_inner();
    assert_eq!(caller.client.unwrap().name, "admin");

    let web =
        b"POST /grpc.health.v1.Health/Check HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
        content-type: application/grpc-web+proto\r\ncontent-length: 5\r\n\r\n\0\0\0\0\0";
    let answer = secured.request("grpc", web).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("grpc-status:0"), "{answer}");

    for part in ["rest", "grpc"] {
        let address = secured.address(part);
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(HEALTHZ).await.unwrap();
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer).await);
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.contains("HTTP/"), "{part} responds without TLS");
    }
}

#[tokio::test]
async fn commands_and_gateway_trust_the_configured_ca() {
    let secured = Secured::start("");
    let url = format!("https://{}", secured.address("grpc"));
    let ca = secured.file("ca.crt");
    let trusting = ["--connect", &url, "--tls-ca", &ca];

    let list = run(secured
        .world
        .command(&[&["client", "list"], &trusting[..]].concat()));
    assert!(list.status.success(), "{list:?}");
    assert!(String::from_utf8_lossy(&list.stdout).starts_with("admin\tadmin"));
    let frame = run(secured
        .world
        .command(&[&["--snapshot", "overview"], &trusting[..]].concat()));
    let frame = String::from_utf8_lossy(&frame.stdout).into_owned();
    assert!(frame.contains("connected"), "{frame}");
    assert!(!frame.contains("not connected"), "{frame}");
    let without = run(secured
        .world
        .command(&["client", "list", "--connect", &url]));
    assert!(!without.status.success(), "{without:?}");

    let home = tempfile::tempdir().unwrap();
    let arguments = ["gateway", "--backend", &url, "--tls-ca", &ca];
    let mut gateway = process::command(home.path(), arguments);
    gateway.args(["--rest-listen", "127.0.0.1:0"]);
    let gateway = Service::start(gateway, &home.path().join("log"));
    let rest = bellwether_tests::rest::Rest::new(gateway.address("rest"), None);
    let ready = eventually("the gateway to reach the backend", || async {
        let answer = rest.get("/readyz").await;
        (answer.status == 200).then_some(answer)
    });
    assert_eq!(ready.await.text(), "ok\n");
}

#[tokio::test]
async fn clients_without_a_trusted_certificate_are_rejected() {
    let secured = Secured::start("tls_client_ca = \"$/ca.crt\"");
    for part in ["rest", "grpc"] {
        let address = secured.address(part);
        let known = secured.authority.issue();
        let foreign = Authority::new().issue();
        for (identity, is_let_in) in [(None, false), (Some(&foreign), false), (Some(&known), true)]
        {
            let got = request_as(&secured.authority, address, identity).await;
            assert_eq!(got.contains("HTTP/1.1"), is_let_in, "{part}: {got}");
        }
    }
    // Commands present the certificate that their options name.
    let url = format!("https://{}", secured.address("grpc"));
    let (ca, cert, key) = (
        secured.file("ca.crt"),
        secured.file("server.crt"),
        secured.file("server.key"),
    );
    let list = ["client", "list", "--connect", &url, "--tls-ca", &ca];
    let without = run(secured.world.command(&list));
    assert!(!without.status.success());
    let showing = ["--tls-cert", &cert, "--tls-key", &key];
    let with = run(secured.world.command(&[&list[..], &showing].concat()));
    assert!(with.status.success(), "{with:?}");
}

#[tokio::test]
async fn revoked_certificates_are_rejected_and_crl_and_ca_are_reloaded() {
    let (files, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let list = files.path().join("clients.crl");
    let (good, bad) = (authority.issue(), authority.issue());
    std::fs::write(&list, authority.revoke(&[])).unwrap();
    let secured = Secured::start_as(
        authority,
        &format!(
            "tls_client_ca = \"$/ca.crt\"\ntls_client_crl = {:?}",
            list.display()
        ),
    );
    let is_let_in = async |part, identity: &Identity| {
        let answer = request_as(&secured.authority, secured.address(part), Some(identity)).await;
        answer.contains("HTTP/1.1")
    };
    for part in ["rest", "grpc"] {
        assert!(is_let_in(part, &bad).await, "{part}");
    }
    std::fs::write(&list, secured.authority.revoke(&[&bad])).unwrap();
    for part in ["rest", "grpc"] {
        eventually("the revoked one to be rejected", async || {
            (!is_let_in(part, &bad).await).then_some(())
        })
        .await;
        assert!(is_let_in(part, &good).await, "{part}");
    }
    // After the authority is replaced, clients with certificates of the old one are rejected.
    let other = Authority::new();
    std::fs::write(&list, other.revoke(&[])).unwrap();
    std::fs::write(secured.file("ca.crt"), other.pem()).unwrap();
    let theirs = other.issue();
    for part in ["rest", "grpc"] {
        eventually("requests to the new authority", async || {
            is_let_in(part, &theirs).await.then_some(())
        })
        .await;
        assert!(!is_let_in(part, &good).await, "{part}");
    }
}

#[tokio::test]
async fn expiring_certificate_opens_an_event_until_renewed() {
    let secured = Secured::start("");
    let days = |count: u64| Duration::from_secs(count * 24 * 3_600);
    let search = r#"{"query":{"filter":"name=\"certificate ends\""}}"#;
    let request = format!(
        "POST /v1/events:search HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         authorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{search}",
        secured.world.admin_key(),
        search.len()
    );
    let ends = [
        (days(5), &["SEVERITY_ERROR", "STATUS_OPEN"][..]),
        (days(300), &["STATUS_CLOSED"][..]),
    ];
    for (life, reported) in ends {
        let certificate = secured.authority.issue_for(life);
        certificate.write(secured.files.path(), "server");
        eventually(
            "the event to be updated for the new certificate",
            async || {
                let answer = secured.request("rest", request.as_bytes()).await;
                reported.iter().all(|it| answer.contains(it)).then_some(())
            },
        )
        .await;
    }
}

#[tokio::test]
async fn tls_connection_errors_name_cause_and_fix() {
    let secured = Secured::start("");
    let asking = Secured::start("tls_client_ca = \"$/ca.crt\"");
    let (over, clear) = (Secured::start(""), World::start());
    let ended = over.authority.issue_for(Duration::ZERO);
    ended.write(over.files.path(), "server");
    eventually("the expired certificate to be shown", async || {
        let shown = over.authority.connect(over.address("grpc"), &["h2"], None);
        shown.await.is_err().then_some(())
    })
    .await;
    let https = |secured: &Secured| format!("https://{}", secured.address("grpc"));
    let cases = [
        (
            https(&secured),
            asking.file("ca.crt"),
            "",
            "comes from an authority that is not trusted here; `tls_ca` can add it",
        ),
        (
            https(&secured),
            secured.file("ca.crt"),
            "elsewhere.example.net",
            "is for another host name: localhost, 127.0.0.1",
        ),
        (https(&over), over.file("ca.crt"), "", "has expired"),
        // Expect no text, here and below: the reason may not arrive before the connection is
        // closed.
        (https(&asking), asking.file("ca.crt"), "", ""),
        (
            format!("http://{}", secured.address("grpc")),
            secured.file("ca.crt"),
            "",
            "",
        ),
        (
            format!("https://{}", clear.service().address("grpc")),
            secured.file("ca.crt"),
            "",
            "does not speak TLS at that address",
        ),
    ];
    for (url, ca, name, sentence) in &cases {
        for command in [&["client", "list"][..], &["events"]] {
            let reach = ["--connect", url, "--tls-ca", ca];
            let mut command = secured.world.command(&[command, &reach].concat());
            if !name.is_empty() {
                command.env("BELLWETHER_TLS_NAME", name);
            }
            let output = run(command);
            let reported = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(reported.contains(sentence), "{url}: {reported}");
            assert_eq!(output.status.code(), Some(3), "{url}: {reported}");
        }
    }
}

/// Returns the response to a client with this certificate; empty if it is rejected.
async fn request_as(authority: &Authority, address: &str, identity: Option<&Identity>) -> String {
    let mut answer = Vec::new();
    if let Ok(mut stream) = authority.connect(address, &["http/1.1"], identity).await {
        drop(stream.write_all(HEALTHZ).await);
        drop(stream.read_to_end(&mut answer).await);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn certificate_is_reloaded_without_a_restart_unless_invalid() {
    let secured = Secured::start("");
    let before = secured.shown("grpc").await;
    std::fs::write(secured.file("server.crt"), "half of a certif").unwrap();
    eventually("the log to report the broken file", || async {
        let log = secured.world.service().log();
        log.contains("failed to load the renewed certificate")
            .then_some(())
    })
    .await;
    assert_eq!(secured.shown("grpc").await, before);
    secured
        .authority
        .issue()
        .write(secured.files.path(), "server");
    for part in ["grpc", "rest"] {
        eventually("the new certificate", || async {
            (secured.shown(part).await != before).then_some(())
        })
        .await;
    }
}

const BROKEN: [(&str, &str, &str); 5] = [
    (
        "tls_cert = \"$/absent.crt\"\ntls_key = \"$/a.key\"",
        "tls_cert: cannot read",
        "absent.crt",
    ),
    (
        "tls_cert = \"$/a.key\"\ntls_key = \"$/a.key\"",
        "tls_cert: ",
        "contains no certificate",
    ),
    (
        "tls_cert = \"$/a.crt\"\ntls_key = \"$/a.crt\"",
        "tls_key: ",
        "contains no private key",
    ),
    (
        "tls_cert = \"$/a.crt\"\ntls_key = \"$/b.key\"",
        "tls_key: ",
        "does not match the certificate in",
    ),
    (
        "tls_cert = \"$/a.crt\"",
        "tls_key: required",
        "tls_cert is set",
    ),
];

#[test]
fn key_is_sent_unencrypted_only_with_insecure() {
    let home = tempfile::tempdir().unwrap();
    // An address reserved for documentation, at which no server responds.
    let elsewhere = "http://192.0.2.1:1";
    let cases: [&[&str]; 3] = [
        &["client", "list", "--connect", elsewhere],
        &["--snapshot", "events", "--connect", elsewhere],
        &[
            "gateway",
            "--rest-listen",
            "127.0.0.1:0",
            "--backend",
            elsewhere,
        ],
    ];
    for arguments in cases {
        let mut command = process::command(home.path(), arguments);
        command.env("BELLWETHER_KEY", "bw_x");
        let output = run(command);
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {reported}");
        let sentence = "keys would be sent unencrypted to 192.0.2.1; use an address with https://, or \
                        allow it with --insecure";
        assert!(reported.contains(sentence), "{arguments:?}: {reported}");
    }
}

#[test]
fn invalid_tls_files_are_reported_by_setting() {
    let (authority, files) = (Authority::new(), tempfile::tempdir().unwrap());
    authority.issue().write(files.path(), "a");
    authority.issue().write(files.path(), "b");
    let folder = files.path().to_str().unwrap();
    for (lines, names, says) in BROKEN {
        let config = files.path().join("bellwether.toml");
        std::fs::write(&config, lines.replace('$', folder)).unwrap();
        let output = run(serve(files.path(), &config));
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{lines}: {reported}");
        assert!(
            reported.contains(names) && reported.contains(says),
            "{lines}: {reported}"
        );
        assert!(!files.path().join("data").exists(), "a store was created");
    }
}

fn serve(folder: &Path, config: &Path) -> std::process::Command {
    let mut serve = process::command(folder, ["serve"]);
    serve.arg("--config").arg(config);
    serve.arg("--data-dir").arg(folder.join("data"));
    serve
}
