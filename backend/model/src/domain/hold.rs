//! Held notifications: the reasons why they are held, and their outcome.

use crate::domain::{Name, RecordId, Severity};

/// A field shared by the members of a group, and its value when they joined; `None` if missing.
pub type SharedValue = (String, Option<String>);

/// The reason why a notification is held. The numbers are stored on disk, and are those of
/// `HoldKind` on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HoldKind {
    /// An operator or the sender suppressed the event. The hold is reported, but notifications do
    /// not wait for its end.
    Suppressed = 1,
    /// An open source of an inhibition matches.
    Inhibition = 2,
    Silence = 3,
    /// The time is outside the windows of the rule's calendar.
    ActiveTimes = 4,
    Delay = 5,
    /// The event usually closes without intervention, and the rule waits for the close.
    AutoPause = 6,
    /// The rule reports several occurrences in one message.
    Group = 7,
    /// The event opens and closes too often, and the rule waits until it settles.
    Flapping = 8,
}

impl HoldKind {
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

    pub fn as_str(self) -> &'static str {
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

    /// Whether the hold ends a certain time after its start, so that a clock step shifts the end.
    /// Other holds end at a time of day, or have no known end.
    pub(super) fn has_relative_end(self) -> bool {
        !matches!(self, Self::Suppressed | Self::Silence | Self::ActiveTimes)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBy {
    pub kind: HoldKind,
    pub id: RecordId,
    pub name: Name,
    /// The revision of the holding resource when the hold began.
    pub revision: u64,
    pub since_ms: i64,
    /// End of the hold, in milliseconds since 1970; `None` if it has no known end.
    pub until_ms: Option<i64>,
    pub author: Option<Name>,
    /// For a group, the fields that its members share.
    pub shared: Vec<SharedValue>,
    pub detail: String,
}

/// A notification that was decided and is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub rule: RecordId,
    pub rule_name: Name,
    /// Whether the notification is an opening message, rather than an update to notified receivers.
    pub is_opening: bool,
    pub since_ms: i64,
    /// Whether a repeat became due in the meantime.
    pub repeat_due: bool,
    /// For an update, the last notified state, as stored by earlier versions. Replaced by
    /// [`Notified::last_notified`](super::Notified::last_notified).
    pub last_notified: Option<LastNotified>,
    /// The holds, in order of evaluation; never empty.
    pub held_by: Vec<HeldBy>,
    /// Destinations left out of messages to other receivers, because a silence names them.
    pub left_out: Vec<Name>,
}

impl HeldBy {
    /// Returns the details, without the end of the hold.
    pub fn describe(&self) -> String {
        let Self { name, detail, .. } = self;
        match self.kind {
            HoldKind::Silence => {
                let author = self.author.as_ref().map_or("", Name::as_str);
                format!("`{name}` ({author}, \u{ab}{detail}\u{bb})")
            }
            HoldKind::Inhibition => format!("`{name}` ({detail})"),
            _ => detail.clone(),
        }
    }

    /// Returns the kind with the details, such as "delay (the event must match for 1 h)".
    pub fn kind_with_details(&self) -> String {
        let (kind, detail) = (self.kind.as_str(), self.describe());
        match self.kind {
            HoldKind::Silence | HoldKind::Inhibition => format!("{kind} {detail}"),
            _ => format!("{kind} ({detail})"),
        }
    }

    /// Returns the earliest time at which all holds may have ended, in milliseconds since 1970.
    /// `None` if there are no holds, or if one of them has no end time.
    pub fn last_end_ms(holds: &[Self]) -> Option<i64> {
        let ends = holds.iter().map(|it| it.until_ms);
        ends.collect::<Option<Vec<_>>>()?.into_iter().max()
    }
}

impl Pending {
    pub fn group_hold(&self) -> Option<&HeldBy> {
        self.held_by.iter().find(|it| it.kind == HoldKind::Group)
    }

    /// Returns the group whose next message the notification waits for, if any.
    pub fn group(&self) -> Option<GroupRef> {
        let id = self.group_hold()?.id;
        Some(if self.is_opening {
            GroupRef::Key(id)
        } else {
            GroupRef::Id(id)
        })
    }

    /// Whether the notification is held until the event settles.
    pub fn is_flapping(&self) -> bool {
        let mut held_by = self.held_by.iter();
        held_by.any(|it| it.kind == HoldKind::Flapping)
    }

    /// Returns the time of the next evaluation, in milliseconds since 1970: the earliest time at
    /// which all holds may have ended. `None` if no such time is known.
    pub fn due_ms(&self) -> Option<i64> {
        HeldBy::last_end_ms(&self.held_by)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupRef {
    /// The group of occurrences with this key of shared values.
    Key(RecordId),
    Id(RecordId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastNotified {
    pub severity: Severity,
    pub acknowledged: bool,
}

/// A change of the holds on a rule's notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldChange {
    pub at_ms: i64,
    pub rule: RecordId,
    pub what: HoldOutcome,
    /// The holds from this time on, or the holds that ended.
    pub held_by: Vec<HeldBy>,
}

/// The outcome of a hold. The numbers are stored on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldOutcome {
    Waits = 1,
    Released = 2,
    /// An operator released the notification despite the hold.
    ReleasedByHand = 3,
    /// Skipped: the occurrence was closed.
    Closed = 4,
    /// Skipped: no trigger of the rule matches any more.
    NoLongerMatched = 5,
    RuleDisabled = 6,
    RuleDeleted = 7,
    /// Skipped: blocked by a condition that does not clear with time, such as the rule having no
    /// destinations.
    Blocked = 8,
    /// Skipped: the state is again the last notified one.
    Unchanged = 9,
    /// The hold continues with the next occurrence of the flapping event.
    HandedOver = 10,
}

impl HoldOutcome {
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

    /// Returns the reason why the notification was skipped; `None` if it was not.
    pub fn skipped_reason(self) -> Option<&'static str> {
        match self {
            Self::Waits | Self::Released | Self::ReleasedByHand | Self::HandedOver => None,
            Self::Closed => Some("the occurrence was already closed"),
            Self::NoLongerMatched => Some("no longer matched"),
            Self::RuleDisabled => Some("the rule was disabled"),
            Self::RuleDeleted => Some("the rule was deleted"),
            Self::Blocked => Some("prevented by another condition"),
            Self::Unchanged => Some("the state was unchanged since the last notification"),
        }
    }
}
