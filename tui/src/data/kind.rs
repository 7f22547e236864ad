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
    ($($kind:ident $word:literal $plural:literal $title:literal $author:ident
        [$($key:literal),+] $help:literal;)+) => {
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

            /// Returns the keys that open the list, and their help.
            pub(crate) fn keys_and_help(self) -> (&'static [&'static str], &'static str) {
                match self { $(Self::$kind => (&[$($key),+], $help),)+ }
            }

            fn author(self) -> Author {
                match self { $(Self::$kind => Author::$author,)+ }
            }
        }
    };
}

kinds! {
    Trigger "trigger" "triggers" "Triggers" Operators
        ["3", "gt"] "Go to Triggers";
    Destination "destination" "destinations" "Destinations" Operators
        ["4", "gd"] "Go to Destinations";
    Rule "rule" "rules" "Rules" Operators
        ["5", "gr"] "Go to Rules";
    Client "client" "clients" "Clients" Issued
        ["7", "gc"] "Go to Clients";
    Silence "silence" "silences" "Silences" Operators
        ["0", "gs"] "Go to Silences";
    Calendar "calendar" "calendars" "Calendars" Operators
        ["ga", "<A-0>"] "Go to Calendars";
    Inhibition "inhibition" "inhibitions" "Inhibitions" Operators
        ["gi", "<A-9>"] "Go to Inhibitions";
    Mapping "mapping" "mappings" "Mappings" Operators
        ["gx", "<A-8>"] "Go to Mappings: webhooks from any service as events";
    Group "group" "groups" "Groups" Service
        ["gu", "<A-7>"] "Go to Groups: events that share one message";
    Pending "pending" "pending" "Pending" Service
        ["gp", "<A-6>"] "Go to Pending: held notifications";
    Enrichment "enrichment" "enrichments" "Enrichment tables" Operators
        ["gE"] "Go to Enrichments: metadata added to events";
    View "view" "views" "Views" Operators
        ["gv", "<A-5>"] "Go to Views: saved lists of events";
    Heartbeat "heartbeat" "heartbeats" "Heartbeats" Operators
        ["gh", "<A-h>"] "Go to Heartbeats: signals expected on a schedule";
    Contact "contact" "contacts" "Contacts" Operators
        ["gC", "<A-2>"] "Go to Contacts: people, and how they are notified";
    Schedule "schedule" "schedules" "Schedules" Operators
        ["gS", "<A-4>"] "Go to Schedules: who is on call, and when";
    Policy "policy" "policies" "Escalation policies" Operators
        ["gP", "<A-3>"] "Go to Escalation policies: who is notified next";
    Response "response" "responses" "Responses" Service
        ["gR", "<A-1>"] "Go to Responses: who is paged, and the next step";
    Drill "drill" "drills" "Drills" Operators
        ["gD"] "Go to Drills: scheduled tests of the way to the person on call";
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
