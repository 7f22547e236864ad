//! Reports the health of each service.

use std::sync::Arc;

use tokio::{sync::watch, time::sleep};
use tokio_util::sync::CancellationToken;
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::{
    limits::RENDER_STUCK_CHECK_INTERVAL,
    rpc::methods,
    send::Renderers,
    store::{Engine, engine::Condition},
};

const INTAKE: [&str; 2] = [
    "zenoss.cloud.DataReceiverService",
    "opentelemetry.proto.collector.logs.v1.LogsService",
];

/// Reports the health of each service. The service as a whole and the services in [`INTAKE`] are
/// healthy while events are accepted, the other services while the store is readable.
pub(super) async fn report_health(
    reporter: &HealthReporter,
    condition: &Condition,
    is_stuck: bool,
) {
    for name in std::iter::once("").chain(methods::service_names()) {
        let serves = if name.is_empty() || INTAKE.contains(&name) {
            condition.accepts_events()
        } else {
            condition.can_be_read()
        };
        let status = if serves && !is_stuck {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        reporter.set_service_status(name, status).await;
    }
}

/// Health reporting, based on the state of the store. No service is healthy while rendering threads
/// are stuck or holds are evaluated late.
pub(super) struct Health {
    pub(super) reporter: HealthReporter,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) condition: watch::Receiver<Condition>,
    pub(super) renderers: Renderers,
    pub(super) are_holds_late: watch::Receiver<bool>,
}

impl Health {
    /// Reports the health until shutdown. Reports the store as unreachable once it has reverted to
    /// an earlier state.
    pub(super) async fn report_until_shutdown(mut self, stop: CancellationToken) {
        let mut reach = self.engine.cluster().watch_reachability();
        let reporter = self.reporter.clone();
        let engine = Arc::clone(&self.engine);
        let follow = async {
            let mut was_stuck = false;
            loop {
                let stuck = self.renderers.stuck_count();
                if stuck > 0 && !was_stuck {
                    tracing::error!(stuck, "rendering threads are stuck");
                }
                was_stuck = stuck > 0;
                let is_stuck = was_stuck || *self.are_holds_late.borrow_and_update();
                report_health(&self.reporter, &self.engine.condition(), is_stuck).await;
                let reached = async {
                    match &mut reach {
                        Some(reach) => reach.changed().await.is_ok(),
                        None => false,
                    }
                };
                tokio::select! {
                    Ok(()) = self.condition.changed() => {}
                    true = reached => {}
                    Ok(()) = self.are_holds_late.changed() => {}
                    () = sleep(RENDER_STUCK_CHECK_INTERVAL) => {}
                }
            }
        };
        let went_back = async {
            engine.cluster().wait_until_reverted().await;
            report_health(&reporter, &Condition::Unreachable, false).await;
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = follow => {}
            () = went_back => stop.cancelled().await,
        }
    }
}
