//! Routes of pages.

use crate::{
    data::{Kind, Screen},
    keymap::ActionPlace,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Screen(Screen),
    EventGroups {
        field: String,
        filter: String,
    },
    /// An event, by occurrence id, or by event id for its newest occurrence.
    Event(String),
    List(Kind),
    Object(Kind, String),
    Delivery(String),
    Topic(String),
    Form,
    Report,
}

impl Route {
    pub(crate) const OVERVIEW: Self = Self::Screen(Screen::Overview);
    pub(crate) const ON_CALL: Self = Self::Screen(Screen::OnCall);
    pub(crate) const EVENTS: Self = Self::Screen(Screen::Events);
    pub(crate) const DELIVERIES: Self = Self::Screen(Screen::Deliveries);
    pub(crate) const REFERENCE: Self = Self::Screen(Screen::Reference);

    pub(crate) const ON_CALL_TABS: [(&'static str, Self); 6] = [
        ("Now", Self::ON_CALL),
        ("Schedules", Self::List(Kind::Schedule)),
        ("Responses", Self::List(Kind::Response)),
        ("Policies", Self::List(Kind::Policy)),
        ("Contacts", Self::List(Kind::Contact)),
        ("Heartbeats", Self::List(Kind::Heartbeat)),
    ];

    pub(crate) fn screen_name(&self) -> &'static str {
        match self {
            Self::Screen(screen) => screen.title(),
            Self::EventGroups { .. } | Self::Event(_) => Screen::Events.title(),
            Self::List(kind) | Self::Object(kind, _) => kind.title(),
            Self::Delivery(_) => Screen::Deliveries.title(),
            Self::Topic(_) => Screen::Reference.title(),
            Self::Form => "Edit",
            Self::Report => "Test",
        }
    }

    pub(crate) fn parent(&self) -> Option<Self> {
        Some(match self {
            Self::Event(_) | Self::EventGroups { .. } => Self::EVENTS,
            Self::Object(kind, _) => Self::List(*kind),
            Self::Delivery(_) => Self::DELIVERIES,
            Self::Topic(_) => Self::REFERENCE,
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
        match self {
            Self::Screen(screen) => screen.is_list(),
            Self::EventGroups { .. } | Self::List(_) => true,
            _ => false,
        }
    }

    /// Returns the places whose key bindings apply, most specific first.
    pub(crate) fn key_places(&self) -> [ActionPlace; 3] {
        let own = match self {
            Self::Screen(screen) => ActionPlace::Screen(*screen),
            Self::EventGroups { .. } => ActionPlace::EventGroups,
            Self::Event(_) => ActionPlace::Event,
            Self::List(kind) => ActionPlace::Many(*kind),
            Self::Object(kind, _) => ActionPlace::One(*kind),
            Self::Delivery(_) => ActionPlace::Delivery,
            Self::Topic(_) => ActionPlace::Screen(Screen::Reference),
            Self::Form => ActionPlace::Form,
            Self::Report => ActionPlace::Report,
        };
        own.enclosing_places()
    }
}
