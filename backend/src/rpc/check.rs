//! `CheckService`: verifies the whole store while it is in use.

use std::{pin::Pin, sync::Arc};

use bellwether_proto::v1::{
    CheckStoreRequest, CheckStoreResponse, check_service_server::CheckService,
};
use futures_util::{Stream, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, async_trait};

use super::convert::check::response;
use crate::{
    error::Error,
    limits::CHECKS_MAX,
    store::{
        Store,
        verify::{Findings, Progress, verify_running_store},
    },
};

#[derive(Debug)]
pub struct CheckApi {
    store: Store,
    shutdown: CancellationToken,
    capacity: Arc<Semaphore>,
}

impl CheckApi {
    /// Creates the service; streams end when `shutdown` is cancelled.
    pub fn new(store: Store, shutdown: CancellationToken) -> Self {
        Self {
            store,
            shutdown,
            capacity: Arc::new(Semaphore::new(CHECKS_MAX)),
        }
    }
}

struct CheckRun {
    findings: Pin<Box<dyn Future<Output = Findings> + Send>>,
    progress: watch::Receiver<Progress>,
    shutdown: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl CheckRun {
    async fn next(&mut self) -> (Result<CheckStoreResponse, Status>, bool) {
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => {
                (Err(Error::Unavailable("the service is stopping".into()).into()), false)
            }
            findings = self.findings.as_mut() => {
                let progress = *self.progress.borrow();
                (Ok(response(progress, Some(findings))), false)
            }
            Ok(()) = self.progress.changed() => {
                let progress = *self.progress.borrow_and_update();
                (Ok(response(progress, None)), true)
            }
        }
    }
}

type CheckStream = Pin<Box<dyn Stream<Item = Result<CheckStoreResponse, Status>> + Send>>;

#[async_trait]
impl CheckService for CheckApi {
    async fn check_store(
        &self,
        _request: Request<CheckStoreRequest>,
    ) -> Result<Response<CheckStream>, Status> {
        let permit = Arc::clone(&self.capacity).try_acquire_owned();
        let permit = permit.map_err(|_full| Error::Exhausted {
            message: "another check is in progress; wait for it to finish".into(),
            retry_after: None,
        })?;
        let store = self.store.clone();
        let (sender, progress) = watch::channel(Progress::default());
        let findings = async move {
            let show = |progress| {
                sender.send_replace(progress);
            };
            verify_running_store(&store, &show).await
        };
        let checking = CheckRun {
            findings: Box::pin(findings),
            progress,
            shutdown: self.shutdown.clone(),
            _permit: permit,
        };
        let report = stream::unfold(Some(checking), |checking| async {
            let mut checking = checking?;
            let (report, goes_on) = checking.next().await;
            Some((report, goes_on.then_some(checking)))
        });
        Ok(Response::new(Box::pin(report)))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use tonic::Code;

    use super::*;

    fn check_request() -> Request<CheckStoreRequest> {
        Request::new(CheckStoreRequest {})
    }

    #[tokio::test]
    async fn only_one_check_runs_at_a_time() {
        let checks = CheckApi::new(Store::in_memory(), CancellationToken::new());
        let first = checks.check_store(check_request()).await.unwrap();
        let second = checks.check_store(check_request()).await.err().unwrap();
        assert_eq!(second.code(), Code::ResourceExhausted);
        drop(first);
        let reports = checks
            .check_store(check_request())
            .await
            .unwrap()
            .into_inner();
        let reports: Vec<_> = reports.map(Result::unwrap).collect().await;
        let (last, before) = reports.split_last().unwrap();
        assert!(before.iter().all(|report| report.findings.is_none()));
        let findings = last.findings.as_ref().unwrap();
        assert_eq!((findings.faults, findings.is_complete), (0, true));
    }

    #[tokio::test]
    async fn check_ends_on_shutdown() {
        let shutdown = CancellationToken::new();
        let checks = CheckApi::new(Store::in_memory(), shutdown.clone());
        let mut reports = checks
            .check_store(check_request())
            .await
            .unwrap()
            .into_inner();
        shutdown.cancel();
        let ended = reports.next().await.unwrap().unwrap_err();
        assert_eq!(ended.code(), Code::Unavailable);
        assert!(reports.next().await.is_none());
    }
}
