//! The order in which a backlog is sent: by severity and then by age, and in order within each
//! thread.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use crate::{
    delivery::breaker::{self, Probe},
    domain::{Delivery, DeliveryState, RecordId, Severity},
    ops::delivery::sequencing::waits_for_whole_thread,
};

/// Deferrals of a message after which other messages of its severity are sent first.
const DEFERRALS: u32 = 2;
/// Deferrals after which a message whose earlier attempt may have been delivered is no longer sent
/// before its due time.
const UNKNOWN_EARLY_MAX: u32 = 10;

/// The messages of a rule to a destination that belong together.
pub(crate) type ThreadKey = (Option<RecordId>, RecordId);

/// The properties that determine the position of a delivery in a backlog.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rank {
    severity: Severity,
    thread_position: (RecordId, RecordId),
    /// The thread; `None` if the delivery waits for no other delivery.
    thread: Option<ThreadKey>,
    is_closing: bool,
    waits_for_all: bool,
    /// Whether the delivery may be tried before it is due, because the receiver failed.
    may_be_early: bool,
    attempts: u32,
    deferrals: u32,
}

impl Rank {
    pub(crate) fn from_delivery(delivery: &Delivery) -> Self {
        let thread = (delivery.rule, delivery.thread_id());
        let is_retry = matches!(delivery.state, DeliveryState::Retry { .. });
        // A receiver that accepts messages but responds too late would receive the message
        // repeatedly.
        let is_repeated = delivery.may_have_arrived && delivery.deferrals >= UNKNOWN_EARLY_MAX;
        Self {
            severity: delivery.content.occurrence.severity,
            thread_position: delivery.thread_position(),
            thread: delivery.thread_state().map(|_| thread),
            is_closing: delivery.is_closing(),
            waits_for_all: waits_for_whole_thread(delivery),
            may_be_early: is_retry && delivery.awaits_receiver && !is_repeated,
            attempts: delivery.attempts,
            deferrals: delivery.deferrals,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitReason {
    pub(crate) id: RecordId,
    pub(crate) due_ms: i64,
    pub(crate) rank: Rank,
    pub(crate) is_leased: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Selection {
    pub(crate) count: usize,
    pub(crate) probe: Option<Probe>,
    /// Whether severe deliveries are tried before they are due.
    pub(crate) early: bool,
    pub(crate) only_severe: bool,
}

#[derive(Debug, Default)]
pub(crate) struct SelectedDeliveries {
    pub(crate) ids: Vec<RecordId>,
    /// Time at which the first of the remaining deliveries may be sent, in milliseconds since the
    /// epoch; `i64::MAX` if none remains.
    pub(crate) next_ms: i64,
    /// Whether a severe delivery is waiting that may be tried before it is due.
    pub(crate) is_severe: bool,
}

/// Time to wait for a message behind another one of its thread, in milliseconds.
const BEHIND_MS: i64 = 1_000;

/// The highest severity in a thread, and its first positions.
struct ThreadStart {
    severity: Severity,
    any: (RecordId, RecordId),
    closing: Option<(RecordId, RecordId)>,
}

#[expect(clippy::too_many_lines, reason = "one pass over what waits")]
pub(crate) fn choose_deliveries(
    all: &[WaitReason],
    wanted: Selection,
    now_ms: i64,
) -> SelectedDeliveries {
    let mut threads: HashMap<ThreadKey, ThreadStart> = HashMap::new();
    for it in all {
        let Some(thread) = it.rank.thread else {
            continue;
        };
        let start = threads.entry(thread).or_insert(ThreadStart {
            severity: it.rank.severity,
            any: it.rank.thread_position,
            closing: None,
        });
        start.severity = start.severity.max(it.rank.severity);
        start.any = start.any.min(it.rank.thread_position);
        if it.rank.is_closing {
            let closing = start.closing.get_or_insert(it.rank.thread_position);
            *closing = (*closing).min(it.rank.thread_position);
        }
    }
    let mut chosen = SelectedDeliveries {
        next_ms: i64::MAX,
        ..SelectedDeliveries::default()
    };
    let mut free = Vec::new();
    for it in all.iter().filter(|it| !it.is_leased) {
        let start = it.rank.thread.and_then(|thread| threads.get(&thread));
        let severity = start.map_or(it.rank.severity, |start| start.severity);
        let is_severe = breaker::is_severe_delivery(severity);
        let is_behind = start.is_some_and(|start| {
            let is_first = !it.rank.waits_for_all || start.any >= it.rank.thread_position;
            !is_first
                || start
                    .closing
                    .is_some_and(|closing| closing < it.rank.thread_position)
        });
        let may_be_early = is_severe && it.rank.may_be_early;
        chosen.is_severe |= !is_behind && (may_be_early || is_severe && it.due_ms <= now_ms);
        let is_early = wanted.early && may_be_early;
        let is_due = it.due_ms <= now_ms || is_early;
        if is_behind && is_due {
            chosen.next_ms = chosen.next_ms.min(now_ms.saturating_add(BEHIND_MS));
        } else if !is_due {
            chosen.next_ms = chosen.next_ms.min(it.due_ms);
        } else if is_severe || !wanted.only_severe {
            free.push((severity, it));
        } else {
            chosen.next_ms = chosen.next_ms.min(it.due_ms);
        }
    }
    let not = wanted.probe.and_then(|probe| probe.not);
    let is_young = wanted.probe.is_some_and(|probe| probe.is_young);
    let (oldest, newest) = (
        |it: &WaitReason| it.rank.thread_position,
        |it: &WaitReason| Reverse(it.rank.thread_position),
    );
    free.sort_by_key(|(severity, it)| {
        // A recovered receiver must be noticed even if it cannot process this message.
        let is_last = Some(it.id) == not;
        let attempts = if is_young { it.rank.attempts } else { 0 };
        let deferred = it.rank.deferrals >= DEFERRALS;
        let young = is_young.then(|| newest(it));
        (
            is_last,
            Reverse(*severity),
            deferred,
            attempts,
            young,
            oldest(it),
        )
    });
    for (at, (_, it)) in free.iter().enumerate() {
        if at < wanted.count {
            chosen.ids.push(it.id);
        } else {
            chosen.next_ms = chosen.next_ms.min(it.due_ms);
        }
    }
    chosen
}

/// The ranks of waiting deliveries by destination, each read once.
#[derive(Debug, Default)]
pub(crate) struct Ranks(HashMap<RecordId, HashMap<RecordId, Rank>>);

impl Ranks {
    pub(crate) fn ids_without_rank(
        &self,
        destination: RecordId,
        ids: &[RecordId],
    ) -> Vec<RecordId> {
        let known = self.0.get(&destination);
        let is_known = |id: &RecordId| known.is_some_and(|known| known.contains_key(id));
        ids.iter().copied().filter(|id| !is_known(id)).collect()
    }

    pub(crate) fn insert(&mut self, delivery: &Delivery) {
        let known = self.0.entry(delivery.destination).or_default();
        known.insert(delivery.id, Rank::from_delivery(delivery));
    }

    pub(crate) fn get(&self, destination: RecordId, id: RecordId) -> Option<Rank> {
        self.0.get(&destination)?.get(&id).copied()
    }

    pub(crate) fn retain(&mut self, destination: RecordId, ids: &[RecordId]) {
        let ids: HashSet<_> = ids.iter().collect();
        if let Some(known) = self.0.get_mut(&destination) {
            known.retain(|id, _| ids.contains(id));
        }
    }

    /// Forgets the rank of a delivery, or the ranks of all deliveries of the destination if `id` is
    /// `None`.
    pub(crate) fn forget_rank(&mut self, destination: RecordId, id: Option<RecordId>) {
        match id {
            None => drop(self.0.remove(&destination)),
            Some(id) => {
                if let Some(known) = self.0.get_mut(&destination) {
                    known.remove(&id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery_id(number: u64) -> RecordId {
        RecordId::from_parts(number, 1)
    }

    fn wait_reason(number: u64, severity: Severity, due_ms: i64) -> WaitReason {
        WaitReason {
            id: delivery_id(number),
            due_ms,
            rank: Rank {
                severity,
                thread_position: (delivery_id(number), delivery_id(number)),
                thread: None,
                is_closing: false,
                waits_for_all: false,
                may_be_early: false,
                attempts: 0,
                deferrals: 0,
            },
            is_leased: false,
        }
    }

    fn wait_reason_in_thread(
        number: u64,
        severity: Severity,
        thread: u64,
        waits_for_all: bool,
    ) -> WaitReason {
        let mut it = wait_reason(number, severity, 0);
        it.rank.thread = Some((None, delivery_id(thread)));
        it.rank.waits_for_all = waits_for_all;
        it
    }

    const ALL: Selection = Selection {
        count: 100,
        probe: None,
        early: false,
        only_severe: false,
    };

    fn selected_numbers(all: &[WaitReason], wanted: Selection) -> Vec<u64> {
        let chosen = choose_deliveries(all, wanted, 10).ids;
        chosen.into_iter().map(RecordId::time_ms).collect()
    }

    #[test]
    fn backlog_is_sent_by_severity_then_age() {
        use Severity::{Critical, Info, Warning};
        let all = [
            wait_reason(1, Info, 0),
            wait_reason(2, Warning, 9),
            wait_reason(3, Critical, 10),
            wait_reason(4, Critical, 11),
            wait_reason(5, Critical, 5),
        ];
        assert_eq!(selected_numbers(&all, ALL), [3, 5, 2, 1]);
        let chosen = choose_deliveries(&all, Selection { count: 2, ..ALL }, 10);
        assert_eq!(chosen.ids, [delivery_id(3), delivery_id(5)]);
        assert_eq!((chosen.next_ms, chosen.is_severe), (0, true));
        assert_eq!(choose_deliveries(&all, ALL, 10).next_ms, 11);
    }

    #[test]
    fn thread_is_sent_in_order_at_its_highest_severity() {
        use Severity::{Critical, Error, Info};
        let opening = wait_reason_in_thread(2, Info, 7, false);
        let change = wait_reason_in_thread(3, Critical, 7, true);
        let other = wait_reason(1, Error, 0);
        assert_eq!(selected_numbers(&[other, opening, change], ALL), [2, 1]);
        let sent = WaitReason {
            is_leased: true,
            ..opening
        };
        assert_eq!(selected_numbers(&[other, sent, change], ALL), [1]);
        assert_eq!(choose_deliveries(&[sent, change], ALL, 10).next_ms, 1_010);
        assert_eq!(selected_numbers(&[other, change], ALL), [3, 1]);
        // A reopening waits only for an earlier closing.
        let mut closing = wait_reason_in_thread(4, Info, 7, true);
        closing.rank.is_closing = true;
        let reopening = wait_reason_in_thread(5, Info, 7, false);
        assert_eq!(selected_numbers(&[opening, reopening], ALL), [2, 5]);
        assert_eq!(selected_numbers(&[closing, reopening], ALL), [4]);
    }

    #[test]
    fn failing_destination_is_probed_with_another_message() {
        use Severity::{Critical, Warning};
        let probe = |not, is_young| Selection {
            count: 1,
            probe: Some(Probe { not, is_young }),
            ..ALL
        };
        let all = [
            wait_reason(1, Critical, 0),
            wait_reason(2, Critical, 0),
            wait_reason(3, Critical, 0),
            wait_reason(4, Warning, 0),
        ];
        assert_eq!(selected_numbers(&all, probe(None, false)), [1]);
        assert_eq!(
            selected_numbers(&all, probe(Some(delivery_id(1)), false)),
            [2]
        );
        assert_eq!(
            selected_numbers(&all, probe(Some(delivery_id(2)), true)),
            [3]
        );
        assert_eq!(
            selected_numbers(&all[..1], probe(Some(delivery_id(1)), false)),
            [1]
        );
    }

    #[test]
    fn only_severe_messages_are_retried_early_after_a_receiver_failure() {
        use Severity::{Error, Warning};
        let early = Selection {
            early: true,
            only_severe: true,
            ..ALL
        };
        let mut failed = wait_reason(1, Error, 99);
        failed.rank.may_be_early = true;
        let mut mild = wait_reason(2, Warning, 99);
        mild.rank.may_be_early = true;
        let all = [
            failed,
            mild,
            wait_reason(3, Error, 99),
            wait_reason(4, Warning, 0),
        ];
        assert_eq!(selected_numbers(&all, early), [1]);
        assert_eq!(selected_numbers(&all, ALL), [4]);
    }

    #[test]
    fn twice_deferred_message_is_sent_after_others_of_its_severity() {
        let mut deferred = wait_reason(1, Severity::Error, 0);
        deferred.rank.deferrals = 2;
        let all = [
            deferred,
            wait_reason(2, Severity::Error, 0),
            wait_reason(3, Severity::Info, 0),
        ];
        assert_eq!(selected_numbers(&all, ALL), [2, 1, 3]);
    }
}
