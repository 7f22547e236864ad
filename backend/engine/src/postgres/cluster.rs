//! A node's view of the nodes that share the database.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{PostgresEngine, node};
use crate::{
    cluster::{Cluster, Duty, NodeSeen},
    fault::EngineError,
    ownership::Owned,
    position::LogPosition,
};

#[async_trait]
impl Cluster for PostgresEngine {
    async fn lead(&self) {
        let Some(node) = &self.node else {
            return std::future::pending().await;
        };
        let epoch = node.lead().await;
        *self.leader() = Some(epoch);
    }

    async fn deposed(&self) {
        let epoch = *self.leader();
        if let (Some(node), Some(epoch)) = (&self.node, epoch) {
            node.deposed(epoch).await;
        }
    }

    fn owned(&self) -> watch::Receiver<Owned> {
        match &self.node {
            Some(node) => node.claims().owned(),
            None => watch::Sender::new(Owned::All).subscribe(),
        }
    }

    fn is_sure(&self) -> bool {
        let node = self.node.as_ref();
        node.is_none_or(|node| node.claims().is_sure())
    }

    fn take_part(&self, does: bool) {
        if let Some(node) = &self.node {
            node.claims().take_part(does);
            node.hurry();
        }
    }

    fn vacate(&self, slot: u8, number: u64) {
        if let Some(node) = &self.node
            && node.claims().vacate(slot, number)
        {
            node.hurry();
        }
    }

    fn advance(&self, duty: Duty) {
        if let Some(node) = &self.node {
            node.advance(duty);
        }
    }

    async fn resign(&self, why: &str) {
        if let Some(node) = &self.node {
            node.resign(why, false);
        }
    }

    async fn forgotten(&self) {
        match &self.node {
            Some(node) => node.forgotten().await,
            None => std::future::pending().await,
        }
    }

    async fn gone_back(&self) -> String {
        self.known.lost().await
    }

    fn tell(&self, about: String) {
        if let Some(node) = &self.node {
            node.tell(about);
        }
    }

    fn within_reach(&self) -> Option<watch::Receiver<bool>> {
        self.node.as_ref().map(|_shared| self.reserve.is_ready())
    }

    async fn nodes(&self) -> Result<Vec<NodeSeen>, EngineError> {
        let this = self.node.as_ref().map(|it| it.id());
        node::alive(&self.readers, this).await
    }

    async fn followed_by_all(
        &self,
        position: LogPosition,
        within: Duration,
    ) -> Result<bool, EngineError> {
        node::followed(&self.readers, position, within).await
    }
}
