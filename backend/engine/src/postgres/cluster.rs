//! A node's part among those that share the database, and what it writes with while it leads.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{sync::watch, task::JoinSet};

use super::{
    PostgresEngine, node,
    writer::{Queue, Writer},
};
use crate::{
    cluster::{Cluster, Duty, NodeSeen},
    fault::EngineError,
};

/// What a node leads with, as long as it does.
#[derive(Debug)]
pub(super) struct Leader {
    writer: [u8; 16],
    pub(super) queue: Arc<Queue>,
    /// Whether its writer found no connection.
    stuck: watch::Receiver<bool>,
    _task: JoinSet<()>,
}

#[async_trait]
impl Cluster for PostgresEngine {
    async fn lead(&self) {
        let Some(node) = &self.node else {
            return std::future::pending().await;
        };
        let writer = node.lead().await;
        let (address, known) = (Arc::clone(&self.address), Arc::clone(&self.known));
        let (queue, run) = Writer::appointed(address, known, writer);
        let run = run.leading(node.lease(), self.reserve.take().await);
        let stuck = run.stuck();
        let mut task = JoinSet::new();
        task.spawn(run.run());
        *self.leader() = Some(Leader {
            writer,
            queue: Arc::new(queue),
            stuck,
            _task: task,
        });
    }

    async fn deposed(&self) {
        let leader = self
            .leader()
            .as_ref()
            .map(|it| (it.writer, it.stuck.clone()));
        let (Some(node), Some((writer, mut stuck))) = (&self.node, leader) else {
            return;
        };
        let is_stuck = async { stuck.wait_for(|it| *it).await.is_ok() };
        tokio::select! {
            () = node.deposed(writer) => {}
            // Without its writer the node does not lead any more.
            true = is_stuck => node.resign("finds no connection to write over").await,
        }
    }

    fn advance(&self, duty: Duty) {
        if let Some(node) = &self.node {
            node.advance(duty);
        }
    }

    async fn resign(&self, why: &str) {
        if let Some(node) = &self.node {
            node.resign(why).await;
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
        node::alive(&self.readers).await
    }

    async fn followed_by_all(&self, position: u64, within: Duration) -> Result<bool, EngineError> {
        node::followed(&self.readers, position, within).await
    }
}
