//! What people define, of whichever kind.

use crate::domain::{
    Calendar, Client, Destination, Inhibition, IntakeMapping, Rule, SavedView, Silence, Trigger,
};

/// Continues with the kinds of what people define: the number of each in entries of the audit log, its
/// word, its type, and its tags. What stands after the name of a macro is handed to it before them.
#[macro_export]
macro_rules! each_resource {
    ($then:ident $($context:tt)*) => {
        $then! {
            $($context)*
            1 trigger Trigger(Trigger) |it| &it.tags;
            2 destination Destination(Destination) |it| &it.tags;
            3 rule Rule(Rule) |it| &it.tags;
            4 silence Silence(Silence) |it| &it.tags;
            5 client Client(Client) |_| &[];
            6 calendar Calendar(Calendar) |it| &it.tags;
            7 inhibition Inhibition(Inhibition) |it| &it.tags;
            8 mapping Mapping(IntakeMapping) |it| &it.tags;
            9 view View(SavedView) |it| &it.tags;
        }
    };
}
pub use each_resource;

macro_rules! any_resource {
    ($($number:literal $word:ident $kind:ident($type:ident) $tags:expr;)+) => {
        /// A resource as it was at the time. Once it was stored, its secrets are empty.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AnyResource {
            $(#[doc = concat!("Of the kind `", stringify!($word), "`.")]
            $kind($type),)+
        }

        impl AnyResource {
            /// The words for their kinds.
            pub const WORDS: &[&str] = &[$(stringify!($word)),+];

            /// The tags that it carries; none for a client, which has none.
            pub fn tags(&self) -> &[String] {
                match self {
                    $(Self::$kind(it) => {
                        let tags: fn(&$type) -> &[String] = $tags;
                        tags(it)
                    })+
                }
            }
        }
    };
}
each_resource!(any_resource);

impl AnyResource {
    /// The secrets in it that are other ones than before, as paths.
    pub fn changed_secrets(&self, before: Option<&Self>) -> Vec<String> {
        match (self, before) {
            (Self::Destination(after), None) => after.changed_secrets(None),
            (Self::Destination(after), Some(Self::Destination(before))) => {
                after.changed_secrets(Some(before))
            }
            (Self::Mapping(after), Some(Self::Mapping(before))) => {
                after.changed_secrets(Some(before))
            }
            (Self::Mapping(after), _) => after.changed_secrets(None),
            (Self::Client(after), Some(Self::Client(before)))
                if after.key_hash == before.key_hash =>
            {
                Vec::new()
            }
            (Self::Client(_), _) => vec!["key".into()],
            _ => Vec::new(),
        }
    }
}
