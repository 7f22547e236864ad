//! Where events go that this service makes itself.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::{
    domain::{IncomingEvent, OwnEvent, RecordId},
    error::Error,
};

/// Ingests events that this service makes itself.
#[async_trait]
pub trait EventSink: Debug + Send + Sync + 'static {
    /// Ingests an event that the given rules led to, oldest first; returns once it is on disk.
    ///
    /// # Errors
    /// Why it was not accepted.
    async fn put(&self, event: IncomingEvent, chain: Vec<RecordId>) -> Result<(), Error>;

    /// Ingests an event about this service itself, without waiting; it may be lost.
    fn report(&self, event: IncomingEvent);

    /// Ingests an event about this service itself that is stored, without waiting.
    fn report_stored(&self, event: OwnEvent) {
        self.report(event.event);
    }
}
