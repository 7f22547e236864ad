//! The route of requests: direct or through a proxy.

use http::HeaderValue;
use url::Url;

use crate::config::{EgressConfig, NoProxy, ProxyConfig};

#[derive(Debug, Clone, Default)]
pub(crate) struct Route {
    proxy: Option<ProxyConfig>,
    no_proxy: NoProxy,
    by_name: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ProxyRoute<'a> {
    pub(super) proxy: &'a ProxyConfig,
    pub(super) by_name: bool,
    /// Whether the proxy forwards requests (`http`) or tunnels them (`https`).
    pub(super) forwards: bool,
}

impl Route {
    pub(crate) fn new(config: &EgressConfig) -> Self {
        Self {
            proxy: config.proxy.clone(),
            no_proxy: config.no_proxy.clone(),
            by_name: config.proxy_by_name,
        }
    }

    /// Returns the proxy route to an origin; `None` if it is reached directly.
    pub(super) fn proxy_route(
        &self,
        host: &str,
        port: u16,
        is_https: bool,
    ) -> Option<ProxyRoute<'_>> {
        let proxy = self.proxy.as_ref()?;
        (!self.no_proxy.bypasses_proxy_for(host, port)).then_some(ProxyRoute {
            proxy,
            by_name: self.by_name,
            forwards: !is_https,
        })
    }

    /// Returns the `proxy-authorization` header for a URL whose requests the proxy forwards.
    pub(super) fn authorization(&self, url: &Url) -> Option<HeaderValue> {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        let through = self.proxy_route(host, port, url.scheme() == "https")?;
        let authorization = &through.proxy.authorization;
        let is_forwarded = through.forwards && !authorization.is_empty();
        let value = is_forwarded.then(|| HeaderValue::try_from(authorization.reveal()))?;
        value.ok()
    }
}
