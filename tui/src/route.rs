//! Where a page is.

use crate::{data::Kind, keymap::ActionPlace};

/// Where a page is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Overview,
    /// Who is on call, and what waits for an answer.
    OnCall,
    Events,
    /// How many events a filter leaves, by what a field holds.
    EventGroups {
        field: String,
        filter: String,
    },
    /// By the occurrence's id, or by the event's for its newest one.
    Event(String),
    /// The resources of a kind.
    List(Kind),
    /// One of them, by its name.
    Object(Kind, String),
    Deliveries,
    Delivery(String),
    /// The reference topics.
    Reference,
    /// One of them, by its name.
    Topic(String),
    Form,
    /// What a test, a try or a preview brought.
    Report,
}

impl Route {
    /// The screens about people on call, with their titles as tabs, in order.
    pub(crate) const ON_CALL: [(&'static str, Self); 6] = [
        ("Now", Self::OnCall),
        ("Schedules", Self::List(Kind::Schedule)),
        ("Responses", Self::List(Kind::Response)),
        ("Policies", Self::List(Kind::Policy)),
        ("Contacts", Self::List(Kind::Contact)),
        ("Heartbeats", Self::List(Kind::Heartbeat)),
    ];

    /// The screen this belongs to, by its title.
    pub(crate) fn screen(&self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::OnCall => "On call",
            Self::Events | Self::EventGroups { .. } | Self::Event(_) => "Events",
            Self::List(kind) | Self::Object(kind, _) => kind.title(),
            Self::Deliveries | Self::Delivery(_) => "Deliveries",
            Self::Reference | Self::Topic(_) => "Reference",
            Self::Form => "Edit",
            Self::Report => "Test",
        }
    }

    /// The list or index that this is one of.
    pub(crate) fn above(&self) -> Option<Self> {
        Some(match self {
            Self::Event(_) | Self::EventGroups { .. } => Self::Events,
            Self::Object(kind, _) => Self::List(*kind),
            Self::Delivery(_) => Self::Deliveries,
            Self::Topic(_) => Self::Reference,
            _ => return None,
        })
    }

    /// The name or id below the screen; empty for the screen itself.
    pub(crate) fn object(&self) -> &str {
        match self {
            Self::Event(id)
            | Self::Object(_, id)
            | Self::Delivery(id)
            | Self::Topic(id)
            | Self::EventGroups { field: id, .. } => id,
            _ => "",
        }
    }

    /// The kind of resource that it is about.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self {
            Self::List(kind) | Self::Object(kind, _) => Some(*kind),
            _ => None,
        }
    }

    /// Whether it shows a list.
    pub(crate) fn is_list(&self) -> bool {
        matches!(
            self,
            Self::Events | Self::EventGroups { .. } | Self::List(_) | Self::Deliveries
        )
    }

    /// Where actions look for their keys here, the most particular place first.
    pub(crate) fn places(&self) -> [ActionPlace; 3] {
        let own = match self {
            Self::Overview => ActionPlace::Overview,
            Self::OnCall => ActionPlace::OnCall,
            Self::Events => ActionPlace::Events,
            Self::EventGroups { .. } => ActionPlace::EventGroups,
            Self::Event(_) => ActionPlace::Event,
            Self::List(kind) => ActionPlace::Many(*kind),
            Self::Object(kind, _) => ActionPlace::One(*kind),
            Self::Deliveries => ActionPlace::Deliveries,
            Self::Delivery(_) => ActionPlace::Delivery,
            Self::Reference | Self::Topic(_) => ActionPlace::Reference,
            Self::Form => ActionPlace::Form,
            Self::Report => ActionPlace::Report,
        };
        own.around()
    }
}
