//! Says of destinations, as events of the service's own, that they are paused, lose messages, or are
//! well again.

use std::sync::Arc;

use crate::{
    clock::Clock,
    delivery::{dead_letters::DeadLetters, notice},
    destination::Sender,
    domain::{IncomingEvent, OwnEvent, RecordId, destination::RefusedRecipient},
};

/// What is reported, and what may have to be taken back.
#[derive(Debug)]
pub(crate) struct Notices {
    clock: Arc<dyn Clock>,
    sender: Sender,
    dead_letters: DeadLetters,
}

impl Notices {
    pub(crate) fn new(clock: Arc<dyn Clock>, sender: Sender) -> Self {
        Self {
            clock,
            sender,
            dead_letters: DeadLetters::default(),
        }
    }

    /// A destination is paused.
    pub(crate) fn paused(&self, destination: &str, last_error: &str) {
        let now_ms = self.clock.now_ms();
        self.sender
            .report(notice::paused(destination, last_error, now_ms));
    }

    /// A destination is not paused any more.
    pub(crate) fn resumed(&self, destination: &str) {
        let now_ms = self.clock.now_ms();
        self.sender.report(notice::resumed(destination, now_ms));
    }

    /// These addresses of a mail destination are refused, and no others.
    pub(crate) fn refused(&self, destination: &str, refused: &[RefusedRecipient]) {
        let now_ms = self.clock.now_ms();
        self.sender
            .report(notice::refused(destination, refused, now_ms));
    }

    /// A stored delivery cannot be read.
    pub(crate) fn unreadable(&self, delivery: RecordId, destination: &str) {
        tracing::error!(%delivery, "an unreadable delivery is skipped");
        let now_ms = self.clock.now_ms();
        self.sender
            .report(notice::unreadable(delivery, destination, now_ms));
    }

    /// The service stopped twice during attempts of a delivery, which is given up.
    pub(crate) fn poison(&self, delivery: RecordId, said: OwnEvent) {
        tracing::error!(%delivery, "a delivery that stopped the service twice is given up");
        self.sender.report_stored(said);
    }

    /// Says something else of a destination.
    pub(crate) fn say(&self, event: IncomingEvent) {
        self.sender.report(event);
    }

    /// A delivery died; that is reported when there are many.
    pub(crate) fn dead(&mut self, destination: RecordId, name: &str, last_error: &str) {
        let now_ms = self.clock.now_ms();
        if let Some(count) = self.dead_letters.note(destination, name, now_ms) {
            let grown = notice::dead_letters(name, count, last_error, now_ms);
            self.sender.report(grown);
        }
    }

    /// Continues with what an earlier life said of dead letters.
    pub(crate) fn take_up(&mut self, destination: RecordId, name: &str) {
        let now_ms = self.clock.now_ms();
        self.dead_letters.take_up(destination, name, now_ms);
    }

    /// Takes back what was reported of a destination that is deleted.
    pub(crate) fn forget(&mut self, destination: RecordId) {
        self.dead_letters.forget(destination);
    }

    /// Takes back that dead letters grow where they do not any more.
    pub(crate) fn take_back(&mut self) {
        let now_ms = self.clock.now_ms();
        for name in self.dead_letters.over(now_ms) {
            self.sender.report(notice::no_dead_letters(&name, now_ms));
        }
    }

    /// When something is to be taken back, in milliseconds since 1970; the end of time when nothing
    /// is.
    pub(crate) fn next_ms(&self) -> i64 {
        self.dead_letters.next_ms()
    }
}
