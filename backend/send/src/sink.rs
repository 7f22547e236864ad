//! The sink for the service's own events.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::{
    domain::{IncomingEvent, OwnEvent, RecordId},
    error::Error,
};

#[async_trait]
pub trait EventSink: Debug + Send + Sync + 'static {
    /// Ingests an event caused by the given rules, oldest first; returns once it is on disk.
    ///
    /// # Errors
    /// Returns an error if the event was not accepted.
    async fn put(&self, event: IncomingEvent, chain: Vec<RecordId>) -> Result<(), Error>;

    /// Ingests an event about this service without waiting; it may be lost.
    fn report(&self, event: IncomingEvent);

    fn report_stored(&self, event: OwnEvent) {
        self.report(event.event);
    }
}
