//! A node's view of the nodes that share the database.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{PostgresEngine, node};
use crate::{
    cluster::{Cluster, ClusterNode, Duty},
    error::EngineError,
    ownership::OwnedSlots,
    position::LogPosition,
};

#[async_trait]
impl Cluster for PostgresEngine {
    async fn wait_for_leadership(&self) {
        let Some(node) = &self.node else {
            return std::future::pending().await;
        };
        let epoch = node.wait_for_leadership().await;
        *self.lock_leader() = Some(epoch);
    }

    async fn wait_until_deposed(&self) {
        let epoch = *self.lock_leader();
        if let (Some(node), Some(epoch)) = (&self.node, epoch) {
            node.wait_until_deposed(epoch).await;
        }
    }

    fn watch_ownership(&self) -> watch::Receiver<OwnedSlots> {
        match &self.node {
            Some(node) => node.claims().watch_ownership(),
            None => watch::Sender::new(OwnedSlots::All).subscribe(),
        }
    }

    fn is_ownership_certain(&self) -> bool {
        let node = self.node.as_ref();
        node.is_none_or(|node| node.claims().is_ownership_certain())
    }

    fn set_owns_slots(&self, does: bool) {
        if let Some(node) = &self.node {
            node.claims().set_owns_slots(does);
            node.trigger_check();
        }
    }

    fn vacate(&self, slot: u8, number: u64) {
        if let Some(node) = &self.node
            && node.claims().vacate(slot, number)
        {
            node.trigger_check();
        }
    }

    fn record_progress(&self, duty: Duty) {
        if let Some(node) = &self.node {
            node.record_progress(duty);
        }
    }

    async fn resign(&self, why: &str) {
        if let Some(node) = &self.node {
            node.resign(why, false);
        }
    }

    async fn wait_until_forgotten(&self) {
        match &self.node {
            Some(node) => node.wait_until_forgotten().await,
            None => std::future::pending().await,
        }
    }

    async fn wait_until_reverted(&self) -> String {
        self.known.wait_until_lost().await
    }

    fn publish_report(&self, about: String) {
        if let Some(node) = &self.node {
            node.publish_report(about);
        }
    }

    fn watch_reachability(&self) -> Option<watch::Receiver<bool>> {
        self.node.as_ref().map(|_shared| self.reserve.watch_ready())
    }

    async fn nodes(&self) -> Result<Vec<ClusterNode>, EngineError> {
        let this = self.node.as_ref().map(|it| it.id());
        node::live_nodes(&self.readers, this).await
    }

    async fn wait_until_followed(
        &self,
        position: LogPosition,
        within: Duration,
    ) -> Result<bool, EngineError> {
        node::wait_until_followed(&self.readers, position, within).await
    }
}
