//! The task that reads the commits of other nodes from the change log, trims the log, and folds
//! counters.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::{
    address::Address,
    counters::StoreCounters,
    error,
    log_cache::{self, LogCache, Origin},
    plan::{self, position_to_db, to_db_integer},
    query::Query,
    session::{Role, Session},
};
use crate::{
    error::EngineError,
    limits::{STORE_LOG_COMMITS_MAX, STORE_LOG_TIME_MIN},
    position::LogPosition,
};

/// Steps per read.
const STEPS: i64 = 1_000;
const PAUSE: Duration = Duration::from_millis(250);
const TRIM_EVERY: Duration = Duration::from_secs(60);
/// Maximum number of steps removed per trim.
const TRIMMED: i64 = 5_000;
/// Interval at which idle counter rows are folded.
const FOLD_EVERY: Duration = Duration::from_secs(60);
/// Maximum number of rows per fold.
const FOLDED: i64 = 5_000;

/// Polls the log at an interval, and immediately when a reader requests it. Sets `is_missing` while
/// there is no connection.
pub(super) async fn follow_log(
    address: Arc<Address>,
    session: Session,
    known: Arc<LogCache>,
    every: Duration,
    is_missing: watch::Sender<bool>,
) {
    let mut session = Some(session);
    let (mut trimmed, mut folded, mut resting) = (Instant::now(), Instant::now(), 0);
    loop {
        // This poll also serves the requests made before it.
        drop(timeout(every, known.wanted.notified()).await);
        let usable = session.take().filter(|it| !it.client.is_closed());
        let opened = match usable {
            Some(session) => Ok(session),
            None => Session::open(&address, Role::Reader).await,
        };
        is_missing.send_replace(opened.is_err());
        let Ok(opened) = opened else {
            sleep(PAUSE).await;
            continue;
        };
        if let Err(error) = catch_up(&opened, &known, &address.counters).await {
            tracing::debug!(%error, "failed to follow the change log");
            sleep(PAUSE).await;
        }
        if trimmed.elapsed() >= TRIM_EVERY {
            match trim_log(&opened).await {
                Ok(is_done) if !is_done => {}
                // Trimming is retried next time.
                _ => trimmed = Instant::now(),
            }
        }
        if folded.elapsed() >= FOLD_EVERY {
            folded = Instant::now();
            match fold_idle_rows(&opened, resting).await {
                Ok(newest) => resting = newest,
                Err(error) => tracing::debug!(%error, "failed to aggregate counters"),
            }
        }
        session = Some(opened);
    }
}

async fn catch_up(
    session: &Session,
    known: &LogCache,
    counters: &StoreCounters,
) -> Result<(), EngineError> {
    loop {
        // Reads from the newest known step on: its presence proves that the database has not lost
        // it.
        let (before, origin) = known.newest_step();
        let read = async {
            let statement = session.prepare(Query::Log).await?;
            session
                .client
                .query(&statement, &[&position_to_db(before), &STEPS])
                .await
        };
        let rows = read.await.map_err(|error| error::read_error(&error))?;
        let unread = |error| error::read_error(&error);
        let is_all = rows.len() < usize::try_from(STEPS).unwrap_or(usize::MAX);
        let mut is_there = false;
        for row in rows {
            let position: i64 = row.try_get(0).map_err(unread)?;
            let position = plan::position_from_db(position);
            let found = Origin {
                writer: row.try_get(3).map_err(unread)?,
                batch: row.try_get(4).map_err(unread)?,
            };
            if position == before {
                is_there = true;
                if origin.as_ref().is_some_and(|origin| *origin != found) {
                    known.mark_lost(format!("step {before} of the change log was replaced"));
                    return Ok(());
                }
                known.record_origin(before, found);
                continue;
            }
            if !is_there {
                break;
            }
            let changed: &[u8] = row.try_get(1).map_err(unread)?;
            known.read(log_cache::decode_step(position, changed)?, found);
            let late: f64 = row.try_get(2).map_err(unread)?;
            counters.record_lag(Duration::try_from_secs_f64(late).unwrap_or_default());
        }
        if !is_there {
            return diagnose_missing_step(session, known, before).await;
        }
        if is_all || known.newest_position() == before {
            return Ok(());
        }
    }
}

/// Determines why a known step is missing from the log: the step was trimmed because this process
/// has not read for a long time, or the database has lost it.
async fn diagnose_missing_step(
    session: &Session,
    known: &LogCache,
    position: LogPosition,
) -> Result<(), EngineError> {
    let read = async {
        let statement = session.prepare(Query::Head).await?;
        let row = session.client.query_one(&statement, &[]).await?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    };
    let read: Result<(Option<i64>, Option<i64>), tokio_postgres::Error> = read.await;
    let (newest, oldest) = read.map_err(|error| error::read_error(&error))?;
    let (newest, oldest) = (newest.unwrap_or_default(), oldest.unwrap_or_default());
    if oldest > position_to_db(position) {
        known.mark_known_through(plan::position_from_db(newest));
    } else {
        known.mark_lost(format!(
            "step {position} of the change log no longer exists; the newest is {newest}"
        ));
    }
    Ok(())
}

/// Removes some old steps. Returns whether no more are left to remove.
async fn trim_log(session: &Session) -> Result<bool, EngineError> {
    let trimmed = async {
        let statement = session.prepare(Query::Trim).await?;
        let retained = i64::try_from(STORE_LOG_COMMITS_MAX).unwrap_or(i64::MAX);
        let seconds = STORE_LOG_TIME_MIN.as_secs_f64();
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&retained, &seconds, &TRIMMED];
        session.client.execute(&statement, &parameters).await
    };
    let trimmed = trimmed.await.map_err(|error| error::read_error(&error))?;
    Ok(i64::try_from(trimmed).is_ok_and(|trimmed| trimmed < TRIMMED))
}

/// Folds rows unchanged since a version that was the newest some time ago, and returns the current
/// newest version. Folding never changes the sum of a counter, even if several nodes do it.
pub(super) async fn fold_idle_rows(
    session: &Session,
    since: u64,
) -> Result<u64, tokio_postgres::Error> {
    let client = &session.client;
    loop {
        let statement = session.prepare(Query::Fold).await?;
        let rows = client
            .query(&statement, &[&to_db_integer(since), &FOLDED])
            .await?;
        let keys = rows.iter().map(|row| row.try_get::<_, &[u8]>(0));
        let keys: Vec<&[u8]> = keys.collect::<Result<_, _>>()?;
        if keys.is_empty() {
            break;
        }
        let statement = session.prepare(Query::Zeros).await?;
        client.execute(&statement, &[&keys]).await?;
    }
    let statement = session.prepare(Query::Newest).await?;
    let newest: i64 = client.query_one(&statement, &[]).await?.try_get(0)?;
    Ok(newest.unsigned_abs())
}
