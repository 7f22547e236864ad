//! Lists deliveries, newest first, through the most selective index that the filters allow.

use std::sync::Arc;

use super::{Deliveries, condition::Condition};
use crate::{
    domain::{Delivery, Destination, EventId, RecordId, Rule},
    error::Error,
    limits::PAGE_TIME_MAX,
    page::{PageRequest, TokenScope},
    scan,
    store::{
        Direction, Index, Record,
        engine::Range,
        record::bytes::{Key, read_id},
    },
};

/// Minimum number of deliveries read at a time, for small pages and for counting.
const BATCH_MIN: usize = 100;
pub(super) const BATCH: usize = 1_000;

/// A filter for deliveries; empty fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub states: Vec<u8>,
    /// Names of the rules, as of the time of the delivery.
    pub rule_names: Vec<String>,
    /// Names of the destinations, as of the time of the delivery.
    pub destination_names: Vec<String>,
    pub event: Option<EventId>,
    pub digest: Option<RecordId>,
    /// Start of the decision time (inclusive), in milliseconds since the epoch.
    pub start_ms: Option<i64>,
    /// End of the decision time (exclusive), in milliseconds since the epoch.
    pub end_ms: Option<i64>,
    pub condition: Option<Arc<Condition>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct IdRange {
    start: RecordId,
    /// Exclusive end; `None` means no limit.
    pub(super) below: Option<RecordId>,
}

/// The index prefixes to search, below which deliveries are sorted by id.
pub(super) enum IndexWalk {
    All,
    Under(Vec<Index>, Vec<Vec<u8>>),
}

impl Filter {
    pub(super) fn matches(&self, delivery: &Delivery) -> bool {
        let named = |names: &[String], name: &str| {
            names.is_empty() || names.iter().any(|other| other == name)
        };
        let rule_name = if delivery.test {
            ""
        } else {
            &delivery.content.rule.name
        };
        (self.states.is_empty() || self.states.contains(&delivery.state.number()))
            && named(&self.rule_names, rule_name)
            && named(&self.destination_names, &delivery.destination_name)
            && (self.digest.is_none() || self.digest == delivery.folding.digest_id())
            && self
                .event
                .is_none_or(|event| is_about_event(delivery, event))
            && self
                .condition
                .as_ref()
                .is_none_or(|it| it.matches(delivery))
    }

    /// Adds a condition. The parts that an index can evaluate narrow the search.
    #[must_use]
    pub fn with_condition(mut self, condition: Option<Arc<Condition>>) -> Self {
        if let Some(narrow) = condition.as_ref().map(|it| &it.narrow) {
            if self.states.is_empty() {
                self.states.clone_from(&narrow.states);
            }
            self.event = self.event.or(narrow.event);
            self.digest = self.digest.or(narrow.digest);
        }
        Self { condition, ..self }
    }

    pub(super) fn scope(&self) -> TokenScope {
        let moment = |at_ms: Option<i64>| at_ms.map(i64::to_be_bytes);
        TokenScope::new("deliveries")
            .with_field("states", self.states.iter().map(|state| [*state]))
            .with_field("ruleNames", &self.rule_names)
            .with_field("destinationNames", &self.destination_names)
            .with_field("eventId", self.event.map(EventId::to_bytes))
            .with_field("foldedInto", self.digest.map(RecordId::to_bytes))
            .with_field("start", moment(self.start_ms))
            .with_field("end", moment(self.end_ms))
            .with_field("filter", self.condition.iter().map(|it| it.text()))
    }

    pub(super) fn id_range(&self, last_key: Option<&[u8]>) -> IdRange {
        let first_at = |at_ms: i64| RecordId::first_at_time(at_ms.try_into().unwrap_or(0));
        // The text is not part of the scope, so that a relative time such as `since=2h` can
        // continue from page to page.
        let narrow = self.condition.as_ref().map(|it| &it.narrow);
        let start_ms = self.start_ms.max(narrow.and_then(|it| it.start_ms));
        let ends = [self.end_ms, narrow.and_then(|it| it.end_ms)];
        IdRange {
            start: start_ms.map_or(RecordId::first_at_time(0), first_at),
            below: match last_key {
                Some(key) => read_id(key, 0),
                None => ends.into_iter().flatten().min().map(first_at),
            },
        }
    }
}

impl Deliveries {
    /// Lists deliveries, newest first, and returns the token of the next page, which is empty at
    /// the end. A page may be short if it takes longer than [`PAGE_TIME_MAX`].
    pub async fn list(
        &self,
        filter: &Filter,
        page: &PageRequest,
    ) -> Result<(Vec<Delivery>, String), Error> {
        let limit = page.limit()?;
        let scope = filter.scope();
        let mut reach = filter.id_range(scope.last_key(&page.token)?.as_deref());
        let walk = self.choose_walk(filter).await?;
        let batch = (limit + 1).max(BATCH_MIN);
        let end = self.clock.elapsed() + PAGE_TIME_MAX;
        let mut items = Vec::new();
        loop {
            let ids = self.newest_ids(&walk, reach, batch).await?;
            let is_end = ids.len() < batch;
            reach.below = ids.last().copied().or(reach.below);
            let keys = ids.iter().map(|id| id.to_bytes().into()).collect();
            let found = self.store.get_many::<Delivery>(keys).await?;
            for delivery in found.into_iter().flatten().map(|it| it.value) {
                if filter.matches(&delivery) {
                    items.push(delivery);
                }
                scan::yield_if_needed().await;
            }
            if items.len() > limit {
                items.truncate(limit);
                let last = items.last().map(Record::key);
                return Ok((items, scope.encode_token(&last.unwrap_or_default())));
            }
            match reach.below {
                Some(last) if !is_end && self.clock.elapsed() >= end => {
                    return Ok((items, scope.encode_token(&last.to_bytes())));
                }
                Some(_) if !is_end => {}
                _ => return Ok((items, String::new())),
            }
        }
    }

    /// Chooses the index to search. A name that no resource has any more is only found by reading
    /// the deliveries.
    pub(super) async fn choose_walk(&self, filter: &Filter) -> Result<IndexWalk, Error> {
        if let Some(event) = filter.event {
            let prefix = event.to_bytes().into();
            return Ok(IndexWalk::Under(vec![Index::DeliveryByEvent], vec![prefix]));
        }
        if let Some(digest) = filter.digest {
            let prefix = digest.to_bytes().into();
            return Ok(IndexWalk::Under(
                vec![Index::DeliveryByDigest],
                vec![prefix],
            ));
        }
        let narrow = filter.condition.as_ref().map(|it| &it.narrow);
        let names = [
            Some(&filter.destination_names),
            narrow.map(|it| &it.destination_names),
        ];
        for names in names.into_iter().flatten() {
            let destinations = self.find_ids(names, |found: Destination| found.id).await?;
            if let Some(prefixes) = destinations {
                return Ok(IndexWalk::Under(
                    vec![Index::DeliveryByDestination],
                    prefixes,
                ));
            }
        }
        let names = [Some(&filter.rule_names), narrow.map(|it| &it.rule_names)];
        for names in names.into_iter().flatten() {
            if let Some(prefixes) = self.find_ids(names, |found: Rule| found.id).await? {
                // Shadow deliveries have separate indexes.
                let indexes = vec![Index::DeliveryByRule, Index::NotificationByTrigger];
                return Ok(IndexWalk::Under(indexes, prefixes));
            }
        }
        if filter.states.is_empty() {
            return Ok(IndexWalk::All);
        }
        let prefixes = filter.states.iter().map(|state| vec![*state]).collect();
        Ok(IndexWalk::Under(vec![Index::DeliveryByState], prefixes))
    }

    /// Returns the ids of the named resources; `None` if there are no names, or one of them does
    /// not exist.
    async fn find_ids<T: Record>(
        &self,
        names: &[String],
        id: impl Fn(T) -> RecordId,
    ) -> Result<Option<Vec<Vec<u8>>>, Error> {
        if names.is_empty() {
            return Ok(None);
        }
        let keys = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        let found = self.store.get_many::<T>(keys).await?;
        let prefix =
            |found: Option<crate::store::Stored<T>>| Some(id(found?.value).to_bytes().into());
        Ok(found.into_iter().map(prefix).collect())
    }

    pub(super) async fn newest_ids(
        &self,
        walk: &IndexWalk,
        reach: IdRange,
        limit: usize,
    ) -> Result<Vec<RecordId>, Error> {
        let range = |prefix: &[u8]| Range {
            start: Key::new().remainder(prefix).id(reach.start).build(),
            end: match reach.below {
                Some(below) => Some(Key::new().remainder(prefix).id(below).build()),
                None => Range::with_prefix(prefix).end,
            },
        };
        let descending = Direction::Descending;
        let mut ids = Vec::new();
        match walk {
            IndexWalk::All => {
                let page = self
                    .store
                    .page::<Delivery>(range(&[]), descending, limit)
                    .await?;
                ids.extend(page.into_iter().map(|delivery| delivery.value.id));
            }
            IndexWalk::Under(indexes, prefixes) => {
                for index in indexes {
                    for prefix in prefixes {
                        let engine = self.store.engine();
                        let entries = engine
                            .entries(*index, range(prefix), descending, limit)
                            .await?;
                        let found = entries.iter().filter_map(|(_, key)| read_id(key, 0));
                        ids.extend(found);
                    }
                }
                ids.sort_unstable_by(|a, b| b.cmp(a));
                ids.dedup();
                ids.truncate(limit);
            }
        }
        Ok(ids)
    }
}

fn is_about_event(delivery: &Delivery, event: EventId) -> bool {
    let group = delivery.content.group.iter();
    let mut members = group.flat_map(|it| &it.members);
    delivery.event == Some(event) || members.any(|(_, it)| it.event == event)
}
