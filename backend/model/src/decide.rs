//! Decides which receivers are notified about an occurrence, and records the reason for each rule
//! that does not notify. The decision is pure, made on every change of an occurrence and repeated
//! to explain it.
//!
//! Choices that the contract leaves open:
//! - Rules are evaluated on every change of an occurrence, regardless of its author. A late event
//!   is only counted and does not change the fields that rules evaluate.
//! - Only events repeat notifications: a change by an operator or by ageing can cause an opening
//!   message, but never a repeat.
//! - A closed occurrence matches only triggers that use the status, and its messages contain
//!   `clear`. No one is notified about an occurrence that was suppressed until its close, however
//!   often the close is sent.
//! - A step sends at most one message about a rule to a destination. An update also counts as a
//!   repeat that is due.
//! - A due closing message is sent unless its destination was deleted: editing, disabling or
//!   deleting the rule, or a suppression in between, does not prevent it. It is due if the rule
//!   sends updates at that time, or did when the rule was deleted. It names the trigger of the
//!   opening message; the message of a deleted rule uses the last definition of the rule. Other
//!   updates follow the current rule, and none are sent while the occurrence is suppressed or after
//!   its close. While the occurrence is suppressed or an update is held, the last notified state is
//!   stored; receivers are notified later if the state then differs from it.
//! - A notification that is only held is stored in the occurrence, one per rule, and is
//!   re-evaluated with the current definitions when a hold may have ended. Closing messages are not
//!   held. If the occurrence closes while its opening message is held, the message is skipped. Of
//!   held updates only the last state counts, and no message is sent if it equals the last notified
//!   state and no repeat is due.
//! - A silence that names destinations leaves them out of a rule's messages, except closings. The
//!   destinations are stored with the held notification, and get one message when the silence ends.
//!   Silences that name all destinations of a rule without a policy hold the whole notification.
//! - A rule with grouping sends no separate messages: an occurrence that is not held otherwise
//!   joins a group, waits for the group's next message, and is included by a step of
//!   [`StepKind::NotifyGroup`]. Once reported with a group, the occurrence is always reported with
//!   that group, including its close. An occurrence that matches only when closed is sent on its
//!   own.
//! - An event that opens too often within a rule's window is flapping for that rule until it
//!   neither opens nor closes for a while. Notified receivers get no closing and opening messages
//!   in that time: the next occurrences inherit the due closing message in the same thread, and one
//!   message reports the state once it settles. Other changes are reported immediately.
//! - The decisions of a shadow rule are recorded as if sent, but never make a closing message due.
//!   Once the rule sends, such records are ignored; a rule that becomes a shadow rule still sends
//!   the closing messages that are due.
//! - If an occurrence reopens, the receivers of its closing message get another opening message,
//!   and another closing message becomes due.

mod calendars;
mod causes;
pub mod condition;
mod content;
mod drills;
mod enrichments;
mod flapping;
mod group_message;
mod grouping;
mod heartbeats;
pub mod hold;
mod inhibitions;
mod notify;
mod past;
mod responders;
mod responses;
mod schedules;
mod silences;
mod snapshot;
mod step;
mod time_format;
mod transition;
mod waiting;

pub use calendars::{Calendars, LoadedCalendar};
pub use causes::{CauseKey, CauseQuery, Causes, GroupAt};
pub use condition::{CONDITIONS, Case, Condition, Hold, Tense, Verdict, would_pass_again};
pub use content::{rule_content, update_content, update_trigger};
pub use drills::{end_run, next_due_ms, start_due_run, start_run};
pub use enrichments::{AppliedRow, Enrichments, LoadedEnrichment, NO_ENRICHMENTS, RowPosition};
pub use flapping::{flapping_in_message, hand_over_flapping};
pub use group_message::{
    GroupDecision, GroupMembers, GroupMessage, shown_members, shown_members_max,
};
pub use grouping::{format_shared, group_key, release_key, shared_values};
pub use heartbeats::{
    AlarmFacts, AlarmTexts, Heartbeats, LoadedHeartbeat, alarm_violations, parse_schedule,
};
pub use hold::{OutgoingNotification, SendKind};
pub use inhibitions::{Inhibitions, LoadedInhibition};
pub use notify::{
    MemberNotice, Notices, UnansweredNotice, notified_occurrence, notify, sending_state,
};
use notify::{sends_updates, withdraw_acknowledgement};
pub use past::{NeededRevisions, PastDefinitions};
pub use responders::{PageTarget, Responders, UsableMethod};
pub use responses::{AdvanceContext, AdvanceOutcome, advance};
pub use schedules::{LoadedSchedule, OnCall, OnCallSource, Shift, Shifts};
pub use silences::{LoadedSilence, Silences};
pub use snapshot::{LoadedTrigger, Match, Snapshot};
pub use step::{Step, StepKind};
pub use transition::Transition;
