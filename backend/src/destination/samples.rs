//! A sender for tests that reaches receivers on this machine.

use std::sync::Arc;

use tokio::sync::watch;

use super::{EgressGuard, Sender, receiver::RecordingSink};
use crate::{
    clock::{Clock, ManualClock},
    config::Config,
    message::Links,
};

/// The dependencies of a sender.
pub(crate) struct SenderParts {
    pub(crate) config: Config,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) sink: Arc<RecordingSink>,
}

impl SenderParts {
    pub(crate) fn at(clock: Arc<ManualClock>) -> Self {
        let mut config = Config::new("unused");
        config.egress.allow = vec!["127.0.0.0/8".parse().unwrap()];
        Self {
            config,
            clock,
            sink: Arc::default(),
        }
    }

    pub(crate) fn guard(&self) -> Arc<EgressGuard> {
        Arc::new(EgressGuard::new(&self.config.egress, Vec::new()))
    }

    pub(crate) fn sender(&self) -> Sender {
        Sender::new(
            &self.config,
            watch::Sender::default().subscribe(),
            self.guard(),
            Arc::clone(&self.clock) as Arc<dyn Clock>,
            Links::default(),
            Some(Arc::clone(&self.sink) as _),
        )
    }
}
