//! Screens that a key opens, other than the lists of resources.

macro_rules! screens {
    ($($screen:ident $title:literal $is_list:literal;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Screen {
            $($screen,)+
        }

        impl Screen {
            pub(crate) const ALL: &[Self] = &[$(Self::$screen),+];

            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$screen => $title,)+ }
            }

            pub(crate) fn is_list(self) -> bool {
                match self { $(Self::$screen => $is_list,)+ }
            }
        }
    };
}

// The variant, the title, and whether the screen is a list rather than a document.
screens! {
    Overview "Overview" false;
    OnCall "On call" false;
    Events "Events" true;
    Deliveries "Deliveries" true;
    Reference "Reference" false;
}
