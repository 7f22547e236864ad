//! What postpones a notification that nothing else stands against: one row a kind of hold, all asked
//! each time.

mod active_times;
mod auto_pause;
mod delay;
pub(super) mod flapping;
mod group;
mod inhibition;
mod silence;

use super::{Calendars, LoadedSilence, Snapshot, Tense};
use crate::domain::{Earlier, HeldBy, HoldKind, Name, Occurrence, Pending, Rule, Status};

/// Something that is to be sent by one rule about one occurrence.
#[derive(Debug, Clone, Copy)]
pub struct Sending<'a> {
    /// The rule's name.
    pub rule_name: &'a Name,
    /// The rule; none when it is deleted.
    pub rule: Option<&'a Rule>,
    /// The silences in force that cover the occurrence.
    pub covering: &'a [&'a LoadedSilence],
    /// What holds the occurrence as the effect of something else.
    pub inhibited: &'a [HeldBy],
    /// The calendars that rules refer to.
    pub calendars: &'a Calendars,
    /// The occurrences of the event before it.
    pub earlier: &'a [Earlier],
    /// What holds it while the event flaps.
    pub flapping: Option<&'a HeldBy>,
    /// What it waits for together with others of its group, when nothing else holds it.
    pub group: Option<&'a HeldBy>,
    /// Whether no one takes the occurrence for open yet.
    pub is_opening: bool,
    /// Whether it repeats what is open.
    pub is_repeat: bool,
    /// Since when it is to be sent, in milliseconds since 1970.
    pub first_ms: i64,
    /// When it is decided, in milliseconds since 1970.
    pub now_ms: i64,
}

/// What a rule is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendKind {
    /// Its first message about the occurrence.
    Opening,
    /// A repeat of what is open.
    Repeat,
    /// An update.
    Update,
}

impl<'a> Sending<'a> {
    /// What a rule is to send about an occurrence, of which something may wait already. The silences in force that
    /// cover the occurrence, what holds it as an effect, and its group are left to be set.
    pub fn new(
        (rule_name, rule): (&'a Name, Option<&'a Rule>),
        (kind, waits): (SendKind, Option<&'a Pending>),
        occurrence: &'a Occurrence,
        snapshot: &'a Snapshot,
        now_ms: i64,
    ) -> Self {
        // What is closed already is reported when it matches, or never.
        let is_open = occurrence.status != Status::Closed;
        Self {
            rule_name,
            rule,
            covering: &[],
            inhibited: &[],
            calendars: snapshot.calendars(),
            earlier: &occurrence.earlier,
            flapping: None,
            group: None,
            is_opening: kind == SendKind::Opening && is_open,
            is_repeat: kind == SendKind::Repeat && is_open,
            first_ms: waits
                .filter(|it| it.is_opening)
                .map_or(now_ms, |it| it.since_ms),
            now_ms,
        }
    }
}

impl Sending<'_> {
    /// Everything that holds it back, in order.
    pub fn held_by(&self) -> Vec<HeldBy> {
        let each = HOLDS.iter().map(|hold| (hold.held_by)(self));
        let mut all: Vec<_> = each.flatten().collect();
        // What something else holds joins no group.
        if all.iter().any(|it| it.kind != HoldKind::Group) {
            all.retain(|it| it.kind != HoldKind::Group);
        }
        all
    }
}

/// One kind of reason to postpone.
#[derive(Debug)]
pub struct HoldCondition {
    /// What it is called.
    pub name: &'static str,
    /// Which kind it is.
    pub kind: HoldKind,
    /// What holds the message back now; empty when it lets it pass.
    pub held_by: fn(&Sending<'_>) -> Vec<HeldBy>,
    /// What it saw, for people; of those of its kind that hold.
    pub detail: fn(&[HeldBy], Tense) -> String,
}

/// All of them, in the order in which they are asked.
pub static HOLDS: [HoldCondition; 7] = [
    inhibition::HOLD,
    silence::HOLD,
    active_times::HOLD,
    delay::HOLD,
    auto_pause::HOLD,
    flapping::HOLD,
    group::HOLD,
];

/// The holds of one kind among all, and what there is to say of them; none when there is none.
pub fn of_kind(all: &[HeldBy], hold: &HoldCondition, tense: Tense) -> Option<String> {
    let own = all.iter().filter(|it| it.kind == hold.kind);
    let own: Vec<_> = own.cloned().collect();
    (!own.is_empty()).then(|| (hold.detail)(&own, tense))
}

/// A length of time for people.
fn length(ms: i64) -> String {
    match (ms / 60_000, ms % 60_000) {
        (minutes, 0) if minutes % 60 == 0 => format!("{} h", minutes / 60),
        (minutes, 0) => format!("{minutes} min"),
        _ => format!("{} s", ms.saturating_add(999) / 1_000),
    }
}
