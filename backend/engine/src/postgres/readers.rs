//! The read sessions, each used by many calls concurrently.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::{Mutex, MutexGuard},
    time::{Instant, sleep, timeout},
};
use tokio_postgres::{Row, types::ToSql};

use super::{
    address::Address,
    error,
    query::Query,
    reach::{self, Reachability},
    session::{Role, Session},
};
use crate::{
    error::EngineError,
    limits::{STORE_READ_TIME_MAX, STORE_REOPEN_TIME_MAX},
};

const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Readers {
    address: Arc<Address>,
    /// The runtime on which the sessions run. Sessions are shared by all reads, so they must not
    /// run on the low-priority threads that a single read may use.
    runtime: Handle,
    slots: Vec<Mutex<Option<Arc<Session>>>>,
    next: AtomicUsize,
    /// The session for multi-statement reads, used by one read at a time.
    moment: Mutex<Option<Arc<Session>>>,
}

impl Readers {
    pub(super) fn new(address: Arc<Address>) -> Self {
        let mut slots = Vec::new();
        slots.resize_with(address.reader_count(), Mutex::default);
        Self {
            address,
            runtime: Handle::current(),
            slots,
            next: AtomicUsize::new(0),
            moment: Mutex::default(),
        }
    }

    /// Opens the session for multi-statement reads and one session for single-statement reads.
    ///
    /// # Errors
    ///
    /// Returns [`EngineError::Unavailable`] if the database accepts no further connection.
    pub(super) async fn reserve(&self) -> Result<(), EngineError> {
        self.connect_slot(&mut *self.moment.lock().await).await?;
        self.session().await?;
        Ok(())
    }

    /// Whether the session for multi-statement reads is open. Reopens it if it is broken.
    pub(super) async fn is_reserved(&self) -> bool {
        match self.moment.try_lock() {
            Ok(mut slot) => self.connect_slot(&mut slot).await.is_ok(),
            Err(_in_use) => true,
        }
    }

    /// Reads with one statement, and therefore at one point in time.
    pub(super) async fn query_rows(
        &self,
        query: Query,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, EngineError> {
        let read = self
            .address
            .reach
            .run_or_unreachable(self.read(query, parameters));
        read.await
            .unwrap_or_else(|| Err(reach::unreachable_error()))
    }

    async fn read(
        &self,
        query: Query,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, EngineError> {
        let deadline = Instant::now() + STORE_REOPEN_TIME_MAX;
        loop {
            let error = match self.session().await {
                Ok(session) => match query_rows(&session, query, parameters).await {
                    Ok(rows) => return Ok(rows),
                    Err(ReadFailure::Lost(error)) => error,
                    Err(ReadFailure::Refused(error)) => return Err(error),
                },
                Err(error) => error,
            };
            if Instant::now() > deadline {
                return Err(error);
            }
            sleep(PAUSE).await;
        }
    }

    async fn session(&self) -> Result<Arc<Session>, EngineError> {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.slots.len();
        self.connect_slot(&mut *self.slots[next].lock().await).await
    }

    async fn connect_slot(
        &self,
        slot: &mut Option<Arc<Session>>,
    ) -> Result<Arc<Session>, EngineError> {
        if let Some(session) = slot
            && !session.client.is_closed()
        {
            return Ok(Arc::clone(session));
        }
        let address = Arc::clone(&self.address);
        let opening = async move { Session::open(&address, Role::Reader).await };
        let stopping = |_| EngineError::Unavailable("the service is stopping".into());
        let session = Arc::new(self.runtime.spawn(opening).await.map_err(stopping)??);
        *slot = Some(Arc::clone(&session));
        Ok(session)
    }

    pub(super) async fn begin_snapshot(&self) -> Result<ReadSnapshot<'_>, EngineError> {
        let begun = self.address.reach.run_or_unreachable(self.begin()).await;
        begun.unwrap_or_else(|| Err(reach::unreachable_error()))
    }

    async fn begin(&self) -> Result<ReadSnapshot<'_>, EngineError> {
        let mut slot = self.moment.lock().await;
        let session = self.connect_slot(&mut slot).await?;
        // A cancelled read leaves its transaction open.
        let begin = "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let begun = session.client.batch_execute(begin).await;
        begun.map_err(|error| error::read_error(&error))?;
        Ok(ReadSnapshot {
            reach: self.address.reach.clone(),
            session,
            _slot: slot,
        })
    }
}

enum ReadFailure {
    /// A new session may succeed.
    Lost(EngineError),
    Refused(EngineError),
}

async fn query_rows(
    session: &Session,
    query: Query,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, ReadFailure> {
    let read = async {
        let statement = session.prepare(query).await?;
        session.client.query(&statement, parameters).await
    };
    let Ok(read) = timeout(2 * STORE_READ_TIME_MAX, read).await else {
        let late = "the database did not respond to a read".into();
        return Err(ReadFailure::Refused(EngineError::Unavailable(late)));
    };
    read.map_err(|error| {
        let why = error::read_error(&error);
        if error::is_connection_lost(&error) {
            ReadFailure::Lost(why)
        } else {
            ReadFailure::Refused(why)
        }
    })
}

pub(super) struct ReadSnapshot<'a> {
    reach: Reachability,
    session: Arc<Session>,
    _slot: MutexGuard<'a, Option<Arc<Session>>>,
}

impl ReadSnapshot<'_> {
    pub(super) async fn query_rows(
        &self,
        query: Query,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, EngineError> {
        let rows = query_rows(&self.session, query, parameters);
        let Some(rows) = self.reach.run_or_unreachable(rows).await else {
            return Err(reach::unreachable_error());
        };
        rows.map_err(|unread| match unread {
            ReadFailure::Lost(error) | ReadFailure::Refused(error) => error,
        })
    }

    pub(super) async fn end(self) -> Result<(), EngineError> {
        let ended = self.session.client.batch_execute("COMMIT").await;
        ended.map_err(|error| error::read_error(&error))
    }
}
