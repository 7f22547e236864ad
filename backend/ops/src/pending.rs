//! Held notifications and digests: listing, manual sending, and re-evaluation.

pub mod digests;
pub mod review;

use crate::{
    cause_lookup::decide_with_causes,
    commit::commit,
    decide::{Causes, Step, StepKind, Transition, notify},
    decision_context::{DecisionContext, new_id},
    domain::{Delivery, EventId, HoldKind, Name, Occurrence, Pending, RecordId},
    edit::{Edits, OccurrenceTarget},
    error::Error,
    intake::Intake,
    limits::DELIVERIES_SCANNED_MAX,
    loop_guard::{RecordedReports, Reports},
    page::{PageRequest, TokenScope},
    revision,
    store::{Changes, Direction, Index, Lane, engine::Range, record::bytes::Key},
    tag_scope::check_rule_owner,
};

const BATCH: usize = 200;

/// Filter for held notifications and digests. Empty fields are ignored.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub kinds: Vec<Kind>,
    pub rule_names: Vec<String>,
    pub silence_name: String,
    pub event: Option<EventId>,
    /// Only notifications that are due for re-evaluation before this time, in milliseconds since
    /// the epoch.
    pub before_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first message of a rule about an occurrence.
    Opening = 1,
    /// A repeat, or an update about a changed occurrence.
    Update = 2,
    /// A digest of messages beyond the budget of a destination.
    Digest = 3,
}

impl Filter {
    fn scope(&self) -> TokenScope {
        TokenScope::new("pending")
            .with_field("kinds", self.kinds.iter().map(|it| [*it as u8]))
            .with_field("ruleNames", &self.rule_names)
            .with_field("silenceName", [&self.silence_name])
            .with_field("eventId", self.event.map(EventId::to_bytes))
            .with_field("before", self.before_ms.map(i64::to_be_bytes))
    }

    fn includes_kind(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    fn matches(&self, occurrence: &Occurrence, pending: &Pending) -> bool {
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
        self.includes_kind(kind)
            && (self.rule_names.is_empty() || self.rule_names.iter().any(is_named))
            && (silence.is_empty() || silences.any(|it| it.name.as_str() == silence))
            && self.event.is_none_or(|it| it == occurrence.event)
    }
}

#[derive(Debug, Clone)]
pub enum HeldMessage {
    Decision {
        pending: Box<Pending>,
        occurrence: Box<Occurrence>,
        destinations: Vec<Name>,
    },
    /// A delivery to be sent at the end of a budget window.
    Digest(Box<Delivery>),
}

/// Lists held messages in the order of their re-evaluation. Also returns the token of the next
/// page, which is empty at the end.
pub async fn list_pending(
    deciding: &DecisionContext,
    filter: &Filter,
    page: &PageRequest,
) -> Result<(Vec<HeldMessage>, String), Error> {
    let limit = page.limit()?;
    let scope = filter.scope();
    let snapshot = deciding.ruleset.refresh().await?;
    let end = filter.before_ms.map(|it| Key::new().time_ms(it).build());
    let mut range = Range {
        start: Vec::new(),
        end,
    };
    if let Some(last) = scope.last_key(&page.token)? {
        range.exclude_through(&last);
    }
    let mut digests = digests::waiting_digests(&deciding.store, filter, &range).await?;
    let (mut items, mut scanned) = (Vec::new(), 0);
    loop {
        let found = deciding.store.page_by_index::<Occurrence>(
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
        range.exclude_through(last);
        for (key, stored) in found {
            scanned += 1;
            let occurrence = stored.value;
            let later = digests.split_off(&key);
            items.extend(std::mem::replace(&mut digests, later).into_values());
            for pending in &occurrence.pending {
                if filter.matches(&occurrence, pending) {
                    let rule = snapshot.rule(pending.rule);
                    items.push(HeldMessage::Decision {
                        destinations: rule.map_or_else(Vec::new, |it| it.destination_names.clone()),
                        pending: Box::new(pending.clone()),
                        occurrence: Box::new(occurrence.clone()),
                    });
                }
            }
            if items.len() >= limit || scanned >= DELIVERIES_SCANNED_MAX {
                return Ok((items, scope.encode_token(&key)));
            }
        }
    }
}

/// Sends the held notification of a rule about an occurrence, regardless of its holds. Returns the
/// deliveries.
///
/// # Errors
/// Returns [`Error::NotFound`] if no notification of the rule is held, and
/// [`Error::FailedPrecondition`] if it cannot be sent.
pub async fn release_pending(
    (deciding, intake): (&DecisionContext, &Intake),
    rule: &str,
    target: OccurrenceTarget,
) -> Result<Vec<RecordId>, Error> {
    let store = &deciding.store;
    let decide = async || {
        let causes = Causes::default();
        decide_with_causes(store, &causes, || {
            decide_release(deciding, rule, target, &causes)
        })
        .await
    };
    let ((ids, reports), _) = commit(store, Lane::Admin, decide).await?;
    intake.report_all(reports);
    Ok(ids)
}

/// Returns whether an update of a group member waits for the group's next message.
fn waiting_for_group(occurrence: &Occurrence, rule: RecordId) -> bool {
    let mut waiting = occurrence.pending.iter().filter(|it| it.rule == rule);
    waiting.any(|it| !it.is_opening && it.group_hold().is_some())
}

/// Decides which messages to send for a held notification, given the causes resolved so far.
async fn decide_release(
    deciding: &DecisionContext,
    rule: &str,
    target: OccurrenceTarget,
    causes: &Causes,
) -> Result<(Changes, (Vec<RecordId>, RecordedReports)), Error> {
    let store = &deciding.store;
    let snapshot = deciding.ruleset.refresh().await?;
    let mut edits = Edits::read(store, &[target]).await?;
    let past = revision::read_past_definitions(store, &snapshot, edits.occurrences())
        .await?
        .with_causes(causes);
    let Some(occurrence) = edits.get(0) else {
        return Err(target.not_found());
    };
    let mut waiting = occurrence.pending.iter();
    let waiting = waiting.find(|it| it.rule_name.as_str() == rule);
    let Some((rule_id, rule_name)) = waiting.map(|it| (it.rule, it.rule_name.clone())) else {
        let id = occurrence.id();
        return Err(Error::NotFound(format!(
            "rule `{rule}` has no held notification about occurrence `{id}`"
        )));
    };
    let mut changes = store.new_changes();
    check_rule_owner((store, &mut changes), (rule_id, &rule_name)).await?;
    if waiting_for_group(occurrence, rule_id) {
        return Err(Error::FailedPrecondition(
            "its group's next message notifies the receivers".into(),
        ));
    }
    let now_ms = deciding.clock.now_ms();
    let step = Step {
        kind: StepKind::Release(rule_id),
        transition: Transition::default(),
        matches: &snapshot.matching_triggers(occurrence),
        now_ms,
        past: &past,
    };
    let notices = notify(occurrence, &step, &snapshot, &mut || new_id(now_ms));
    if notices.deliveries.is_empty() {
        let status = occurrence.status.as_str();
        return Err(Error::FailedPrecondition(format!(
            "nothing to send: the occurrence is {status}, or the rule has no message; held notifications are evaluated automatically"
        )));
    }
    let mut reports = Reports::default();
    reports.add_reports(&notices, occurrence, now_ms);
    changes.depend_on(&snapshot);
    for delivery in &notices.deliveries {
        changes.insert(delivery);
    }
    edits.write(&mut changes);
    let ids: Vec<_> = notices.deliveries.iter().map(|it| it.id).collect();
    let reports = reports.record(&mut changes);
    Ok((changes, (ids, reports)))
}
