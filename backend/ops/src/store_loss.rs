//! Reports that the database has lost commits, as one of the service's own events.

use std::time::Duration;

use bellwether_backend_base::config::StoreLosses;
use tokio_util::sync::CancellationToken;

use super::intake::Intake;
use crate::domain::{IncomingEvent, Severity, own_event::DATABASE_LOST_COMMITS};

/// Time before an event that the store did not accept is submitted again.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns the event about a loss. Every node that notices the loss reports the same event.
pub fn store_loss_event(losses: &StoreLosses, now_ms: i64) -> IncomingEvent {
    let summary = format!("the database has lost commits: {}", losses.why);
    IncomingEvent {
        body: "Events, edits and revoked keys that were confirmed just before may be missing, and \
               messages may be sent twice: the database reverted to an earlier state, for \
               example after a failover to a standby that lagged behind. The service has \
               restarted from that state. A synchronous standby (`store.require_standby`) prevents it."
            .into(),
        ..DATABASE_LOST_COMMITS.opened([], Severity::Critical, summary, now_ms)
    }
}

/// Reports the event until it is stored. A database that has lost commits may become unreachable
/// again in between.
pub async fn report_store_loss(intake: Intake, event: IncomingEvent, stop: CancellationToken) {
    let reported = async {
        while let Err(error) = intake.submit(vec![event.clone()], None).await {
            tracing::warn!(%error, "failed to report lost commits; retrying");
            tokio::time::sleep(PAUSE).await;
        }
        std::future::pending::<()>().await;
    };
    stop.run_until_cancelled(reported).await;
}
