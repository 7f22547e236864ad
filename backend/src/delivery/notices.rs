//! Reports about destinations, as events: paused, losing messages, or recovered.

use std::sync::Arc;

use crate::{
    clock::Clock,
    delivery::{dead_letters::DeadLetters, notice},
    domain::{IncomingEvent, OwnEvent, RecordId, Severity, destination::RejectedRecipient},
    send::Sender,
};

/// The reporter, with the open reports that may have to be closed.
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

    pub(crate) fn report_paused(&self, destination: &str, last_error: &str) {
        let now_ms = self.clock.now_ms();
        self.sender
            .report(notice::paused_event(destination, last_error, now_ms));
    }

    pub(crate) fn report_resumed(&self, destination: &str) {
        let now_ms = self.clock.now_ms();
        self.sender
            .report(notice::resumed_event(destination, now_ms));
    }

    pub(crate) fn report_refused(&self, destination: &str, refused: &[RejectedRecipient]) {
        let now_ms = self.clock.now_ms();
        self.sender.report(notice::refused_recipients_event(
            destination,
            refused,
            now_ms,
        ));
    }

    pub(crate) fn report_unreadable(&self, delivery: RecordId, destination: &str) {
        tracing::error!(%delivery, "skipped an unreadable delivery");
        let now_ms = self.clock.now_ms();
        self.sender
            .report(notice::unreadable_event(delivery, destination, now_ms));
    }

    pub(crate) fn report_poison(&self, delivery: RecordId, said: OwnEvent) {
        tracing::error!(%delivery, "gave up a delivery that stopped the service twice");
        self.sender.report_stored(said);
    }

    pub(crate) fn report(&self, event: IncomingEvent) {
        self.sender.report(event);
    }

    /// Counts a dead letter, and reports a severe one or a growing number of them.
    pub(crate) fn report_dead_letter(
        &mut self,
        destination: RecordId,
        name: &str,
        severity: Severity,
        last_error: &str,
    ) {
        let now_ms = self.clock.now_ms();
        let letters = &mut self.dead_letters;
        if let Some(sum) = letters.record(destination, name, severity, now_ms) {
            let grown = notice::dead_letters_event(name, sum, last_error, now_ms);
            self.sender.report(grown);
        }
    }

    pub(crate) fn resume(&mut self, destination: RecordId, name: &str) {
        let now_ms = self.clock.now_ms();
        self.dead_letters.resume(destination, name, now_ms);
    }

    pub(crate) fn forget_destination(&mut self, destination: RecordId) {
        self.dead_letters.forget_destination(destination);
    }

    pub(crate) fn close_dead_letter_reports(&mut self) {
        let now_ms = self.clock.now_ms();
        for name in self.dead_letters.remove_stopped(now_ms) {
            self.sender
                .report(notice::no_dead_letters_event(&name, now_ms));
        }
    }

    pub(crate) fn next_due_ms(&self) -> i64 {
        self.dead_letters.next_due_ms()
    }
}
