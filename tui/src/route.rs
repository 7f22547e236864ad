//! Routes of pages.

use crate::{data::Kind, keymap::ActionPlace};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Overview,
    OnCall,
    Events,
    EventGroups {
        field: String,
        filter: String,
    },
    /// An event, by occurrence id, or by event id for its newest occurrence.
    Event(String),
    List(Kind),
    Object(Kind, String),
    Deliveries,
    Delivery(String),
    Reference,
    Topic(String),
    Form,
    Report,
}

impl Route {
    pub(crate) const ON_CALL: [(&'static str, Self); 6] = [
        ("Now", Self::OnCall),
        ("Schedules", Self::List(Kind::Schedule)),
        ("Responses", Self::List(Kind::Response)),
        ("Policies", Self::List(Kind::Policy)),
        ("Contacts", Self::List(Kind::Contact)),
        ("Heartbeats", Self::List(Kind::Heartbeat)),
    ];

    pub(crate) fn screen_name(&self) -> &'static str {
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

    pub(crate) fn parent(&self) -> Option<Self> {
        Some(match self {
            Self::Event(_) | Self::EventGroups { .. } => Self::Events,
            Self::Object(kind, _) => Self::List(*kind),
            Self::Delivery(_) => Self::Deliveries,
            Self::Topic(_) => Self::Reference,
            _ => return None,
        })
    }

    /// Returns the name or id below the screen; empty for the screen itself.
    pub(crate) fn object_name(&self) -> &str {
        match self {
            Self::Event(id)
            | Self::Object(_, id)
            | Self::Delivery(id)
            | Self::Topic(id)
            | Self::EventGroups { field: id, .. } => id,
            _ => "",
        }
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        match self {
            Self::List(kind) | Self::Object(kind, _) => Some(*kind),
            _ => None,
        }
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(
            self,
            Self::Events | Self::EventGroups { .. } | Self::List(_) | Self::Deliveries
        )
    }

    /// Returns the places whose key bindings apply, most specific first.
    pub(crate) fn key_places(&self) -> [ActionPlace; 3] {
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
        own.enclosing_places()
    }
}
