//! A store that one process has to itself: it says so again and again, and whoever takes the store
//! after it has not for a while removes the rows that let it write, so that it writes nothing more.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Mutex, watch},
    time::{Instant, sleep, timeout},
};
use tokio_postgres::Error;

use super::{
    address::Address,
    clock::DatabaseClock,
    fault,
    query::Query,
    session::{Role, Session},
};
use crate::{
    clock::{Clock, SystemClock},
    limits::{STORE_HOLD_RENEWED_EVERY, STORE_HOLD_TIME_MAX, STORE_OPEN_TIME_MAX},
    store::engine::EngineError,
};

/// Between two tries to take a store.
const PAUSE: Duration = Duration::from_millis(250);

/// That this process has a store to itself.
#[derive(Debug)]
pub struct Hold {
    address: Arc<Address>,
    node: [u8; 16],
    clock: Arc<DatabaseClock>,
    session: Mutex<Option<Session>>,
    is_lost: watch::Sender<bool>,
}

/// Why a store was not taken.
#[derive(Debug)]
pub enum Untaken {
    /// Another process has it, and renews that.
    Held {
        /// What it is called.
        name: String,
        /// Since when.
        since: String,
    },
    /// The database does not answer.
    Fault(EngineError),
}

impl Hold {
    /// Takes a store under a name. Waits for as long as one that does not live any more may still
    /// have it.
    ///
    /// # Errors
    /// See [`Untaken`].
    pub async fn take(address: &Address, name: &str) -> Result<Self, Untaken> {
        let node: [u8; 16] = rand::random();
        let fault = |error: Error| Untaken::Fault(fault::unread(&error));
        let session = Session::open(address, Role::Writer)
            .await
            .map_err(Untaken::Fault)?;
        let begin = Instant::now();
        let patience = STORE_HOLD_TIME_MAX + 2 * STORE_HOLD_RENEWED_EVERY;
        while !take(&session, &node, name).await.map_err(fault)? {
            if begin.elapsed() > patience
                && let Some((name, since)) = holder(&session).await.map_err(fault)?
            {
                return Err(Untaken::Held { name, since });
            }
            sleep(PAUSE).await;
        }
        let before = SystemClock.passed();
        let said_ms = renew(&session, &node).await.map_err(fault)?;
        let said_ms = said_ms.ok_or_else(|| {
            let taken = "another process took the store at the same moment";
            Untaken::Fault(EngineError::Unavailable(taken.into()))
        })?;
        let clock = DatabaseClock::new(before, SystemClock.passed(), said_ms);
        Ok(Self {
            address: Arc::new(address.clone()),
            node,
            clock: Arc::new(clock),
            session: Mutex::new(Some(session)),
            is_lost: watch::Sender::new(false),
        })
    }

    /// The database's time.
    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as _
    }

    /// Renews it until it is lost. While the database does not answer nobody else can take it
    /// either.
    pub(super) async fn keep(self: Arc<Self>) {
        while !*self.is_lost.borrow() {
            sleep(STORE_HOLD_RENEWED_EVERY).await;
            if let Err(error) = self.renew_once().await {
                tracing::debug!(%error, "the hold on the store cannot be renewed now");
            }
        }
    }

    async fn renew_once(&self) -> Result<(), EngineError> {
        let mut kept = self.session.lock().await;
        if *self.is_lost.borrow() {
            return Ok(());
        }
        let session = match kept.take().filter(|it| !it.client.is_closed()) {
            Some(session) => session,
            None => Session::open(&self.address, Role::Writer).await?,
        };
        let before = SystemClock.passed();
        let said_ms = timeout(STORE_OPEN_TIME_MAX, renew(&session, &self.node)).await;
        let late = |_late| EngineError::Unavailable("the database does not answer".into());
        let said_ms = said_ms
            .map_err(late)?
            .map_err(|error| fault::unread(&error))?;
        if let Some(said_ms) = said_ms {
            self.clock.read(before, SystemClock.passed(), said_ms);
        } else {
            tracing::error!("another node has taken the store over");
            self.is_lost.send_replace(true);
        }
        *kept = Some(session);
        Ok(())
    }

    /// Returns once this process may not use the store any more.
    pub(super) async fn lost(&self) {
        let mut is_lost = self.is_lost.subscribe();
        // The sender lives as long as this call, so waiting cannot fail.
        drop(is_lost.wait_for(|is_lost| *is_lost).await);
    }

    /// Lets go of it, so that nobody has to wait.
    pub(super) async fn release(&self) {
        let mut kept = self.session.lock().await;
        self.is_lost.send_replace(true);
        let Some(session) = kept.take() else {
            return;
        };
        let released = async {
            let statement = session.statement(Query::Release).await?;
            session.client.execute(&statement, &[&&self.node[..]]).await
        };
        if !matches!(timeout(STORE_OPEN_TIME_MAX, released).await, Ok(Ok(_))) {
            tracing::debug!("the hold on the store was not let go of, and runs out by itself");
        }
    }
}

/// Takes the store, if nobody has it; whoever wrote to it before writes nothing more then.
async fn take(session: &Session, node: &[u8], name: &str) -> Result<bool, Error> {
    let (take, oust) = (
        session.statement(Query::Take).await?,
        session.statement(Query::Oust).await?,
    );
    let client = &session.client;
    let seconds = STORE_HOLD_TIME_MAX.as_secs_f64();
    client.batch_execute("BEGIN").await?;
    let taken = async {
        let taken = client.query_opt(&take, &[&node, &name, &seconds]).await?;
        if taken.is_some() {
            client.execute(&oust, &[]).await?;
        }
        client.batch_execute("COMMIT").await?;
        Ok(taken.is_some())
    };
    let taken: Result<bool, Error> = taken.await;
    if taken.is_err() {
        drop(client.batch_execute("ROLLBACK").await);
    }
    taken
}

async fn renew(session: &Session, node: &[u8]) -> Result<Option<i64>, Error> {
    let statement = session.statement(Query::Renew).await?;
    let row = session.client.query_opt(&statement, &[&node]).await?;
    row.map(|row| row.try_get(0)).transpose()
}

/// Who has the store, and since when.
async fn holder(session: &Session) -> Result<Option<(String, String)>, Error> {
    let statement = session.statement(Query::Holder).await?;
    let row = session.client.query_opt(&statement, &[]).await?;
    row.map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .transpose()
}
