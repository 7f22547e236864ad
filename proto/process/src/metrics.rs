//! What Prometheus reads: one page, put together of what each part of the process counts.
//!
//! The backend and the gateway count apart and do not know each other, so that the page is here,
//! behind the feature `listen`, beside the loop that both are served by.

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

pub use process::Process;
pub use server::Server;
pub use text::written;

/// Where the page is.
pub const PATH: &str = "/metrics";
/// What kind of text it is.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// How long a page is shown again before it is made again, so that no one makes the service work by
/// asking often.
const FRESH: Duration = Duration::from_secs(1);

/// Something that counts.
pub trait Source: fmt::Debug + Send + Sync {
    /// What it counted, as lines of the page.
    fn lines(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>>;
}

/// The page.
#[derive(Debug)]
pub struct Page {
    sources: Vec<Arc<dyn Source>>,
    key: Option<Key>,
    last: Mutex<Option<(Instant, Bytes)>>,
}

/// What has to be shown to read the page.
struct Key(String);

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(********)")
    }
}

impl Page {
    /// A page of what these count, in their order; with a key, only for clients that present it.
    pub fn new(sources: Vec<Arc<dyn Source>>, key: Option<String>) -> Self {
        Self {
            sources,
            key: key.map(Key),
            last: Mutex::default(),
        }
    }

    /// Whether a request with these headers may read it.
    pub fn admits(&self, headers: &HeaderMap) -> bool {
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

    /// The page as it is now, or was within the last second. Who asks meanwhile waits for the same.
    pub async fn text(&self) -> Bytes {
        let mut last = self.last.lock().await;
        if let Some((made, text)) = &*last
            && made.elapsed() < FRESH
        {
            return text.clone();
        }
        let mut text = String::new();
        for source in &self.sources {
            text.push_str(&source.lines().await);
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
    fn a_page_with_a_key_is_for_those_who_show_it() {
        let asked = |value: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
            }
            headers
        };
        let (open, closed) = (
            Page::new(Vec::new(), None),
            Page::new(Vec::new(), Some("k".into())),
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
            assert!(open.admits(&asked(shown)));
            assert_eq!(closed.admits(&asked(shown)), admitted, "{shown:?}");
        }
        assert!(!format!("{closed:?}").contains("\"k\""));
    }

    #[tokio::test]
    async fn who_asks_often_gets_the_same_page() {
        #[derive(Debug, Default)]
        struct CountingSource(std::sync::atomic::AtomicU32);
        impl Source for CountingSource {
            fn lines(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
                let asked = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Box::pin(std::future::ready(format!("asked {asked}\n")))
            }
        }
        let page = Page::new(vec![Arc::new(CountingSource::default())], None);
        assert_eq!(page.text().await, "asked 0\n");
        assert_eq!(page.text().await, "asked 0\n");
    }
}
