//! The engine on a real server.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Address, Node, PostgresEngine, migrate};
use crate::{
    Engine,
    change::{Applied, Lane},
    conformance,
    fault::EngineError,
    index::Index,
    kind::Kind,
    log::{Delta, Logged},
    read::{Direction, Found, Lead, Range, Row},
};

#[path = "../../../../tests/src/postgres.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "journeys use it too, and more of it"
)]
mod server;

/// A schema with empty tables; none where no server is installed.
async fn fresh() -> Option<Address> {
    let (url, password, schema) = server::vacant()?;
    let address = Address::parse(&url, Some(password), &schema).unwrap();
    assert_eq!(migrate(&address).await.unwrap(), None);
    Some(address)
}

async fn open(address: &Address) -> PostgresEngine {
    PostgresEngine::open(address.clone(), None).await.unwrap()
}

/// Several engines over one store, each call to the next one.
#[derive(Debug)]
struct Spread {
    engines: [PostgresEngine; 3],
    next: AtomicUsize,
}

impl Spread {
    fn over(engines: [PostgresEngine; 3]) -> Self {
        let next = AtomicUsize::new(0);
        Self { engines, next }
    }

    fn next(&self) -> &PostgresEngine {
        &self.engines[self.next.fetch_add(1, Ordering::Relaxed) % 3]
    }
}

#[async_trait]
impl Engine for Spread {
    async fn apply(&self, lane: Lane, set: crate::Set) -> Result<Applied, EngineError> {
        self.next().apply(lane, set).await
    }

    async fn get(&self, kind: Kind, keys: &[Vec<u8>]) -> Result<Vec<Option<Row>>, EngineError> {
        self.next().get(kind, keys).await
    }

    async fn page(
        &self,
        kind: Kind,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Row)>, EngineError> {
        self.next().page(kind, range, direction, limit).await
    }

    async fn entries(
        &self,
        index: Index,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Lead>, EngineError> {
        self.next().entries(index, range, direction, limit).await
    }

    async fn last_under(
        &self,
        index: Index,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<Found>>, EngineError> {
        self.next().last_under(index, prefixes).await
    }

    async fn log_after(
        &self,
        sequence: u64,
        limit: usize,
    ) -> Result<Option<Vec<Logged>>, EngineError> {
        self.next().log_after(sequence, limit).await
    }

    async fn changed_after(
        &self,
        sequence: u64,
        bytes_max: usize,
    ) -> Result<Option<Delta>, EngineError> {
        self.next().changed_after(sequence, bytes_max).await
    }

    async fn row_count(&self) -> Result<u64, EngineError> {
        self.next().row_count().await
    }

    async fn log_head(&self) -> Result<u64, EngineError> {
        self.next().log_head().await
    }

    fn log_signal(&self) -> watch::Receiver<u64> {
        self.next().log_signal()
    }

    fn is_shared(&self) -> bool {
        true
    }
}

mod conforms {
    use super::{conformance, fresh, open};

    conformance!(match fresh().await {
        Some(address) => (open(&address).await, ()),
        None => return,
    });
}

mod together {
    //! Several processes on one store.

    use futures_util::future::join_all;

    use super::{fresh, open};
    use crate::{
        Engine,
        change::{Action, Change, Expect, Lane},
        conformance::change,
        conformance::together,
        conformance::walk,
        fault::EngineError,
        kind::Kind,
    };

    #[tokio::test]
    async fn what_one_has_written_another_reads_and_follows() {
        let Some(address) = fresh().await else { return };
        let (one, other) = (open(&address).await, open(&address).await);
        let mut signal = other.log_signal();
        let put = Change::new(Kind::Rule, b"a", Expect::Absent, Action::Put(b"1".into()));
        let applied = one.apply(Lane::Admin, vec![put].into()).await.unwrap();
        let rows = other.get(Kind::Rule, &[b"a".to_vec()]).await.unwrap();
        assert_eq!(rows[0].as_ref().unwrap().version, applied.version);
        assert_eq!(other.log_head().await.unwrap(), applied.position);
        let after = other.log_after(applied.position, 1).await.unwrap();
        assert_eq!(
            after,
            Some(Vec::new()),
            "also before it has followed so far"
        );
        signal
            .wait_for(|head| *head == applied.position)
            .await
            .unwrap();
        assert_eq!(other.last_changed(&[Kind::Rule]), applied.position);
        assert!(other.last_changed(&[Kind::Client]) < applied.position);
        let steps = other
            .log_after(applied.position - 1, 9)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(steps[0].changed, [(Kind::Rule, b"a".to_vec())]);
    }

    #[tokio::test]
    async fn three_processes_lose_no_update_and_number_the_log_without_a_gap() {
        let Some(address) = fresh().await else { return };
        let engines = [
            open(&address).await,
            open(&address).await,
            open(&address).await,
        ];
        let put = Change::new(Kind::Rule, b"n", Expect::Absent, Action::Put(vec![0]));
        engines[0]
            .apply(Lane::Admin, vec![put].into())
            .await
            .unwrap();
        let count = async |engine: &dyn Engine, lane| {
            let mut positions = Vec::new();
            while positions.len() < 20 {
                let rows = engine.get(Kind::Rule, &[b"n".to_vec()]).await.unwrap();
                let row = rows[0].clone().unwrap();
                let action = Action::Put(vec![row.value[0] + 1]);
                let put = Change::new(Kind::Rule, b"n", Expect::Version(row.version), action);
                match engine.apply(lane, vec![put].into()).await {
                    Ok(applied) => positions.push(applied.position),
                    Err(EngineError::Conflict(names)) => {
                        assert_eq!(names, [(Kind::Rule, b"n".to_vec())]);
                    }
                    Err(other) => panic!("{other:?}"),
                }
            }
            positions
        };
        let lanes = engines
            .iter()
            .flat_map(|it| [(it, Lane::Admin), (it, Lane::Bulk)]);
        let positions = join_all(lanes.map(|(engine, lane)| count(engine, lane))).await;
        let rows = engines[0].get(Kind::Rule, &[b"n".to_vec()]).await.unwrap();
        assert_eq!(rows[0].as_ref().unwrap().value, [120]);
        let mut positions: Vec<_> = positions.into_iter().flatten().collect();
        positions.sort_unstable();
        let mut signal = engines[1].log_signal();
        signal.wait_for(|head| *head == 121).await.unwrap();
        let steps = engines[1].log_after(0, 1_000).await.unwrap().unwrap();
        let dense: Vec<u64> = (1..=121).collect();
        let log: Vec<_> = steps.iter().map(|step| step.sequence).collect();
        assert_eq!(log, dense, "no position is missing");
        assert_eq!(
            positions,
            dense[1..],
            "each commit has a position of its own"
        );
    }

    #[tokio::test]
    async fn the_same_holds_for_calls_spread_over_three_processes() {
        for prove in 0..6 {
            let Some(address) = fresh().await else { return };
            let engines = [
                open(&address).await,
                open(&address).await,
                open(&address).await,
            ];
            let spread = super::Spread::over(engines);
            match prove {
                0 => together::of_many_inserts_of_one_key_one_succeeds(&spread).await,
                1 => together::no_update_is_lost(&spread).await,
                2 => together::additions_do_not_conflict_and_none_is_lost(&spread).await,
                3 => together::a_conflict_does_not_disturb_its_neighbours(&spread).await,
                4 => change::what_rests_on_definitions_conflicts_once_they_changed(&spread).await,
                _ => walk::what_was_removed_is_passed_over(&spread).await,
            }
        }
    }
}

mod burst {
    //! What must roll a whole transaction back although its COMMIT is on its way.

    use super::{
        super::{
            Address,
            burst::{self, Outcome},
            fault::Meaning,
            plan::{self, Token},
            query::Query,
            session::{Role, Session},
            set::Set,
        },
        fresh, open,
    };
    use crate::{
        Engine,
        change::{Action, Applied, Change, Expect, Lane},
        kind::Kind,
    };

    const TOKEN: Token = Token {
        writer: [7; 16],
        epoch: 1,
        batch: 1,
    };

    fn insert(kind: Kind, key: &[u8]) -> Change {
        Change::new(kind, key, Expect::Absent, Action::Put(key.to_vec()))
    }

    async fn registered(address: &Address) -> Session {
        let session = Session::open(address, Role::Writer).await.unwrap();
        let statement = session.statement(Query::Register).await.unwrap();
        let (writer, node) = (&TOKEN.writer[..], None::<&[u8]>);
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&writer, &node];
        session.client.query(&statement, &parameters).await.unwrap();
        session
    }

    async fn send(session: &Session, token: Token, set: crate::Set) -> Outcome {
        let set = Set::new(set).unwrap();
        burst::send(session, &plan::plan(&[&set], token)).await
    }

    fn with_new(other: Change) -> crate::Set {
        vec![insert(Kind::Occurrence, b"new"), other].into()
    }

    /// What must not be committed once the rule `r` was made.
    fn wrong(made: Applied) -> [(&'static str, Token, crate::Set); 6] {
        let fine = || with_new(insert(Kind::Delivery, b"d"));
        let rule = |expect, action| with_new(Change::new(Kind::Rule, b"r", expect, action));
        let other = Expect::Version(made.version + 1);
        let put = || Action::Put(vec![1]);
        let epoch = Token { epoch: 0, ..TOKEN };
        let writer = Token {
            writer: [8; 16],
            ..TOKEN
        };
        let behind = crate::Set {
            rests_on: Some(made.position - 1),
            ..fine()
        };
        [
            ("an old epoch", epoch, fine()),
            ("a writer that is not there", writer, fine()),
            ("a fence behind", TOKEN, behind),
            ("another version", TOKEN, rule(other, put())),
            ("what is there", TOKEN, rule(Expect::Absent, put())),
            ("a checked version", TOKEN, rule(other, Action::Check)),
        ]
    }

    #[tokio::test]
    async fn an_old_epoch_a_fence_behind_and_a_failed_expectation_roll_all_back() {
        let Some(address) = fresh().await else { return };
        let engine = open(&address).await;
        let session = registered(&address).await;
        let defines = Change {
            defines: true,
            ..insert(Kind::Rule, b"r")
        };
        let made = engine.apply(Lane::Admin, vec![defines].into()).await;
        let made = made.unwrap();
        for (what, token, set) in wrong(made) {
            let outcome = send(&session, token, set).await;
            let is_rolled_back = matches!(outcome, Outcome::RolledBack(Meaning::Unexpected));
            assert!(is_rolled_back, "{what}: {outcome:?}");
            let rows = engine.get(Kind::Occurrence, &[b"new".to_vec()]).await;
            assert_eq!(rows.unwrap(), [None], "{what}");
            assert_eq!(engine.log_head().await.unwrap(), made.position, "{what}");
        }
        let fine = send(&session, TOKEN, with_new(insert(Kind::Delivery, b"d"))).await;
        assert!(matches!(fine, Outcome::Committed(it) if it.position == made.position + 1));
    }
}

mod layout {
    use std::collections::BTreeSet;

    use super::{
        super::{
            layout::{self, IndexPlace},
            migration,
        },
        fresh, open,
    };
    use crate::{
        Engine,
        index::Index,
        kind::Kind,
        read::{Direction, Range},
    };

    #[tokio::test]
    async fn a_store_of_the_first_layout_is_raised_with_what_is_in_it() {
        use super::super::session::{Role, Session};
        let Some(mut address) = fresh().await else {
            return;
        };
        address.schema = format!("t{:x}", rand::random::<u64>());
        let session = Session::open(&address, Role::Writer).await.unwrap();
        let (schema, first) = (&address.schema, migration::STEPS[0]);
        let script = format!(
            "BEGIN; CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}; \
             CREATE TABLE layout (id int PRIMARY KEY, version int NOT NULL, \
             oldest_reader int NOT NULL); {first} INSERT INTO layout VALUES (1, 1, 1); \
             INSERT INTO delivery (key, version, value, by_rule) VALUES ('k', 7, 'v', 'r'); COMMIT"
        );
        session.client.batch_execute(&script).await.unwrap();
        let found = migration::migrate(&address).await.unwrap().unwrap();
        assert_eq!(found.version, 1);
        let engine = open(&address).await;
        let (whole, first) = (|| Range::under(&[]), Direction::Ascending);
        let by_rule = engine.entries(Index::DeliveryByRule, whole(), first, 1);
        assert_eq!(by_rule.await.unwrap(), [(b"r".to_vec(), b"k".to_vec())]);
        let by_digest = engine.entries(Index::DeliveryByDigest, whole(), first, 1);
        assert!(by_digest.await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn the_tables_are_those_of_the_list() {
        let Some(address) = fresh().await else { return };
        let session =
            super::super::session::Session::open(&address, super::super::session::Role::Reader)
                .await
                .unwrap();
        let text = "SELECT table_name::text, column_name::text FROM information_schema.columns \
                    WHERE table_schema = $1 AND table_name NOT IN \
                    ('head', 'log', 'writer', 'holder', 'node', 'layout', 'counter_part')";
        let schema = address.schema.trim_matches('"').to_owned();
        let rows = session.client.query(text, &[&schema]).await.unwrap();
        let found: BTreeSet<(String, String)> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let mut listed = BTreeSet::new();
        let mut add = |table: &str, columns: &[&str]| {
            listed.extend(
                columns
                    .iter()
                    .map(|it| (table.to_owned(), (*it).to_owned())),
            );
        };
        for kind in Kind::ALL {
            add(kind.table(), &["key", "version", "value"]);
        }
        for index in Index::ALL {
            match layout::place(index) {
                IndexPlace::Column(name) => add(index.kind().table(), &[name]),
                IndexPlace::Table(name) => add(name, &["entry", "record"]),
            }
        }
        assert_eq!(found, listed);
        assert_eq!(
            migration::migrate(&address).await.unwrap().unwrap().version,
            migration::NEWEST
        );
        assert!(
            open(&address).await.log_head().await.unwrap() == 0,
            "nothing was made anew"
        );
    }
}

mod tally {
    //! Counters of several writers.

    use futures_util::future::join_all;

    use super::{
        super::{
            PostgresEngine,
            session::{Role, Session},
            tally::fold_resting,
        },
        fresh, migrate, open,
    };
    use crate::{
        Engine,
        change::{Action, Change, Expect, Lane, numbers},
        kind::Kind,
        read::{Direction, Range},
    };

    async fn add(engine: &PostgresEngine, key: &[u8], numbers: &[i64]) {
        let change = Change {
            is_logged: false,
            ..Change::new(Kind::Counter, key, Expect::Any, Action::Add(numbers.into()))
        };
        let added = engine.apply(Lane::Bulk, vec![change].into()).await;
        added.unwrap();
    }

    async fn counter(engine: &PostgresEngine, key: &[u8]) -> Option<Vec<i64>> {
        let rows = engine.get(Kind::Counter, &[key.to_vec()]).await.unwrap();
        rows[0].as_ref().map(|row| numbers(&row.value).unwrap())
    }

    async fn rows(session: &Session, schema: &str) -> (i64, i64) {
        let text = format!(
            "SELECT (SELECT count(*) FROM {schema}.counter_part), \
             (SELECT count(*) FROM {schema}.counter)"
        );
        let row = session.client.query_one(&text, &[]).await.unwrap();
        (row.get(0), row.get(1))
    }

    #[tokio::test]
    async fn what_three_nodes_count_is_the_same_while_it_is_folded() {
        let Some(address) = fresh().await else { return };
        let engines = [
            open(&address).await,
            open(&address).await,
            open(&address).await,
        ];
        let session = Session::open(&address, Role::Reader).await.unwrap();
        let count = async |engine: &PostgresEngine| {
            for turn in 0..30 {
                add(engine, b"all", &[1, turn, -1]).await;
                add(engine, b"none", &[1]).await;
                add(engine, b"none", &[-1]).await;
            }
        };
        let fold = async {
            for _ in 0..30 {
                fold_resting(&session, u64::MAX).await.unwrap();
            }
        };
        let counting = join_all(engines.iter().map(count));
        tokio::join!(counting, fold);
        let all = Some(vec![90, 3 * 435, -90]);
        assert_eq!(counter(&engines[0], b"all").await, all);
        assert_eq!(counter(&engines[0], b"none").await, None);
        fold_resting(&session, u64::MAX).await.unwrap();
        assert_eq!(rows(&session, &address.schema).await, (0, 1));
        assert_eq!(counter(&engines[1], b"all").await, all);
        // What was added to since is left to the next time.
        add(&engines[0], b"all", &[1]).await;
        let newest = fold_resting(&session, 0).await.unwrap();
        assert_eq!(rows(&session, &address.schema).await, (1, 1));
        fold_resting(&session, newest + 1).await.unwrap();
        assert_eq!(rows(&session, &address.schema).await, (0, 1));
        let all = Some(vec![91, 3 * 435, -90]);
        assert_eq!(counter(&engines[2], b"all").await, all);
    }

    #[tokio::test]
    async fn a_page_passes_over_counters_without_a_number_in_both_directions() {
        let Some(address) = fresh().await else { return };
        let engines = [open(&address).await, open(&address).await];
        for number in 0..9_u8 {
            for engine in &engines {
                add(engine, &[number], &[1, 2]).await;
            }
            if number % 3 > 0 {
                add(&engines[0], &[number], &[-2, -4]).await;
            }
        }
        for direction in [Direction::Ascending, Direction::Descending] {
            for limit in 1..5 {
                let page = engines[1].page(Kind::Counter, Range::under(&[]), direction, limit);
                let found: Vec<_> = page.await.unwrap().into_iter().map(|it| it.0).collect();
                let mut all = vec![vec![0], vec![3], vec![6]];
                if direction == Direction::Descending {
                    all.reverse();
                }
                all.truncate(limit);
                assert_eq!(found, all, "{direction:?}, at most {limit}");
            }
        }
    }

    #[tokio::test]
    async fn what_an_earlier_layout_counted_is_counted_on() {
        let Some(address) = fresh().await else { return };
        let session = Session::open(&address, Role::Writer).await.unwrap();
        let earlier = format!(
            "SET search_path TO {}; DROP TABLE counter_part; \
             UPDATE layout SET version = 5, oldest_reader = 5; \
             INSERT INTO counter VALUES ('a', 3, int8send(5) || int8send(-7))",
            address.schema
        );
        session.client.batch_execute(&earlier).await.unwrap();
        assert_eq!(migrate(&address).await.unwrap().unwrap().version, 5);
        let engine = open(&address).await;
        assert_eq!(counter(&engine, b"a").await, Some(vec![5, -7]));
        add(&engine, b"a", &[0, 8, 1]).await;
        assert_eq!(counter(&engine, b"a").await, Some(vec![5, 1, 1]));
        add(&engine, b"a", &[-5, -1, -1]).await;
        assert_eq!(counter(&engine, b"a").await, None);
    }
}

mod doubt {
    //! Connections that break, and what is reported of commits that were under way.

    use std::{net::SocketAddr, time::Duration};

    use futures_util::future::join_all;
    use tokio::{
        io::copy_bidirectional,
        net::{TcpListener, TcpStream},
        sync::watch,
        task::JoinSet,
        time::sleep,
    };

    use super::{fresh, open};
    use crate::{
        Engine,
        change::{Action, Change, Expect, Lane},
        fault::EngineError,
        kind::Kind,
        postgres::Address,
    };

    const CALLERS: u8 = 6;
    const CALLS: u8 = 60;

    /// Passes connections on, and when asked to cuts each off after a while.
    async fn cutting(to: SocketAddr, begun: watch::Receiver<bool>) -> (SocketAddr, JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut from, _)) = listener.accept().await {
                let mut begun = begun.clone();
                connections.spawn(async move {
                    let Ok(mut to) = TcpStream::connect(to).await else {
                        return;
                    };
                    // Some live long enough to get through on a slow machine too.
                    let longest_ms = [60, 240, 960, 3_840][rand::random_range(0..4)];
                    let life = Duration::from_millis(rand::random_range(20..longest_ms));
                    let end = async {
                        drop(begun.wait_for(|begun| *begun).await);
                        sleep(life).await;
                    };
                    // What was passed on so far, the server continues with.
                    tokio::select! {
                        () = end => {}
                        _ = copy_bidirectional(&mut from, &mut to) => {}
                    }
                });
            }
        });
        (own, tasks)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nothing_answered_is_lost_and_nothing_refused_is_there() {
        let Some(address) = fresh().await else { return };
        let port = address.config.get_ports()[0];
        let (begin, begun) = watch::channel(false);
        let (proxy, _tasks) = cutting(SocketAddr::from(([127, 0, 0, 1], port)), begun).await;
        let url = format!("postgres://{}@{proxy}/postgres", super::server::USER);
        let password = super::server::PASSWORD;
        let schema = address.schema.trim_matches('"');
        let through = Address::parse(&url, Some(password), schema).unwrap();
        let cut = open(&through).await;
        begin.send_replace(true);
        let call = async |caller: u8| {
            let mut answers = Vec::new();
            for number in 0..CALLS {
                let put = Action::Put(vec![caller, number]);
                let put = Change::new(Kind::Rule, &[caller, number], Expect::Absent, put);
                let lane = if number % 5 == 0 {
                    Lane::Admin
                } else {
                    Lane::Bulk
                };
                answers.push(cut.apply(lane, vec![put].into()).await);
            }
            answers
        };
        let answers = join_all((0..CALLERS).map(call)).await;
        let direct = open(&address).await;
        let mut answered = 0;
        for (caller, answers) in (0..CALLERS).zip(answers) {
            for (number, answer) in (0..CALLS).zip(answers) {
                let rows = direct
                    .get(Kind::Rule, &[vec![caller, number]])
                    .await
                    .unwrap();
                let version = rows[0].as_ref().map(|row| row.version);
                match answer {
                    Ok(applied) => {
                        assert_eq!(version, Some(applied.version), "{caller} {number}");
                        answered += 1;
                    }
                    Err(EngineError::Indeterminate(_)) => {}
                    Err(error) => assert_eq!(version, None, "{caller} {number}: {error:?}"),
                }
            }
        }
        assert!(answered > 0);
        let head = direct.log_head().await.unwrap();
        let steps = direct.log_after(0, 10_000).await.unwrap().unwrap();
        let positions: Vec<_> = steps.iter().map(|step| step.sequence).collect();
        assert_eq!(positions, (1..=head).collect::<Vec<_>>());
    }
}

mod several {
    //! Several nodes, of which one leads.

    use std::time::Duration;

    use tokio::time::timeout;

    use super::{
        super::session::{Role, Session},
        Node, PostgresEngine, fresh,
    };
    use crate::{
        Cluster, Engine,
        change::{Action, Change, Expect, Lane},
        fault::EngineError,
        kind::Kind,
        postgres::Address,
    };

    const LONG: Duration = Duration::from_secs(120);

    fn insert(key: &[u8]) -> Vec<Change> {
        let put = Action::Put(key.to_vec());
        vec![Change::new(Kind::Rule, key, Expect::Absent, put)]
    }

    async fn node(address: &Address, name: &str) -> PostgresEngine {
        let node = Node::join(address, name).await.unwrap();
        let engine = PostgresEngine::open(address.clone(), Some(node)).await;
        engine.unwrap()
    }

    async fn leads(engine: &PostgresEngine) {
        timeout(LONG, engine.lead()).await.expect("it leads");
    }

    async fn said(engine: &PostgresEngine) -> Vec<(String, bool)> {
        let nodes = engine.nodes().await.unwrap();
        nodes.into_iter().map(|it| (it.name, it.leads)).collect()
    }

    #[tokio::test]
    async fn all_write_and_what_is_to_be_done_once_is_written_by_who_leads_alone() {
        let Some(address) = fresh().await else { return };
        let first = node(&address, "first").await;
        leads(&first).await;
        let second = node(&address, "second").await;
        for (engine, key) in [(&first, b"a"), (&second, b"b")] {
            engine.apply(Lane::Bulk, insert(key).into()).await.unwrap();
        }
        let nodes = [("first".to_owned(), true), ("second".to_owned(), false)];
        assert_eq!(said(&second).await, nodes);
        first
            .apply(Lane::Leader, insert(b"c").into())
            .await
            .unwrap();
        let refused = second.apply(Lane::Leader, insert(b"d").into()).await;
        assert!(
            matches!(refused, Err(EngineError::Unavailable(_))),
            "{refused:?}"
        );
        let waits = timeout(Duration::from_secs(3), second.lead()).await;
        waits.expect_err("the first one lives and leads");

        // As if the first had stood still for long.
        let session = Session::open(&address, Role::Writer).await.unwrap();
        let text = format!(
            "UPDATE {}.holder SET renewed = renewed - interval '1 hour', node = ''",
            address.schema
        );
        session.client.batch_execute(&text).await.unwrap();
        leads(&second).await;
        let refused = first.apply(Lane::Leader, insert(b"e").into()).await;
        assert!(
            matches!(refused, Err(EngineError::Unavailable(_))),
            "{refused:?}"
        );
        timeout(LONG, first.deposed()).await.expect("it finds out");
        second
            .apply(Lane::Leader, insert(b"e").into())
            .await
            .unwrap();
        first.apply(Lane::Bulk, insert(b"f").into()).await.unwrap();

        // Who leaves is not waited for.
        second.close().await;
        leads(&first).await;
        first
            .apply(Lane::Leader, insert(b"g").into())
            .await
            .unwrap();
        assert_eq!(said(&first).await, [("first".to_owned(), true)]);
    }

    /// The owner of a store, the name of another role that uses it, and the address for that.
    async fn clerk(address: &Address) -> (Session, String, Address) {
        let owner = Session::open(address, Role::Writer).await.unwrap();
        let role = address.schema.trim_matches('"').to_owned() + "_clerk";
        let made = format!(
            "CREATE ROLE {role} LOGIN PASSWORD '{}'; \
             GRANT USAGE ON SCHEMA {schema} TO {role}; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; \
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
            super::server::PASSWORD,
            schema = address.schema,
        );
        owner.client.batch_execute(&made).await.unwrap();
        let mut limited = address.clone();
        limited.config.user(&role);
        (owner, role, limited)
    }

    /// Ends the connections of a role whose last statement is like that, once there is one, and gives it no
    /// further one.
    async fn cut(owner: &Session, role: &str, last: &str) {
        let limit = format!("ALTER ROLE {role} CONNECTION LIMIT 0");
        owner.client.batch_execute(&limit).await.unwrap();
        let text = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE usename = '{role}' AND query LIKE '{last}'"
        );
        let ended = async || {
            let row = owner.client.query_one(&text, &[]).await.unwrap();
            row.get::<_, i64>(0) > 0
        };
        let cut = async {
            while !ended().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LONG, cut).await.expect("there is one");
    }

    #[tokio::test]
    async fn a_leader_whose_writer_has_no_connection_loses_the_lead_also_when_it_writes_nothing() {
        let Some(address) = fresh().await else { return };
        let (owner, role, limited) = clerk(&address).await;
        let first = node(&limited, "first").await;
        leads(&first).await;
        let second = node(&address, "second").await;
        cut(&owner, &role, "UPDATE%holder%").await;
        // It lives, and says so over another connection.
        let took_over = async { tokio::join!(first.deposed(), second.lead()) };
        timeout(LONG, took_over).await.expect("the other one leads");
        let nodes = [("first".to_owned(), false), ("second".to_owned(), true)];
        assert_eq!(said(&second).await, nodes);
        let set = insert(b"a");
        second.apply(Lane::Leader, set.into()).await.unwrap();
    }

    #[tokio::test]
    async fn a_node_is_not_ready_while_a_reserved_connection_is_missing() {
        for (whose, last) in [
            ("of the follower", "SELECT place%"),
            ("of backups", "COMMIT"),
            ("of a writer", "INSERT INTO%writer%"),
        ] {
            let Some(address) = fresh().await else { return };
            let (owner, role, limited) = clerk(&address).await;
            let first = node(&limited, "first").await;
            drop(first.changed_after(0, 1).await.unwrap());
            let mut ready = first.within_reach().expect("it says so");
            assert!(*ready.borrow());
            cut(&owner, &role, last).await;
            let is_not = timeout(LONG, ready.wait_for(|ready| !ready)).await;
            is_not.expect(whose).unwrap();
            let more = format!("ALTER ROLE {role} CONNECTION LIMIT -1");
            owner.client.batch_execute(&more).await.unwrap();
            let is_again = timeout(LONG, ready.wait_for(|ready| *ready)).await;
            is_again.expect(whose).unwrap();
        }
    }

    #[tokio::test]
    async fn a_leader_that_finds_no_connection_to_write_leaves_the_lead_to_another() {
        let Some(address) = fresh().await else { return };
        let (owner, role, limited) = clerk(&address).await;
        let first = node(&limited, "first").await;
        leads(&first).await;
        let second = node(&address, "second").await;
        let set = insert(b"a");
        first.apply(Lane::Leader, set.into()).await.unwrap();
        // Its connection is gone, and there is none for another one.
        let cut = format!(
            "ALTER ROLE {role} CONNECTION LIMIT 0; \
             SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity \
             WHERE usename = '{role}' AND query = 'COMMIT' ORDER BY state_change DESC LIMIT 1) AS it"
        );
        owner.client.batch_execute(&cut).await.unwrap();
        let refused = timeout(LONG, first.apply(Lane::Leader, insert(b"b").into())).await;
        let refused = refused.unwrap().unwrap_err();
        // Whether it was sent before the end of the connection was seen is chance.
        assert!(
            matches!(
                refused,
                EngineError::Unavailable(_) | EngineError::Indeterminate(_)
            ),
            "{refused:?}"
        );
        let took_over = async {
            tokio::join!(first.deposed(), second.lead());
        };
        timeout(LONG, took_over).await.expect("the other one leads");
        let set = insert(b"b");
        second.apply(Lane::Leader, set.into()).await.unwrap();
        let nodes = [("first".to_owned(), false), ("second".to_owned(), true)];
        assert_eq!(said(&first).await, nodes);
    }

    #[tokio::test]
    async fn a_place_is_waited_for_until_every_node_that_lives_has_followed_to_it() {
        let Some(address) = fresh().await else { return };
        let (first, second) = (
            node(&address, "first").await,
            node(&address, "second").await,
        );
        let put = Action::Put(b"key".to_vec());
        let change = Change::new(Kind::Client, b"client", Expect::Absent, put);
        let applied = first.apply(Lane::Admin, vec![change].into()).await.unwrap();
        assert!(first.followed_by_all(applied.position, LONG).await.unwrap());
        assert!(*second.log_signal().borrow() >= applied.position);
        let beyond = applied.position + 1;
        let followed = first.followed_by_all(beyond, Duration::from_millis(50));
        assert!(!followed.await.unwrap(), "nobody is there yet");
    }

    #[tokio::test]
    async fn a_node_that_was_gone_for_a_day_writes_nothing_any_more() {
        let Some(address) = fresh().await else { return };
        let first = node(&address, "first").await;
        let session = Session::open(&address, Role::Writer).await.unwrap();
        let text = format!(
            "UPDATE {}.node SET renewed = renewed - interval '25 hours'",
            address.schema
        );
        session.client.batch_execute(&text).await.unwrap();
        let second = Node::join(&address, "second").await.unwrap();
        timeout(LONG, first.forgotten())
            .await
            .expect("it finds out");
        let refused = first.apply(Lane::Bulk, insert(b"a").into()).await;
        assert!(
            matches!(refused, Err(EngineError::Unavailable(_))),
            "{refused:?}"
        );
        drop(second);
    }
}

mod gone_back {
    //! A database that has lost commits.

    use std::time::Duration;

    use tokio::time::timeout;

    use super::{
        super::session::{Role, Session},
        fresh, open,
    };
    use crate::{
        Cluster, Engine,
        change::{Action, Change, Expect, Lane},
        fault::EngineError,
        kind::Kind,
    };

    /// Statements that change the log of a store with five steps, and whether commits are lost by that.
    const CASES: [(&str, bool); 5] = [
        ("DELETE FROM log WHERE place = 5", true),
        ("DELETE FROM log WHERE place >= 2", true),
        ("UPDATE log SET writer = 'another' WHERE place = 5", true),
        ("UPDATE log SET batch = batch + 1 WHERE place = 5", true),
        // As is removed what is old.
        ("DELETE FROM log WHERE place < 5", false),
    ];

    #[tokio::test]
    async fn a_log_that_is_not_the_one_that_was_followed_is_told_apart_from_a_trimmed_one() {
        for (statement, is_lost) in CASES {
            let Some(address) = fresh().await else { return };
            let (one, other) = (open(&address).await, open(&address).await);
            for key in 0..5 {
                let put = Action::Put(vec![key]);
                let change = Change::new(Kind::Rule, &[key], Expect::Absent, put);
                let applied = one.apply(Lane::Bulk, vec![change].into()).await.unwrap();
                let mut signal = other.log_signal();
                signal.wait_for(|it| *it == applied.position).await.unwrap();
            }
            let session = Session::open(&address, Role::Writer).await.unwrap();
            let there = format!("SET search_path TO {}; {statement}", address.schema);
            session.client.batch_execute(&there).await.unwrap();
            for engine in [&one, &other] {
                let within = Duration::from_millis(if is_lost { 20_000 } else { 500 });
                let gone_back = timeout(within, engine.gone_back()).await;
                assert_eq!(gone_back.is_ok(), is_lost, "{statement}: {gone_back:?}");
            }
            let change = Change::new(Kind::Rule, b"x", Expect::Absent, Action::Put(vec![1]));
            let applied = one.apply(Lane::Bulk, vec![change].into()).await;
            match applied {
                Ok(_) => assert!(!is_lost, "{statement}"),
                Err(EngineError::Unavailable(_)) => assert!(is_lost, "{statement}"),
                Err(error) => panic!("{statement}: {error}"),
            }
        }
    }
}
