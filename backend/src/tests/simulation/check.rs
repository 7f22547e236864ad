//! Checks the results of the hour against the model, and against the invariants of every delivery.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    model::Sent,
    outside::{Mood, REQUESTED_WAIT_SECONDS, ReceivedRequest},
    scenario::{BUDGET, BUDGETED, Scenario, event_of, groups, is_shadow},
};
use crate::{
    delivery::decide::is_interrupted,
    domain::{
        Attempt, Delivery, DeliveryState, EventId, MemberChange, Occurrence, RecordId, Status,
    },
    samples::all,
    tests::invariants,
};

impl Scenario {
    pub(super) async fn check(&self) {
        let deliveries: Vec<Delivery> = all(self.service.store()).await;
        if self.gathers {
            self.check_gathered(&deliveries);
        } else {
            self.check_sent(&deliveries);
        }
        self.check_occurrences().await;
        self.check_ends(&deliveries).await;
        check_digests(&deliveries, self.scale_minimum(4));
        check_order(&deliveries, self.scale_minimum(20));
        invariants::check(self.service.store(), self.schedule.len()).await;
    }

    fn hosts(&self) -> HashMap<EventId, usize> {
        let hosts = self.model.lines.keys();
        hosts.map(|host| (event_of(*host).id(), *host)).collect()
    }

    /// Checks that the service decided exactly the messages of the model, each the same number of
    /// times.
    fn check_sent(&self, deliveries: &[Delivery]) {
        let hosts = self.hosts();
        let number = |name: &str| name[1..].parse::<usize>().unwrap();
        let mut sent: BTreeMap<Sent, usize> = BTreeMap::new();
        for delivery in deliveries.iter().filter(|it| !is_digest(it)) {
            let occurrence = &delivery.content.occurrence;
            let of = (
                number(&delivery.content.rule.name),
                number(&delivery.destination_name),
                hosts[&occurrence.event],
                occurrence.number as usize,
                delivery.content.clear,
            );
            *sent.entry(of).or_default() += 1;
        }
        for (of, count) in &self.model.sent {
            assert_eq!(sent.get(of), Some(count), "{of:?} is missing");
        }
        for (of, count) in &sent {
            assert_eq!(self.model.sent.get(of), Some(count), "{of:?} is unexpected");
        }
        let updates = sent.keys().filter(|of| of.4).count();
        let repeats = sent.values().filter(|count| **count > 1).count();
        assert!(
            sent.len() > self.scale_minimum(800),
            "only {} were notified",
            sent.len()
        );
        assert!(
            updates > self.scale_minimum(50) && repeats > self.scale_minimum(20),
            "{updates} {repeats}"
        );
    }

    /// For rules that were not edited, checks that exactly the expected openings and their closings
    /// were notified, separately or in a group.
    fn check_gathered(&self, deliveries: &[Delivery]) {
        let hosts = self.hosts();
        let number = |name: &str| name[1..].parse::<usize>().unwrap();
        let (mut opened, mut closed) = (BTreeSet::new(), BTreeSet::new());
        let mut gathered = 0;
        for delivery in deliveries.iter().filter(|it| !is_digest(it)) {
            let content = &delivery.content;
            let rule = number(&content.rule.name);
            if self.edited.contains(&rule) {
                continue;
            }
            let mut note = |occurrence: &Occurrence, change| {
                let host = hosts[&occurrence.event];
                let destination = number(&delivery.destination_name);
                let of = (rule, destination, host, occurrence.number as usize);
                match change {
                    MemberChange::Joined | MemberChange::Repeated => opened.insert(of),
                    MemberChange::Closed => closed.insert(of),
                    MemberChange::Changed => true,
                }
            };
            let Some(group) = &content.group else {
                let change = match (content.clear, content.occurrence.status) {
                    (false, _) => MemberChange::Joined,
                    (true, Status::Closed) => MemberChange::Closed,
                    (true, _) => MemberChange::Changed,
                };
                note(&content.occurrence, change);
                continue;
            };
            gathered += 1;
            for (change, member) in &group.members {
                change.map(|change| note(member, change));
            }
        }
        let of_model = self.model.sent.keys();
        let of_model = of_model.filter(|of| !of.4 && !self.edited.contains(&of.0));
        let expected: BTreeSet<_> = of_model.map(|of| (of.0, of.1, of.2, of.3)).collect();
        let missing = expected.difference(&opened);
        let missing: Vec<_> = missing.filter(|it| !self.is_skipped(it)).collect();
        let too_much: Vec<_> = opened.difference(&expected).collect();
        assert!(
            missing.is_empty() && too_much.is_empty(),
            "{missing:?} {too_much:?}"
        );
        let by_groups = opened.iter().filter(|it| groups(it.0)).count();
        assert!(
            by_groups >= self.scale_minimum(20),
            "only {by_groups} were notified by rules that group"
        );
        for of in &opened {
            let (rule, destination, host, number) = *of;
            let is_over = self.model.lines[&host][number - 1].status == Status::Closed;
            let is_owed = is_over && self.model.rules[&rule].updates;
            if is_owed && !self.model.gone.contains(&destination) {
                assert!(closed.contains(of), "no closing was sent for {of:?}");
            }
        }
        assert!(
            gathered > 5 && expected.len() > self.scale_minimum(200),
            "{gathered} {}",
            expected.len()
        );
    }

    /// Whether a rule that groups was right to send no message: the occurrence had ended, or no
    /// longer matched, before the message of the group was created.
    fn is_skipped(&self, &(rule, _, host, number): &(usize, usize, usize, usize)) -> bool {
        let occurrence = &self.model.lines[&host][number - 1];
        let triggers = self.model.rules[&rule].triggers.iter();
        let mut triggers = triggers.map(|it| self.model.triggers[*it]);
        let matches = triggers.any(|it| !it.closed && occurrence.severity >= it.level);
        groups(rule) && (occurrence.status != Status::Open || !matches)
    }

    async fn check_occurrences(&self) {
        let hosts = self.hosts();
        let mut found = 0;
        for occurrence in all::<Occurrence>(self.service.store()).await {
            // The service reports events about itself as well.
            let Some(host) = hosts.get(&occurrence.event) else {
                continue;
            };
            found += 1;
            let expected = &self.model.lines[host][occurrence.number as usize - 1];
            assert_eq!(
                (
                    occurrence.severity,
                    occurrence.status,
                    occurrence.acknowledged,
                    occurrence.last_seen_ms,
                    occurrence.count,
                ),
                (
                    expected.severity,
                    expected.status,
                    expected.acknowledged,
                    expected.last_seen_ms,
                    expected.count,
                ),
                "{}",
                occurrence.id()
            );
        }
        let expected: usize = self.model.lines.values().map(Vec::len).sum();
        assert_eq!(found, expected);
        assert!(
            found >= self.scale_minimum(2_000),
            "only {found} occurrences"
        );
    }

    /// Checks that every delivery ended according to its destination's behaviour, and that every
    /// received message had been sent.
    async fn check_ends(&self, deliveries: &[Delivery]) {
        let mut seen: HashMap<String, Vec<ReceivedRequest>> = HashMap::new();
        for request in self.outside.seen.lock().unwrap().iter() {
            let id = request.id.clone();
            seen.entry(id).or_default().push(request.clone());
        }
        let mut attempts: BTreeMap<_, Vec<Attempt>> = BTreeMap::new();
        for attempt in all::<Attempt>(self.service.store()).await {
            attempts.entry(attempt.delivery).or_default().push(attempt);
        }
        let mut cancelled = 0;
        for delivery in deliveries {
            let number: usize = delivery.destination_name[1..].parse().unwrap();
            let mood = self.moods[number];
            let attempts = attempts.remove(&delivery.id).unwrap_or_default();
            let made = attempts.iter().filter(|it| !is_interrupted(it)).count();
            let made = made - delivery.deferrals as usize;
            let rule = delivery.content.rule.name.get(1..);
            let is_shadow = rule.is_some_and(|it| is_shadow(it.parse().unwrap()));
            let is_as_expected = match (mood, delivery.state) {
                (_, state) if is_shadow => state == DeliveryState::Shadowed && made == 0,
                (_, DeliveryState::Folded) => number < BUDGETED && made == 0,
                (Mood::ReturnsGone, DeliveryState::Cancelled) => {
                    cancelled += 1;
                    true
                }
                (Mood::Refuses, state) => match state {
                    // In full, and reduced.
                    DeliveryState::Dead => made == 2,
                    // The destination was deleted before or while it rejected messages.
                    state => state == DeliveryState::Cancelled && made <= 2,
                },
                // All attempts were made before the destination was fixed.
                (Mood::ReturnsGone, DeliveryState::Dead) => made == self.schedule.len(),
                (Mood::Hangs, state) => state == DeliveryState::Dead && made == 2,
                (_, state) => state == DeliveryState::Delivered,
            };
            assert!(is_as_expected, "{mood:?}: {delivery:?}");
            let seen = seen.remove(&delivery.id.to_string()).unwrap_or_default();
            check_received(delivery, number, &seen);
            check_waits(&attempts);
        }
        assert_eq!(cancelled, self.cancelled);
        assert!(
            seen.is_empty(),
            "messages without a delivery: {:?}",
            seen.keys()
        );
    }
}

/// Checks that no attempt was made before the time that the receiver requested.
fn check_waits(attempts: &[Attempt]) {
    for pair in attempts.windows(2) {
        let response = pair[0].transcript.response.as_ref();
        let is_limited = response.is_some_and(|response| response.status == 429);
        if is_limited && !is_interrupted(&pair[0]) {
            let waited_ms = pair[1].start_ms - pair[0].start_ms;
            let least_ms = i64::try_from(REQUESTED_WAIT_SECONDS * 1000).unwrap();
            assert!(waited_ms >= least_ms, "{waited_ms} ms: {pair:?}");
        }
    }
}

fn is_digest(delivery: &Delivery) -> bool {
    delivery.content.digest.is_some()
}

/// Checks that each digest includes exactly the deliveries folded into it, and that destinations do
/// not get more single messages than their budget allows.
fn check_digests(deliveries: &[Delivery], least: usize) {
    let mut folded: BTreeMap<RecordId, u32> = BTreeMap::new();
    for digest in deliveries.iter().filter_map(|it| it.folding.digest_id()) {
        *folded.entry(digest).or_default() += 1;
    }
    for delivery in deliveries.iter().filter(|it| is_digest(it)) {
        let digest = delivery.content.digest.as_ref().unwrap();
        assert_eq!(
            folded.remove(&delivery.id),
            Some(digest.count),
            "{delivery:?}"
        );
        let rows: u32 = digest.rows.iter().map(|row| row.count).sum();
        assert_eq!(rows, digest.count);
    }
    assert!(folded.is_empty(), "{folded:?} are in no digest");
    let per_ms = i64::try_from(BUDGET.per.as_millis()).unwrap();
    for number in 0..BUDGETED {
        let of_it = deliveries.iter().filter(|it| {
            it.destination_name == format!("d{number}")
                && it.state == DeliveryState::Delivered
                && !is_digest(it)
        });
        let mut ends: Vec<_> = of_it.filter_map(|it| it.end_ms).collect();
        ends.sort_unstable();
        // Messages at the end of one window, those of the next window, a digest, and a single
        // delivery that was over the budget of an earlier window.
        let most = 2 * BUDGET.messages as usize + 2;
        for window in ends.windows(most + 1) {
            assert!(window[most] - window[0] >= per_ms, "d{number}: {window:?}");
        }
    }
    let digests = deliveries.iter().filter(|it| is_digest(it)).count();
    assert!(digests >= least, "only {digests} digests");
}

/// Checks that no closing was sent before its opening, neither separately nor in a digest.
fn check_order(deliveries: &[Delivery], least: usize) {
    let by_id: HashMap<_, _> = deliveries.iter().map(|it| (it.id, it)).collect();
    let mut opened: BTreeMap<_, i64> = BTreeMap::new();
    let came = |it: &Delivery| {
        let carrier = it.folding.digest_id().map_or(it, |digest| by_id[&digest]);
        let arrived = carrier.state == DeliveryState::Delivered;
        arrived.then_some(carrier.end_ms).flatten()
    };
    let of = |it: &Delivery| {
        let group = it.content.group.as_ref().map(|group| group.id);
        let thread = group.unwrap_or(it.content.occurrence.key);
        (it.rule, it.destination, thread)
    };
    for delivery in deliveries {
        let (false, Some(at_ms)) = (delivery.content.clear, came(delivery)) else {
            continue;
        };
        let first = opened.entry(of(delivery)).or_insert(at_ms);
        *first = at_ms.min(*first);
    }
    let mut ends = 0;
    for delivery in deliveries.iter().filter(|it| it.content.clear) {
        if let (Some(end_ms), Some(begin_ms)) = (came(delivery), opened.get(&of(delivery))) {
            assert!(
                *begin_ms <= end_ms,
                "{delivery:?} arrived before its opening"
            );
            ends += 1;
        }
    }
    assert!(ends >= least, "only {ends} closings were sent");
}

/// Checks that all requests of a delivery have the same message, and that there is at most one per
/// attempt. The last request may be in the reduced form.
fn check_received(delivery: &Delivery, number: usize, seen: &[ReceivedRequest]) {
    assert!(seen.len() <= delivery.attempts as usize, "{delivery:?}");
    for request in seen {
        assert_eq!(request.path, format!("/{number}"));
    }
    let in_full = seen.len().saturating_sub(usize::from(delivery.is_reduced));
    for request in &seen[..in_full] {
        assert_eq!(request.body, seen[0].body, "two messages under one id");
    }
    let was_accepted = seen.iter().any(|request| request.accepted);
    assert_eq!(was_accepted, delivery.state == DeliveryState::Delivered);
}
