//! Counters in the database. Each writer adds to its own rows, so that writers do not wait for each
//! other, and a counter is the sum of its rows. Idle rows are folded into one row, which packs the
//! numbers in eight bytes each and also contains counts from earlier layouts.

use crate::kind::Kind;

/// Maximum numbers per counter.
pub(super) const NUMBERS: usize = 6;
const LEAST: &str = "'-9223372036854775808'::bigint";
const GREATEST: &str = "'9223372036854775807'::bigint";

fn table_sql(schema: &str) -> String {
    format!("{schema}.{}", Kind::Counter.table_name())
}

fn join_numbers(between: &str, write: impl Fn(usize) -> String) -> String {
    let all: Vec<_> = (0..NUMBERS).map(write).collect();
    all.join(between)
}

fn packed_number_sql(value: &str, at: usize) -> String {
    let (begin, first) = (at * 8, at * 8 + 1);
    format!(
        "CASE WHEN {begin} < length({value}) \
         THEN ('x' || encode(substr({value}, {first}, 8), 'hex'))::bit(64)::bigint ELSE 0 END"
    )
}

fn sums_sql() -> String {
    join_numbers(" || ", |at| {
        format!("int8send(least(greatest(sum(u.n{at}), {LEAST}), {GREATEST})::bigint)")
    })
}

fn rows_sql(schema: &str, of: &str) -> String {
    let unpacked = join_numbers(", ", |at| {
        packed_number_sql("t.value", at) + &format!(" AS n{at}")
    });
    let names = join_numbers(", ", |at| format!("t.n{at}"));
    let table = table_sql(schema);
    format!(
        "(SELECT t.key, t.version, {unpacked} FROM {table} AS t WHERE {of} \
         UNION ALL SELECT t.key, t.version, {names} FROM {schema}.counter_part AS t WHERE {of}) AS u"
    )
}

fn sum_sql(schema: &str, key: &str) -> String {
    format!(
        "CROSS JOIN LATERAL (SELECT max(u.version) AS version, {} AS value FROM {}) AS c",
        sums_sql(),
        rows_sql(schema, &format!("t.key = {key}"))
    )
}

pub(super) fn get_sql(schema: &str) -> String {
    format!(
        "SELECT x.n, c.version, c.value FROM unnest($1::bytea[]) WITH ORDINALITY AS x(k, n) {} \
         WHERE c.version IS NOT NULL",
        sum_sql(schema, "x.k")
    )
}

/// Returns SQL that reads counters in a range of keys. Each table contributes rows up to the limit,
/// and the result keeps the first rows of all tables.
pub(super) fn page_sql(schema: &str, way: &str) -> String {
    let of_stretch = format!("WHERE key >= $1 AND key < $2 ORDER BY key {way} LIMIT $3");
    format!(
        "SELECT k.key, c.version, c.value FROM (SELECT a.key FROM \
         ((SELECT key FROM {} {of_stretch}) UNION ALL \
         (SELECT DISTINCT key FROM {schema}.counter_part {of_stretch})) AS a \
         GROUP BY a.key ORDER BY a.key {way} LIMIT $3) AS k {} ORDER BY k.key {way}",
        table_sql(schema),
        sum_sql(schema, "k.key")
    )
}

/// Returns SQL that adds to the rows of a writer.
pub(super) fn add_sql(schema: &str, version: &str) -> String {
    let names = join_numbers(", ", |at| format!("n{at}"));
    let arrays = join_numbers(", ", |at| format!("${}::bigint[]", at + 3));
    let come = join_numbers(", ", |at| format!("x.n{at}"));
    let become_new = join_numbers(", ", |at| {
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

pub(super) fn fold_rows_sql(schema: &str) -> String {
    let value = join_numbers(" || ", |at| {
        let (old, new) = (
            packed_number_sql("c.value", at),
            packed_number_sql("excluded.value", at),
        );
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
        table_sql(schema),
        sums_sql()
    )
}

pub(super) fn delete_zeros_sql(schema: &str) -> String {
    format!(
        "DELETE FROM {} AS t USING unnest($1::bytea[]) AS x(k) WHERE t.key = x.k \
         AND t.value = decode(repeat('00', length(t.value)), 'hex')",
        table_sql(schema)
    )
}
