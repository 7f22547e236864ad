//! `OverviewService`: the state of the service at a glance.

use std::sync::Arc;

use bellwether_proto::v1::{
    GetOverviewRequest, GetOverviewResponse, overview_service_server::OverviewService,
};
use tonic::{Request, Response, Status, async_trait};

use super::convert::event;
use crate::{
    clock::Clock,
    error::Error,
    ops::{overview::overview, recent::Traffic, ruleset::Ruleset},
    store::Store,
};

/// Serves the overview.
#[derive(Debug)]
pub struct Overviews {
    store: Store,
    clock: Arc<dyn Clock>,
    traffic: Arc<Traffic>,
    ruleset: Arc<Ruleset>,
    start_ms: i64,
}

impl Overviews {
    /// Serves what that store holds, for a service that starts now.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        traffic: Arc<Traffic>,
        ruleset: Arc<Ruleset>,
    ) -> Self {
        let start_ms = clock.now_ms();
        Self {
            store,
            clock,
            traffic,
            ruleset,
            start_ms,
        }
    }
}

#[async_trait]
impl OverviewService for Overviews {
    async fn get_overview(
        &self,
        _request: Request<GetOverviewRequest>,
    ) -> Result<Response<GetOverviewResponse>, Status> {
        let snapshot = self.ruleset.refreshed().await.map_err(Error::from)?;
        let overview = overview(&self.store, &self.clock, &self.traffic, &snapshot).await?;
        Ok(Response::new(event::overview(overview, self.start_ms)))
    }
}
