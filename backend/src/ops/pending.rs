//! What waits until nothing holds it back: listed, sent by hand, and re-evaluated.

pub mod digests;
pub mod look;

use crate::{
    decide::{Causes, Step, StepKind, Transition, notify},
    domain::{Delivery, EventId, HoldKind, Name, Occurrence, Pending, RecordId},
    error::Error,
    limits::DELIVERIES_SCANNED_MAX,
    ops::{
        cause_lookup::settled,
        commit::commit,
        deciding::{Deciding, new_id},
        edit::{Edits, OccurrenceTarget},
        intake::Intake,
        loop_guard::{RecordedReports, Reports},
        page::{PageRequest, Scope},
        revision,
        tag_scope::own_rule,
    },
    store::{Changes, Direction, Index, Lane, engine::Range, record::bytes::Key},
};

/// Entries read at a time.
const BATCH: usize = 200;

/// Which of what waits to list. What is empty does not filter.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only these kinds.
    pub kinds: Vec<Kind>,
    /// Only of these rules.
    pub rule_names: Vec<String>,
    /// Only what this silence holds.
    pub silence_name: String,
    /// Only about this event.
    pub event: Option<EventId>,
    /// Only what is re-evaluated before, in milliseconds since 1970.
    pub before_ms: Option<i64>,
}

/// What kind of thing waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first message of a rule about an occurrence.
    Opening = 1,
    /// A repeat, or that an occurrence changed.
    Update = 2,
    /// What is beyond the budget of a destination.
    Digest = 3,
}

impl Filter {
    fn scope(&self) -> Scope {
        Scope::new("pending")
            .with("kinds", self.kinds.iter().map(|it| [*it as u8]))
            .with("ruleNames", &self.rule_names)
            .with("silenceName", [&self.silence_name])
            .with("eventId", self.event.map(EventId::to_bytes))
            .with("before", self.before_ms.map(i64::to_be_bytes))
    }

    fn asks_for(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    fn passes(&self, occurrence: &Occurrence, pending: &Pending) -> bool {
        let is_named = |name: &String| *name == pending.rule_name.as_str();
        let silence = &self.silence_name;
        let mut silences = pending
            .held_by
            .iter()
            .filter(|it| it.kind == HoldKind::Silence);
        let kind = if pending.is_opening {
            Kind::Opening
        } else {
            Kind::Update
        };
        self.asks_for(kind)
            && (self.rule_names.is_empty() || self.rule_names.iter().any(is_named))
            && (silence.is_empty() || silences.any(|it| it.name.as_str() == silence))
            && self.event.is_none_or(|it| it == occurrence.event)
    }
}

/// Something that waits.
#[derive(Debug, Clone)]
pub enum Waits {
    /// To be re-evaluated.
    Decision {
        /// What waits.
        pending: Box<Pending>,
        /// The occurrence it is about.
        occurrence: Box<Occurrence>,
        /// Who would be notified.
        destinations: Vec<Name>,
    },
    /// A delivery, for the end of the window of a budget.
    Digest(Box<Delivery>),
}

/// Lists what waits, what is re-evaluated first coming first; answers the token of the next page,
/// empty at the end.
///
/// # Errors
/// [`Error::Invalid`] for a page size or token that is not accepted, and those of the store.
pub async fn list(
    deciding: &Deciding,
    filter: &Filter,
    page: &PageRequest,
) -> Result<(Vec<Waits>, String), Error> {
    let limit = page.limit()?;
    let scope = filter.scope();
    let snapshot = deciding.ruleset.refreshed().await?;
    let end = filter.before_ms.map(|it| Key::new().moment(it).build());
    let mut range = Range {
        start: Vec::new(),
        end,
    };
    if let Some(last) = scope.last_key(&page.token)? {
        range.go_on_after(&last);
    }
    let mut digests = digests::waiting(&deciding.store, filter, &range).await?;
    let (mut items, mut looked_at) = (Vec::new(), 0);
    loop {
        let found = deciding.store.page_by::<Occurrence>(
            Index::OccurrenceByDue,
            range.clone(),
            Direction::Ascending,
            BATCH.min(limit),
        );
        let found = found.await?;
        let Some((last, _)) = found.last() else {
            items.extend(digests.into_values());
            return Ok((items, String::new()));
        };
        range.go_on_after(last);
        for (key, stored) in found {
            looked_at += 1;
            let occurrence = stored.value;
            let later = digests.split_off(&key);
            items.extend(std::mem::replace(&mut digests, later).into_values());
            for pending in &occurrence.pending {
                if filter.passes(&occurrence, pending) {
                    let rule = snapshot.rule(pending.rule);
                    items.push(Waits::Decision {
                        destinations: rule.map_or_else(Vec::new, |it| it.destination_names.clone()),
                        pending: Box::new(pending.clone()),
                        occurrence: Box::new(occurrence.clone()),
                    });
                }
            }
            if items.len() >= limit || looked_at >= DELIVERIES_SCANNED_MAX {
                return Ok((items, scope.token(&key)));
            }
        }
    }
}

/// Sends what waits of one rule about one occurrence, whatever holds it; answers the deliveries.
///
/// # Errors
/// [`Error::NotFound`] when nothing of the rule waits there, and [`Error::FailedPrecondition`] when
/// something else stands against it.
pub async fn release(
    (deciding, intake): (&Deciding, &Intake),
    rule: &str,
    target: OccurrenceTarget,
) -> Result<Vec<RecordId>, Error> {
    let store = &deciding.store;
    let decide = async || {
        let causes = Causes::default();
        settled(store, &causes, || released(deciding, rule, target, &causes)).await
    };
    let ((ids, reports), _) = commit(store, Lane::Admin, decide).await?;
    intake.report_all(reports);
    Ok(ids)
}

/// Whether news of what was notified of with a group waits for the group's next message.
fn waiting_for_group(occurrence: &Occurrence, rule: RecordId) -> bool {
    let mut waiting = occurrence.pending.iter().filter(|it| it.rule == rule);
    waiting.any(|it| !it.is_opening && it.group_hold().is_some())
}

/// What is sent of what waits of a rule, as far as the causes are known that hold back the rest.
async fn released(
    deciding: &Deciding,
    rule: &str,
    target: OccurrenceTarget,
    causes: &Causes,
) -> Result<(Changes, (Vec<RecordId>, RecordedReports)), Error> {
    let store = &deciding.store;
    let snapshot = deciding.ruleset.refreshed().await?;
    let mut edits = Edits::read(store, &[target]).await?;
    let past = revision::past(store, &snapshot, edits.occurrences())
        .await?
        .asking(causes);
    let Some(occurrence) = edits.get(0) else {
        return Err(target.not_found());
    };
    let mut waiting = occurrence.pending.iter();
    let waiting = waiting.find(|it| it.rule_name.as_str() == rule);
    let Some((rule_id, rule_name)) = waiting.map(|it| (it.rule, it.rule_name.clone())) else {
        let id = occurrence.id();
        return Err(Error::NotFound(format!(
            "no notification of rule `{rule}` about occurrence `{id}` is held"
        )));
    };
    let mut changes = store.changes();
    own_rule((store, &mut changes), (rule_id, &rule_name)).await?;
    if waiting_for_group(occurrence, rule_id) {
        return Err(Error::FailedPrecondition(
            "the receivers of its group are notified with the group's next message".into(),
        ));
    }
    let now_ms = deciding.clock.now_ms();
    let step = Step {
        kind: StepKind::Release(rule_id),
        transition: Transition::default(),
        matches: &snapshot.matches(occurrence),
        now_ms,
        past: &past,
    };
    let notices = notify(occurrence, &step, &snapshot, &mut || new_id(now_ms));
    if notices.deliveries.is_empty() {
        let status = occurrence.status.word();
        return Err(Error::FailedPrecondition(format!(
            "it cannot be sent: the occurrence is {status}, or the rule has nothing to send; held notifications are evaluated automatically"
        )));
    }
    let mut reports = Reports::default();
    reports.note(&notices, occurrence, now_ms);
    changes.rest_on(&snapshot);
    for delivery in &notices.deliveries {
        changes.insert(delivery);
    }
    edits.write(&mut changes);
    let ids: Vec<_> = notices.deliveries.iter().map(|it| it.id).collect();
    let reports = reports.record(&mut changes);
    Ok((changes, (ids, reports)))
}
