//! A node of a shared store: it renews its liveness and its position in the change log, reads the
//! database's clock from the responses, and checks slot ownership.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Mutex, Notify, watch},
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_postgres::Error;

use super::{
    address::Address,
    claims::Claims,
    clock::DatabaseClock,
    error,
    log_cache::LogCache,
    plan::{position_from_db, position_to_db},
    query::Query,
    readers::Readers,
    session::{Role, Session},
};
use crate::{
    clock::{Clock, SystemClock},
    cluster::{ClusterNode, Duty},
    error::EngineError,
    kind::Kind,
    limits::{
        STORE_LEADER_STALL_MAX, STORE_NODE_FORGOTTEN_AFTER, STORE_NODE_RENEWED_EVERY,
        STORE_NODE_TIME_MAX, STORE_OPEN_TIME_MAX, STORE_UNREACHABLE_AFTER,
    },
    position::LogPosition,
};

/// Minimum wait for a response after this process was suspended, before the database counts as
/// unreachable. Timeouts that expired during the suspension are meaningless.
const CHECK_BEFORE_UNREACHABLE: Duration = Duration::from_secs(3);
/// Interval at which the process checks whether it was suspended.
const PULSE_EVERY: Duration = Duration::from_millis(250);
/// Minimum delay of the suspension check at which the process counts as suspended.
const SUSPENDED_FROM: Duration = Duration::from_secs(1);
/// Interval at which a node checks whether others have followed the log.
const CHECK_EVERY: Duration = Duration::from_millis(25);
/// Minimum gap between two responses that counts as an outage, during which no node could renew.
const STEADY_GAP: Duration = Duration::from_secs(3);

/// Kinds whose changes are confirmed only once every node knows them.
const AWAITED: [Kind; 2] = [Kind::Client, Kind::Settings];

/// This process as a node of a shared store.
#[derive(Debug)]
pub struct Node {
    address: Arc<Address>,
    id: [u8; 16],
    clock: Arc<DatabaseClock>,
    session: Mutex<Option<Session>>,
    claims: Claims,
    /// Whether the other nodes have dropped this node.
    is_gone: watch::Sender<bool>,
    about: watch::Sender<String>,
    /// Time of the last progress with each of [`Duty::STEADY`]; `None` while this node does not
    /// have the duty.
    advanced: std::sync::Mutex<[Option<Instant>; 3]>,
    /// Triggers an immediate renewal.
    renew_now: Notify,
    /// Time at which this process was last found to have been suspended.
    suspended: std::sync::Mutex<Option<Instant>>,
}

impl Node {
    pub async fn join(address: &Address, name: &str) -> Result<Self, EngineError> {
        let id: [u8; 16] = rand::random();
        let session = Session::open(address, Role::Writer).await?;
        let before = SystemClock.elapsed();
        let said_ms = join(&session, &id, name).await;
        let said_ms = said_ms.map_err(|error| error::read_error(&error))?;
        let clock = DatabaseClock::new(before, SystemClock.elapsed(), said_ms);
        Ok(Self {
            address: Arc::new(address.clone()),
            id,
            clock: Arc::new(clock),
            session: Mutex::new(Some(session)),
            claims: Claims::new(id, Arc::new(SystemClock)),
            is_gone: watch::Sender::new(false),
            about: watch::Sender::default(),
            advanced: std::sync::Mutex::default(),
            renew_now: Notify::new(),
            suspended: std::sync::Mutex::default(),
        })
    }

    pub(super) fn publish_report(&self, about: String) {
        self.about.send_replace(about);
        self.renew_now.notify_one();
    }

    pub(super) fn id(&self) -> [u8; 16] {
        self.id
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as _
    }

    /// Renews the node until other nodes drop it. While the database does not respond, no node
    /// takes over slots.
    pub(super) async fn keep_alive(self: Arc<Self>, known: Arc<LogCache>) {
        tokio::select! {
            // A suspension must be noticed before a timeout that expired during it is evaluated.
            biased;
            () = self.note_suspensions() => {}
            () = self.renew_on(known) => {}
        }
    }

    async fn note_suspensions(&self) {
        loop {
            let begin = Instant::now();
            sleep(PULSE_EVERY).await;
            if begin.elapsed() >= PULSE_EVERY + SUSPENDED_FROM {
                *self.lock_suspended_until() = Some(Instant::now());
            }
        }
    }

    fn lock_suspended_until(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.suspended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the process was suspended so recently that the database possibly had no time to
    /// respond.
    fn was_suspended(&self) -> bool {
        self.lock_suspended_until()
            .is_some_and(|at| at.elapsed() < CHECK_BEFORE_UNREACHABLE)
    }

    async fn renew_on(&self, known: Arc<LogCache>) {
        let mut log = known.subscribe();
        let mut seen = known.last_changed(&AWAITED);
        let mut answered = Instant::now();
        // Start of the current period without an outage; `None` at first.
        let mut steady = None::<Instant>;
        let mut pace = STORE_NODE_RENEWED_EVERY;
        while !*self.is_gone.borrow() {
            // Callers that wait for a revoked key or a setting to take effect on all nodes should
            // not wait for the next interval.
            let is_news = async {
                while known.last_changed(&AWAITED) <= seen {
                    if log.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            };
            tokio::select! {
                () = sleep(pace) => {}
                () = self.renew_now.notified() => {}
                () = is_news => {}
            }
            seen = known.last_changed(&AWAITED);
            if answered.elapsed() >= STEADY_GAP {
                steady = Some(Instant::now());
            }
            let is_steady = steady.is_none_or(|since| since.elapsed() >= STORE_NODE_TIME_MAX);
            let renewing = self.renew(known.newest_position(), is_steady);
            let renewed = self
                .with_response_deadline(renewing, answered + STORE_UNREACHABLE_AFTER)
                .await;
            match renewed {
                Ok(next) => {
                    pace = next;
                    answered = Instant::now();
                    self.address.reach.set_reachable(true);
                    if let Some(duty) = self.stalled_duty(steady) {
                        self.resign(&format!("makes no progress with {}", duty.as_str()), true);
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "failed to renew the lease of this node");
                    if answered.elapsed() >= STORE_UNREACHABLE_AFTER && !self.was_suspended() {
                        self.address.reach.set_reachable(false);
                    }
                    sleep(STORE_NODE_RENEWED_EVERY).await;
                }
            }
        }
    }

    /// Waits for a response of the database, which counts as unreachable if there is none by
    /// `late`.
    async fn with_response_deadline<T>(&self, work: impl Future<Output = T>, late: Instant) -> T {
        let mut work = std::pin::pin!(work);
        if let Ok(answer) = timeout_at(late, work.as_mut()).await {
            return answer;
        }
        if self.was_suspended()
            && let Ok(answer) = timeout(CHECK_BEFORE_UNREACHABLE, work.as_mut()).await
        {
            return answer;
        }
        self.address.reach.set_reachable(false);
        work.await
    }

    async fn renew(&self, follows: LogPosition, is_steady: bool) -> Result<Duration, EngineError> {
        let mut cached = self.session.lock().await;
        if *self.is_gone.borrow() {
            return Ok(STORE_NODE_RENEWED_EVERY);
        }
        let session = match cached.take().filter(|it| !it.client.is_closed()) {
            Some(session) => session,
            None => Session::open(&self.address, Role::Writer).await?,
        };
        let renewing = self.renew_lease(&session, follows, is_steady);
        let renewed = timeout(STORE_OPEN_TIME_MAX, renewing).await;
        let late = |_late| EngineError::Unavailable("the database does not respond".into());
        let pace = renewed
            .map_err(late)?
            .map_err(|error| error::read_error(&error))?;
        if self.address.requires_standby && !has_standby(&session).await? {
            let why = "the database has lost its synchronous standby";
            tracing::warn!("{why}; this node is not ready");
            *cached = Some(session);
            return Err(EngineError::Unavailable(why.into()));
        }
        *cached = Some(session);
        Ok(pace)
    }

    async fn renew_lease(
        &self,
        session: &Session,
        follows: LogPosition,
        is_steady: bool,
    ) -> Result<Duration, Error> {
        let client = &session.client;
        let (id, follows, about) = (
            &self.id[..],
            position_to_db(follows),
            self.about.borrow().clone(),
        );
        let writer = self.claims.active_writer();
        let writer = writer.as_ref().map(|it| &it[..]);
        let statement = session.prepare(Query::Renew).await?;
        let before = SystemClock.elapsed();
        let Some(row) = client
            .query_opt(&statement, &[&id, &follows, &about, &writer])
            .await?
        else {
            tracing::error!("other nodes have removed this node");
            self.claims.forget_slots();
            self.is_gone.send_replace(true);
            return Ok(STORE_NODE_RENEWED_EVERY);
        };
        self.clock
            .read(before, SystemClock.elapsed(), row.try_get(0)?);
        self.claims.record_alive(before);
        self.claims.refresh(session, is_steady).await
    }

    pub(super) fn record_progress(&self, duty: Duty) {
        if let Some(at) = Duty::STEADY.iter().position(|it| *it == duty) {
            self.lock_progress()[at] = Some(Instant::now());
        }
    }

    fn lock_progress(&self) -> std::sync::MutexGuard<'_, [Option<Instant>; 3]> {
        // Every statement leaves the value consistent, so poisoning is harmless.
        self.advanced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a duty that made no progress although the database has responded all the time. For a
    /// duty that this node did not have before, the time starts now.
    fn stalled_duty(&self, steady: Option<Instant>) -> Option<Duty> {
        let is_owner = self.claims.is_owner();
        let has_to = [is_owner, self.claims.is_leader(), is_owner];
        let mut advanced = self.lock_progress();
        for (last, has_to) in advanced.iter_mut().zip(has_to) {
            *last = has_to.then(|| last.unwrap_or_else(Instant::now));
        }
        let stalled = |last: &Option<Instant>| {
            last.is_some_and(|last| {
                steady.unwrap_or(last).max(last).elapsed() > STORE_LEADER_STALL_MAX
            })
        };
        let at = advanced.iter().position(stalled)?;
        Some(Duty::STEADY[at])
    }

    pub(super) fn claims(&self) -> &Claims {
        &self.claims
    }

    pub(super) fn trigger_check(&self) {
        self.renew_now.notify_one();
    }

    /// Leaves slots and leadership to other nodes for a while because this node makes no progress;
    /// if forced, even with work in flight.
    pub(super) fn resign(&self, why: &str, is_forced: bool) {
        if self.claims.pause_ownership(is_forced) {
            tracing::error!("this node {why}; other nodes take over its slots and leadership");
            *self.lock_progress() = [None; 3];
        }
        self.trigger_check();
    }

    /// Waits until the node leads, and returns the epoch.
    pub(super) async fn wait_for_leadership(&self) -> u64 {
        let mut lead = self.claims.watch_leadership();
        self.claims.become_candidate();
        self.trigger_check();
        loop {
            if let Some(epoch) = *lead.borrow_and_update() {
                return epoch;
            }
            // The sender outlives this call.
            drop(lead.changed().await);
        }
    }

    pub(super) async fn wait_until_deposed(&self, epoch: u64) {
        let mut lead = self.claims.watch_leadership();
        drop(lead.wait_for(|lead| *lead != Some(epoch)).await);
    }

    pub(super) async fn wait_until_forgotten(&self) {
        let mut is_gone = self.is_gone.subscribe();
        drop(is_gone.wait_for(|is_gone| *is_gone).await);
    }

    pub(super) async fn leave(&self) {
        let mut cached = self.session.lock().await;
        self.claims.forget_slots();
        self.is_gone.send_replace(true);
        let Some(session) = cached.take() else {
            return;
        };
        let left = async {
            let statement = session.prepare(Query::Leave).await?;
            session.client.execute(&statement, &[&&self.id[..]]).await
        };
        if !matches!(timeout(STORE_OPEN_TIME_MAX, left).await, Ok(Ok(_))) {
            tracing::debug!("other nodes will detect that this node left");
        }
    }
}

/// The lease on a node's slots. The writer for these slots renews it over its own connection, so a
/// node that cannot write loses them.
#[derive(Debug, Clone)]
pub(super) struct Lease(Arc<Node>);

impl Lease {
    pub(super) fn for_node(node: &Arc<Node>) -> Self {
        Self(Arc::clone(node))
    }

    pub(super) async fn renew(&self, session: &Session) -> Result<(), Error> {
        let statement = session.prepare(Query::Works).await?;
        let (node, begin) = (&self.0.id[..], SystemClock.elapsed());
        session.client.execute(&statement, &[&node]).await?;
        self.0.claims.record_progress(begin);
        Ok(())
    }
}

async fn has_standby(session: &Session) -> Result<bool, EngineError> {
    let text = "SELECT current_setting('synchronous_standby_names') <> ''";
    let row = session.client.query_one(text, &[]).await;
    let found = row.and_then(|row| row.try_get(0));
    found.map_err(|error| error::read_error(&error))
}

async fn join(session: &Session, id: &[u8; 16], name: &str) -> Result<i64, Error> {
    let forgotten = STORE_NODE_FORGOTTEN_AFTER.as_secs_f64();
    for query in [Query::ForgetWriters, Query::ForgetNodes] {
        let statement = session.prepare(query).await?;
        session.client.execute(&statement, &[&forgotten]).await?;
    }
    let statement = session.prepare(Query::Join).await?;
    let row = session
        .client
        .query_one(&statement, &[&&id[..], &name])
        .await?;
    row.try_get(0)
}

pub(super) async fn live_nodes(
    readers: &Readers,
    this: Option<[u8; 16]>,
) -> Result<Vec<ClusterNode>, EngineError> {
    let seconds = STORE_NODE_TIME_MAX.as_secs_f64();
    let rows = readers.query_rows(Query::Nodes, &[&seconds]).await?;
    let unread = |error: Error| EngineError::Corrupt(error.to_string());
    rows.iter()
        .map(|row| decode_node(row, this).map_err(unread))
        .collect()
}

pub(super) fn decode_node(
    row: &tokio_postgres::Row,
    this: Option<[u8; 16]>,
) -> Result<ClusterNode, Error> {
    let follows: i64 = row.try_get(2)?;
    Ok(ClusterNode {
        name: row.try_get(0)?,
        since_ms: row.try_get(1)?,
        follows: position_from_db(follows),
        leads: row.try_get(3)?,
        about: row.try_get(4)?,
        is_this: this.is_some_and(|this| row.try_get(6).is_ok_and(|id: &[u8]| *id == this)),
        slots: u32::try_from(row.try_get::<_, i64>(5)?).unwrap_or_default(),
    })
}

pub(super) async fn wait_until_followed(
    readers: &Readers,
    position: LogPosition,
    within: Duration,
) -> Result<bool, EngineError> {
    let begin = Instant::now();
    loop {
        let nodes = live_nodes(readers, None).await?;
        if nodes.iter().all(|node| node.follows >= position) {
            return Ok(true);
        }
        if begin.elapsed() > within {
            return Ok(false);
        }
        sleep(CHECK_EVERY).await;
    }
}
