//! `OverviewService`: the state of the service.

use std::{path::PathBuf, sync::Arc, time::Duration};

use bellwether_proto::v1::{
    GetOverviewRequest, GetOverviewResponse, GetStatisticsRequest, GetStatisticsResponse,
    overview_service_server::OverviewService,
};
use tonic::{Request, Response, Status, async_trait};

use super::convert::time::duration_to_ms;
use crate::{
    clock::{Clock, to_millis},
    error::Error,
    ops::{overview::compute_overview, ruleset::Ruleset, statistics::StatisticsReader},
    store::Store,
};

const SPAN_DEFAULT: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub struct OverviewApi {
    store: Store,
    clock: Arc<dyn Clock>,
    ruleset: Arc<Ruleset>,
    start_ms: i64,
    data_dir: PathBuf,
}

impl OverviewApi {
    /// Creates the service for a store, with the current time as its start.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        ruleset: Arc<Ruleset>,
        data_dir: PathBuf,
    ) -> Self {
        let start_ms = clock.now_ms();
        Self {
            store,
            clock,
            ruleset,
            start_ms,
            data_dir,
        }
    }
}

#[async_trait]
impl OverviewService for OverviewApi {
    async fn get_overview(
        &self,
        _request: Request<GetOverviewRequest>,
    ) -> Result<Response<GetOverviewResponse>, Status> {
        let snapshot = self.ruleset.refresh().await.map_err(Error::from)?;
        let (data_dir, start_ms) = (self.data_dir.clone(), self.start_ms);
        let overview = compute_overview(&self.store, &self.clock, &snapshot, data_dir, start_ms);
        Ok(Response::new(overview.await?))
    }

    async fn get_statistics(
        &self,
        request: Request<GetStatisticsRequest>,
    ) -> Result<Response<GetStatisticsResponse>, Status> {
        let span = request.into_inner().span;
        let span_ms = span
            .as_ref()
            .map_or(to_millis(SPAN_DEFAULT), duration_to_ms);
        let snapshot = self.ruleset.refresh().await.map_err(Error::from)?;
        let counting = StatisticsReader::new(self.store.clone(), Arc::clone(&self.clock));
        let found = counting.statistics(span_ms, &snapshot).await?;
        Ok(Response::new(found))
    }
}
