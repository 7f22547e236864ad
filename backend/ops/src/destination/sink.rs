//! Destinations of type `event` submit events to the intake of the same service.

use async_trait::async_trait;

use crate::{
    domain::{IncomingEvent, OwnEvent, RecordId},
    error::Error,
    intake::{Intake, check::check_source},
    loop_guard::RecordedReports,
    send::EventSink,
};

#[async_trait]
impl EventSink for Intake {
    async fn put(&self, event: IncomingEvent, chain: Vec<RecordId>) -> Result<(), Error> {
        // Anyone who can edit the templates could use the service's own source.
        let violations = check_source(&event);
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }
        self.submit_internal(event, chain).await.map(drop)
    }

    fn report(&self, event: IncomingEvent) {
        Self::report(self, event, Vec::new());
    }

    fn report_stored(&self, event: OwnEvent) {
        self.report_all(RecordedReports::from_event(event));
    }
}
