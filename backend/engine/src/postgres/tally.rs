//! Counters in the database: each writer adds to rows of its own, so that none waits for another one,
//! and a counter is the sum of its rows. Rows that rest are folded into one, in which the numbers are
//! packed, eight bytes each; there also lies what an earlier layout counted.

use super::{
    plan::number,
    query::{Query, Way},
    readers::Readers,
    session::Session,
};
use crate::{
    fault::EngineError,
    kind::Kind,
    read::{Direction, Range, Row},
};

/// How many numbers a counter has at most.
pub(super) const NUMBERS: usize = 6;
/// Rows folded at a time.
const FOLDED: i64 = 5_000;

const LEAST: &str = "'-9223372036854775808'::bigint";
const GREATEST: &str = "'9223372036854775807'::bigint";

fn table(schema: &str) -> String {
    format!("{schema}.{}", Kind::Counter.table())
}

/// What is written of each number, one after the other.
fn each(between: &str, write: impl Fn(usize) -> String) -> String {
    let all: Vec<_> = (0..NUMBERS).map(write).collect();
    all.join(between)
}

/// One of the numbers that are packed in a value.
fn packed(value: &str, at: usize) -> String {
    let (begin, first) = (at * 8, at * 8 + 1);
    format!(
        "CASE WHEN {begin} < length({value}) \
         THEN ('x' || encode(substr({value}, {first}, 8), 'hex'))::bit(64)::bigint ELSE 0 END"
    )
}

/// The sums of rows, packed.
fn sums() -> String {
    each(" || ", |at| {
        format!("int8send(least(greatest(sum(u.n{at}), {LEAST}), {GREATEST})::bigint)")
    })
}

/// All rows of some counters.
fn rows(schema: &str, of: &str) -> String {
    let unpacked = each(", ", |at| packed("t.value", at) + &format!(" AS n{at}"));
    let names = each(", ", |at| format!("t.n{at}"));
    let table = table(schema);
    format!(
        "(SELECT t.key, t.version, {unpacked} FROM {table} AS t WHERE {of} \
         UNION ALL SELECT t.key, t.version, {names} FROM {schema}.counter_part AS t WHERE {of}) AS u"
    )
}

/// The sum of a counter's rows.
fn sum_of(schema: &str, key: &str) -> String {
    format!(
        "CROSS JOIN LATERAL (SELECT max(u.version) AS version, {} AS value FROM {}) AS c",
        sums(),
        rows(schema, &format!("t.key = {key}"))
    )
}

/// Counters by key.
pub(super) fn get(schema: &str) -> String {
    format!(
        "SELECT x.n, c.version, c.value FROM unnest($1::bytea[]) WITH ORDINALITY AS x(k, n) {} \
         WHERE c.version IS NOT NULL",
        sum_of(schema, "x.k")
    )
}

/// Counters by a stretch of keys. Each table gives so many keys in order, of which the first remain.
pub(super) fn page(schema: &str, way: &str) -> String {
    let of_stretch = format!("WHERE key >= $1 AND key < $2 ORDER BY key {way} LIMIT $3");
    format!(
        "SELECT k.key, c.version, c.value FROM (SELECT a.key FROM \
         ((SELECT key FROM {} {of_stretch}) UNION ALL \
         (SELECT DISTINCT key FROM {schema}.counter_part {of_stretch})) AS a \
         GROUP BY a.key ORDER BY a.key {way} LIMIT $3) AS k {} ORDER BY k.key {way}",
        table(schema),
        sum_of(schema, "k.key")
    )
}

/// Reads counters by a stretch of keys. One that only has zeros left is not there.
pub(super) async fn read_page(
    readers: &Readers,
    mut range: Range,
    direction: Direction,
    limit: usize,
) -> Result<Vec<(Vec<u8>, Row)>, EngineError> {
    let mut found = Vec::new();
    while found.len() < limit {
        let query = Query::Page(Kind::Counter, Way::from(direction));
        let asked = limit - found.len();
        let (start, end, count) = (&*range.start, super::end(&range), super::count_of(asked));
        let rows = readers.rows(query, &[&start, &end, &count]).await?;
        let mut last = None;
        for row in &rows {
            let key = super::bytes(row, 0)?;
            let counter = super::record(row, 1, Kind::Counter, &key)?;
            last = Some(key.clone());
            if !counter.value.is_empty() {
                found.push((key, counter));
            }
        }
        match (last, direction) {
            (Some(last), Direction::Ascending) if rows.len() == asked => range.go_on_after(&last),
            (Some(last), Direction::Descending) if rows.len() == asked => range.end = Some(last),
            _ => break,
        }
    }
    Ok(found)
}

/// Adds to the rows of a writer.
pub(super) fn add(schema: &str, version: &str) -> String {
    let names = each(", ", |at| format!("n{at}"));
    let arrays = each(", ", |at| format!("${}::bigint[]", at + 3));
    let come = each(", ", |at| format!("x.n{at}"));
    let become_new = each(", ", |at| {
        let (old, new) = (format!("c.n{at}"), format!("excluded.n{at}"));
        format!(
            "n{at} = CASE WHEN {new} < 0 AND {old} < {LEAST} - {new} THEN {LEAST} \
             WHEN {new} > 0 AND {old} > {GREATEST} - {new} THEN {GREATEST} ELSE {old} + {new} END"
        )
    });
    format!(
        "INSERT INTO {schema}.counter_part AS c (key, writer, version, {names}) \
         SELECT x.k, $2, {version}, {come} FROM unnest($1::bytea[], {arrays}) AS x(k, {names}) \
         ON CONFLICT (key, writer) DO UPDATE SET version = excluded.version, {become_new}"
    )
}

/// Folds rows that were not added to since a version.
pub(super) fn fold(schema: &str) -> String {
    let value = each(" || ", |at| {
        let (old, new) = (packed("c.value", at), packed("excluded.value", at));
        format!("int8send(least(greatest({old}::numeric + {new}, {LEAST}), {GREATEST})::bigint)")
    });
    format!(
        "WITH rest AS (SELECT key, writer FROM {schema}.counter_part WHERE version < $1 \
         ORDER BY key, writer LIMIT $2 FOR UPDATE SKIP LOCKED), \
         gone AS (DELETE FROM {schema}.counter_part AS t USING rest AS x \
         WHERE t.key = x.key AND t.writer = x.writer RETURNING t.*) \
         INSERT INTO {} AS c (key, version, value) \
         SELECT u.key, max(u.version), {} FROM gone AS u GROUP BY u.key ORDER BY u.key \
         ON CONFLICT (key) DO UPDATE SET version = greatest(c.version, excluded.version), \
         value = {value} RETURNING key",
        table(schema),
        sums()
    )
}

/// Removes folded rows that have no number left.
pub(super) fn zeros(schema: &str) -> String {
    format!(
        "DELETE FROM {} AS t USING unnest($1::bytea[]) AS x(k) WHERE t.key = x.k \
         AND t.value = decode(repeat('00', length(t.value)), 'hex')",
        table(schema)
    )
}

/// Folds rows that nothing was added to since a version that was the newest some time ago; answers the
/// version that is the newest now. Whoever folds, and however often: the sum of a counter stays.
pub(super) async fn fold_resting(
    session: &Session,
    since: u64,
) -> Result<u64, tokio_postgres::Error> {
    let client = &session.client;
    loop {
        let statement = session.statement(Query::Fold).await?;
        let rows = client.query(&statement, &[&number(since), &FOLDED]).await?;
        let keys = rows.iter().map(|row| row.try_get::<_, &[u8]>(0));
        let keys: Vec<&[u8]> = keys.collect::<Result<_, _>>()?;
        if keys.is_empty() {
            break;
        }
        let statement = session.statement(Query::Zeros).await?;
        client.execute(&statement, &[&keys]).await?;
    }
    let statement = session.statement(Query::Newest).await?;
    let newest: i64 = client.query_one(&statement, &[]).await?.try_get(0)?;
    Ok(newest.unsigned_abs())
}
