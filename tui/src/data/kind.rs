//! The kinds of stored resource.

/// Makes the kinds and their words from one text.
macro_rules! kinds {
    ($($kind:ident $word:literal $plural:literal $title:literal;)+) => {
        /// A kind of stored resource.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Kind {
            $($kind,)+
        }

        impl Kind {
            /// All of them, in the order of the enumeration.
            pub(crate) const ALL: &[Self] = &[$(Self::$kind),+];

            /// The word for one of them, in lower case.
            pub(crate) fn word(self) -> &'static str {
                match self { $(Self::$kind => $word,)+ }
            }

            /// The word for several, in lower case.
            pub(crate) fn plural(self) -> &'static str {
                match self { $(Self::$kind => $plural,)+ }
            }

            /// What their screen is called.
            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$kind => $title,)+ }
            }
        }
    };
}

kinds! {
    Trigger "trigger" "triggers" "Triggers";
    Destination "destination" "destinations" "Destinations";
    Rule "rule" "rules" "Rules";
    Client "client" "clients" "Clients";
    Silence "silence" "silences" "Silences";
    Calendar "calendar" "calendars" "Calendars";
    Inhibition "inhibition" "inhibitions" "Inhibitions";
    Mapping "mapping" "mappings" "Mappings";
    Group "group" "groups" "Groups";
    Pending "pending" "pending" "Pending";
    View "view" "views" "Views";
}
