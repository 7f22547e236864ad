//! A single request to a provider, with limited time and size and without redirects.

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer};
use url::form_urlencoded;

use super::{ProviderError, check_address};

const TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, Clone)]
pub(super) struct Http(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl Http {
    pub(super) fn new<'a>(
        authorities: impl IntoIterator<Item = &'a CertificateDer<'static>>,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots.add_parsable_certificates(authorities.into_iter().cloned());
        // The provider is passed explicitly, since a process can have only one default crypto
        // provider.
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default protocol versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .build();
        Self(
            Client::builder(TokioExecutor::new())
                .pool_max_idle_per_host(0)
                .build(connector),
        )
    }

    pub(super) async fn get(&self, address: &str) -> Result<(u16, Vec<u8>), ProviderError> {
        self.send_request(Method::GET, address, Bytes::new()).await
    }

    pub(super) async fn post(
        &self,
        address: &str,
        fields: &[(&str, &str)],
    ) -> Result<(u16, Vec<u8>), ProviderError> {
        let form = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        self.send_request(Method::POST, address, form.into()).await
    }

    async fn send_request(
        &self,
        method: Method,
        address: &str,
        body: Bytes,
    ) -> Result<(u16, Vec<u8>), ProviderError> {
        let url = check_address(address).map_err(ProviderError::Unusable)?;
        let mut request = Request::builder().method(&method).uri(url.as_str());
        request = request.header(header::ACCEPT, "application/json");
        if method == Method::POST {
            request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        let request = request.body(Full::new(body));
        let request = request.map_err(|error| ProviderError::Unusable(error.to_string()))?;
        let asking = async {
            let answer = self.0.request(request).await;
            let answer = answer.map_err(|error| ProviderError::Unreachable(innermost(&error)))?;
            let status = answer.status().as_u16();
            let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX);
            let body = body.collect().await;
            let body = body.map_err(|error| ProviderError::Unusable(error.to_string()))?;
            Ok((status, body.to_bytes().to_vec()))
        };
        let seconds = TIMEOUT.as_secs();
        let answer = tokio::time::timeout(TIMEOUT, asking).await;
        answer.unwrap_or_else(|_elapsed| {
            Err(ProviderError::Unreachable(format!(
                "no response within {seconds} s"
            )))
        })
    }
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(deeper) = last.source() {
        last = deeper;
    }
    last.to_string()
}
