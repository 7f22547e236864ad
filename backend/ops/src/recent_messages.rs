//! Recent messages that the definition being tested would have held.

use std::{collections::BTreeMap, time::Duration};

use bellwether_proto::v1;

use crate::{
    clock::{Clock, DAY_MS},
    domain::{Delivery, DeliveryState, RecordId, Status},
    error::Error,
    limits::TRIGGER_TEST_TIME_MAX,
    scan,
    store::{Direction, Record, Store, engine::Range},
    wire::to_i32,
};

const DAYS: i64 = 7;
const BATCH: usize = 500;

/// Messages that would have been held, and whether counting them stopped early.
pub type HeldMessages = (v1::SilencedMessages, bool);

pub(super) fn since_ms(now_ms: i64) -> i64 {
    now_ms.saturating_sub(DAYS * DAY_MS)
}

/// Counts messages that would have been held. Ignores tests, retries, digests, shadow rules and
/// messages about closed occurrences.
pub(super) async fn held_messages(
    store: &Store,
    clock: &dyn Clock,
    is_held: impl Fn(&Delivery) -> bool,
) -> Result<HeldMessages, Error> {
    let first = since_ms(clock.now_ms()).try_into().unwrap_or(0);
    let mut range = Range {
        start: RecordId::first_at_time(first).to_bytes().into(),
        end: None,
    };
    let mut by_rule: BTreeMap<String, usize> = BTreeMap::new();
    let mut stopped_early = false;
    let end = Deadline::start(clock);
    loop {
        let page = store
            .page::<Delivery>(range.clone(), Direction::Ascending, BATCH)
            .await?;
        let Some(last) = page.last() else { break };
        range.exclude_through(&last.value.key());
        for delivery in page.into_iter().map(|it| it.value) {
            scan::yield_if_needed().await;
            let content = &delivery.content;
            let is_counted = !delivery.test
                && !content.is_drill()
                && delivery.retry_of.is_none()
                && delivery.state != DeliveryState::Shadowed
                && content.digest.is_none()
                && content.occurrence.status != Status::Closed;
            if is_counted && is_held(&delivery) {
                *by_rule.entry(content.rule.name.clone()).or_default() += 1;
            }
        }
        if end.has_passed(clock) {
            stopped_early = true;
            break;
        }
        tokio::task::yield_now().await;
    }
    let message_count = by_rule.values().sum::<usize>();
    let of = |(rule_name, messages)| v1::RuleMessages {
        rule_name,
        message_count: to_i32(messages),
    };
    let messages = v1::SilencedMessages {
        days: to_i32(DAYS),
        message_count: Some(to_i32(message_count)),
        by_rule: by_rule.into_iter().map(of).collect(),
    };
    Ok((messages, stopped_early))
}

pub(super) struct Deadline(Duration);

impl Deadline {
    /// Returns the deadline of a test that starts now.
    pub(super) fn start(clock: &dyn Clock) -> Self {
        Self(clock.elapsed() + TRIGGER_TEST_TIME_MAX)
    }

    pub(super) fn has_passed(&self, clock: &dyn Clock) -> bool {
        clock.elapsed() >= self.0
    }
}
