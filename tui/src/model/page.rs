//! One page of the stack: where it is, its cursor and what it alone holds.

use super::{form::Form, list::List, store::Loaded};
use crate::{
    client::{Progress, Request},
    data::{Delivery, EventDetail, Explanation, Obligation, RulePreview, TestReport, TriggerTest},
    keymap::Place,
};

/// Where a page is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Overview,
    Events,
    /// By the occurrence's id.
    Event(String),
    Triggers,
    Trigger(String),
    Destinations,
    Destination(String),
    Rules,
    Rule(String),
    Deliveries,
    Delivery(String),
    Clients,
    Map,
    /// The reference topics.
    Reference,
    /// One of them, by its name.
    Topic(String),
    Form,
    /// What a test, a try or a preview brought.
    Report,
}

impl Route {
    /// The screen this belongs to, by its title.
    pub(crate) fn screen(&self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Events | Self::Event(_) => "Events",
            Self::Triggers | Self::Trigger(_) => "Triggers",
            Self::Destinations | Self::Destination(_) => "Destinations",
            Self::Rules | Self::Rule(_) => "Rules",
            Self::Deliveries | Self::Delivery(_) => "Deliveries",
            Self::Clients => "Clients",
            Self::Map => "Map",
            Self::Reference | Self::Topic(_) => "Reference",
            Self::Form => "Edit",
            Self::Report => "Test",
        }
    }

    /// The name or id below the screen; empty for the screen itself.
    pub(crate) fn object(&self) -> &str {
        match self {
            Self::Event(id)
            | Self::Trigger(id)
            | Self::Destination(id)
            | Self::Rule(id)
            | Self::Delivery(id)
            | Self::Topic(id) => id,
            _ => "",
        }
    }

    /// Whether it shows a list.
    pub(crate) fn is_list(&self) -> bool {
        matches!(
            self,
            Self::Events
                | Self::Triggers
                | Self::Destinations
                | Self::Rules
                | Self::Deliveries
                | Self::Clients
                | Self::Map
        )
    }

    /// Where actions look for their keys here, the most particular place first.
    pub(crate) fn places(&self) -> [Place; 3] {
        let own = match self {
            Self::Overview => Place::Overview,
            Self::Events => Place::Events,
            Self::Event(_) => Place::Event,
            Self::Triggers => Place::Triggers,
            Self::Trigger(_) => Place::Trigger,
            Self::Destinations => Place::Destinations,
            Self::Destination(_) => Place::Destination,
            Self::Rules => Place::Rules,
            Self::Rule(_) => Place::Rule,
            Self::Deliveries => Place::Deliveries,
            Self::Delivery(_) => Place::Delivery,
            Self::Clients => Place::Clients,
            Self::Map => Place::Map,
            Self::Reference | Self::Topic(_) => Place::Reference,
            Self::Form => Place::Form,
            Self::Report => Place::Report,
        };
        own.around()
    }
}

/// Where the cursor of a document is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) cursor: usize,
    pub(crate) top: usize,
}

impl Reading {
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
pub(crate) enum Content {
    #[default]
    None,
    Event {
        detail: Box<Loaded<EventDetail>>,
        explanation: Loaded<Explanation>,
        tab: Tab,
    },
    Delivery(Box<Loaded<Delivery>>),
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
    pub(crate) found: Loaded<Found>,
    /// How far it is, where that is told.
    pub(crate) progress: Option<Progress>,
}

/// What came of a test, a try or a preview.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    Test(TestReport),
    Matches(TriggerTest),
    Previews {
        previews: Vec<RulePreview>,
        warnings: Vec<String>,
    },
    /// And whether there are more.
    Obligations {
        rows: Vec<Obligation>,
        more: bool,
    },
}

/// One page.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) route: Route,
    pub(crate) list: List,
    pub(crate) reading: Reading,
    pub(crate) content: Content,
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
            reading: Reading::default(),
            content,
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
