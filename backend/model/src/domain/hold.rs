//! What waits until nothing holds it back, and its outcome.

use crate::domain::{Name, RecordId, Severity};

/// A field that the members of a group share, and what it held when they joined; none where they
/// lacked it.
pub type SharedValue = (String, Option<String>);

/// What can hold a notification back for a while. Numbers are written to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HoldKind {
    /// An operator or the sender suppressed the event. Reported, and never waited for.
    Suppressed = 1,
    /// Something else is open that it is an effect of.
    Inhibition = 2,
    /// A silence covers the event.
    Silence = 3,
    /// It is outside the windows of the rule's calendar.
    ActiveTimes = 4,
    /// The rule waits before it notifies.
    Delay = 5,
    /// The event mostly closes automatically, and the rule waits for that.
    AutoPause = 6,
    /// The rule reports on several occurrences in one message.
    Group = 7,
    /// The event opens and closes too often, and the rule waits until it settles.
    Flapping = 8,
}

impl HoldKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Suppressed,
        Self::Inhibition,
        Self::Silence,
        Self::ActiveTimes,
        Self::Delay,
        Self::AutoPause,
        Self::Group,
        Self::Flapping,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Suppressed => "suppressed",
            Self::Inhibition => "inhibition",
            Self::Silence => "silence",
            Self::ActiveTimes => "active times",
            Self::Delay => "delay",
            Self::AutoPause => "auto-pause",
            Self::Group => "group",
            Self::Flapping => "flapping",
        }
    }
}

/// A named reason why something is not sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBy {
    /// What kind of reason.
    pub kind: HoldKind,
    /// The thing that holds, by identity.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// Its revision then.
    pub revision: u64,
    /// Since when, in milliseconds since 1970.
    pub since_ms: i64,
    /// Until when; none when no time ends it.
    pub until_ms: Option<i64>,
    /// Who is behind it; none where no one is to be named.
    pub author: Option<Name>,
    /// For a group: what its members share.
    pub shared: Vec<SharedValue>,
    /// Why, for people.
    pub detail: String,
}

/// What is decided to be sent and waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The rule, by identity.
    pub rule: RecordId,
    /// Its name.
    pub rule_name: Name,
    /// Whether it is an opening; else those who know are notified of what changed.
    pub is_opening: bool,
    /// Since when it waits, in milliseconds since 1970.
    pub since_ms: i64,
    /// Whether a repeat fell due meanwhile.
    pub repeat_due: bool,
    /// For an update, the state that was last notified, as earlier versions noted it;
    /// [`Notified::last_notified`](super::Notified::last_notified) replaces it.
    pub last_notified: Option<LastNotified>,
    /// What holds it back, in the order in which it was asked; never empty.
    pub held_by: Vec<HeldBy>,
}

impl Pending {
    /// What it waits for together with others of its group; none where it does not.
    pub fn group_hold(&self) -> Option<&HeldBy> {
        self.held_by.iter().find(|it| it.kind == HoldKind::Group)
    }

    /// The group whose next message it waits for; `None` if it waits for none.
    pub fn group(&self) -> Option<GroupRef> {
        let id = self.group_hold()?.id;
        Some(if self.is_opening {
            GroupRef::Key(id)
        } else {
            GroupRef::Id(id)
        })
    }

    /// Whether it waits until the event settles.
    pub fn is_flapping(&self) -> bool {
        let mut held_by = self.held_by.iter();
        held_by.any(|it| it.kind == HoldKind::Flapping)
    }

    /// When to look again, in milliseconds since 1970: at the first moment at which all that holds it
    /// may have ended. None when no time ends it.
    pub fn due_ms(&self) -> Option<i64> {
        let ends = self.held_by.iter().map(|it| it.until_ms);
        let last = ends.collect::<Option<Vec<_>>>()?.into_iter().max()?;
        Some(last)
    }
}

/// A reference to a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupRef {
    /// The group that occurrences join which share that.
    Key(RecordId),
    /// The group of that identity.
    Id(RecordId),
}

/// The state that receivers know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastNotified {
    /// The severity.
    pub severity: Severity,
    /// Whether it was acknowledged.
    pub acknowledged: bool,
}

/// That something of a rule was held, or was not any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldChange {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// The rule, by identity.
    pub rule: RecordId,
    /// What happened.
    pub what: HoldOutcome,
    /// What holds it since then, or held it until then.
    pub held_by: Vec<HeldBy>,
}

/// What happened to something that waits. Numbers are written to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldOutcome {
    /// It waits.
    Waits = 1,
    /// It was sent.
    Released = 2,
    /// An operator had it sent although it was held.
    ReleasedByHand = 3,
    /// Skipped: the occurrence was closed.
    Closed = 4,
    /// Skipped: no trigger of the rule matched any more.
    NoLongerMatched = 5,
    /// Skipped: the rule was disabled.
    RuleDisabled = 6,
    /// Skipped: the rule was deleted.
    RuleDeleted = 7,
    /// Skipped: something that no time ends stood against it, such as a rule without destinations.
    Blocked = 8,
    /// Skipped: the state was again what had been reported.
    Unchanged = 9,
    /// It continues waiting with the next occurrence of the event, which flaps.
    HandedOver = 10,
}

impl HoldOutcome {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Waits,
        Self::Released,
        Self::ReleasedByHand,
        Self::Closed,
        Self::NoLongerMatched,
        Self::RuleDisabled,
        Self::RuleDeleted,
        Self::Blocked,
        Self::Unchanged,
        Self::HandedOver,
    ];

    /// Why something was skipped, for people; none when it was not.
    pub fn skipped_reason(self) -> Option<&'static str> {
        match self {
            Self::Waits | Self::Released | Self::ReleasedByHand | Self::HandedOver => None,
            Self::Closed => Some("the occurrence was closed before"),
            Self::NoLongerMatched => Some("it no longer matched"),
            Self::RuleDisabled => Some("the rule was disabled"),
            Self::RuleDeleted => Some("the rule was deleted"),
            Self::Blocked => Some("another condition prevented it by then"),
            Self::Unchanged => Some("by then the state was as last notified"),
        }
    }
}
