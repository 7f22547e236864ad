//! `BackupService`: reads the whole store while it is in use.

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use bellwether_proto::v1::{
    ReadBackupRequest, ReadBackupResponse, backup_service_server::BackupService,
};
use futures_util::{Stream, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, async_trait};

use super::convert::backup as convert;
use crate::{
    error::Error,
    limits::{BACKUP_BYTES_PER_SECOND, BACKUPS_MAX},
    store::{
        Store,
        backup::{BackupError, BackupRecord, Reader},
    },
};

#[derive(Debug)]
pub struct BackupApi {
    store: Store,
    shutdown: CancellationToken,
    capacity: Arc<Semaphore>,
}

impl BackupApi {
    /// Creates the service; streams end when `shutdown` is cancelled.
    pub fn new(store: Store, shutdown: CancellationToken) -> Self {
        Self {
            store,
            shutdown,
            capacity: Arc::new(Semaphore::new(BACKUPS_MAX)),
        }
    }
}

struct BackupStream {
    reader: Reader,
    bytes_per_second: u64,
    row_count: u64,
    shutdown: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl BackupStream {
    async fn next(&mut self) -> Result<Option<ReadBackupResponse>, BackupError> {
        let begun = Instant::now();
        let Some(step) = self.reader.next().await? else {
            return Ok(None);
        };
        let bytes: usize = step.records.iter().map(BackupRecord::bytes).sum();
        let response = convert::response(step, std::mem::take(&mut self.row_count));
        // The remaining steps are small, and must not fall behind concurrent writes.
        if !self.reader.is_catching_up() {
            let due_us = bytes as u64 * 1_000_000 / self.bytes_per_second;
            let due = Duration::from_micros(due_us).saturating_sub(begun.elapsed());
            tokio::time::sleep(due).await;
        }
        Ok(Some(response))
    }
}

type StepStream = Pin<Box<dyn Stream<Item = Result<ReadBackupResponse, Status>> + Send>>;

#[async_trait]
impl BackupService for BackupApi {
    async fn read_backup(
        &self,
        request: Request<ReadBackupRequest>,
    ) -> Result<Response<StepStream>, Status> {
        let request = request.into_inner();
        let permit = Arc::clone(&self.capacity).try_acquire_owned();
        let permit = permit.map_err(|_full| Error::Exhausted {
            message: format!(
                "{BACKUPS_MAX} backups are already in progress; wait for one to finish"
            ),
            retry_after: None,
        })?;
        let at = Some(&request.place[..]).filter(|place| !place.is_empty());
        let reader = Reader::start(self.store.clone(), at).await;
        let reader = reader.map_err(Error::from)?;
        let reading = BackupStream {
            row_count: reader.row_count().await.map_err(Error::from)?,
            reader,
            bytes_per_second: match request.bytes_per_second {
                0 => BACKUP_BYTES_PER_SECOND,
                requested => requested,
            },
            shutdown: self.shutdown.clone(),
            _permit: permit,
        };
        let steps = stream::unfold(Some(reading), |reading| async {
            let mut reading = reading?;
            let shutdown = reading.shutdown.clone();
            tokio::select! {
                step = reading.next() => match step {
                    Ok(None) => None,
                    Ok(Some(step)) => Some((Ok(step), Some(reading))),
                    Err(error) => Some((Err(Error::from(error).into()), None)),
                },
                () = shutdown.cancelled() => {
                    let stops = Error::Unavailable("the service is stopping".into());
                    Some((Err(stops.into()), None))
                }
            }
        });
        Ok(Response::new(Box::pin(steps)))
    }
}
