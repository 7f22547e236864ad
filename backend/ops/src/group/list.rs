//! Groups as displayed, and actions on a group.

use crate::{
    cause_lookup::group::membership_range,
    decision_context::DecisionContext,
    domain::{Group, GroupId, Name, Occurrence, RecordId, Status},
    edit::OccurrenceTarget,
    error::Error,
    intake::Intake,
    lifecycle::StateChange,
    limits::{GROUP_JOINING_MAX, PAGE_TIME_MAX},
    page::{PageRequest, TokenScope},
    scan,
    set_status::{self, StatusItem},
    store::{
        Direction, EngineError, Index, Membership, Store,
        engine::Range,
        record::bytes::{Key, read_id},
    },
    tag_scope::TagScope,
};

const BATCH: usize = 100;
const PAGE: usize = 1_000;

#[derive(Debug, Clone)]
pub struct GroupView {
    pub group: Group,
    pub open_count: usize,
    pub acknowledged: bool,
}

/// A filter for groups. Empty fields match all groups.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub rule_names: Vec<String>,
    pub is_open: Option<bool>,
}

async fn count_members(store: &Store, how: Membership, id: RecordId) -> Result<usize, EngineError> {
    let mut range = membership_range(how, id);
    let mut count = 0;
    loop {
        let (index, ascending) = (Index::OccurrenceByGroup, Direction::Ascending);
        let found = store
            .engine()
            .entries(index, range.clone(), ascending, PAGE);
        let found = found.await?;
        count += found.len();
        match found.last() {
            Some((last, _)) if found.len() == PAGE => range.exclude_through(last),
            _ => return Ok(count),
        }
    }
}

async fn group_view(store: &Store, group: Group) -> Result<GroupView, EngineError> {
    let open_count = count_members(store, Membership::Open, group.id).await?;
    let others = count_members(store, Membership::Unacknowledged, group.id).await?;
    Ok(GroupView {
        open_count,
        acknowledged: open_count > 0 && others == 0,
        group,
    })
}

/// Lists groups, newest first, and returns the token of the next page, which is empty at the end. A
/// page may be short if filling it takes longer than [`PAGE_TIME_MAX`].
pub async fn list_groups(
    DecisionContext { store, clock, .. }: &DecisionContext,
    filter: &Filter,
    page: &PageRequest,
) -> Result<(Vec<GroupView>, String), Error> {
    let limit = page.limit()?;
    let scope = TokenScope::new("groups")
        .with_field("ruleNames", &filter.rule_names)
        .with_field("states", filter.is_open.map(|it| [u8::from(it)]));
    let mut range = Range {
        start: Vec::new(),
        end: scope.last_key(&page.token)?,
    };
    let stop = clock.elapsed() + PAGE_TIME_MAX;
    let mut items = Vec::new();
    loop {
        let found = store.page::<Group>(range.clone(), Direction::Descending, BATCH);
        let found = found.await?;
        if found.is_empty() {
            return Ok((items, String::new()));
        }
        for group in found.into_iter().map(|it| it.value) {
            let key = group.id.to_bytes();
            range.end = Some(key.to_vec());
            scan::yield_if_needed().await;
            let is_named = |name: &String| *name == group.rule_name.as_str();
            if filter.rule_names.is_empty() || filter.rule_names.iter().any(is_named) {
                let view = group_view(store, group).await?;
                let is_open = view.open_count > 0;
                if filter.is_open.is_none_or(|it| it == is_open) {
                    items.push(view);
                }
            }
            if items.len() >= limit || clock.elapsed() >= stop {
                return Ok((items, scope.encode_token(&key)));
            }
        }
    }
}

/// Reads a group with a page of its members, and returns the token of the next page, which is empty
/// at the end.
pub async fn get_group(
    store: &Store,
    id: RecordId,
    page: &PageRequest,
) -> Result<(GroupView, Vec<Occurrence>, String), Error> {
    let limit = page.limit()?;
    let scope = TokenScope::new("group members").with_field("id", [id.to_bytes()]);
    let after = scope.last_key(&page.token)?;
    let view = group_view(store, find_group(store, id).await?).await?;
    let mut entries = Vec::new();
    for how in [Membership::Open, Membership::Closed] {
        let mut range = membership_range(how, id);
        if let Some(after) = &after {
            // Open members come first and have smaller keys.
            if range.end.as_ref().is_some_and(|end| end <= after) {
                continue;
            }
            if range.start < *after {
                range.exclude_through(after);
            }
        }
        let room = limit + 1 - entries.len().min(limit + 1);
        let (index, ascending) = (Index::OccurrenceByGroup, Direction::Ascending);
        let found = store.engine().entries(index, range, ascending, room);
        entries.extend(found.await?);
    }
    let is_end = entries.len() <= limit;
    entries.truncate(limit);
    let last = entries.last().map(|(key, _)| scope.encode_token(key));
    let token = last.filter(|_| !is_end).unwrap_or_default();
    let keys = entries.into_iter().map(|(_, record)| record).collect();
    let members = store.get_many::<Occurrence>(keys).await?;
    let members = members.into_iter().flatten().map(|it| it.value);
    Ok((view, members.collect(), token))
}

async fn find_group(store: &Store, id: RecordId) -> Result<Group, Error> {
    let found = store.get::<Group>(id.to_bytes().into()).await?;
    let missing = || Error::NotFound(format!("group `{}` not found", GroupId(id)));
    Ok(found.ok_or_else(missing)?.value)
}

/// Updates all members of a group that are not closed, and returns their number.
///
/// # Errors
/// Returns [`Error::NotFound`] if the group does not exist. Returns [`Error::PermissionDenied`] if
/// the caller may not act on one of the members; no member is then changed. Returns an error if the
/// store fails; members changed before stay changed.
///
/// # Cancel safety
/// If the future is dropped, some members may have been changed.
pub async fn set_group_status(
    (deciding, intake): (&DecisionContext, &Intake),
    id: RecordId,
    change: &StateChange,
    author: &Name,
) -> Result<usize, Error> {
    let store = &deciding.store;
    find_group(store, id).await?;
    let mut keys = Vec::new();
    let mut range = membership_range(Membership::Open, id);
    loop {
        let (index, ascending) = (Index::OccurrenceByGroup, Direction::Ascending);
        let found = store
            .engine()
            .entries(index, range.clone(), ascending, PAGE);
        let found = found.await?;
        let Some((last, _)) = found.last() else { break };
        range.exclude_through(last);
        keys.extend(found.iter().filter_map(|(_, record)| read_id(record, 0)));
    }
    let open = async |keys: &[RecordId]| {
        let keys = keys.iter().map(|key| Key::new().id(*key).build()).collect();
        let found = store.get_many::<Occurrence>(keys).await?;
        let open = found.into_iter().flatten().map(|it| it.value);
        Ok::<_, Error>(open.filter(|it| it.status != Status::Closed))
    };
    if let Some(scope) = TagScope::from_caller() {
        for keys in keys.chunks(GROUP_JOINING_MAX) {
            open(keys)
                .await?
                .try_for_each(|it| scope.check_event(&it))?;
        }
    }
    let mut count = 0;
    for keys in keys.chunks(GROUP_JOINING_MAX) {
        let open = open(keys).await?;
        let items: Vec<_> = open
            .map(|it| StatusItem {
                target: OccurrenceTarget::Exactly(it.id()),
                change: change.clone(),
            })
            .collect();
        let answers = set_status::set_status((deciding, intake), &items, author).await?;
        count += answers.iter().filter(|it| it.is_ok()).count();
    }
    Ok(count)
}
