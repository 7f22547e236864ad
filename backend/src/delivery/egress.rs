//! Detection of nodes without network access, so that connected nodes take over delivery.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio::{sync::watch, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{NodeReport, ReportPublisher},
    domain::Outcome,
    ops::ruleset::Ruleset,
    send::Sender,
    store::{Store, engine::ClusterNode},
};

/// Time without reaching any receiver after which other nodes are queried.
const UNREACHED_FOR: Duration = Duration::from_secs(5);
const NAMED_MAX: usize = 8;
/// Maximum number of unreachable destinations of other nodes that this node tries.
const REQUESTED_MAX: usize = 32;
/// Interval at which nodes check each other's reports.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// The destinations that were unreachable since the last successful connection.
#[derive(Debug, Default)]
pub(super) struct Egress {
    since: Option<Duration>,
    unreached: BTreeSet<String>,
}

impl Egress {
    /// Records the outcome of an attempt to an external destination; `now` is monotonic.
    pub(super) fn record_outcome(&mut self, destination: &str, outcome: Outcome, now: Duration) {
        match outcome {
            Outcome::Unreachable => {
                self.since.get_or_insert(now);
                if self.unreached.len() < NAMED_MAX {
                    self.unreached.insert(destination.to_owned());
                }
            }
            // A refusal by the address guard does not indicate a network problem.
            Outcome::Blocked => {}
            Outcome::Delivered | Outcome::Rejected | Outcome::Unknown => *self = Self::default(),
        }
    }

    /// Returns the unreachable destinations once no receiver has been reached for
    /// [`UNREACHED_FOR`].
    pub(super) fn unreachable_destinations(&self, now: Duration) -> Vec<String> {
        let lasts = |since: Duration| now.saturating_sub(since) >= UNREACHED_FOR;
        if self.since.is_some_and(lasts) {
            self.unreached.iter().cloned().collect()
        } else {
            Vec::new()
        }
    }
}

/// A watch that asks other nodes about destinations that are unreachable from here, and tries the
/// destinations that other nodes ask about.
#[derive(Debug)]
pub struct EgressWatch {
    pub(crate) store: Store,
    pub(crate) ruleset: Arc<Ruleset>,
    pub(crate) sender: Sender,
    pub(crate) unreached: watch::Receiver<Vec<String>>,
    pub(crate) publisher: ReportPublisher,
}

impl EgressWatch {
    /// Checks periodically until shutdown, if the store is shared.
    pub async fn run(self, shutdown: CancellationToken) {
        let work = async {
            loop {
                sleep(CHECK_EVERY).await;
                // Without the store, no node delivers.
                if let Ok(nodes) = self.store.engine().cluster().nodes().await {
                    self.check(&nodes).await;
                }
            }
        };
        if !self.store.engine().is_shared() {
            return shutdown.cancelled().await;
        }
        shutdown.run_until_cancelled(work).await;
    }

    async fn check(&self, nodes: &[ClusterNode]) {
        let mut unreached = self.unreached.borrow().clone();
        // If a connection succeeds, attempts fail for a reason other than this node's network.
        if !self.reachable_destinations(&unreached).await.is_empty() {
            unreached.clear();
        }
        let reached = if unreached.is_empty() {
            self.reachable_destinations(&requested_destinations(nodes))
                .await
        } else {
            Vec::new()
        };
        self.publisher.update(|report| {
            report.unreached.clone_from(&unreached);
            report.reached = reached;
        });
        if let Some((node, destination)) = better_connected_node(&unreached, nodes) {
            let why = format!(
                "cannot connect to any destination, while `{node}` can connect to `{destination}`"
            );
            self.store.engine().cluster().resign(&why).await;
        }
    }

    async fn reachable_destinations(&self, requested: &[String]) -> Vec<String> {
        let snapshot = self.ruleset.current_snapshot();
        let tries = snapshot.destinations().filter_map(|destination| {
            let name = requested
                .iter()
                .find(|it| **it == destination.name.as_str())?;
            let kind = destination.kind.clone();
            Some(async move { self.sender.can_connect(&kind).await.then(|| name.clone()) })
        });
        let tried = join_all(tries.collect::<Vec<_>>()).await;
        tried.into_iter().flatten().collect()
    }
}

fn requested_destinations(nodes: &[ClusterNode]) -> Vec<String> {
    let others = nodes.iter().filter(|it| !it.is_this);
    let unreached = others.flat_map(|it| NodeReport::parse(&it.about).unreached);
    let requested: BTreeSet<String> = unreached.collect();
    requested.into_iter().take(REQUESTED_MAX).collect()
}

/// Returns another node, and a destination that it can connect to but this node cannot.
fn better_connected_node(unreached: &[String], nodes: &[ClusterNode]) -> Option<(String, String)> {
    let others = nodes.iter().filter(|it| !it.is_this);
    let mut found = others.filter_map(|node| {
        let reached = NodeReport::parse(&node.about).reached;
        let destination = reached.into_iter().find(|it| unreached.contains(it))?;
        Some((node.name.clone(), destination))
    });
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn sample_node(name: &str, is_this: bool, report: &NodeReport) -> ClusterNode {
        ClusterNode {
            name: name.into(),
            since_ms: 0,
            follows: crate::store::LogPosition::START,
            leads: false,
            slots: 0,
            is_this,
            about: report.to_text(),
        }
    }

    #[test]
    fn lasting_unreachable_destinations_are_listed_until_a_response() {
        let mut egress = Egress::default();
        egress.record_outcome("a", Outcome::Unreachable, SECOND);
        egress.record_outcome("b", Outcome::Blocked, 2 * SECOND);
        egress.record_outcome("c", Outcome::Unreachable, 3 * SECOND);
        assert_eq!(
            egress.unreachable_destinations(5 * SECOND),
            Vec::<String>::new()
        );
        assert_eq!(egress.unreachable_destinations(6 * SECOND), ["a", "c"]);
        for number in 0..20 {
            egress.record_outcome(&number.to_string(), Outcome::Unreachable, 11 * SECOND);
        }
        assert_eq!(
            egress.unreachable_destinations(12 * SECOND).len(),
            NAMED_MAX
        );
        // Any response counts, regardless of its content.
        egress.record_outcome("a", Outcome::Rejected, 12 * SECOND);
        assert_eq!(
            egress.unreachable_destinations(60 * SECOND),
            Vec::<String>::new()
        );
    }

    #[test]
    fn ownership_moves_only_to_a_node_that_reaches_more() {
        let unreached = vec!["a".to_owned(), "b".to_owned()];
        let other = NodeReport {
            unreached: unreached.clone(),
            ..NodeReport::default()
        };
        let reaching = |names: &[&str]| NodeReport {
            reached: names.iter().map(|it| (*it).to_owned()).collect(),
            ..NodeReport::default()
        };
        let mut nodes = vec![
            sample_node("one", true, &reaching(&["a"])),
            sample_node("two", false, &reaching(&["c"])),
        ];
        assert_eq!(requested_destinations(&nodes), Vec::<String>::new());
        assert_eq!(better_connected_node(&unreached, &nodes), None);
        assert_eq!(better_connected_node(&[], &nodes), None);
        nodes.push(sample_node("three", false, &reaching(&["b"])));
        nodes.push(sample_node("four", false, &other));
        assert_eq!(requested_destinations(&nodes), unreached);
        let found = better_connected_node(&unreached, &nodes);
        assert_eq!(found, Some(("three".to_owned(), "b".to_owned())));
    }
}
