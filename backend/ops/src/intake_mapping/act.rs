//! Takes actions of receivers' users on threads.

use bellwether_proto::v1;
use futures_util::future::BoxFuture;

use super::action::{ActionKind, ThreadAction, invalid};
use crate::{
    annotate::{AnnotationItem, annotate},
    decide::LoadedSilence,
    decision_context::DecisionContext,
    delivery::sequencing::find_by_kept_value,
    domain::{
        Clause, Delivery, EventId, Group, GroupId, IntakeMapping, Literal, Name, Occurrence,
        OccurrenceId, Query, RecordId, Status,
    },
    edit::OccurrenceTarget,
    error::Error,
    find,
    group::respond::open_keys,
    intake::Intake,
    lifecycle::{Assignment, StateChange},
    limits::ITEMS_PER_REQUEST_MAX,
    set_status::{StatusItem, set_status},
    silence::{SilenceDraft, SilenceOperations, wire::draft_from_wire},
    template::cut,
};

const BATCH: usize = 200;
const SHOWN_CHARACTERS: usize = 100;
/// Maximum difference in length of silences for the same action, in milliseconds.
const SAME_LENGTH_MS: u64 = 1_000;

/// Takes actions on events and groups.
#[derive(Debug, Clone)]
pub struct ThreadActions {
    deciding: DecisionContext,
    intake: Intake,
    silences: SilenceOperations,
}

enum Thread {
    Event(Box<Occurrence>),
    Group(Group),
}

impl ThreadActions {
    pub fn new(deciding: DecisionContext, intake: Intake) -> Self {
        Self {
            silences: SilenceOperations::new(deciding.clone(), intake.clone()),
            deciding,
            intake,
        }
    }

    /// Takes an action on behalf of a client. An action that was already taken changes nothing.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if there is no such thread, and the errors of [`set_status`],
    /// [`annotate`] and [`SilenceOperations::create`].
    pub fn act<'a>(
        &'a self,
        mapping: &'a IntakeMapping,
        action: &'a ThreadAction,
        client: &'a Name,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let receivers = self.receivers(mapping).await?;
            let author = match &*action.author {
                "" => client.clone(),
                user => Name::for_receiver(&mapping.name, user).ok_or_else(|| {
                    invalid(
                        "author",
                        &format!("`{user}` contains unprintable characters"),
                    )
                })?,
            };
            let thread = self.find_thread(action, &receivers).await?;
            let thread = thread.ok_or_else(|| not_found(action))?;
            if let ActionKind::Silence(for_ms) = action.kind {
                self.silence(&thread, for_ms, &author).await?;
            }
            let occurrences = self.read_occurrences(thread).await?;
            self.note(&occurrences, &action.note, &author).await?;
            let Some(change) = state_change(&action.kind) else {
                return Ok(());
            };
            let change = StateChange {
                informed: receivers,
                ..change
            };
            let changed = occurrences.iter().filter(|it| is_changed(it, &change));
            let items: Vec<_> = changed
                .map(|it| StatusItem {
                    target: OccurrenceTarget::Exactly(it.id()),
                    change: change.clone(),
                })
                .collect();
            for items in items.chunks(ITEMS_PER_REQUEST_MAX) {
                let done = set_status((&self.deciding, &self.intake), items, &author).await?;
                done.into_iter().collect::<Result<Vec<_>, _>>()?;
            }
            Ok(())
        })
    }

    /// Returns the destinations of the receiver that exist.
    async fn receivers(&self, mapping: &IntakeMapping) -> Result<Vec<RecordId>, Error> {
        let snapshot = self.deciding.ruleset.refresh().await?;
        let names = mapping.response.iter().flat_map(|it| &it.destination_names);
        let found = names.filter_map(|it| snapshot.destination_by_name(it));
        Ok(found.map(|it| it.id).collect())
    }

    async fn find_thread(
        &self,
        action: &ThreadAction,
        receivers: &[RecordId],
    ) -> Result<Option<Thread>, Error> {
        let store = &self.deciding.store;
        let text = &*action.thread;
        if !action.kept_name.is_empty() {
            let mut found = Vec::new();
            for receiver in receivers {
                let value = (&*action.kept_name, text);
                found.extend(find_by_kept_value(store, *receiver, value).await?);
            }
            let Some(delivery) = found.into_iter().max_by_key(|it: &Delivery| it.id) else {
                return Ok(None);
            };
            if let Some(group) = &delivery.content.group {
                return self.find_group(group.id).await;
            }
            let (id, thread) = (delivery.content.occurrence.id(), delivery.thread_id());
            return self.find_event(id, thread).await;
        }
        if let Some(group) = GroupId::parse(text) {
            return self.find_group(group).await;
        }
        if let Some(event) = EventId::parse(text) {
            let newest = find::newest_occurrence(store, event).await?;
            return Ok(newest.map(|it| Thread::Event(Box::new(it))));
        }
        let Some(id) = OccurrenceId::parse(text) else {
            return Ok(None);
        };
        match find::find_occurrence(store, id).await? {
            Some(found) => self.find_event(id, found.key).await,
            None => Ok(None),
        }
    }

    async fn find_group(&self, id: RecordId) -> Result<Option<Thread>, Error> {
        let found = self
            .deciding
            .store
            .get::<Group>(id.to_bytes().into())
            .await?;
        Ok(found.map(|it| Thread::Group(it.value)))
    }

    /// Returns the occurrence of a thread: the newest one if it continues the thread, because the
    /// event is flapping.
    async fn find_event(
        &self,
        id: OccurrenceId,
        thread: RecordId,
    ) -> Result<Option<Thread>, Error> {
        let store = &self.deciding.store;
        let newest = find::newest_occurrence(store, id.event).await?;
        let continues = |it: &Occurrence| {
            let mut origins = it.notified.iter().filter_map(|it| it.thread);
            origins.any(|it| it.key == thread)
        };
        let found = match newest.filter(continues) {
            Some(newest) => Some(newest),
            None => find::find_occurrence(store, id).await?,
        };
        Ok(found.map(|it| Thread::Event(Box::new(it))))
    }

    /// Returns the occurrence of a thread, or the open members of a group.
    async fn read_occurrences(&self, thread: Thread) -> Result<Vec<Occurrence>, Error> {
        let store = &self.deciding.store;
        let group = match thread {
            Thread::Event(occurrence) => return Ok(vec![*occurrence]),
            Thread::Group(group) => group,
        };
        let mut members = Vec::new();
        for keys in open_keys(store, group.id).await?.chunks(BATCH) {
            let found = store.get_many::<Occurrence>(keys.to_vec()).await?;
            members.extend(found.into_iter().flatten().map(|it| it.value));
        }
        Ok(members)
    }

    async fn note(
        &self,
        occurrences: &[Occurrence],
        text: &str,
        author: &Name,
    ) -> Result<(), Error> {
        let is_new = |it: &&Occurrence| {
            let mut notes = it.annotations.iter();
            !text.is_empty() && !notes.any(|it| it.text == text && it.author == *author)
        };
        let items = occurrences.iter().filter(is_new);
        let items: Vec<_> = items
            .map(|it| AnnotationItem {
                target: OccurrenceTarget::Exactly(it.id()),
                annotation: None,
                text: text.to_owned(),
            })
            .collect();
        for items in items.chunks(ITEMS_PER_REQUEST_MAX) {
            let done = annotate(&self.deciding, items, author).await?;
            done.into_iter().collect::<Result<Vec<_>, _>>()?;
        }
        Ok(())
    }

    /// Silences an event, or the messages of a group's rule about events like its members, unless a
    /// silence of the same length does so.
    async fn silence(&self, thread: &Thread, for_ms: i64, author: &Name) -> Result<(), Error> {
        let (from_event, query, rule_names) = match thread {
            Thread::Event(occurrence) => (Some(occurrence.event), None, Vec::new()),
            Thread::Group(group) => (None, group_query(group), vec![group.rule_name.clone()]),
        };
        let now_ms = self.deciding.clock.now_ms();
        let snapshot = self.deciding.ruleset.refresh().await?;
        let is_same = |it: &LoadedSilence| {
            let silence = &it.silence;
            let length_ms = silence.end_ms.saturating_sub(silence.start_ms);
            let is_about = match from_event {
                Some(event) => silence.from_event == Some(event),
                None => silence.query == query && silence.rule_names == rule_names,
            };
            is_about && it.is_in_force(now_ms) && length_ms.abs_diff(for_ms) <= SAME_LENGTH_MS
        };
        if snapshot.silences().as_slice().iter().any(|it| is_same(it)) {
            return Ok(());
        }
        let draft = SilenceDraft {
            reason: format!("silenced by {author}"),
            query,
            rule_names: rule_names.iter().map(ToString::to_string).collect(),
            end_ms: Some(now_ms.saturating_add(for_ms)),
            from_event,
            ..draft_from_wire(v1::Silence::default(), author.clone())
        };
        self.silences.create(draft, false, false).await?;
        Ok(())
    }
}

fn not_found(action: &ThreadAction) -> Error {
    let shown = cut::to_one_line(&action.thread, SHOWN_CHARACTERS);
    Error::NotFound(match &*action.kept_name {
        _ if shown.is_empty() => "the thread is empty".into(),
        "" => format!("thread `{shown}` not found"),
        name => format!("no thread has the kept value `{name}` = `{shown}`"),
    })
}

fn group_query(group: &Group) -> Option<Query> {
    let clauses = group.by.iter().map(|(field, value)| match value {
        Some(value) => Clause::Equals(field.clone(), Literal::Text(value.clone())),
        None => Clause::Not(Box::new(Clause::Exists(field.clone()))),
    });
    let clause = Clause::And(clauses.collect());
    (!group.by.is_empty()).then_some(Query { clause })
}

fn state_change(kind: &ActionKind) -> Option<StateChange> {
    let mut change = StateChange::default();
    match kind {
        ActionKind::Acknowledge(for_ms) => {
            change.acknowledged = Some(true);
            change.acknowledge_for_ms = *for_ms;
        }
        ActionKind::Unacknowledge => change.acknowledged = Some(false),
        ActionKind::Close => change.status = Some(Status::Closed),
        ActionKind::Assign(name) => change.assignment = Assignment::Client(name.clone()),
        ActionKind::Note | ActionKind::Silence(_) => return None,
    }
    Some(change)
}

/// Whether a change has an effect on an occurrence. A closed one does not change.
fn is_changed(occurrence: &Occurrence, change: &StateChange) -> bool {
    let is_other = |flag: bool| flag != occurrence.acknowledged;
    let is_assigned = match &change.assignment {
        Assignment::Client(name) => occurrence.assignee.as_ref() != Some(name),
        _ => false,
    };
    let is_other = change.status.is_some() || change.acknowledged.is_some_and(is_other);
    occurrence.status != Status::Closed && (is_other || is_assigned)
}
