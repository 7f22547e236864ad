//! Pages that require no call to the backend's API.

use bellwether_process::metrics;
use bellwether_proto::reference::Topic;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    Healthz,
    Readyz,
    /// Same as [`Page::Healthz`], at Alertmanager's path.
    Healthy,
    /// Same as [`Page::Readyz`], at Alertmanager's path.
    Ready,
    Metrics,
    Openapi,
    Docs,
    Icon,
    Topic(&'static Topic),
    /// Same as [`Page::Topic`], as Markdown.
    TopicText(&'static Topic),
    Llms,
}

impl Page {
    const ALL: [Self; 9] = [
        Self::Healthz,
        Self::Readyz,
        Self::Healthy,
        Self::Ready,
        Self::Metrics,
        Self::Openapi,
        Self::Docs,
        Self::Icon,
        Self::Llms,
    ];

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
            Self::TopicText(_) => "/docs/{topic}.md",
            Self::Llms => "/llms.txt",
        }
    }

    /// Whether the page is the same for all clients until the next version.
    pub(super) fn is_document(self) -> bool {
        matches!(
            self,
            Self::Openapi
                | Self::Docs
                | Self::Icon
                | Self::Topic(_)
                | Self::TopicText(_)
                | Self::Llms
        )
    }

    pub(super) fn find(path: &str) -> Option<Self> {
        if let Some(name) = path.strip_prefix("/docs/") {
            return match name.strip_suffix(".md") {
                Some(name) => Topic::find(name).map(Self::TopicText),
                None => Topic::find(name).map(Self::Topic),
            };
        }
        Self::ALL.into_iter().find(|page| page.path() == path)
    }
}
