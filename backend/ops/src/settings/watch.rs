//! Watches the settings shared by all nodes, and reports differences from the node's own file.

use std::{sync::Arc, time::Duration};

use bellwether_backend_base::config::{Config, ReportPublisher};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::ignored_differences;
use crate::{
    clock::Clock,
    domain::{IncomingEvent, SettingDifference, Severity, own_event::SETTINGS_DIFFER},
    error::{Error, log_failure},
    find,
    intake::Intake,
    ruleset::Ruleset,
    store::Store,
};

const PAUSE: Duration = Duration::from_millis(250);
/// Time until the next check after a failure.
const RETRY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct SettingsWatch {
    store: Store,
    clock: Arc<dyn Clock>,
    ruleset: Arc<Ruleset>,
    intake: Intake,
    config: Config,
    publisher: ReportPublisher,
    /// The differences last reported; `None` before the first report.
    reported: Option<Vec<SettingDifference>>,
}

impl SettingsWatch {
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        ruleset: Arc<Ruleset>,
        intake: Intake,
        (config, publisher): (Config, ReportPublisher),
    ) -> Self {
        Self {
            store,
            clock,
            ruleset,
            intake,
            config,
            publisher,
            reported: None,
        }
    }

    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut log = self.store.engine().log_signal();
        let work = async {
            loop {
                log.mark_unchanged();
                match self.check().await {
                    Ok(()) => {
                        if log.changed().await.is_err() {
                            return std::future::pending().await;
                        }
                        sleep(PAUSE).await;
                    }
                    Err(error) => {
                        log_failure(
                            "failed to compare the active settings with the settings file",
                            &error,
                        );
                        sleep(RETRY).await;
                    }
                }
            }
        };
        shutdown.run_until_cancelled(work).await;
    }

    /// Compares the settings and reports changed differences.
    ///
    /// # Errors
    /// Returns an error if the store fails; the next check reports the differences then.
    pub(super) async fn check(&mut self) -> Result<(), Error> {
        let snapshot = self.ruleset.refresh().await?;
        let differences = ignored_differences(&self.config, snapshot.settings());
        if self.reported.as_ref() == Some(&differences) {
            return Ok(());
        }
        for SettingDifference { key, here, there } in &differences {
            tracing::warn!(
                setting = key,
                in_the_file = %here,
                in_force = %there,
                "the settings file of this node has a different value for a setting shared by all \
                 nodes; the stored value applies. Change the file, or the stored value with `PUT \
                 /v1/settings` or `bellwether apply`"
            );
        }
        self.publisher
            .update(|report| report.add_settings(&self.config, &differences));
        self.report(&differences).await?;
        self.reported = Some(differences);
        Ok(())
    }

    async fn report(&self, differences: &[SettingDifference]) -> Result<(), Error> {
        let node = self.config.database.as_ref().map(|it| &*it.node_name);
        let event = settings_event(differences, node.unwrap_or_default(), self.clock.now_ms());
        if find::has_effect(&self.store, &event).await? {
            self.intake.submit_internal(event, Vec::new()).await?;
        }
        Ok(())
    }
}

fn settings_event(differences: &[SettingDifference], node: &str, now_ms: i64) -> IncomingEvent {
    if differences.is_empty() {
        let summary = format!("the settings file of {node} matches the stored settings");
        return SETTINGS_DIFFER.closed([node], summary, now_ms);
    }
    let keys: Vec<_> = differences.iter().map(|it| it.key).collect();
    let lines: Vec<_> = differences.iter().map(ToString::to_string).collect();
    let summary = format!(
        "the settings file of {node} is not applied: {}",
        keys.join(", ")
    );
    IncomingEvent {
        body: format!(
            "{}\nAll nodes use the stored values. Change the file and restart the node, or change \
             the stored values with `PUT /v1/settings` or `bellwether apply`.",
            lines.join("\n")
        ),
        ..SETTINGS_DIFFER.opened([node], Severity::Warning, summary, now_ms)
    }
}
