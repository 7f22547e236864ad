//! Client certificates that authenticate clients, over both listeners.

use std::time::Duration;

use bellwether_proto::v1::{GetCallerRequest, client_service_client::ClientServiceClient};
use bellwether_tests::{
    eventually::eventually,
    process::run,
    tls::{Authority, Identity},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::{
    Code, Request, Status,
    transport::{Certificate, ClientTlsConfig, Endpoint},
};

use super::Secured;

const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);

impl Secured {
    fn manage(&self, arguments: &[&str]) -> Result<String, String> {
        let url = format!("https://{}", self.address("grpc"));
        let ca = self.file("ca.crt");
        let trusting = ["--connect", &url, "--tls-ca", &ca];
        let output = run(self.world.command(&[arguments, &trusting].concat()));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if output.status.success() {
            Ok(text(output.stdout))
        } else {
            Err(text(output.stderr))
        }
    }

    async fn rest_status(&self, identity: Option<&Identity>, headers: &str) -> u16 {
        let address = self.address("rest");
        let connected = self.authority.connect(address, &["http/1.1"], identity);
        let mut stream = connected.await.unwrap();
        let request = format!(
            "GET /v1/notification/rules HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer).await);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    async fn grpc_name(
        &self,
        identity: Option<&Identity>,
        key: Option<&str>,
    ) -> Result<String, Status> {
        let mut tls =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(self.authority.pem()));
        if let Some(identity) = identity {
            let shown = tonic::transport::Identity::from_pem(&identity.certificate, &identity.key);
            tls = tls.identity(shown);
        }
        let endpoint = Endpoint::from_shared(format!("https://{}", self.address("grpc")));
        let endpoint = endpoint.unwrap().tls_config(tls).unwrap();
        let mut client = ClientServiceClient::new(endpoint.connect().await.unwrap());
        let mut request = Request::new(GetCallerRequest {});
        // The service must ignore identities that are claimed in headers.
        for (name, value) in [
            ("x-client-certificate", "dns:boss.example.net"),
            ("x-forwarded-for", "203.0.113.9"),
        ] {
            request.metadata_mut().insert(name, value.parse().unwrap());
        }
        if let Some(key) = key {
            let bearer = format!("Bearer {key}").parse().unwrap();
            request.metadata_mut().insert("authorization", bearer);
        }
        let caller = client.get_caller(request).await?.into_inner();
        Ok(caller.client.unwrap().name)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_authenticates_only_its_own_client() {
    let authority = Authority::new();
    let reader = authority.issue_to(&["Reader.example.net"], YEAR);
    let other = authority.issue_to(&["other.example.net"], YEAR);
    let secured = Secured::start_as(
        authority,
        "tls_client_ca = \"$/ca.crt\"\ntls_client_optional = true\n",
    );
    let name = ["--certificate", "dns:reader.example.net"];
    let create = ["client", "create", "reader", "--role", "viewer"];
    let key = secured.manage(&[&create[..], &name].concat()).unwrap();
    let create = ["client", "create", "boss", "--role", "admin"];
    let boss = ["--certificate", "dns:boss.example.net"];
    secured.manage(&[&create[..], &boss].concat()).unwrap();
    let listed = secured.manage(&["client", "list"]).unwrap();
    assert!(listed.contains("\tdns:reader.example.net"), "{listed}");

    let forged = "x-client-certificate: dns:boss.example.net\r\n";
    let wrong = "authorization: Bearer bw_wrong\r\n";
    let rest = [
        (Some(&reader), "", 200),
        (Some(&reader), forged, 200),
        (Some(&other), "", 401),
        (None, "", 401),
        (None, forged, 401),
        // A key takes precedence, even if it is invalid.
        (Some(&reader), wrong, 401),
    ];
    for (identity, headers, expected) in rest {
        let found = secured.rest_status(identity, headers).await;
        assert_eq!(found, expected, "{headers}");
    }
    let found = secured.grpc_name(Some(&reader), None).await.unwrap();
    assert_eq!(found, "reader");
    let with_key = secured.grpc_name(Some(&other), Some(key.trim())).await;
    assert_eq!(with_key.unwrap(), "reader");
    for identity in [Some(&other), None] {
        let refused = secured.grpc_name(identity, None).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
    }

    let duplicate = ["client", "create", "two", "--role", "viewer"];
    let refused = secured
        .manage(&[&duplicate[..], &name].concat())
        .unwrap_err();
    assert!(
        refused.contains("already authenticates client `reader`"),
        "{refused}"
    );
    let update = ["client", "update", "reader", "--no-certificate"];
    secured.manage(&update).unwrap();
    assert_eq!(secured.rest_status(Some(&reader), "").await, 401);
    assert!(secured.grpc_name(Some(&reader), None).await.is_err());
    let found = secured.grpc_name(None, Some(key.trim())).await.unwrap();
    assert_eq!(found, "reader", "the key is still accepted");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_expires_with_its_client() {
    let authority = Authority::new();
    let both = authority.issue_to(&["a.example.net", "b.example.net"], YEAR);
    let secured = Secured::start_as(
        authority,
        "tls_client_ca = \"$/ca.crt\"\ntls_client_optional = true\n",
    );
    for name in ["a", "b"] {
        let certificate = format!("dns:{name}.example.net");
        let create = ["client", "create", name, "--role", "viewer"];
        let more = ["--certificate", &certificate];
        secured.manage(&[&create[..], &more].concat()).unwrap();
    }
    let refused = secured.grpc_name(Some(&both), None).await.unwrap_err();
    assert!(refused.message().contains("`a` and `b`"), "{refused}");
    secured.manage(&["client", "revoke", "b"]).unwrap();
    let found = secured.grpc_name(Some(&both), None).await.unwrap();
    assert_eq!(found, "a");
    let end = crate::samples::in_seconds(2);
    let update = ["client", "update", "a", "--expires", &end];
    secured.manage(&update).unwrap();
    eventually("the certificate to be rejected", async || {
        (secured.rest_status(Some(&both), "").await == 401).then_some(())
    })
    .await;
}
