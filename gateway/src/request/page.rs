//! The pages that the gateway answers itself.

use bellwether_process::metrics;
use bellwether_proto::reference::Topic;

/// A page of the gateway's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    /// Whether the gateway is alive.
    Healthz,
    /// Whether the backend is ready.
    Readyz,
    /// As [`Page::Healthz`], where Alertmanager has it.
    Healthy,
    /// As [`Page::Readyz`], where Alertmanager has it.
    Ready,
    /// Counters.
    Metrics,
    /// The interface for programs.
    Openapi,
    /// The interface for people.
    Docs,
    /// The picture that browsers show beside a page's title.
    Icon,
    /// A reference topic.
    Topic(&'static Topic),
}

impl Page {
    const ALL: [Self; 8] = [
        Self::Healthz,
        Self::Readyz,
        Self::Healthy,
        Self::Ready,
        Self::Metrics,
        Self::Openapi,
        Self::Docs,
        Self::Icon,
    ];

    /// Where the page is.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Healthz => "/healthz",
            Self::Readyz => "/readyz",
            Self::Healthy => "/-/healthy",
            Self::Ready => "/-/ready",
            Self::Metrics => metrics::PATH,
            Self::Openapi => "/openapi.json",
            Self::Docs => "/docs",
            Self::Icon => "/favicon.svg",
            Self::Topic(_) => "/docs/{topic}",
        }
    }

    /// Whether it is a document: the same for everyone, until there is another version.
    pub(super) fn is_document(self) -> bool {
        matches!(
            self,
            Self::Openapi | Self::Docs | Self::Icon | Self::Topic(_)
        )
    }

    /// The page at a path.
    pub(super) fn find(path: &str) -> Option<Self> {
        if let Some(name) = path.strip_prefix("/docs/") {
            return Topic::find(name).map(Self::Topic);
        }
        Self::ALL.into_iter().find(|page| page.path() == path)
    }
}
