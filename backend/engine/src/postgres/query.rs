//! The statements, written once for all kinds and indexes, and generated from the layout.

use super::{
    layout::{self, IndexLocation},
    tally,
};
use crate::{index::Index, kind::Kind, ownership::LEAD, read::Direction};

/// A statement, prepared once per session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Query {
    /// Draws the version of a commit.
    Version,
    /// Checks the version of records and locks them until the commit.
    Check(Kind),
    Missing(Kind),
    Delete(Kind),
    /// Clears column entries that move to another record.
    Vacate(Index),
    Update(Kind),
    /// Replaces the values and column entries of records.
    Move(Kind),
    /// Replaces only the versions of records.
    Touch(Kind),
    /// Deletes rows of a side table, each found by an entry of this index.
    DeleteSideRows(Index),
    /// Replaces entries in rows of a side table, each found by an entry of this index.
    UpdateSideRows(Index),
    DeleteEntries(Index),
    Insert(Kind),
    InsertSideRows(Kind),
    InsertEntries(Index),
    Sum,
    Fold,
    /// Deletes folded counters that are all zeros.
    Zeros,
    /// Reads the version of the newest log step.
    Newest,
    /// Locks the order of the log if definitions and writer are as expected.
    Lock,
    Step,
    /// Records that definitions changed in the newest step.
    Define,
    Register,
    /// Raises the epoch of a writer, so that none of its commits in flight can succeed.
    Raise,
    /// Finds the log step of a writer's batch.
    Written,
    /// Reads the position of the last definition change and a writer's epoch.
    Fences,
    /// Finds the record of an entry.
    Lead(Index),
    Get(Kind),
    Page(Kind, SqlOrder),
    /// Reads records in several ranges of keys.
    Under(Kind),
    Entries(Index, SqlOrder),
    Count(Index),
    /// Reads the last entry in each of several ranges of an index, with its record.
    Last(Index),
    /// Reads log steps from a position on.
    Log,
    /// Reads the newest and the oldest position of the log.
    Head,
    Rows,
    Trim,
    /// Adds a node; returns the database's time.
    Join,
    /// Renews a node's liveness and log position; returns the database's time.
    Renew,
    Nodes,
    Leave,
    ForgetWriters,
    ForgetNodes,
    /// Renews a node's claim to be working on its slots.
    Works,
    /// Reads the working nodes, whether they are to own slots, and whether they renew before the
    /// deadline.
    Owners,
    Claims,
    OwnSlots,
    /// Checks the slots of a writer and locks them until the commit.
    LockSlots,
    ClaimSlots,
    HandOver,
    Release,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SqlOrder {
    Ascending,
    Descending,
}

impl From<Direction> for SqlOrder {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Ascending => Self::Ascending,
            Direction::Descending => Self::Descending,
        }
    }
}

impl SqlOrder {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ascending => "ASC",
            Self::Descending => "DESC",
        }
    }
}

/// Fails the transaction unless every row of the first array was matched.
const EACH: &str = "SELECT 1 / (count(*) = cardinality($1::bytea[]))::int";

impl Query {
    pub(super) fn text(self, schema: &str) -> String {
        let of = |kind: Kind| format!("{schema}.{}", kind.table_name());
        let version = format!("currval('{schema}.version')");
        match self {
            Self::Version => format!("SELECT nextval('{schema}.version')"),
            Self::Check(kind) => format!(
                "WITH met AS (SELECT 1 FROM unnest($1::bytea[], $2::bigint[]) AS x(k, o) \
                 JOIN {} AS t ON t.key = x.k AND t.version = x.o FOR SHARE OF t) {EACH} FROM met",
                of(kind)
            ),
            Self::Missing(kind) => format!(
                "SELECT 1 / (count(*) = 0)::int FROM unnest($1::bytea[]) AS x(k) \
                 JOIN {} AS t ON t.key = x.k",
                of(kind)
            ),
            Self::Delete(kind) => delete_sql(kind, &of(kind)),
            Self::Vacate(index) => {
                let (table, entry, _) = index_location(index, schema);
                format!(
                    "WITH met AS (UPDATE {table} AS t SET {entry} = NULL \
                     FROM unnest($1::bytea[], $2::bytea[]) AS x(k, o) \
                     WHERE t.key = x.k AND t.{entry} = x.o RETURNING 1) {EACH} FROM met"
                )
            }
            Self::Update(kind) => format!(
                "WITH met AS (UPDATE {} AS t SET version = {version}, value = x.v \
                 FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) AS x(k, o, v) \
                 WHERE t.key = x.k AND t.version = x.o RETURNING 1) {EACH} FROM met",
                of(kind)
            ),
            Self::Move(kind) => move_entries_sql(kind, &of(kind), &version),
            Self::Touch(kind) => format!(
                "WITH met AS (UPDATE {} AS t SET version = {version} \
                 FROM unnest($1::bytea[], $2::bigint[]) AS x(k, o) \
                 WHERE t.key = x.k AND t.version = x.o RETURNING 1) {EACH} FROM met",
                of(kind)
            ),
            Self::DeleteEntries(index) => format!(
                "WITH met AS (DELETE FROM {} AS t USING unnest($1::bytea[], $2::bytea[]) \
                 AS x(e, r) WHERE t.entry = x.e AND t.record = x.r RETURNING 1) {EACH} FROM met",
                index_location(index, schema).0
            ),
            Self::DeleteSideRows(index) => delete_side_sql(index, schema),
            Self::UpdateSideRows(index) => update_side_sql(index, schema),
            Self::Insert(kind) => insert_sql(kind, &of(kind), &version),
            Self::InsertSideRows(kind) => insert_side_sql(kind, schema),
            Self::InsertEntries(index) => format!(
                "INSERT INTO {} (entry, record) SELECT x.e, x.r \
                 FROM unnest($1::bytea[], $2::bytea[]) AS x(e, r)",
                index_location(index, schema).0
            ),
            Self::Sum => tally::add_sql(schema, &version),
            Self::Fold => tally::fold_rows_sql(schema),
            Self::Zeros => tally::delete_zeros_sql(schema),
            other => other.read_sql(schema, &version),
        }
    }

    fn read_sql(self, schema: &str, version: &str) -> String {
        let of = |kind: Kind| format!("{schema}.{}", kind.table_name());
        match self {
            Self::Get(Kind::Counter) => tally::get_sql(schema),
            Self::Page(Kind::Counter, way) => tally::page_sql(schema, way.as_str()),
            Self::Get(kind) => format!(
                "SELECT x.n, t.version, t.value FROM unnest($1::bytea[]) WITH ORDINALITY AS x(k, n) \
                 JOIN {} AS t ON t.key = x.k",
                of(kind)
            ),
            Self::Page(kind, way) => format!(
                "SELECT key, version, value FROM {} WHERE key >= $1 AND key < $2 \
                 ORDER BY key {} LIMIT $3",
                of(kind),
                way.as_str()
            ),
            Self::Under(kind) => format!(
                "SELECT x.n, t.key, t.version, t.value \
                 FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS x(a, b, n) \
                 JOIN {} AS t ON t.key >= x.a AND t.key < x.b",
                of(kind)
            ),
            Self::Lead(index) => {
                let (table, entry, record) = index_location(index, schema);
                format!(
                    "SELECT x.n, t.{record} FROM unnest($1::bytea[]) WITH ORDINALITY AS x(e, n) \
                     JOIN {table} AS t ON t.{entry} = x.e"
                )
            }
            Self::Entries(index, way) => {
                let (table, entry, record) = index_location(index, schema);
                let way = way.as_str();
                format!(
                    "SELECT x.n, r.e, r.r \
                     FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS x(a, b, n) \
                     CROSS JOIN LATERAL (SELECT t.{entry} AS e, t.{record} AS r FROM {table} AS t \
                     WHERE t.{entry} >= x.a AND t.{entry} < x.b ORDER BY t.{entry} {way} LIMIT $3) \
                     AS r"
                )
            }
            Self::Count(index) => {
                let (table, entry, _) = index_location(index, schema);
                format!(
                    "SELECT x.n, c.found \
                     FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS x(a, b, n) \
                     CROSS JOIN LATERAL (SELECT count(*) AS found FROM (SELECT 1 FROM {table} AS t \
                     WHERE t.{entry} >= x.a AND t.{entry} < x.b LIMIT $3) AS y) AS c"
                )
            }
            Self::Last(index) => last_entry_sql(index, schema, &of(index.kind())),
            other => other.log_sql(schema, version),
        }
    }

    fn log_sql(self, schema: &str, version: &str) -> String {
        match self {
            Self::Lock => format!(
                "WITH h AS (SELECT 1 FROM {schema}.head \
                 WHERE id = 1 AND definitions <= $1 FOR UPDATE), \
                 w AS (SELECT 1 FROM {schema}.writer WHERE id = $2 AND epoch = $3 FOR UPDATE) \
                 SELECT 1 / count(*) FROM h, w"
            ),
            // The newest position must be read with a snapshot taken after the lock was acquired.
            Self::Step => format!(
                "INSERT INTO {schema}.log (place, at, writer, batch, version, changed) \
                 SELECT max(place) + 1, clock_timestamp(), $1, $2, {version}, $3 \
                 FROM {schema}.log RETURNING place"
            ),
            Self::Define => format!(
                "UPDATE {schema}.head SET definitions = (SELECT max(place) FROM {schema}.log) \
                 WHERE id = 1"
            ),
            Self::Register => {
                format!(
                    "INSERT INTO {schema}.writer (id, epoch, node) VALUES ($1, 1, $2) \
                     RETURNING epoch"
                )
            }
            Self::Raise => format!(
                "UPDATE {schema}.writer SET epoch = epoch + 1 WHERE id = $1 RETURNING epoch"
            ),
            Self::Written => format!(
                "SELECT place, version FROM {schema}.log \
                 WHERE place > $1 AND writer = $2 AND batch = $3"
            ),
            Self::Fences => format!(
                "SELECT definitions, (SELECT epoch FROM {schema}.writer WHERE id = $1) \
                 FROM {schema}.head WHERE id = 1"
            ),
            Self::Log => format!(
                "SELECT place, changed, extract(epoch FROM clock_timestamp() - at)::float8, writer, batch \
                 FROM {schema}.log WHERE place >= $1 ORDER BY place LIMIT $2"
            ),
            Self::LockSlots => format!(
                "WITH met AS (SELECT 1 FROM unnest($1::smallint[], $2::bigint[]) AS x(s, e) \
                 JOIN {schema}.claim AS c ON c.slot = x.s AND c.epoch = x.e AND c.writer = $3 \
                 FOR SHARE OF c) \
                 SELECT 1 / (count(*) = cardinality($1::smallint[]))::int FROM met"
            ),
            Self::Newest => {
                format!("SELECT version FROM {schema}.log ORDER BY place DESC LIMIT 1")
            }
            Self::Head => format!("SELECT max(place), min(place) FROM {schema}.log"),
            Self::Rows => format!(
                "SELECT coalesce(sum(greatest(reltuples, 0)), 0)::bigint FROM pg_class \
                 WHERE relkind = 'r' AND relnamespace = to_regnamespace('{schema}')"
            ),
            Self::Trim => format!(
                "DELETE FROM {schema}.log WHERE place IN (SELECT place FROM {schema}.log \
                 WHERE place < (SELECT max(place) - $1 FROM {schema}.log) \
                 AND at < clock_timestamp() - $2 * interval '1 second' ORDER BY place LIMIT $3)"
            ),
            other => other.nodes_sql(schema),
        }
    }

    fn nodes_sql(self, schema: &str) -> String {
        match self {
            Self::Join => format!(
                "INSERT INTO {schema}.node (id, name, since, renewed, works, follows) VALUES ($1, $2, \
                 clock_timestamp(), clock_timestamp(), clock_timestamp(), (SELECT max(place) FROM {schema}.log)) \
                 RETURNING {NOW_MS}"
            ),
            Self::Renew => format!(
                "UPDATE {schema}.node SET renewed = clock_timestamp(), follows = $2, \
                 about = $3, writer = $4 WHERE id = $1 RETURNING {NOW_MS}"
            ),
            Self::Nodes => format!(
                "SELECT n.name, (extract(epoch FROM n.since) * 1000)::bigint, n.follows, \
                 EXISTS (SELECT 1 FROM {schema}.claim AS c WHERE c.node = n.id AND c.slot = {LEAD}), \
                 n.about, (SELECT count(*) FROM {schema}.claim AS c \
                 WHERE c.node = n.id AND c.slot < {LEAD}), n.id \
                 FROM {schema}.node AS n \
                 WHERE n.renewed > clock_timestamp() - $1 * interval '1 second' \
                 ORDER BY n.since, n.id"
            ),
            Self::ForgetWriters => format!(
                "DELETE FROM {schema}.writer WHERE node IN ( \
                 SELECT id FROM {schema}.node \
                 WHERE renewed < clock_timestamp() - $1 * interval '1 second')"
            ),
            Self::ForgetNodes => format!(
                "DELETE FROM {schema}.node \
                 WHERE renewed < clock_timestamp() - $1 * interval '1 second'"
            ),
            Self::Works => {
                format!("UPDATE {schema}.node SET works = clock_timestamp() WHERE id = $1")
            }
            Self::Owners => format!(
                "SELECT id, writer IS NOT NULL, \
                 {WORKED} > clock_timestamp() - $1::float8 / 2 * interval '1 second' \
                 FROM {schema}.node AS n \
                 WHERE {WORKED} > clock_timestamp() - $1 * interval '1 second'"
            ),
            Self::Claims => format!("SELECT slot, epoch, node FROM {schema}.claim ORDER BY slot"),
            Self::OwnSlots => format!("SELECT slot, epoch FROM {schema}.claim WHERE writer = $1"),
            // If the slot changed owners in between, its epoch differs.
            Self::ClaimSlots => format!(
                "WITH free AS MATERIALIZED (SELECT c.slot \
                 FROM unnest($1::smallint[], $2::bigint[]) AS x(s, e) \
                 JOIN {schema}.claim AS c ON c.slot = x.s AND c.epoch = x.e \
                 WHERE NOT EXISTS (SELECT 1 FROM {schema}.node AS n WHERE n.id = c.node AND \
                 (NOT $6 OR {WORKED} > clock_timestamp() - $5 * interval '1 second')) \
                 FOR UPDATE OF c SKIP LOCKED) \
                 UPDATE {schema}.claim AS c SET node = $3, writer = $4, epoch = c.epoch + 1 \
                 FROM free WHERE c.slot = free.slot RETURNING c.slot, c.epoch"
            ),
            // Slots with a commit in progress are skipped, and handed over next time.
            Self::HandOver => format!(
                "WITH free AS MATERIALIZED (SELECT c.slot, x.k \
                 FROM unnest($1::smallint[], $2::bytea[]) AS x(s, k) \
                 JOIN {schema}.claim AS c ON c.slot = x.s AND c.node = $3 \
                 FOR UPDATE OF c SKIP LOCKED) \
                 UPDATE {schema}.claim AS c SET node = n.id, writer = n.writer, epoch = c.epoch + 1 \
                 FROM free JOIN {schema}.node AS n ON n.id = free.k AND n.writer IS NOT NULL \
                 WHERE c.slot = free.slot RETURNING c.slot"
            ),
            Self::Release => format!(
                "WITH free AS MATERIALIZED (SELECT slot FROM {schema}.claim \
                 WHERE slot = {LEAD} AND node = $1 FOR UPDATE SKIP LOCKED) \
                 UPDATE {schema}.claim AS c SET node = '', writer = '', epoch = c.epoch + 1 \
                 FROM free WHERE c.slot = free.slot"
            ),
            _ => format!(
                "WITH w AS (DELETE FROM {schema}.writer WHERE node = $1) \
                 DELETE FROM {schema}.node WHERE id = $1"
            ),
        }
    }
}

const NOW_MS: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The time up to which a node is known to be healthy: the earlier of its last successful write and
/// its last renewal.
const WORKED: &str = "least(n.works, n.renewed)";

/// Returns the table of an index, its entry column, and its record column.
fn index_location(index: Index, schema: &str) -> (String, &'static str, &'static str) {
    match layout::index_location(index) {
        IndexLocation::Column(name) => {
            let table = index.kind().table_name();
            (format!("{schema}.{table}"), name, "key")
        }
        IndexLocation::SideTable(name) => (side_table_name(index.kind(), schema), name, "key"),
        IndexLocation::Table(name) => (format!("{schema}.{name}"), "entry", "record"),
    }
}

fn side_table_name(kind: Kind, schema: &str) -> String {
    let table = layout::side_table(kind).unwrap_or_default();
    format!("{schema}.{table}")
}

/// Returns array parameters numbered from `from` on, built for each column entry of a kind.
fn array_parameters(from: usize, count: usize) -> String {
    (from..from + count).fold(String::new(), |text, number| {
        text + &format!(", ${number}::bytea[]")
    })
}

fn format_columns(kind: Kind, write: impl Fn(usize, &str) -> String) -> String {
    format_indexed_columns(layout::index_columns(kind), write)
}

fn format_side_columns(kind: Kind, write: impl Fn(usize, &str) -> String) -> String {
    format_indexed_columns(layout::side_index_columns(kind), write)
}

fn format_indexed_columns(
    columns: impl Iterator<Item = (Index, &'static str)>,
    write: impl Fn(usize, &str) -> String,
) -> String {
    let columns = columns.enumerate();
    columns.fold(String::new(), |text, (number, (_, name))| {
        text + &write(number, name)
    })
}

fn insert_sql(kind: Kind, table: &str, version: &str) -> String {
    let names = format_columns(kind, |_, name| format!(", {name}"));
    let values = format_columns(kind, |number, _| format!(", x.n{number}"));
    let of = format_columns(kind, |number, _| format!(", n{number}"));
    let arrays = array_parameters(3, layout::index_columns(kind).count());
    format!(
        "INSERT INTO {table} (key, version, value{names}) SELECT x.k, {version}, x.v{values} \
         FROM unnest($1::bytea[], $2::bytea[]{arrays}) AS x(k, v{of})"
    )
}

fn delete_sql(kind: Kind, table: &str) -> String {
    let of = format_columns(kind, |number, _| format!(", o{number}"));
    let are = format_columns(kind, |number, name| {
        format!(" AND (x.o{number} IS NULL OR t.{name} = x.o{number})")
    });
    let arrays = array_parameters(3, layout::index_columns(kind).count());
    format!(
        "WITH met AS (DELETE FROM {table} AS t \
         USING unnest($1::bytea[], $2::bigint[]{arrays}) AS x(k, o{of}) \
         WHERE t.key = x.k AND t.version = x.o{are} RETURNING 1) {EACH} FROM met"
    )
}

fn insert_side_sql(kind: Kind, schema: &str) -> String {
    let names = format_side_columns(kind, |_, name| format!(", {name}"));
    let of = format_side_columns(kind, |number, _| format!(", n{number}"));
    let arrays = array_parameters(2, layout::side_index_columns(kind).count());
    format!(
        "INSERT INTO {} (key{names}) SELECT * FROM unnest($1::bytea[]{arrays}) AS x(k{of})",
        side_table_name(kind, schema)
    )
}

/// Returns the condition that selects the row of a side table by all known entries.
fn side_row_condition(index: Index) -> String {
    let are = format_side_columns(index.kind(), |number, name| {
        if matches!(layout::index_location(index), IndexLocation::SideTable(other) if other == name)
        {
            format!(" AND t.{name} = x.o{number}")
        } else {
            format!(" AND (x.o{number} IS NULL OR t.{name} = x.o{number})")
        }
    });
    format!("t.key = x.k{are}")
}

fn delete_side_sql(index: Index, schema: &str) -> String {
    let kind = index.kind();
    let of = format_side_columns(kind, |number, _| format!(", o{number}"));
    let arrays = array_parameters(2, layout::side_index_columns(kind).count());
    format!(
        "WITH met AS (DELETE FROM {} AS t USING unnest($1::bytea[]{arrays}) AS x(k{of}) \
         WHERE {} RETURNING 1) {EACH} FROM met",
        side_table_name(kind, schema),
        side_row_condition(index)
    )
}

/// Returns the statement that replaces entries in a side table. For each entry, the parameters
/// contain the old and the new value; if both are NULL, the entry stays unchanged. All rows are
/// deleted before the first one is inserted again, because a row may get an entry of another row.
/// The window function forces this order.
fn update_side_sql(index: Index, schema: &str) -> String {
    let kind = index.kind();
    let of = format_side_columns(kind, |number, _| format!(", o{number}, n{number}"));
    let names = format_side_columns(kind, |_, name| format!(", {name}"));
    let become_new = format_side_columns(kind, |number, name| {
        format!(", coalesce(x.n{number}, t.{name}) AS {name}")
    });
    let arrays = array_parameters(2, 2 * layout::side_index_columns(kind).count());
    let table = side_table_name(kind, schema);
    format!(
        "WITH gone AS (DELETE FROM {table} AS t USING unnest($1::bytea[]{arrays}) AS x(k{of}) \
         WHERE {} RETURNING t.key{become_new}), \
         met AS (INSERT INTO {table} (key{names}) SELECT key{names} \
         FROM (SELECT *, count(*) OVER () AS of_all FROM gone) AS x WHERE of_all > 0 RETURNING 1) \
         {EACH} FROM met",
        side_row_condition(index)
    )
}

/// Returns the part of a statement that replaces column entries. For each column entry, the
/// parameters contain the old and the new value; if both are NULL, the entry stays unchanged.
fn move_entries_sql(kind: Kind, table: &str, version: &str) -> String {
    let of = format_columns(kind, |number, _| format!(", o{number}, n{number}"));
    let become_new = format_columns(kind, |number, name| {
        format!(
            ", {name} = CASE WHEN x.o{number} IS NULL AND x.n{number} IS NULL \
             THEN t.{name} ELSE x.n{number} END"
        )
    });
    let are = format_columns(kind, |number, name| {
        format!(
            " AND (x.o{number} IS NULL AND x.n{number} IS NULL \
             OR t.{name} IS NOT DISTINCT FROM x.o{number})"
        )
    });
    let arrays = array_parameters(4, 2 * layout::index_columns(kind).count());
    format!(
        "WITH met AS (UPDATE {table} AS t SET version = {version}, value = x.v{become_new} \
         FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]{arrays}) AS x(k, o, v{of}) \
         WHERE t.key = x.k AND t.version = x.o{are} RETURNING 1) {EACH} FROM met"
    )
}

fn last_entry_sql(index: Index, schema: &str, records: &str) -> String {
    let (table, entry, record) = index_location(index, schema);
    let stretches = "unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS x(a, b, n)";
    let newest = format!(
        "FROM {table} AS t WHERE t.{entry} >= x.a AND t.{entry} < x.b \
         ORDER BY t.{entry} DESC LIMIT 1"
    );
    match layout::index_location(index) {
        IndexLocation::Column(_) => format!(
            "SELECT x.n, r.e, r.r, r.version, r.value FROM {stretches} CROSS JOIN LATERAL \
             (SELECT t.{entry} AS e, t.{record} AS r, t.version, t.value {newest}) AS r"
        ),
        IndexLocation::SideTable(_) | IndexLocation::Table(_) => format!(
            "SELECT x.n, r.e, r.r, v.version, v.value FROM {stretches} CROSS JOIN LATERAL \
             (SELECT t.{entry} AS e, t.{record} AS r {newest}) AS r \
             LEFT JOIN {records} AS v ON v.key = r.r"
        ),
    }
}
