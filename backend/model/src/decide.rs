//! Who is notified of what, and what stands against it: one pure decision, made when an occurrence
//! changes and asked again when it is explained.
//!
//! What the contract leaves open is decided here:
//! - Rules are asked at every change of an occurrence, regardless of who made it. An event that
//!   comes too late only counts, and changes nothing that they look at.
//! - A repeat is news from a sender: what an operator or ageing changes opens, and never repeats.
//! - What is closed is matched by triggers that speak of the status only, and its messages say
//!   `clear`. No one is notified of what was suppressed until its close, however often that comes.
//! - A step sends one message about a rule to a destination. When an update goes out, it also
//!   stands for a repeat that is due.
//! - The obligation to close beats everything but a destination that no longer exists: an edited,
//!   disabled or deleted rule and a suppression in between do not stop the closing message, which
//!   is outstanding when the rule sends updates at that time, or did when it was deleted. It names
//!   the trigger of the opening message; a deleted rule's text is the one it had then. Other
//!   updates follow the rule as it is now, and none are sent while suppressed or after the close.
//!   An entry keeps the state that was last notified while the occurrence is suppressed or something
//!   holds the update; receivers are notified afterwards if it is another one by then.
//! - What only holds postpone waits in the occurrence, one entry a rule, and is re-evaluated when a
//!   hold may have ended, by the definitions of that moment; closings wait for nothing. What closes
//!   while its opening waits is skipped. Of updates that wait only the last state counts, and
//!   nothing is sent when it is the one that was reported last and no repeat fell due.
//! - A rule that groups sends nothing separately: what nothing else holds joins a group, waits for
//!   its next message, and is included when that is created, with [`StepKind::NotifyGroup`]. What a
//!   group reported, closings as well, is reported on with the group. What matches only when it is
//!   closed goes alone.
//! - An event that opens too often within a rule's window flaps for it, until nothing opened or
//!   closed for a while. Who was notified of it hears neither that it closes nor that it opens
//!   meanwhile: the next occurrences take over the outstanding closing, in the same thread, and
//!   when it settles one message shows how it stands. Other changes are reported immediately.
//! - What a shadow rule decides is recorded as if it were sent, and no resolution is outstanding by
//!   it. As soon as the rule sends, what was only recorded counts for nothing; a rule that became a
//!   shadow still sends the outstanding closings.
//! - A receiver of the closing message of what is open again gets an opening message again, and the
//!   next closing is outstanding.

mod calendars;
mod causes;
pub mod condition;
mod content;
mod flapping;
mod group_message;
mod grouping;
mod heartbeats;
pub mod hold;
mod inhibitions;
mod moment;
mod notify;
mod past;
mod responders;
mod responses;
mod schedules;
mod silences;
mod snapshot;
mod step;
mod transition;
mod waiting;

pub use calendars::{Calendars, LoadedCalendar};
pub use causes::{CauseKey, CauseQuery, Causes, GroupAt};
pub use condition::{CONDITIONS, Case, Condition, Hold, Tense, Verdict, would_pass_again};
pub use content::{of_update, rule_content, trigger_of_update};
pub use flapping::{hand_over, reported as reported_flapping};
pub use group_message::{GroupDecision, GroupMembers, GroupMessage, shown_members};
pub use grouping::{freed_key, group_key, shared_text, shared_values};
pub use heartbeats::{AlarmFacts, AlarmTexts, Heartbeats, LoadedHeartbeat, alarm_faults, cron};
pub use hold::{HOLDS, HoldCondition, SendKind, Sending};
pub use inhibitions::{Inhibitions, LoadedInhibition};
pub use notify::{MemberNotice, Notices, Unanswered, as_notified, notify, sending_state};
pub use past::{Past, Wanted};
pub use responders::{Page, Responders, Usable};
pub use responses::{Advance, Asked, advance};
pub use schedules::{LoadedSchedule, OnCall, OnCallSource, Shift, Shifts};
pub use silences::{LoadedSilence, Silences};
pub use snapshot::{LoadedTrigger, Match, Snapshot};
pub use step::{Step, StepKind};
pub use transition::Transition;
