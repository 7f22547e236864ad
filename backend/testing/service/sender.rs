//! A sender for tests that reaches receivers on this machine.

pub(crate) mod receiver;

use std::sync::Arc;

use bellwether_backend_base::Config;
use bellwether_backend_engine::clock::{Clock, ManualClock};
use bellwether_backend_model::message::Links;
use bellwether_backend_send::{EgressGuard, Sender};
use tokio::sync::watch;

use receiver::RecordingSink;

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
