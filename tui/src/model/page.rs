//! One page of the stack: where it is, its cursor and what it alone holds.

use bellwether_proto::v1;

use super::{Model, form::Form, list::List, store::Loaded};
use crate::{
    client::{Progress, Request},
    data::Kind,
    route::Route,
};

/// Where the cursor of a document is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DocumentCursor {
    pub(crate) cursor: usize,
    pub(crate) top: usize,
}

impl DocumentCursor {
    /// Keeps the cursor inside the document and on the screen.
    pub(crate) fn settle(&mut self, count: usize, height: usize) {
        let height = height.max(1);
        self.cursor = self.cursor.min(count.saturating_sub(1));
        self.top = self.top.min(self.cursor).min(count.saturating_sub(height));
        if self.cursor >= self.top + height {
            self.top = self.cursor + 1 - height;
        }
    }
}

/// The tabs of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tab {
    #[default]
    Details,
    Notes,
    Explain,
}

impl Tab {
    /// All of them, in order.
    pub(crate) const ALL: [Self; 3] = [Self::Details, Self::Notes, Self::Explain];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Details => "Details",
            Self::Notes => "Notes and history",
            Self::Explain => "Explain",
        }
    }
}

/// What a page alone holds.
#[derive(Debug, Default)]
#[expect(
    clippy::large_enum_variant,
    reason = "pages are few, and the event is the commonest of them"
)]
pub(crate) enum Content {
    #[default]
    None,
    Event {
        detail: Box<Loaded<v1::Event>>,
        explanation: Loaded<v1::ExplainEventResponse>,
        tab: Tab,
    },
    Delivery(Box<Loaded<v1::Delivery>>),
    Form(Box<Form>),
    Report(Box<Report>),
}

/// A test, a try or a preview: what was asked and what came.
#[derive(Debug)]
pub(crate) struct Report {
    /// What it is about, as `Test of pager`.
    pub(crate) title: String,
    /// What is sent again on request.
    pub(crate) request: Request,
    pub(crate) started_ms: i64,
    pub(crate) found: Loaded<Outcome>,
    /// The progress, if it is reported.
    pub(crate) progress: Option<Progress>,
}

/// The outcome of a test, a try or a preview.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Test(v1::TestDestinationResponse),
    Matches(v1::TestTriggerResponse),
    Previews(v1::PreviewRuleResponse),
    Mapped(v1::TestIntakeMappingResponse),
    /// And whether there are more.
    Obligations((Vec<v1::Obligation>, bool)),
    /// And whether there are more.
    Audit((Vec<v1::AuditEntry>, bool)),
}

impl Model {
    /// The destination that a test creates an event of this service with, and the event's severity.
    pub(crate) fn created_event(&self, request: &Request) -> Option<(String, String)> {
        let Request::TestDestination { fields, .. } = request else {
            return None;
        };
        let name = fields["name"].as_str().unwrap_or_default();
        let stored = self.store.object(Kind::Destination, name);
        let stored = stored.and_then(|it| it.at("type.event"));
        let event = match fields.get("type") {
            Some(kind) => kind.get("event")?,
            None => stored?,
        };
        let severity = event["severity"].as_str().unwrap_or_default();
        let severity = severity.trim_start_matches("SEVERITY_").to_lowercase();
        Some((name.to_owned(), severity))
    }
}

/// One page.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) route: Route,
    pub(crate) list: List,
    pub(crate) reading: DocumentCursor,
    pub(crate) content: Content,
    /// Whether lines are printed in full.
    pub(crate) is_unfolded: bool,
}

impl Page {
    pub(crate) fn new(route: Route) -> Self {
        let content = match route {
            Route::Event(_) => Content::Event {
                detail: Box::default(),
                explanation: Loaded::default(),
                tab: Tab::Details,
            },
            Route::Delivery(_) => Content::Delivery(Box::default()),
            _ => Content::None,
        };
        Self {
            route,
            list: List::default(),
            reading: DocumentCursor::default(),
            content,
            is_unfolded: false,
        }
    }

    /// What the report on it asked for.
    pub(crate) fn report(&self) -> Option<&Request> {
        match &self.content {
            Content::Report(report) => Some(&report.request),
            _ => None,
        }
    }

    pub(crate) fn form(&self) -> Option<&Form> {
        match &self.content {
            Content::Form(form) => Some(form),
            _ => None,
        }
    }

    pub(crate) fn form_mut(&mut self) -> Option<&mut Form> {
        match &mut self.content {
            Content::Form(form) => Some(form),
            _ => None,
        }
    }
}
