//! The keys, read beside the loop, and left to others while they have the terminal.

use std::{io, time::Duration};

use crossterm::event::{self, Event, EventStream};
use futures_util::StreamExt;

/// How long to look for a key behind a key. It is there already, or it gets a separate frame.
const LOOK: Duration = Duration::from_micros(50);

/// Reads keys; there is one reader at a time.
pub(super) struct Keys(Option<EventStream>);

impl Keys {
    pub(super) fn read() -> Self {
        Self(Some(EventStream::new()))
    }

    /// The next key, or whatever else comes from the terminal; `None` when there is no terminal.
    pub(super) async fn next(&mut self) -> Option<io::Result<Event>> {
        match &mut self.0 {
            Some(stream) => stream.next().await,
            None => None,
        }
    }

    /// What waits behind a key that was just read.
    pub(super) fn waiting() -> io::Result<Option<Event>> {
        if event::poll(LOOK)? {
            event::read().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Leaves the terminal alone. On return no one here waits for keys.
    pub(super) fn stop(&mut self) {
        self.0 = None;
        // A reader has a lock, and a new reader waits for it: the one that was has gone then.
        drop(EventStream::new());
    }
}
