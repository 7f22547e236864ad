//! Who is notified of what, and what stands against it: one pure decision, made when an occurrence
//! changes and asked again when it is explained.
//!
//! What the contract leaves open is decided here:
//! - An event is a match whatever it does, a close or a late event too. A rule that does not want
//!   closed occurrences says so in a trigger. Only a close that ends a suppression opens nothing:
//!   nobody was to hear of that occurrence.
//! - What an operator or ageing changes is a match only for rules that did not match before. It
//!   opens, and never repeats: a repeat is news from a sender.
//! - A step sends one message about a rule to a destination. When an update goes out, it also
//!   stands for a repeat that is due.
//! - The obligation to close beats everything but a destination that no longer exists: an edited,
//!   disabled or deleted rule and a suppression in between do not stop the closing message. It
//!   names the trigger of the opening message; a deleted rule's text is the one it had then. Other
//!   updates follow the rule as it is now, and none are sent while suppressed or after the close.
//!   Whoever hears of an occurrence again after it was reopened is owed its close again.

pub mod condition;
mod content;
mod notify;
mod past;
mod snapshot;
mod transition;

pub use condition::{CONDITIONS, Case, Condition, Hold, Tense, Verdict};
pub use content::rule_content;
pub use notify::{Notices, Step, StepKind, notify};
pub use past::Past;
pub use snapshot::{LoadedTrigger, Match, Snapshot};
pub use transition::Transition;
