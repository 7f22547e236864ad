//! Idempotent requests, which are ingested in one commit and only once.

use std::{sync::Arc, time::Instant};

use tokio::sync::oneshot;

use super::{
    Intake, accept_events,
    job::{Job, Outcome},
    stopping_error, weight_kib,
};
use crate::{
    domain::{IncomingEvent, Name, Refusal},
    error::Error,
    receipt::ReceiptClaim,
    store::engine::DiskShare,
    trace,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdempotentOutcome {
    /// Carried out by this call. Contains the number of opened occurrences.
    Now(usize),
    /// Carried out by an earlier call. Contains the events that it refused.
    Earlier(Vec<Refusal>),
}

impl Intake {
    /// Submits events under an idempotency key. Returns once they are on disk, together with the
    /// outcome for repeated requests. A repeated request changes nothing. A request is recorded
    /// even if none of its events is acceptable.
    ///
    /// # Errors
    /// Returns [`Error::KeyUsed`] if the key belongs to another request, and the errors of
    /// [`Intake::submit`]; nothing is recorded in these cases.
    ///
    /// # Cancel safety
    /// The events may still be accepted if the future is dropped. Repeating the call returns the
    /// outcome.
    pub async fn submit_once(
        &self,
        events: Vec<IncomingEvent>,
        author: Option<Name>,
        claim: ReceiptClaim,
    ) -> Result<IdempotentOutcome, Error> {
        let events = accept_events(events);
        let reasons = claim.refused.iter().map(|refusal| refusal.reason.len());
        let kib = 1 + weight_kib(&events) + reasons.sum::<usize>() / 1024;
        let (reply, answer) = oneshot::channel();
        let job = Job {
            capacity: Some(self.capacity(kib)?),
            events,
            author,
            chain: Arc::default(),
            claim: Some(claim),
            reply: Some(reply),
            queued: Instant::now(),
            trace: trace::current_context(),
            space: DiskShare::AboveFloor,
            stored: None,
        };
        if !self.queue.push(job) {
            return Err(stopping_error());
        }
        match answer
            .await
            .unwrap_or_else(|_closed| Err(stopping_error()))?
        {
            Outcome::Accepted { opened, .. } => Ok(IdempotentOutcome::Now(opened)),
            Outcome::Earlier(refused) => Ok(IdempotentOutcome::Earlier(refused)),
            Outcome::KeyUsed => Err(Error::KeyUsed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::{Occurrence, Receipt},
        samples::{self, event},
        store::Store,
    };

    fn claim(key: &str, fingerprint: u8) -> ReceiptClaim {
        let refusal = Refusal {
            place: 1,
            reason: "summary: is too long".into(),
        };
        ReceiptClaim {
            client: samples::id("sender"),
            key: key.into(),
            fingerprint: [fingerprint; 32],
            refused: vec![refusal],
        }
    }

    fn host_events() -> Vec<IncomingEvent> {
        ["a", "b", "c", "d", "e", "f", "g", "h"].map(event).into()
    }

    #[tokio::test]
    async fn repeated_request_returns_earlier_refusals_unchanged() {
        let store = Store::in_memory();
        let (deciding, _) = samples::deciding(store.clone()).await;
        let (intake, _guard) = samples::intake(&deciding);
        let head = store.engine().log_head().await.unwrap();
        let first = intake.submit_once(host_events(), None, claim("k", 1)).await;
        assert_eq!(first.unwrap(), IdempotentOutcome::Now(8));
        assert_eq!(
            store.engine().log_head().await.unwrap().steps_since(head),
            1
        );
        for _ in 0..2 {
            let again = intake.submit_once(host_events(), None, claim("k", 1)).await;
            assert_eq!(
                again.unwrap(),
                IdempotentOutcome::Earlier(claim("k", 1).refused)
            );
        }
        let other = intake.submit_once(host_events(), None, claim("k", 2)).await;
        assert!(matches!(other, Err(Error::KeyUsed)), "{other:?}");
        let mut elsewhere = claim("k", 2);
        elsewhere.client = samples::id("other sender");
        let elsewhere = intake.submit_once(Vec::new(), None, elsewhere).await;
        assert_eq!(elsewhere.unwrap(), IdempotentOutcome::Now(0));
        let occurrences = samples::all::<Occurrence>(&store).await;
        assert_eq!(occurrences.len(), 8);
        assert!(occurrences.iter().all(|it| it.count == 1));
        assert_eq!(samples::all::<Receipt>(&store).await.len(), 2);
    }

    #[tokio::test]
    async fn concurrent_duplicates_are_executed_once() {
        let store = Store::in_memory();
        let (deciding, _) = samples::deciding(store.clone()).await;
        let (intake, _guard) = samples::intake(&deciding);
        // The same key with a different body is a different request.
        let calls = (0..40_usize).map(|at| {
            let mut list = host_events();
            list.rotate_left(at % 8);
            intake.submit_once(list, None, claim("k", u8::try_from(at % 8).unwrap()))
        });
        let answers = futures_util::future::join_all(calls).await;
        let now = answers
            .iter()
            .filter(|it| matches!(it, Ok(IdempotentOutcome::Now(_))));
        assert_eq!(now.count(), 1);
        let earlier = answers
            .iter()
            .filter(|it| matches!(it, Ok(IdempotentOutcome::Earlier(_))));
        assert_eq!(earlier.count(), 4);
        let used = answers
            .iter()
            .filter(|it| matches!(it, Err(Error::KeyUsed)));
        assert_eq!(used.count(), 35);
        let occurrences = samples::all::<Occurrence>(&store).await;
        assert!(occurrences.iter().all(|it| it.count == 1));
    }

    #[tokio::test]
    async fn keyed_and_unkeyed_requests_lose_no_events() {
        let store = Store::in_memory();
        let (deciding, _) = samples::deciding(store.clone()).await;
        let (intake, _guard) = samples::intake(&deciding);
        let with_key = futures_util::future::join_all((0..100_usize).map(|at| {
            let mut list = host_events();
            list.rotate_left(at % 8);
            intake.submit_once(list, None, claim(&at.to_string(), 1))
        }));
        let without =
            futures_util::future::join_all((0..100).map(|_| intake.submit(host_events(), None)));
        let (with_key, without) = tokio::join!(with_key, without);
        assert!(
            with_key
                .into_iter()
                .all(|it| matches!(it, Ok(IdempotentOutcome::Now(_))))
        );
        assert!(without.into_iter().all(|it| it.unwrap().failed.is_empty()));
        let occurrences = samples::all::<Occurrence>(&store).await;
        let counts: Vec<_> = occurrences.iter().map(|it| it.count).collect();
        assert_eq!(counts, [200; 8]);
    }
}
