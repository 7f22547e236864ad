//! Screens that a key opens, other than the lists of resources.

macro_rules! screens {
    ($($screen:ident $name:literal $title:literal $is_list:literal
        [$($key:literal),+] $help:literal;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Screen {
            $($screen,)+
        }

        impl Screen {
            pub(crate) const ALL: &[Self] = &[$(Self::$screen),+];

            /// Returns the name in the palette.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$screen => $name,)+ }
            }

            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$screen => $title,)+ }
            }

            pub(crate) fn is_list(self) -> bool {
                match self { $(Self::$screen => $is_list,)+ }
            }

            /// Returns the keys that open the screen, and their help.
            pub(crate) fn keys_and_help(self) -> (&'static [&'static str], &'static str) {
                match self { $(Self::$screen => (&[$($key),+], $help),)+ }
            }
        }
    };
}

// The variant, the name in the palette, the title, whether the screen is a list rather than a
// document, the keys, and their help.
screens! {
    Overview "overview" "Overview" false
        ["1", "gw"] "Go to Overview";
    OnCall "on call" "On call" false
        ["8", "go", "<A-w>"] "Go to On call: who is on call, and pending responses";
    Events "events" "Events" true
        ["2", "ge"] "Go to Events";
    Deliveries "deliveries" "Deliveries" true
        ["6", "gm"] "Go to Deliveries";
    Reference "reference" "Reference" false
        ["9", "gf"] "Go to Reference: templates, queries, fields, messages, chat setup";
}
