//! The receivers of the simulation: one server whose paths are destinations with different
//! behaviours.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    clock::{Clock, ManualClock},
    sending::receiver::{Receiver, Reply},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    Good,
    /// Rejects every message.
    Refuses,
    /// Accepts the connection and never responds.
    Hangs,
    /// Responds with 410 until the destination is fixed.
    ReturnsGone,
    /// Requests a pause when it first gets a message.
    Busy,
    /// Fails for two minutes out of every ten.
    Flaps,
}

/// The pause that a busy destination requests.
pub(super) const REQUESTED_WAIT_SECONDS: u64 = 90;

#[derive(Debug, Clone)]
pub(super) struct ReceivedRequest {
    pub(super) path: String,
    pub(super) id: String,
    pub(super) body: String,
    /// Whether the response was a success.
    pub(super) accepted: bool,
}

#[derive(Debug)]
pub(super) struct Outside {
    pub(super) receiver: Receiver,
    pub(super) seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    pub(super) mended: Arc<AtomicBool>,
}

impl Outside {
    /// Starts the server, with destinations at the paths `/0`, `/1` and so on.
    pub(super) async fn start(moods: Vec<Mood>, clock: Arc<ManualClock>) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mended = Arc::new(AtomicBool::new(false));
        let seen_ids = Mutex::new(BTreeSet::new());
        let (log, is_mended) = (Arc::clone(&seen), Arc::clone(&mended));
        let receiver = Receiver::start(move |request| {
            let number: usize = request.path[1..].parse().unwrap();
            let id = request.header("webhook-id").to_owned();
            let is_first = seen_ids.lock().unwrap().insert(id.clone());
            let minute = clock.now_ms() / 60_000;
            let reply = match moods[number] {
                Mood::Refuses => Reply::status(400),
                Mood::Hangs => Reply::Hang,
                Mood::ReturnsGone if is_mended.load(Ordering::Relaxed) => Reply::status(200),
                Mood::ReturnsGone => Reply::status(410),
                Mood::Busy if is_first => {
                    let wait = vec![("retry-after", REQUESTED_WAIT_SECONDS.to_string())];
                    Reply::Answer(429, wait, String::new())
                }
                Mood::Flaps if minute % 10 < 2 => Reply::status(503),
                Mood::Good | Mood::Busy | Mood::Flaps => Reply::status(200),
            };
            log.lock().unwrap().push(ReceivedRequest {
                path: request.path.clone(),
                id,
                body: request.body.clone(),
                accepted: matches!(reply, Reply::Answer(200, ..)),
            });
            reply
        })
        .await;
        Self {
            receiver,
            seen,
            mended,
        }
    }
}
