//! The statements that write a group of sets. Their arrays are sorted by key, so that locks are
//! always acquired in the same order.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tokio_postgres::types::ToSql;

use super::{layout, layout::IndexLocation, log_cache, query::Query, set::EncodedSet, tally};
use crate::{
    change::{Action, Change, Entry, Expect, add_to},
    index::Index,
    kind::Kind,
    ownership::Claim,
    position::LogPosition,
};

pub(super) struct Call<'a> {
    pub(super) query: Query,
    pub(super) parameters: Vec<Box<dyn ToSql + Sync + Send + 'a>>,
}

impl<'a> Call<'a> {
    fn new(query: Query, parameters: Vec<Box<dyn ToSql + Sync + Send + 'a>>) -> Self {
        Self { query, parameters }
    }
}

/// The identity of a writer: its row, and the number of this attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) writer: [u8; 16],
    pub(super) epoch: i64,
    pub(super) batch: i64,
}

type EntryAndRecord<'a> = (&'a [u8], &'a [u8]);

/// Collects an array parameter of bytes or of nullable values.
macro_rules! array {
    ($values:expr) => {
        Box::new($values.collect::<Vec<_>>()) as Box<dyn ToSql + Sync + Send + '_>
    };
}

/// Returns the statements for a group, between BEGIN and COMMIT. The sets of a group touch
/// different records and entries, except for checks and additions.
pub(super) fn plan<'a>(group: &[&'a EncodedSet], token: Token) -> Vec<Call<'a>> {
    let mut calls = vec![Call::new(Query::Version, Vec::new())];
    let changes: Vec<&Change> = group.iter().flat_map(|set| &set.changes).collect();
    for kind in Kind::ALL {
        plan_kind(&mut calls, kind, &changes);
    }
    plan_entries(
        &mut calls,
        &changes,
        |change| &change.remove,
        Query::DeleteEntries,
    );
    for kind in Kind::ALL {
        plan_inserts(&mut calls, kind, &changes);
    }
    plan_entries(
        &mut calls,
        &changes,
        |change| &change.add,
        Query::InsertEntries,
    );
    plan_sums(&mut calls, &changes, token);
    plan_ownership_check(&mut calls, group, token);
    plan_log_append(&mut calls, group, token);
    calls
}

fn sort_by_key<'a>(
    kind: Kind,
    changes: &[&'a Change],
    holds: impl Fn(&Change) -> bool,
) -> Vec<&'a Change> {
    let of_kind = changes.iter().copied();
    let mut found: Vec<_> = of_kind
        .filter(|change| change.kind == kind && holds(change))
        .collect();
    found.sort_by(|one, other| one.key.cmp(&other.key));
    found
}

fn is_insert(change: &Change) -> bool {
    let makes = matches!(change.action, Action::Put(_) | Action::Add(_));
    makes && change.expect == Expect::Absent
}

fn plan_kind<'a>(calls: &mut Vec<Call<'a>>, kind: Kind, changes: &[&'a Change]) {
    let mut checked = sort_by_key(kind, changes, |it| {
        it.action == Action::Check && it.expect != Expect::Absent
    });
    checked.dedup_by(|one, other| one.key == other.key);
    if !checked.is_empty() {
        let parameters = vec![key_array(&checked), version_array(&checked)];
        calls.push(Call::new(Query::Check(kind), parameters));
    }
    let mut missing = sort_by_key(kind, changes, |it| {
        it.expect == Expect::Absent && !is_insert(it)
    });
    missing.dedup_by(|one, other| one.key == other.key);
    if !missing.is_empty() {
        calls.push(Call::new(Query::Missing(kind), vec![key_array(&missing)]));
    }
    let is = |change: &Change, action: Action| {
        change.action == action && matches!(change.expect, Expect::Version(_))
    };
    let deleted = sort_by_key(kind, changes, |it| is(it, Action::Delete));
    if !deleted.is_empty() {
        let mut parameters = vec![key_array(&deleted), version_array(&deleted)];
        for (index, _) in layout::index_columns(kind) {
            parameters.push(array!(
                deleted.iter().map(|it| single_entry_key(&it.remove, index))
            ));
        }
        calls.push(Call::new(Query::Delete(kind), parameters));
        plan_side_table(calls, kind, &deleted);
    }
    let put = sort_by_key(kind, changes, |it| {
        matches!(
            (&it.action, it.expect),
            (Action::Put(_), Expect::Version(_))
        )
    });
    plan_updates(calls, kind, &put);
    plan_side_table(calls, kind, &put);
    let touched = sort_by_key(kind, changes, |it| is(it, Action::Touch));
    if !touched.is_empty() {
        let parameters = vec![key_array(&touched), version_array(&touched)];
        calls.push(Call::new(Query::Touch(kind), parameters));
    }
}

fn plan_updates<'a>(calls: &mut Vec<Call<'a>>, kind: Kind, put: &[&'a Change]) {
    let columns: Vec<Index> = layout::index_columns(kind)
        .map(|(index, _)| index)
        .collect();
    let moves = |change: &Change| {
        let mut entries = change.remove.iter().chain(&change.add);
        entries.any(|entry| columns.contains(&entry.index))
    };
    let (moved, stay): (Vec<&Change>, Vec<&Change>) = put.iter().copied().partition(|it| moves(it));
    if !stay.is_empty() {
        let parameters = vec![key_array(&stay), version_array(&stay), value_array(&stay)];
        calls.push(Call::new(Query::Update(kind), parameters));
    }
    if moved.is_empty() {
        return;
    }
    // An entry that moves between records must first be removed from the old record.
    let added: HashSet<&Entry> = moved.iter().flat_map(|it| &it.add).collect();
    let given =
        |change: &Change, entry: &Entry| added.contains(entry) && !change.add.contains(entry);
    for index in &columns {
        let gives = |change: &&'a Change| {
            let change = *change;
            let entry = change.remove.iter().find(|it| it.index == *index)?;
            given(change, entry).then_some((&*change.key, &*entry.key))
        };
        let vacated: Vec<(&[u8], &[u8])> = moved.iter().filter_map(gives).collect();
        if !vacated.is_empty() {
            let parameters = vec![
                array!(vacated.iter().map(|(key, _)| *key)),
                array!(vacated.iter().map(|(_, entry)| *entry)),
            ];
            calls.push(Call::new(Query::Vacate(*index), parameters));
        }
    }
    let mut parameters = vec![
        key_array(&moved),
        version_array(&moved),
        value_array(&moved),
    ];
    for index in &columns {
        let old = moved.iter().map(|change| {
            let entry = change.remove.iter().find(|it| it.index == *index)?;
            (!given(change, entry)).then_some(&*entry.key)
        });
        parameters.push(array!(old));
        parameters.push(array!(
            moved.iter().map(|it| single_entry_key(&it.add, *index))
        ));
    }
    calls.push(Call::new(Query::Move(kind), parameters));
}

/// Adds the statements that delete or replace entries of a side table. A row is found by the first
/// of these entries that its change names.
fn plan_side_table<'a>(calls: &mut Vec<Call<'a>>, kind: Kind, changes: &[&'a Change]) {
    let columns: Vec<Index> = layout::side_index_columns(kind).map(|it| it.0).collect();
    let found_by = |change: &Change| {
        let mut columns = columns.iter().copied();
        columns.find(|index| single_entry_key(&change.remove, *index).is_some())
    };
    for by in &columns {
        let of = changes.iter().copied();
        let of: Vec<_> = of.filter(|change| found_by(change) == Some(*by)).collect();
        let Some(first) = of.first() else {
            continue;
        };
        let goes = first.action == Action::Delete;
        let mut parameters = vec![key_array(&of)];
        for index in &columns {
            parameters.push(array!(
                of.iter().map(|it| single_entry_key(&it.remove, *index))
            ));
            if !goes {
                parameters.push(array!(
                    of.iter().map(|it| single_entry_key(&it.add, *index))
                ));
            }
        }
        let query = if goes {
            Query::DeleteSideRows(*by)
        } else {
            Query::UpdateSideRows(*by)
        };
        calls.push(Call::new(query, parameters));
    }
}

fn plan_inserts<'a>(calls: &mut Vec<Call<'a>>, kind: Kind, changes: &[&'a Change]) {
    let mut come = sort_by_key(kind, changes, is_insert);
    if come.is_empty() {
        return;
    }
    let mut parameters = vec![key_array(&come), value_array(&come)];
    for (index, _) in layout::index_columns(kind) {
        parameters.push(array!(
            come.iter().map(|it| single_entry_key(&it.add, index))
        ));
    }
    calls.push(Call::new(Query::Insert(kind), parameters));
    let columns: Vec<Index> = layout::side_index_columns(kind).map(|it| it.0).collect();
    come.retain(|it| it.add.iter().any(|entry| columns.contains(&entry.index)));
    if !come.is_empty() {
        let mut parameters = vec![key_array(&come)];
        for index in columns {
            parameters.push(array!(
                come.iter().map(|it| single_entry_key(&it.add, index))
            ));
        }
        calls.push(Call::new(Query::InsertSideRows(kind), parameters));
    }
}

fn plan_entries<'a>(
    calls: &mut Vec<Call<'a>>,
    changes: &[&'a Change],
    of: impl Fn(&'a Change) -> &'a [Entry],
    query: impl Fn(Index) -> Query,
) {
    let mut lying: BTreeMap<Index, Vec<EntryAndRecord<'a>>> = BTreeMap::new();
    for change in changes {
        for entry in of(change) {
            if matches!(layout::index_location(entry.index), IndexLocation::Table(_)) {
                let lead = (&*entry.key, &*change.key);
                lying.entry(entry.index).or_default().push(lead);
            }
        }
    }
    for (index, mut leads) in lying {
        leads.sort_unstable();
        let parameters = vec![
            array!(leads.iter().map(|(entry, _)| *entry)),
            array!(leads.iter().map(|(_, record)| *record)),
        ];
        calls.push(Call::new(query(index), parameters));
    }
}

fn plan_sums<'a>(calls: &mut Vec<Call<'a>>, changes: &[&'a Change], token: Token) {
    let mut sums: BTreeMap<&'a [u8], Vec<i64>> = BTreeMap::new();
    for change in changes {
        if let (Action::Add(numbers), Expect::Any) = (&change.action, change.expect) {
            add_to(sums.entry(&change.key).or_default(), numbers);
        }
    }
    if sums.is_empty() {
        return;
    }
    let mut parameters = vec![
        array!(sums.keys().copied()),
        Box::new(token.writer.to_vec()),
    ];
    for at in 0..tally::NUMBERS {
        let number = |numbers: &Vec<i64>| numbers.get(at).copied().unwrap_or_default();
        parameters.push(array!(sums.values().map(number)));
    }
    calls.push(Call::new(Query::Sum, parameters));
}

/// Adds the statement that checks the writer's slots and locks them until the commit.
fn plan_ownership_check<'a>(calls: &mut Vec<Call<'a>>, group: &[&'a EncodedSet], token: Token) {
    let claims: BTreeSet<Claim> = group
        .iter()
        .flat_map(|set| set.claims.iter().copied())
        .collect();
    if claims.is_empty() {
        return;
    }
    let slot = |claim: &Claim| i16::try_from(claim.slot).unwrap_or(i16::MAX);
    calls.push(Call::new(
        Query::LockSlots,
        vec![
            array!(claims.iter().map(slot)),
            array!(claims.iter().map(|claim| to_db_integer(claim.epoch))),
            Box::new(token.writer.to_vec()),
        ],
    ));
}

/// Adds the statements that lock the order of the log and append a step.
fn plan_log_append(calls: &mut Vec<Call<'_>>, group: &[&EncodedSet], token: Token) {
    let rests_on = group
        .iter()
        .filter_map(|set| set.rests_on)
        .map(position_to_db);
    let rests_on = rests_on.min().unwrap_or(i64::MAX);
    let writer = token.writer.to_vec();
    calls.push(Call::new(
        Query::Lock,
        vec![
            Box::new(rests_on),
            Box::new(writer.clone()),
            Box::new(token.epoch),
        ],
    ));
    let mut names = Vec::new();
    for change in group.iter().flat_map(|set| &set.changes) {
        if is_logged(change) {
            log_cache::encode_name(&mut names, change.kind, &change.key);
        }
    }
    calls.push(Call::new(
        Query::Step,
        vec![Box::new(writer), Box::new(token.batch), Box::new(names)],
    ));
    let mut changes = group.iter().flat_map(|set| &set.changes);
    if changes.any(|it| it.defines && it.action != Action::Check) {
        calls.push(Call::new(Query::Define, Vec::new()));
    }
}

pub(super) fn is_logged(change: &Change) -> bool {
    change.is_logged && change.action != Action::Check
}

pub(super) fn to_db_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn position_to_db(position: LogPosition) -> i64 {
    to_db_integer(position.to_number())
}

pub(super) fn position_from_db(place: i64) -> LogPosition {
    LogPosition::from_number(place.unsigned_abs())
}

fn key_array<'a>(changes: &[&'a Change]) -> Box<dyn ToSql + Sync + Send + 'a> {
    Box::new(changes.iter().map(|it| &*it.key).collect::<Vec<&[u8]>>())
}

fn version_array<'a>(changes: &[&'a Change]) -> Box<dyn ToSql + Sync + Send + 'a> {
    let versions = changes.iter().map(|it| match it.expect {
        Expect::Version(version) => to_db_integer(version),
        // Matches no record.
        Expect::Absent | Expect::Any => -1,
    });
    Box::new(versions.collect::<Vec<i64>>())
}

fn value_array<'a>(changes: &[&'a Change]) -> Box<dyn ToSql + Sync + Send + 'a> {
    let values = changes.iter().map(|it| match &it.action {
        Action::Put(value) => value.clone(),
        Action::Add(numbers) => numbers.iter().flat_map(|it| it.to_be_bytes()).collect(),
        Action::Delete | Action::Touch | Action::Check => Vec::new(),
    });
    Box::new(values.collect::<Vec<Vec<u8>>>())
}

fn single_entry_key(entries: &[Entry], index: Index) -> Option<&[u8]> {
    let entry = entries.iter().find(|it| it.index == index)?;
    Some(&entry.key)
}

/// Splits off the sets that can be written together: each shares no record or entry with an earlier
/// one.
pub(super) fn compatible_sets<'a>(
    sets: impl Iterator<Item = &'a EncodedSet>,
    sets_max: usize,
    bytes_max: usize,
) -> Vec<bool> {
    let mut records: BTreeMap<(u8, &[u8]), RecordAccess> = BTreeMap::new();
    let mut entries: BTreeSet<&Entry> = BTreeSet::new();
    let (mut count, mut bytes) = (0, 0);
    let mut chosen = Vec::new();
    for set in sets {
        let is_free = |change: &Change| {
            let name = (change.kind as u8, &*change.key);
            let is_shared = records
                .get(&name)
                .is_none_or(|it| it.is_compatible_with(change));
            let mut touched = change.remove.iter().chain(&change.add);
            is_shared && !touched.any(|entry| entries.contains(entry))
        };
        let fits = count < sets_max && (count == 0 || bytes + set.bytes <= bytes_max);
        let is_chosen = fits && set.changes.iter().all(is_free);
        chosen.push(is_chosen);
        if !is_chosen {
            continue;
        }
        (count, bytes) = (count + 1, bytes + set.bytes);
        for change in &set.changes {
            records.insert(
                (change.kind as u8, &change.key),
                RecordAccess::from_change(change),
            );
            entries.extend(change.remove.iter().chain(&change.add));
        }
    }
    chosen
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordAccess {
    Checks(Expect),
    Adds,
    Changes,
}

impl RecordAccess {
    fn from_change(change: &Change) -> Self {
        match change.action {
            Action::Check => Self::Checks(change.expect),
            Action::Add(_) if change.expect == Expect::Any => Self::Adds,
            _ => Self::Changes,
        }
    }

    fn is_compatible_with(self, change: &Change) -> bool {
        self == Self::from_change(change) && self != Self::Changes
    }
}
