//! A page in the history: its route, cursor and state.

use std::{any::Any, fmt};

use bellwether_proto::v1;

use super::{
    Model,
    form::Form,
    inquiry::{Inquiry, Outcome},
    list::List,
    loaded::{Loaded, Slot},
    sort::Sort,
};
use crate::{
    client::{Progress, Ticket},
    data::Kind,
    route::Route,
};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DocumentCursor {
    pub(crate) cursor: usize,
    pub(crate) top: usize,
}

impl DocumentCursor {
    pub(crate) fn clamp(&mut self, count: usize, height: usize) {
        let height = height.max(1);
        self.cursor = self.cursor.min(count.saturating_sub(1));
        self.top = self.top.min(self.cursor).min(count.saturating_sub(height));
        if self.cursor >= self.top + height {
            self.top = self.cursor + 1 - height;
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tab {
    #[default]
    Details,
    Notes,
    Explain,
}

impl Tab {
    pub(crate) const ALL: [Self; 3] = [Self::Details, Self::Notes, Self::Explain];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Details => "Details",
            Self::Notes => "Notes and history",
            Self::Explain => "Explain",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) enum Content {
    #[default]
    None,
    Event {
        detail: Box<Loaded<v1::Event>>,
        explanation: Box<Loaded<v1::ExplainEventResponse>>,
        tab: Tab,
    },
    /// The response shown on the page, as a [`Loaded`] value.
    Response(Box<dyn Slot>),
    Form(Box<Form>),
    Report(Box<Report>),
}

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) title: String,
    pub(crate) inquiry: Inquiry,
    pub(crate) started_ms: i64,
    pub(crate) found: Loaded<Outcome>,
    pub(crate) progress: Option<Progress>,
}

impl Content {
    /// Returns the response that the page shows, if it has this type.
    pub(crate) fn response<T: fmt::Debug + Send + 'static>(&self) -> Option<&Loaded<T>> {
        match self {
            Self::Response(slot) => (&**slot as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    pub(crate) fn response_mut<T: fmt::Debug + Send + 'static>(
        &mut self,
    ) -> Option<&mut Loaded<T>> {
        match self {
            Self::Response(slot) => (&mut **slot as &mut dyn Any).downcast_mut(),
            _ => None,
        }
    }
}

impl Model {
    /// Returns the data of a page in the history that waits for this response.
    pub(crate) fn waiting_slot<T>(
        &mut self,
        ticket: Ticket,
        slot: fn(&mut Content) -> Option<&mut Loaded<T>>,
    ) -> Option<&mut Loaded<T>> {
        let pages = std::iter::once(&mut self.page)
            .chain(&mut self.back)
            .chain(&mut self.forward);
        let mut slots = pages.filter_map(|page| slot(&mut page.content));
        slots.find(|loaded| loaded.waiting == Some(ticket))
    }
}

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) route: Route,
    pub(crate) list: List,
    pub(crate) reading: DocumentCursor,
    pub(crate) content: Content,
    pub(crate) is_unfolded: bool,
}

impl Page {
    pub(crate) fn new(route: Route) -> Self {
        let content = match route {
            Route::Event(_) => Content::Event {
                detail: Box::default(),
                explanation: Box::default(),
                tab: Tab::Details,
            },
            _ => Content::None,
        };
        let mut list = List::default();
        if route == Route::List(Kind::Destination) {
            list.sort = Some(Sort {
                column: "Health",
                descending: false,
            });
        }
        Self {
            route,
            list,
            reading: DocumentCursor::default(),
            content,
            is_unfolded: false,
        }
    }

    /// Returns the screen that the page belongs to, however it was opened.
    pub(crate) fn home_route(&self) -> Route {
        let route = match &self.content {
            Content::Form(form) => Route::List(form.kind),
            Content::Report(report) => report.inquiry.screen(),
            _ => self.route.clone(),
        };
        route.parent().unwrap_or(route)
    }

    pub(crate) fn inquiry(&self) -> Option<&Inquiry> {
        match &self.content {
            Content::Report(report) => Some(&report.inquiry),
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
