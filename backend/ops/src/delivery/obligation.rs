//! Outstanding resolutions: receivers that were notified about an opening but not yet about its
//! end.

use std::collections::HashMap;

use super::Deliveries;
use crate::{
    domain::{
        Destination, EventId, Name, Notified, Occurrence, OccurrenceId, PagedContact, PagedMethod,
        RecordId, RevisedResource, RevisionKind, Rule, Severity, Status,
    },
    error::Error,
    limits::PAGE_TIME_MAX,
    page::{PageRequest, TokenScope},
    revision, scan,
    store::{
        Direction, Index,
        engine::Range,
        record::bytes::{Key, read_id},
    },
};

const BATCH: usize = 200;

/// A filter for obligations; empty fields match everything.
#[derive(Debug, Clone, Default)]
pub struct ObligationFilter {
    pub rule_names: Vec<String>,
    pub destination_names: Vec<String>,
    pub event: Option<EventId>,
}

/// An outstanding resolution for a rule, a destination and an occurrence.
#[derive(Debug, Clone, PartialEq)]
pub struct Obligation {
    pub occurrence: OccurrenceId,
    pub event_name: String,
    pub summary: String,
    pub severity: Severity,
    /// Status of the occurrence; never closed.
    pub status: Status,
    pub rule_name: Name,
    pub destination_name: Name,
    /// The contact that was notified through the destination, and its method; `None` for a
    /// destination of the rule or the policy.
    pub contact: Option<PagedMethod>,
    /// Time at which the rule last notified because a trigger matched, in milliseconds since the
    /// epoch.
    pub notify_ms: i64,
    /// Group of the report; `None` if reported alone.
    pub group: Option<RecordId>,
    place: ObligationKey,
}

/// Sort key of the list: newest occurrences first, then by rule and destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ObligationKey {
    occurrence: RecordId,
    number: u32,
    rule: RecordId,
    destination: RecordId,
    nth: u32,
}

impl ObligationKey {
    fn key(self) -> Vec<u8> {
        Key::new()
            .id(self.occurrence)
            .number(self.number)
            .id(self.rule)
            .id(self.destination)
            .number(self.nth)
            .build()
    }

    fn from_key(key: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u32::from_be_bytes(key.get(at..at + 4)?.try_into().ok()?));
        Some(Self {
            occurrence: read_id(key, 0)?,
            number: number(16)?,
            rule: read_id(key, 20)?,
            destination: read_id(key, 36)?,
            nth: number(52)?,
        })
    }

    /// Whether this position comes before another one of the same occurrence.
    fn is_before(self, other: Self) -> bool {
        let order = |it: Self| (it.rule, it.destination, it.nth);
        order(self) < order(other)
    }

    fn position_after(occurrence: &Occurrence) -> Self {
        Self {
            occurrence: occurrence.key,
            number: occurrence.number,
            rule: RecordId::from_bytes([u8::MAX; 16]),
            destination: RecordId::from_bytes([u8::MAX; 16]),
            nth: u32::MAX,
        }
    }
}

impl ObligationFilter {
    fn scope(&self) -> TokenScope {
        TokenScope::new("obligations")
            .with_field("ruleNames", &self.rule_names)
            .with_field("destinationNames", &self.destination_names)
            .with_field("eventId", self.event.map(EventId::to_bytes))
    }

    fn matches(&self, rule: &Name, destination: &Name) -> bool {
        let named = |names: &[String], name: &Name| {
            names.is_empty() || names.iter().any(|other| other == name.as_str())
        };
        named(&self.rule_names, rule) && named(&self.destination_names, destination)
    }
}

impl Deliveries {
    /// Lists outstanding resolutions, newest occurrences first, and returns the token of the next
    /// page, which is empty at the end. A page may be short if it takes longer than
    /// [`PAGE_TIME_MAX`].
    pub async fn obligations(
        &self,
        filter: &ObligationFilter,
        page: &PageRequest,
    ) -> Result<(Vec<Obligation>, String), Error> {
        let limit = page.limit()?;
        let scope = filter.scope();
        let key = scope.last_key(&page.token)?;
        let mut place = key.and_then(|key| ObligationKey::from_key(&key));
        let (mut known, mut rules) = (HashMap::new(), HashMap::new());
        let mut items: Vec<Obligation> = Vec::new();
        let end = self.clock.elapsed() + PAGE_TIME_MAX;
        loop {
            let occurrences = self.occurrences(filter.event, place, BATCH).await?;
            let is_end = occurrences.len() < BATCH;
            for occurrence in occurrences {
                scan::yield_if_needed().await;
                let begun = place.filter(|place| place.occurrence == occurrence.key);
                let entries = self.entries_owing_closing(&mut rules, &occurrence).await?;
                for item in outstanding_obligations(&occurrence, &entries, filter, begun) {
                    if self.destination_exists(&mut known, &item).await? {
                        items.push(item);
                    }
                }
                place = Some(ObligationKey::position_after(&occurrence));
                if items.len() > limit {
                    items.truncate(limit);
                    let last = items.last().map(|item| item.place.key());
                    return Ok((items, scope.encode_token(&last.unwrap_or_default())));
                }
            }
            match place {
                Some(place) if !is_end && self.clock.elapsed() >= end => {
                    return Ok((items, scope.encode_token(&place.key())));
                }
                Some(_) if !is_end => {}
                _ => return Ok((items, String::new())),
            }
        }
    }

    async fn occurrences(
        &self,
        event: Option<EventId>,
        from: Option<ObligationKey>,
        limit: usize,
    ) -> Result<Vec<Occurrence>, Error> {
        let descending = Direction::Descending;
        // Includes the occurrence of the position, since some of its obligations may remain.
        let end = |key: Key| Some(key.byte(0).build());
        let Some(event) = event else {
            let range = Range {
                start: Vec::new(),
                end: from.and_then(|from| end(Key::new().id(from.occurrence))),
            };
            let found = self.store.page(range, descending, limit).await?;
            return Ok(found.into_iter().map(|found| found.value).collect());
        };
        let mut range = Range::with_prefix(&event.to_bytes());
        if let Some(from) = from {
            range.end = end(Key::new().event(event).number(from.number));
        }
        let index = Index::OccurrenceByEvent;
        let found = self
            .store
            .page_by_index(index, range, descending, limit)
            .await?;
        Ok(found.into_iter().map(|(_, found)| found.value).collect())
    }

    /// Returns the notifications of an occurrence with outstanding resolutions. Their rules send
    /// updates, or did when they were deleted.
    async fn entries_owing_closing<'a>(
        &self,
        known: &mut HashMap<RecordId, bool>,
        occurrence: &'a Occurrence,
    ) -> Result<Vec<&'a Notified>, Error> {
        let mut owing = Vec::new();
        if occurrence.status == Status::Closed {
            return Ok(owing);
        }
        for entry in &occurrence.notified {
            if entry.cleared || entry.shadow {
                continue;
            }
            let sends = match known.get(&entry.rule) {
                Some(sends) => *sends,
                None => self.sends_updates(entry).await?,
            };
            known.insert(entry.rule, sends);
            owing.extend(sends.then_some(entry));
        }
        Ok(owing)
    }

    async fn sends_updates(&self, entry: &Notified) -> Result<bool, Error> {
        let name = &entry.rule_name;
        let rule = self.store.get::<Rule>(name.as_str().into()).await?;
        if let Some(rule) = rule.filter(|it| it.value.id == entry.rule) {
            return Ok(rule.value.send_updates);
        }
        let last =
            revision::newest_revision(&self.store, RevisionKind::Rule, name, entry.rule).await?;
        Ok(match last.map(|it| it.was) {
            Some(RevisedResource::Rule(rule)) => rule.send_updates,
            _ => entry.send_updates,
        })
    }

    /// Returns whether the destination still exists; deleted destinations have no outstanding
    /// resolutions.
    async fn destination_exists(
        &self,
        known: &mut HashMap<String, Option<RecordId>>,
        item: &Obligation,
    ) -> Result<bool, Error> {
        let name = item.destination_name.as_str();
        if !known.contains_key(name) {
            let found = self.store.get::<Destination>(name.into()).await?;
            known.insert(name.into(), found.map(|found| found.value.id));
        }
        Ok(known.get(name) == Some(&Some(item.place.destination)))
    }
}

fn outstanding_obligations(
    occurrence: &Occurrence,
    entries: &[&Notified],
    filter: &ObligationFilter,
    after: Option<ObligationKey>,
) -> Vec<Obligation> {
    let mut owed = Vec::new();
    for entry in entries.iter().copied() {
        let rules = entry.destinations.iter().map(|it| (it, None));
        let paged = entry.response.iter().flat_map(|it| &it.paged);
        let paged = paged.map(|it| (&it.destination, it.contact.as_ref().map(PagedContact::key)));
        let all = rules.chain(paged);
        owed.extend(all.map(|((id, name), contact)| (entry, *id, name, contact)));
    }
    owed.sort_by(|(entry, destination, _, contact), (other, to, _, second)| {
        (entry.rule, *destination, contact).cmp(&(other.rule, *to, second))
    });
    let mut places = HashMap::new();
    let notified =
        |(entry, destination, name, contact): (&Notified, RecordId, &Name, Option<PagedMethod>)| {
            let nth = places.entry((entry.rule, destination)).or_insert(0_u32);
            let place = ObligationKey {
                occurrence: occurrence.key,
                number: occurrence.number,
                rule: entry.rule,
                destination,
                nth: *nth,
            };
            *nth += 1;
            Obligation {
                occurrence: occurrence.id(),
                event_name: occurrence.name.clone(),
                summary: occurrence.summary.clone(),
                severity: occurrence.severity,
                status: occurrence.status,
                rule_name: entry.rule_name.clone(),
                destination_name: name.clone(),
                contact,
                notify_ms: entry.last_ms,
                group: entry.group,
                place,
            }
        };
    let all = owed.into_iter().map(notified);
    all.filter(|it| after.is_none_or(|place| place.is_before(it.place)))
        .filter(|it| filter.matches(&it.rule_name, &it.destination_name))
        .collect()
}
