//! Kinds of stored resources.

#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    /// Created, edited and deleted by operators.
    Operators,
    /// Created and revoked by operators; a list contains all of their details.
    Issued,
    /// Created and deleted by the service only.
    Service,
}

macro_rules! kinds {
    ($($kind:ident $word:literal $plural:literal $title:literal $author:ident;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Kind {
            $($kind,)+
        }

        impl Kind {
            pub(crate) const ALL: &[Self] = &[$(Self::$kind),+];

            pub(crate) fn singular(self) -> &'static str {
                match self { $(Self::$kind => $word,)+ }
            }

            pub(crate) fn plural(self) -> &'static str {
                match self { $(Self::$kind => $plural,)+ }
            }

            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$kind => $title,)+ }
            }

            fn author(self) -> Author {
                match self { $(Self::$kind => Author::$author,)+ }
            }
        }
    };
}

kinds! {
    Trigger "trigger" "triggers" "Triggers" Operators;
    Destination "destination" "destinations" "Destinations" Operators;
    Rule "rule" "rules" "Rules" Operators;
    Client "client" "clients" "Clients" Issued;
    Silence "silence" "silences" "Silences" Operators;
    Calendar "calendar" "calendars" "Calendars" Operators;
    Inhibition "inhibition" "inhibitions" "Inhibitions" Operators;
    Mapping "mapping" "mappings" "Mappings" Operators;
    Group "group" "groups" "Groups" Service;
    Pending "pending" "pending" "Pending" Service;
    Enrichment "enrichment" "enrichments" "Enrichment tables" Operators;
    View "view" "views" "Views" Operators;
    Heartbeat "heartbeat" "heartbeats" "Heartbeats" Operators;
    Contact "contact" "contacts" "Contacts" Operators;
    Schedule "schedule" "schedules" "Schedules" Operators;
    Policy "policy" "policies" "Escalation policies" Operators;
    Response "response" "responses" "Responses" Service;
    Drill "drill" "drills" "Drills" Operators;
}

impl Kind {
    pub(crate) fn is_edited(self) -> bool {
        self.author() == Author::Operators
    }

    pub(crate) fn is_created(self) -> bool {
        self.author() != Author::Service
    }

    pub(crate) fn has_page(self) -> bool {
        self.author() != Author::Issued
    }
}
