//! The Prometheus page, assembled from the metrics of each part of the process.
//!
//! The backend and the gateway count separately and do not depend on each other, so the page is in
//! this crate, behind the feature `listen`.

mod process;
mod server;
mod text;

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, header::AUTHORIZATION};
use subtle::ConstantTimeEq as _;
use tokio::sync::Mutex;

pub use process::ProcessMetrics;
pub use server::MetricsServer;
pub use text::render_registry;

pub const PATH: &str = "/metrics";
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Time for which a page is cached, so that frequent scrapes are cheap.
const FRESH: Duration = Duration::from_secs(1);

pub trait MetricsSource: fmt::Debug + Send + Sync {
    fn render(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>>;
}

#[derive(Debug)]
pub struct MetricsPage {
    sources: Vec<Arc<dyn MetricsSource>>,
    key: Option<Key>,
    last: Mutex<Option<(Instant, Bytes)>>,
}

struct Key(String);

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(********)")
    }
}

impl MetricsPage {
    /// Creates a page of these sources, in order. With `key`, only clients that present the key may
    /// read it.
    pub fn new(sources: Vec<Arc<dyn MetricsSource>>, key: Option<String>) -> Self {
        Self {
            sources,
            key: key.map(Key),
            last: Mutex::default(),
        }
    }

    pub fn is_authorized(&self, headers: &HeaderMap) -> bool {
        let Some(Key(key)) = &self.key else {
            return true;
        };
        let shown = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        shown.is_some_and(|(_, shown)| shown.trim().as_bytes().ct_eq(key.as_bytes()).into())
    }

    /// Returns the page, at most one second old. Concurrent requests share one rendering.
    pub async fn cached_text(&self) -> Bytes {
        let mut last = self.last.lock().await;
        if let Some((made, text)) = &*last
            && made.elapsed() < FRESH
        {
            return text.clone();
        }
        let mut text = String::new();
        for source in &self.sources {
            text.push_str(&source.render().await);
        }
        let text = Bytes::from(text);
        *last = Some((Instant::now(), text.clone()));
        text
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn protected_metrics_page_requires_its_key() {
        let request = |value: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
            }
            headers
        };
        let (open, closed) = (
            MetricsPage::new(Vec::new(), None),
            MetricsPage::new(Vec::new(), Some("k".into())),
        );
        let table = [
            (None, false),
            (Some("k"), false),
            (Some("Basic k"), false),
            (Some("Bearer kk"), false),
            (Some("Bearer k"), true),
            (Some("bearer k"), true),
        ];
        for (shown, admitted) in table {
            assert!(open.is_authorized(&request(shown)));
            assert_eq!(closed.is_authorized(&request(shown)), admitted, "{shown:?}");
        }
        assert!(!format!("{closed:?}").contains("\"k\""));
    }

    #[tokio::test]
    async fn frequent_requests_get_the_cached_page() {
        #[derive(Debug, Default)]
        struct CountingSource(std::sync::atomic::AtomicU32);
        impl MetricsSource for CountingSource {
            fn render(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
                let count = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Box::pin(std::future::ready(format!("asked {count}\n")))
            }
        }
        let page = MetricsPage::new(vec![Arc::new(CountingSource::default())], None);
        assert_eq!(page.cached_text().await, "asked 0\n");
        assert_eq!(page.cached_text().await, "asked 0\n");
    }
}
