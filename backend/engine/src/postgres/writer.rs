//! The write task of a lane. It commits all waiting sets as one transaction, and determines the
//! outcome when the connection breaks.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep, timeout},
};
use tokio_postgres::types::ToSql;

use super::{
    address::Address,
    burst::{self, Outcome},
    error::{self, CommitErrorKind},
    isolate::{CurrentState, conflict_with_applied, states_after_set},
    log_cache::{self, LogCache, Origin},
    node::Lease,
    plan::{self, Token, position_to_db},
    query::Query,
    reach::{self, Reachability},
    session::{Role, Session},
    set::EncodedSet,
};
use crate::{
    change::ApplyResult,
    error::EngineError,
    limits::{
        STORE_BATCH_BYTES_MAX, STORE_BATCH_SETS_MAX, STORE_DOUBT_TIME_MAX,
        STORE_NODE_RENEWED_EVERY, STORE_OPEN_TIME_MAX, STORE_QUEUE_BYTES_MAX, STORE_QUEUE_SETS_MAX,
        STORE_STEPS_TIME_MAX,
    },
    log::LogStep,
    position::LogPosition,
};

/// Number of times a group is split before its sets are committed one by one.
const ROUNDS_TOGETHER: u32 = 3;
/// Number of times a set without an apparent conflict may fail alone.
const ROUNDS_ALONE: u32 = 6;
/// First pause after a transient error; each following pause may be twice as long, up to
/// [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// An epoch that no writer's row has.
const NO_EPOCH: i64 = -1;

type Verdict = Result<ApplyResult, EngineError>;

#[derive(Debug)]
pub(super) struct Queue {
    sender: mpsc::Sender<QueuedSet>,
    bytes: Arc<AtomicUsize>,
    reach: Reachability,
}

#[derive(Debug)]
struct QueuedSet {
    set: EncodedSet,
    /// Becomes true when the set is sent to the database, or when its caller gives up before that.
    begun: Arc<AtomicBool>,
    is_sent: bool,
    answer: oneshot::Sender<Verdict>,
}

impl QueuedSet {
    /// Marks the set as sent. Returns `None` if its caller has given up.
    fn mark_sent(mut self) -> Option<Self> {
        let is_given_up = !self.is_sent && self.begun.swap(true, Ordering::AcqRel);
        self.is_sent = true;
        (!is_given_up).then_some(self)
    }
}

impl Queue {
    pub(super) async fn apply(&self, set: EncodedSet) -> Verdict {
        if !self.reach.is_reachable() {
            return Err(reach::unreachable_error());
        }
        let full = || EngineError::Unavailable("too many writes are queued".into());
        let bytes = set.bytes;
        let before = self.bytes.fetch_add(bytes, Ordering::AcqRel);
        if before > 0 && before + bytes > STORE_QUEUE_BYTES_MAX {
            self.bytes.fetch_sub(bytes, Ordering::AcqRel);
            return Err(full());
        }
        let (answer, answered) = oneshot::channel();
        let begun = Arc::new(AtomicBool::new(false));
        let waiting = QueuedSet {
            set,
            begun: Arc::clone(&begun),
            is_sent: false,
            answer,
        };
        if let Err(refused) = self.sender.try_send(waiting) {
            self.bytes.fetch_sub(bytes, Ordering::AcqRel);
            return Err(match refused {
                mpsc::error::TrySendError::Full(_) => full(),
                mpsc::error::TrySendError::Closed(_) => {
                    EngineError::Unavailable("the store is closing".into())
                }
            });
        }
        let gone = |error| Err(EngineError::Indeterminate(Box::new(error)));
        match self.reach.run_or_unreachable(answered).await {
            Some(verdict) => verdict.unwrap_or_else(gone),
            // The set was not sent yet, and the writer now skips it.
            None if !begun.swap(true, Ordering::AcqRel) => Err(reach::unreachable_error()),
            None => Err(EngineError::Indeterminate(
                reach::unreachable_error().into(),
            )),
        }
    }
}

#[derive(Debug)]
pub(super) struct Writer {
    address: Arc<Address>,
    known: Arc<LogCache>,
    id: [u8; 16],
    /// The session, and the epoch in which it writes.
    session: Option<(Session, i64)>,
    /// The number of the newest attempt.
    batch: i64,
    /// A position before which the outcome of all commits of this writer is known.
    settled: LogPosition,
    /// Whether another client has deleted the writer's row, without which the writer cannot write.
    is_removed: bool,
    is_stuck: watch::Sender<bool>,
    /// The lease to renew, if this writer writes for the node's slots.
    lease: Option<Lease>,
    renewed: Option<Instant>,
    /// Time since which the writer has been idle without a connection although the database
    /// responds.
    missing: Option<Instant>,
    queue: mpsc::Receiver<QueuedSet>,
    bytes: Arc<AtomicUsize>,
}

impl Writer {
    /// Registers a new writer, which has no commits in the log yet.
    pub(super) async fn register(
        address: Arc<Address>,
        known: Arc<LogCache>,
        node: Option<[u8; 16]>,
    ) -> Result<(Queue, Self), EngineError> {
        let id: [u8; 16] = rand::random();
        let session = Session::open(&address, Role::Writer).await?;
        let registered = async {
            let statement = session.prepare(Query::Register).await?;
            let node = node.as_ref().map(|it| &it[..]);
            let parameters: [&(dyn ToSql + Sync); 2] = [&&id[..], &node];
            let row = session.client.query_one(&statement, &parameters).await?;
            row.try_get(0)
        };
        let epoch: i64 = registered
            .await
            .map_err(|error| error::read_error(&error))?;
        let (sender, queue) = mpsc::channel(STORE_QUEUE_SETS_MAX);
        let bytes = Arc::new(AtomicUsize::new(0));
        let settled = known.newest_position();
        let writer = Self {
            address,
            known,
            id,
            session: Some((session, epoch)),
            batch: 0,
            settled,
            is_removed: false,
            is_stuck: watch::Sender::new(false),
            lease: None,
            renewed: None,
            missing: None,
            queue,
            bytes: Arc::clone(&bytes),
        };
        let reach = writer.address.reach.clone();
        let queue = Queue {
            sender,
            bytes,
            reach,
        };
        Ok((queue, writer))
    }

    pub(super) fn id(&self) -> [u8; 16] {
        self.id
    }

    /// Makes this the writer for the node's slots, which renews their lease.
    pub(super) fn with_lease(mut self, lease: Lease) -> Self {
        self.lease = Some(lease);
        self
    }

    pub(super) fn watch_stuck(&self) -> watch::Receiver<bool> {
        self.is_stuck.subscribe()
    }

    pub(super) async fn run(mut self) {
        let (mut batch, mut renewed) = (Vec::new(), None::<Instant>);
        loop {
            if renewed.is_none_or(|renewed| renewed.elapsed() >= STORE_NODE_RENEWED_EVERY) {
                self.keep_alive().await;
                renewed = Some(Instant::now());
            }
            let received = self.queue.recv_many(&mut batch, STORE_BATCH_SETS_MAX);
            match timeout(STORE_NODE_RENEWED_EVERY, received).await {
                Ok(0) => return,
                Ok(_) => {
                    let bytes = batch.iter().map(|it| it.set.bytes).sum();
                    self.bytes.fetch_sub(bytes, Ordering::AcqRel);
                    self.commit_all(batch.drain(..).collect()).await;
                }
                Err(_idle) => {}
            }
        }
    }

    /// Keeps the connection alive, and renews the lease over it.
    async fn keep_alive(&mut self) {
        if self.is_removed {
            return;
        }
        let is_open = |it: &(Session, i64)| !it.0.client.is_closed();
        if !self.session.as_ref().is_some_and(is_open) {
            self.session = None;
            if !matches!(
                timeout(STORE_OPEN_TIME_MAX, self.begin_epoch()).await,
                Ok(Ok(()))
            ) {
                let is_within = self.address.reach.is_reachable();
                let since = self.missing.unwrap_or_else(Instant::now);
                self.missing = is_within.then_some(since);
                if is_within && since.elapsed() >= STORE_DOUBT_TIME_MAX {
                    self.is_stuck.send_replace(true);
                }
                return;
            }
            self.missing = None;
            self.is_stuck.send_if_modified(std::mem::take);
        }
        self.renew().await;
    }

    async fn renew(&mut self) {
        let (Some((session, _)), Some(lease)) = (&self.session, &self.lease) else {
            return;
        };
        let last = self.renewed.replace(Instant::now());
        if last.is_some_and(|last| last.elapsed() < STORE_NODE_RENEWED_EVERY) {
            self.renewed = last;
            return;
        }
        let renewed = timeout(STORE_OPEN_TIME_MAX, lease.renew(session)).await;
        if !matches!(renewed, Ok(Ok(()))) {
            self.session = None;
        }
    }

    #[expect(clippy::too_many_lines, reason = "one loop with an arm per outcome")]
    async fn commit_all(&mut self, mut left: VecDeque<QueuedSet>) {
        let deadline = Instant::now() + STORE_DOUBT_TIME_MAX;
        let (mut round, mut pause) = (0, PAUSE);
        let mut trouble = None;
        while !left.is_empty() {
            if let Some(trouble) = &trouble
                && Instant::now() > deadline
            {
                return reject_all(left, trouble);
            }
            if let Err(error) = self.ensure_session(deadline).await {
                return reject_all(left, &error);
            }
            // Commits that conflict may be retried for a long time, so the lease is renewed in
            // between.
            self.renew().await;
            let (group, rest) = select_group(left, round);
            left = rest;
            let group: Vec<_> = group.into_iter().filter_map(QueuedSet::mark_sent).collect();
            if group.is_empty() {
                continue;
            }
            let begun = Instant::now();
            let outcome = self.commit(&group).await;
            let counters = &self.address.counters;
            if !outcome.session_is_usable() {
                self.session = None;
            }
            match outcome {
                Outcome::Committed(applied) => {
                    counters.record_commit(group.len(), begun.elapsed());
                    self.address.observed.record_in_place_success();
                    left = self.publish_commit(group, applied, left).await;
                    // Sets that are committed one by one remain so.
                    round = round / ROUNDS_TOGETHER * ROUNDS_TOGETHER;
                    round = round.min(ROUNDS_TOGETHER);
                }
                Outcome::Doubt(why) => {
                    let resolved = self.resolve().await;
                    self.address
                        .counters
                        .record_in_doubt_commit(match resolved {
                            Some(Some(_)) => "written",
                            Some(None) => "not written",
                            None => "unknown",
                        });
                    match resolved {
                        Some(Some(applied)) => {
                            left = self.publish_commit(group, applied, left).await;
                        }
                        Some(None) => requeue(&mut left, group),
                        None => {
                            tracing::warn!(why, "the outcome of a commit is unknown");
                            reject_all(group, &EngineError::Indeterminate(why.clone().into()));
                        }
                    }
                    trouble = Some(EngineError::Unavailable(why));
                }
                Outcome::RolledBack(CommitErrorKind::Unexpected) => {
                    requeue(&mut left, group);
                    left = self.isolate(left, round).await;
                    round += 1;
                }
                Outcome::RolledBack(
                    meaning @ (CommitErrorKind::Passing | CommitErrorKind::Lost),
                ) => {
                    counters.record_retry(match meaning {
                        CommitErrorKind::Passing => "busy",
                        _ => "connection lost",
                    });
                    requeue(&mut left, group);
                    trouble = Some(Outcome::rejection_error(meaning));
                    let jitter = rand::random_range(0.5..1.0);
                    sleep(pause.mul_f64(jitter)).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Outcome::RolledBack(meaning) => {
                    let refusal = Outcome::rejection_error(meaning);
                    self.address.observed.record_failure(&refusal);
                    reject_all(group, &refusal);
                }
            }
        }
    }

    /// Reconnects if the session is closed. All statements in flight on a closed session have
    /// ended.
    async fn ensure_session(&mut self, deadline: Instant) -> Result<(), EngineError> {
        let mut pause = PAUSE;
        if self.is_removed {
            return Err(removed_node_error());
        }
        if self.known.is_lost() {
            return Err(connection_lost_error());
        }
        while self
            .session
            .as_ref()
            .is_none_or(|(it, _)| it.client.is_closed())
        {
            self.session = None;
            match self.begin_epoch().await {
                Ok(()) => break,
                Err(error) if self.is_removed || Instant::now() + pause > deadline => {
                    self.is_stuck.send_replace(true);
                    return Err(error);
                }
                Err(_again) => sleep(pause).await,
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        self.is_stuck.send_if_modified(std::mem::take);
        Ok(())
    }

    /// Begins a session with a new epoch. If a commit in flight holds the lock on the writer's row,
    /// this waits for the commit to end. Otherwise that commit can no longer succeed.
    async fn begin_epoch(&mut self) -> Result<(), EngineError> {
        let session = Session::open(&self.address, Role::Writer).await?;
        let raised = async {
            let statement = session.prepare(Query::Raise).await?;
            let id = &self.id[..];
            let row = session.client.query_opt(&statement, &[&id]).await?;
            row.map(|row| row.try_get(0)).transpose()
        };
        let epoch: Option<i64> = raised.await.map_err(|error| error::read_error(&error))?;
        self.is_removed = epoch.is_none();
        self.session = Some((session, epoch.unwrap_or(NO_EPOCH)));
        if self.is_removed {
            return Err(removed_node_error());
        }
        Ok(())
    }

    async fn commit(&mut self, group: &[QueuedSet]) -> Outcome {
        let Some((session, epoch)) = &self.session else {
            return Outcome::RolledBack(CommitErrorKind::Lost);
        };
        self.batch += 1;
        let token = Token {
            writer: self.id,
            epoch: *epoch,
            batch: self.batch,
        };
        let sets: Vec<&EncodedSet> = group.iter().map(|waiting| &waiting.set).collect();
        if sets.iter().any(|set| set.is_unfit) {
            return Outcome::RolledBack(CommitErrorKind::Unexpected);
        }
        burst::send_statements(session, &plan::plan(&sets, token)).await
    }

    /// Returns the outcome of the newest attempt: its result, or `Some(None)` if it can no longer
    /// be added to the log. Returns `None` if the outcome cannot be determined before the timeout.
    async fn resolve(&mut self) -> Option<Option<ApplyResult>> {
        let deadline = Instant::now() + STORE_DOUBT_TIME_MAX;
        let mut pause = PAUSE;
        loop {
            // A writer whose row was deleted cannot commit any more either, but it may have
            // committed before.
            let is_over = self.begin_epoch().await.is_ok() || self.is_removed;
            if is_over && let Ok(written) = self.read_written().await {
                tracing::info!(is_written = written.is_some(), "resolved a commit in doubt");
                return Some(written);
            }
            self.session = None;
            if Instant::now() + pause > deadline {
                self.is_stuck.send_replace(true);
                return None;
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn read_written(&self) -> Result<Option<ApplyResult>, tokio_postgres::Error> {
        let Some((session, _)) = &self.session else {
            return Ok(None);
        };
        let statement = session.prepare(Query::Written).await?;
        let (settled, id) = (position_to_db(self.settled), &self.id[..]);
        let parameters: [&(dyn ToSql + Sync); 3] = [&settled, &id, &self.batch];
        let row = session.client.query_opt(&statement, &parameters).await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let (position, version): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        Ok(Some(ApplyResult {
            position: plan::position_from_db(position),
            version: version.unsigned_abs(),
        }))
    }

    /// Publishes a commit, and reports the results of its sets and of the sets that the commit
    /// causes to conflict.
    async fn publish_commit(
        &mut self,
        group: Vec<QueuedSet>,
        applied: ApplyResult,
        left: VecDeque<QueuedSet>,
    ) -> VecDeque<QueuedSet> {
        self.settled = applied.position;
        let changes = || group.iter().flat_map(|waiting| &waiting.set.changes);
        let logged = changes().filter(|change| plan::is_logged(change));
        let step = LogStep {
            position: applied.position,
            changed: logged.map(|it| (it.kind, it.key.clone())).collect(),
        };
        let kinds = changes().fold(0, |kinds, change| kinds | log_cache::kind_bit(change.kind));
        let origin = Origin {
            writer: self.id.to_vec(),
            batch: self.batch,
        };
        self.known.add_own_step(step, kinds, origin);
        self.known
            .wait_until_known(applied.position, STORE_STEPS_TIME_MAX)
            .await;
        let mut now: HashMap<_, _> = HashMap::new();
        if !left.is_empty() {
            let sets = group.iter().map(|waiting| &waiting.set);
            now.extend(sets.flat_map(|set| states_after_set(set, applied.version)));
        }
        for waiting in group {
            // Fails if the caller no longer waits.
            drop(waiting.answer.send(Ok(applied)));
        }
        reject_conflicting(left, |set| conflict_with_applied(set, &now))
    }

    /// Rejects the sets that cannot be applied and returns the others.
    async fn isolate(&mut self, left: VecDeque<QueuedSet>, round: u32) -> VecDeque<QueuedSet> {
        let Some((session, epoch)) = &self.session else {
            return left;
        };
        let sets = left.iter().map(|waiting| &waiting.set);
        let lying = match CurrentState::read(session, &self.id, sets).await {
            Ok(lying) => lying,
            Err(error) => {
                if error::is_connection_lost(&error) {
                    self.session = None;
                    return left;
                }
                reject_all(left, &error::read_error(&error));
                return VecDeque::new();
            }
        };
        if lying.epoch != Some(*epoch) {
            self.session = None;
            return left;
        }
        let counters = self.address.counters.clone();
        let mut left = reject_conflicting(left, |set| {
            let against = lying.find_conflict(set);
            if let Some(EngineError::Conflict(records)) = &against {
                counters.record_conflict(records.first().map_or("definitions", |it| it.0.as_str()));
            }
            against
        });
        if round >= ROUNDS_TOGETHER + ROUNDS_ALONE
            && let Some(hopeless) = left.pop_front()
        {
            drop(hopeless.answer.send(Err(EngineError::conflict())));
        }
        left
    }
}

fn connection_lost_error() -> EngineError {
    EngineError::Unavailable("the database has lost commits; restarting the service".into())
}

fn removed_node_error() -> EngineError {
    EngineError::Unavailable("other nodes have removed this node".into())
}

/// Selects the sets that can be written together; after some rounds, one by one.
fn select_group(left: VecDeque<QueuedSet>, round: u32) -> (Vec<QueuedSet>, VecDeque<QueuedSet>) {
    let sets_max = if round < ROUNDS_TOGETHER {
        STORE_BATCH_SETS_MAX
    } else {
        1
    };
    let sets = left.iter().map(|waiting| &waiting.set);
    let chosen = plan::compatible_sets(sets, sets_max, STORE_BATCH_BYTES_MAX);
    let (mut group, mut rest) = (Vec::new(), VecDeque::new());
    for (waiting, is_chosen) in left.into_iter().zip(chosen) {
        if is_chosen {
            group.push(waiting);
        } else {
            rest.push_back(waiting);
        }
    }
    (group, rest)
}

fn requeue(left: &mut VecDeque<QueuedSet>, group: Vec<QueuedSet>) {
    for waiting in group.into_iter().rev() {
        left.push_front(waiting);
    }
}

fn reject_conflicting(
    left: VecDeque<QueuedSet>,
    against: impl Fn(&EncodedSet) -> Option<EngineError>,
) -> VecDeque<QueuedSet> {
    let mut rest = VecDeque::with_capacity(left.len());
    for waiting in left {
        match against(&waiting.set) {
            Some(error) => drop(waiting.answer.send(Err(error))),
            None => rest.push_back(waiting),
        }
    }
    rest
}

fn reject_all(left: impl IntoIterator<Item = QueuedSet>, error: &EngineError) {
    for waiting in left {
        drop(waiting.answer.send(Err(error.copy_for_caller())));
    }
}
