//! The cost of the database itself: the same rows, without engine, log and ordering.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::{BATCH, events::Event, median, per_second, server};

/// A parameter of a statement.
type Value<'a> = dyn tokio_postgres::types::ToSql + Sync + 'a;

/// Table layout of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Every index is a column of one table.
    Columns,
    /// The engine's layout: the changing columns are in a narrow table, the others in a second one.
    Layout,
}

async fn connect(port: u16) -> (Client, JoinSet<()>) {
    let mut config = Config::new();
    config.host("127.0.0.1").port(port).dbname("postgres");
    config.user(server::USER).password(server::PASSWORD);
    let (client, connection) = config.connect(NoTls).await.unwrap();
    let mut carrier = JoinSet::new();
    carrier.spawn(async move { drop(connection.await) });
    (client, carrier)
}

/// Tables of a separate schema, used over one connection.
pub(crate) struct Bare {
    client: Client,
    form: Form,
    schema: String,
    insert: Statement,
    /// Statements that insert into and update the narrow table; `None` without one.
    narrow: Option<[Statement; 2]>,
    _carrier: JoinSet<()>,
}

impl Bare {
    pub(crate) async fn make(port: u16, form: Form) -> Self {
        let (client, carrier) = connect(port).await;
        let schema = match form {
            Form::Columns => "columns",
            Form::Layout => "layout",
        };
        let moves = "key bytea PRIMARY KEY, version bigint NOT NULL, by_state bytea UNIQUE, \
                     value bytea NOT NULL";
        let stands = "by_event bytea UNIQUE, by_start bytea UNIQUE, by_review bytea UNIQUE, \
                      by_severity bytea UNIQUE";
        let tables = match form {
            Form::Columns => {
                format!("CREATE TABLE event ({moves}, {stands}) WITH (fillfactor = 80)")
            }
            Form::Layout => format!(
                "CREATE TABLE event_now ({moves}) WITH (fillfactor = 80); \
                 CREATE TABLE event (key bytea NOT NULL, {stands})"
            ),
        };
        let text = format!(
            "DROP SCHEMA IF EXISTS bare_{schema} CASCADE; CREATE SCHEMA bare_{schema}; \
             SET search_path TO bare_{schema}; {tables}; \
             CREATE TABLE small (key bytea PRIMARY KEY)"
        );
        client.batch_execute(&text).await.unwrap();
        Self::over(client, carrier, form, format!("bare_{schema}")).await
    }

    /// Returns the same tables over another connection.
    pub(crate) async fn another(&self, port: u16) -> Self {
        let (client, carrier) = connect(port).await;
        Self::over(client, carrier, self.form, self.schema.clone()).await
    }

    async fn over(client: Client, carrier: JoinSet<()>, form: Form, schema: String) -> Self {
        let arrays = match form {
            Form::Columns => {
                "$1::bytea[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[], \
                 $7::bytea[], $8::bytea[]"
            }
            Form::Layout => "$1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[]",
        };
        let insert = format!("INSERT INTO {schema}.event SELECT * FROM unnest({arrays})");
        let insert = client.prepare(&insert).await.unwrap();
        let narrow = match form {
            Form::Columns => None,
            Form::Layout => {
                let insert = format!(
                    "INSERT INTO {schema}.event_now \
                     SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::bytea[])"
                );
                let update = format!(
                    "UPDATE {schema}.event_now e \
                     SET version = e.version + 1, by_state = x.state, value = x.value \
                     FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) x(key, state, value) \
                     WHERE e.key = x.key"
                );
                let insert = client.prepare(&insert).await.unwrap();
                Some([insert, client.prepare(&update).await.unwrap()])
            }
        };
        Self {
            client,
            form,
            schema,
            insert,
            narrow,
            _carrier: carrier,
        }
    }

    /// Inserts events in one pipelined transaction.
    pub(crate) async fn insert(&mut self, events: &[Event]) {
        let keys: Vec<_> = events.iter().map(|it| &*it.key).collect();
        let versions: Vec<_> = events.iter().map(Event::number).collect();
        let values: Vec<_> = events.iter().map(|_| Event::value()).collect();
        let column =
            |at: usize| -> Vec<&[u8]> { events.iter().map(|it| &*it.columns[at]).collect() };
        let columns = [0, 1, 2, 3].map(column);
        let states: Vec<_> = events.iter().map(|it| &*it.state).collect();
        let moves: [&Value<'_>; 4] = [&keys, &versions, &states, &values];
        let stands = columns.iter().map(|it| it as &Value<'_>);
        let client = &self.client;
        match &self.narrow {
            None => {
                let given: Vec<_> = moves.into_iter().chain(stands).collect();
                client.execute(&self.insert, &given).await.unwrap();
            }
            Some([narrow, _]) => {
                let given: Vec<_> = moves[..1].iter().copied().chain(stands).collect();
                let (begun, put, beside, done) = tokio::join!(
                    client.batch_execute("BEGIN"),
                    client.execute(narrow, &moves),
                    client.execute(&self.insert, &given),
                    client.batch_execute("COMMIT"),
                );
                begun.and(done).unwrap();
                put.and(beside).unwrap();
            }
        }
    }

    /// Inserts new events in consecutive batches, and returns the rate and the events.
    pub(crate) async fn new_events(&mut self, time: Duration) -> (f64, Vec<Event>) {
        let (begin, mut stored) = (Instant::now(), Vec::new());
        while begin.elapsed() < time {
            let first = stored.len() as u64;
            let batch: Vec<_> = (first..first + BATCH as u64).map(Event::numbered).collect();
            self.insert(&batch).await;
            stored.extend(batch);
        }
        (per_second(stored.len() as u64, begin), stored)
    }

    /// Repeats existing events in batches, and returns the rate.
    pub(crate) async fn repeats(&mut self, stored: &mut [Event], time: Duration) -> f64 {
        let [_, update] = self.narrow.as_ref().unwrap();
        let (begin, mut count, client) = (Instant::now(), 0, &self.client);
        'all: loop {
            for batch in stored.chunks_mut(BATCH) {
                if begin.elapsed() >= time {
                    break 'all;
                }
                for event in batch.iter_mut() {
                    event.move_entry();
                }
                let keys: Vec<_> = batch.iter().map(|it| &*it.key).collect();
                let values: Vec<_> = batch.iter().map(|_| Event::value()).collect();
                let states: Vec<_> = batch.iter().map(|it| &*it.state).collect();
                let given: [&Value<'_>; 3] = [&keys, &states, &values];
                let changed = client.execute(update, &given).await.unwrap();
                assert_eq!(changed, BATCH as u64);
                count += BATCH as u64;
            }
        }
        per_second(count, begin)
    }

    /// Returns the time of a round trip, and the additional time of committing one small row.
    pub(crate) async fn trip_and_commit(&self, times: usize) -> (Duration, Duration) {
        let nothing = self.client.prepare("SELECT 1").await.unwrap();
        let text = format!("INSERT INTO {}.small VALUES ($1)", self.schema);
        let row = self.client.prepare(&text).await.unwrap();
        let (mut trips, mut commits) = (Vec::new(), Vec::new());
        for number in 0..times as u64 {
            let begin = Instant::now();
            self.client.query_one(&nothing, &[]).await.unwrap();
            trips.push(begin.elapsed());
            let key = number.to_be_bytes();
            let begin = Instant::now();
            self.client.execute(&row, &[&&key[..]]).await.unwrap();
            commits.push(begin.elapsed());
        }
        let trip = median(trips);
        (trip, median(commits).saturating_sub(trip))
    }
}

/// A transaction that holds a snapshot.
pub(crate) struct Snapshot {
    _client: Client,
    _carrier: JoinSet<()>,
}

impl Snapshot {
    pub(crate) async fn hold(port: u16) -> Self {
        let (client, carrier) = connect(port).await;
        let text = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class";
        client.batch_execute(text).await.unwrap();
        Self {
            _client: client,
            _carrier: carrier,
        }
    }
}
