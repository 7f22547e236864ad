//! A process among those that share a store: it says again and again that it lives and how far it
//! follows the change log, and reads the database's time from the answers. One of them leads: it
//! does what is to be done once, and the next leader removes the row that lets it write for that.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Mutex, Notify, watch},
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};
use tokio_postgres::Error;

use super::{
    address::Address,
    clock::DatabaseClock,
    fault,
    log_cache::LogCache,
    plan::number,
    query::Query,
    readers::Readers,
    session::{Role, Session},
};
use crate::{
    Duty, NodeSeen,
    clock::{Clock, SystemClock},
    fault::EngineError,
    kind::Kind,
    limits::{
        STORE_AWAY_AFTER, STORE_LEADER_STALL_MAX, STORE_NODE_FORGOTTEN_AFTER,
        STORE_NODE_RENEWED_EVERY, STORE_NODE_TIME_MAX, STORE_OPEN_TIME_MAX,
    },
};

/// How long a node that led and could not write leaves the lead to others.
const REST: Duration = Duration::from_secs(15);
/// How long an answer is waited for at the least before the database counts as away.
const LOOK_BEFORE_AWAY: Duration = Duration::from_secs(1);
/// How often is looked whether others have followed the log.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// The kinds whose changes are waited for until every node knows of them.
const AWAITED: [Kind; 2] = [Kind::Client, Kind::Settings];

/// This process among those that share a store.
#[derive(Debug)]
pub struct Node {
    address: Arc<Address>,
    id: [u8; 16],
    clock: Arc<DatabaseClock>,
    session: Mutex<Option<Session>>,
    /// Whether it is to lead as soon as no one does.
    stands: watch::Sender<bool>,
    /// The writer that it leads with, while it does.
    leads: watch::Sender<Option<[u8; 16]>>,
    /// Whether the others have forgotten it.
    is_gone: watch::Sender<bool>,
    /// Until when it leaves the lead to others.
    rests_until: Mutex<Option<Instant>>,
    /// What it reports to the others about itself.
    about: watch::Sender<String>,
    /// When it advanced last with each of [`Duty::STEADY`], while it leads.
    advanced: std::sync::Mutex<[Option<Instant>; 2]>,
    /// Has it say immediately what it has to say.
    hurry: Notify,
}

impl Node {
    /// Comes to those that share a store, under a name.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] when the database does not answer.
    pub async fn join(address: &Address, name: &str) -> Result<Self, EngineError> {
        let id: [u8; 16] = rand::random();
        let session = Session::open(address, Role::Writer).await?;
        let before = SystemClock.passed();
        let said_ms = join(&session, &id, name).await;
        let said_ms = said_ms.map_err(|error| fault::unread(&error))?;
        let clock = DatabaseClock::new(before, SystemClock.passed(), said_ms);
        Ok(Self {
            address: Arc::new(address.clone()),
            id,
            clock: Arc::new(clock),
            session: Mutex::new(Some(session)),
            stands: watch::Sender::new(false),
            leads: watch::Sender::new(None),
            is_gone: watch::Sender::new(false),
            rests_until: Mutex::default(),
            about: watch::Sender::default(),
            advanced: std::sync::Mutex::default(),
            hurry: Notify::new(),
        })
    }

    /// Reports something about itself to the others.
    pub(super) fn tell(&self, about: String) {
        self.about.send_replace(about);
        self.hurry.notify_one();
    }

    pub(super) fn id(&self) -> [u8; 16] {
        self.id
    }

    /// The database's time.
    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as _
    }

    /// Renews it until it is forgotten. While the database does not answer no one else leads
    /// either.
    pub(super) async fn keep(self: Arc<Self>, known: Arc<LogCache>) {
        let mut log = known.signal();
        let mut told = known.last_changed(&AWAITED);
        let mut answered = Instant::now();
        // Since when the database has answered without a break.
        let mut steady = answered;
        while !*self.is_gone.borrow() {
            // Who waits until a key is revoked everywhere, or a setting in force, does not wait for the next time.
            let is_news = async {
                while known.last_changed(&AWAITED) <= told {
                    if log.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            };
            tokio::select! {
                () = sleep(STORE_NODE_RENEWED_EVERY) => {}
                () = self.hurry.notified() => {}
                () = is_news => {}
            }
            told = known.last_changed(&AWAITED);
            let mut renewing = std::pin::pin!(self.renew(known.newest()));
            // After a suspension of this process the last answer is old: ask again first.
            let late = (answered + STORE_AWAY_AFTER).max(Instant::now() + LOOK_BEFORE_AWAY);
            let renewed = match timeout_at(late, renewing.as_mut()).await {
                Ok(renewed) => renewed,
                Err(_late) => {
                    self.address.reach.set(false);
                    renewing.await
                }
            };
            match renewed {
                Ok(()) => {
                    if answered.elapsed() >= STORE_AWAY_AFTER {
                        steady = Instant::now();
                    }
                    answered = Instant::now();
                    self.address.reach.set(true);
                    if let Some(duty) = self.stalled(steady) {
                        let why = format!("does not advance with {}", duty.word());
                        self.resign(&why).await;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "the lease of this node cannot be renewed now");
                    if answered.elapsed() >= STORE_AWAY_AFTER {
                        self.address.reach.set(false);
                    }
                    sleep(STORE_NODE_RENEWED_EVERY).await;
                }
            }
        }
    }

    async fn renew(&self, follows: u64) -> Result<(), EngineError> {
        let mut kept = self.session.lock().await;
        if *self.is_gone.borrow() {
            return Ok(());
        }
        let session = match kept.take().filter(|it| !it.client.is_closed()) {
            Some(session) => session,
            None => Session::open(&self.address, Role::Writer).await?,
        };
        let renewed = timeout(STORE_OPEN_TIME_MAX, self.renew_in(&session, follows)).await;
        let late = |_late| EngineError::Unavailable("the database does not answer".into());
        renewed
            .map_err(late)?
            .map_err(|error| fault::unread(&error))?;
        if self.address.requires_standby && !has_standby(&session).await? {
            let why = "the database has lost the standby that its commits wait for";
            tracing::warn!("{why}; this node is not ready");
            *kept = Some(session);
            return Err(EngineError::Unavailable(why.into()));
        }
        *kept = Some(session);
        Ok(())
    }

    async fn renew_in(&self, session: &Session, follows: u64) -> Result<(), Error> {
        let client = &session.client;
        let (id, follows, about) = (&self.id[..], number(follows), self.about.borrow().clone());
        let before = SystemClock.passed();
        let statement = session.statement(Query::Renew).await?;
        let Some(row) = client
            .query_opt(&statement, &[&id, &follows, &about])
            .await?
        else {
            tracing::error!("the other nodes have forgotten this one");
            self.leads.send_replace(None);
            self.is_gone.send_replace(true);
            return Ok(());
        };
        self.clock
            .read(before, SystemClock.passed(), row.try_get(0)?);
        let leads = *self.leads.borrow();
        if let Some(writer) = leads {
            if !row.try_get::<_, bool>(1)? {
                self.lease().end(writer);
            }
        } else if *self.stands.borrow()
            && let Some(writer) = self.take(session).await?
        {
            tracing::info!("this node leads");
            *self.advanced() = [None; 2];
            self.leads.send_replace(Some(writer));
        }
        Ok(())
    }

    /// Begins to lead, unless another node does; the previous leader then writes nothing more for
    /// that. Answers the writer that is there for it.
    async fn take(&self, session: &Session) -> Result<Option<[u8; 16]>, Error> {
        let take = session.statement(Query::Take).await?;
        let oust = session.statement(Query::Oust).await?;
        let appoint = session.statement(Query::Appoint).await?;
        let (id, writer): (&[u8], [u8; 16]) = (&self.id, rand::random());
        let seconds = STORE_NODE_TIME_MAX.as_secs_f64();
        let client = &session.client;
        client.batch_execute("BEGIN").await?;
        let taken = async {
            let taken = client.query_opt(&take, &[&id, &seconds]).await?.is_some();
            if taken {
                client.execute(&oust, &[]).await?;
                client.execute(&appoint, &[&&writer[..], &id]).await?;
            }
            client.batch_execute("COMMIT").await?;
            Ok(taken.then_some(writer))
        };
        let taken: Result<_, Error> = taken.await;
        if taken.is_err() {
            drop(client.batch_execute("ROLLBACK").await);
        }
        taken
    }

    /// Records that it advances with that.
    pub(super) fn advance(&self, duty: Duty) {
        if let Some(at) = Duty::STEADY.iter().position(|it| *it == duty) {
            self.advanced()[at] = Some(Instant::now());
        }
    }

    fn advanced(&self) -> std::sync::MutexGuard<'_, [Option<Instant>; 2]> {
        // It is whole between any two statements.
        self.advanced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it does not advance with although the database has answered all the time.
    fn stalled(&self, steady: Instant) -> Option<Duty> {
        if self.leads.borrow().is_none() {
            return None;
        }
        let advanced = *self.advanced();
        let stalled = |last: &Option<Instant>| {
            last.is_some_and(|last| last.max(steady).elapsed() > STORE_LEADER_STALL_MAX)
        };
        let at = advanced.iter().position(stalled)?;
        Some(Duty::STEADY[at])
    }

    /// What the writer that it leads with renews.
    pub(super) fn lease(&self) -> Lease {
        Lease {
            node: self.id,
            leads: self.leads.clone(),
        }
    }

    /// The writer that it leads with, while it does.
    pub(super) fn leads(&self) -> watch::Receiver<Option<[u8; 16]>> {
        self.leads.subscribe()
    }

    /// Ceases to lead, as it cannot do what the leader does, and leaves that to others for a while.
    pub(super) async fn resign(&self, why: &str) {
        if self.leads.borrow().is_none() {
            return;
        }
        tracing::error!("this node leads and {why}: it leaves the lead to another node");
        *self.rests_until.lock().await = Some(Instant::now() + REST);
        self.stands.send_replace(false);
        self.leads.send_replace(None);
        let kept = self.session.lock().await;
        if let Some(session) = &*kept {
            let released = async {
                let statement = session.statement(Query::Release).await?;
                session.client.execute(&statement, &[&&self.id[..]]).await
            };
            // Where that does not come through, the others wait until its lease has ended.
            drop(timeout(STORE_OPEN_TIME_MAX, released).await);
        }
    }

    /// Waits until it leads; answers the writer that is there for it.
    pub(super) async fn lead(&self) -> [u8; 16] {
        let rest = self.rests_until.lock().await.take();
        if let Some(until) = rest {
            sleep_until(until).await;
        }
        let mut leads = self.leads.subscribe();
        self.stands.send_replace(true);
        self.hurry.notify_one();
        loop {
            if let Some(writer) = *leads.borrow_and_update() {
                return writer;
            }
            // The sender lives as long as this call.
            drop(leads.changed().await);
        }
    }

    /// Returns once it does not lead any more with that writer.
    pub(super) async fn deposed(&self, writer: [u8; 16]) {
        let mut leads = self.leads.subscribe();
        drop(leads.wait_for(|leads| *leads != Some(writer)).await);
    }

    /// Returns once the others have forgotten it: it may not use the store any more.
    pub(super) async fn forgotten(&self) {
        let mut is_gone = self.is_gone.subscribe();
        drop(is_gone.wait_for(|is_gone| *is_gone).await);
    }

    /// Leaves the others, so that no one has to wait.
    pub(super) async fn leave(&self) {
        let mut kept = self.session.lock().await;
        self.leads.send_replace(None);
        self.is_gone.send_replace(true);
        let Some(session) = kept.take() else {
            return;
        };
        let left = async {
            let id = &self.id[..];
            for query in [Query::Release, Query::Leave] {
                let statement = session.statement(query).await?;
                session.client.execute(&statement, &[&id]).await?;
            }
            Ok::<_, Error>(())
        };
        if !matches!(timeout(STORE_OPEN_TIME_MAX, left).await, Ok(Ok(()))) {
            tracing::debug!("the other nodes will detect that this node left");
        }
    }
}

/// The lead of a node. It is renewed by the writer that writes for it, over the connection that it writes
/// over: one that cannot write loses it.
#[derive(Debug)]
pub(super) struct Lease {
    node: [u8; 16],
    leads: watch::Sender<Option<[u8; 16]>>,
}

impl Lease {
    /// Renews it, while the node leads with that writer.
    pub(super) async fn renew(&self, session: &Session, writer: [u8; 16]) -> Result<(), Error> {
        if *self.leads.borrow() != Some(writer) {
            return Ok(());
        }
        let statement = session.statement(Query::Leads).await?;
        let node = &self.node[..];
        if session.client.execute(&statement, &[&node]).await? == 0 {
            self.end(writer);
        }
        Ok(())
    }

    /// Records that another node leads.
    fn end(&self, writer: [u8; 16]) {
        self.leads.send_if_modified(|leads| {
            let is_led = *leads == Some(writer);
            if is_led {
                tracing::warn!("another node leads");
                *leads = None;
            }
            is_led
        });
    }
}

/// Whether each commit waits for another server.
async fn has_standby(session: &Session) -> Result<bool, EngineError> {
    let text = "SELECT current_setting('synchronous_standby_names') <> ''";
    let row = session.client.query_one(text, &[]).await;
    let found = row.and_then(|row| row.try_get(0));
    found.map_err(|error| fault::unread(&error))
}

async fn join(session: &Session, id: &[u8; 16], name: &str) -> Result<i64, Error> {
    let forgotten = STORE_NODE_FORGOTTEN_AFTER.as_secs_f64();
    for query in [Query::ForgetWriters, Query::ForgetNodes] {
        let statement = session.statement(query).await?;
        session.client.execute(&statement, &[&forgotten]).await?;
    }
    let statement = session.statement(Query::Join).await?;
    let row = session
        .client
        .query_one(&statement, &[&&id[..], &name])
        .await?;
    row.try_get(0)
}

/// The nodes that live, and how far each follows the log.
pub(super) async fn alive(readers: &Readers) -> Result<Vec<NodeSeen>, EngineError> {
    let seconds = STORE_NODE_TIME_MAX.as_secs_f64();
    let rows = readers.rows(Query::Nodes, &[&seconds]).await?;
    let unread = |error: Error| EngineError::Corrupt(error.to_string());
    rows.iter().map(|row| seen(row).map_err(unread)).collect()
}

/// A row of [`Query::Nodes`].
pub(super) fn seen(row: &tokio_postgres::Row) -> Result<NodeSeen, Error> {
    let follows: i64 = row.try_get(2)?;
    Ok(NodeSeen {
        name: row.try_get(0)?,
        since_ms: row.try_get(1)?,
        follows: follows.unsigned_abs(),
        leads: row.try_get(3)?,
        about: row.try_get(4)?,
    })
}

/// Waits until every node that lives has followed the log to a position; whether that came in time.
pub(super) async fn followed(
    readers: &Readers,
    position: u64,
    within: Duration,
) -> Result<bool, EngineError> {
    let begin = Instant::now();
    loop {
        let nodes = alive(readers).await?;
        if nodes.iter().all(|node| node.follows >= position) {
            return Ok(true);
        }
        if begin.elapsed() > within {
            return Ok(false);
        }
        sleep(LOOK_EVERY).await;
    }
}
