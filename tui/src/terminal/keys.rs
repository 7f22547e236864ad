//! Keyboard input, paused while another program uses the terminal.

use std::{io, time::Duration};

use crossterm::event::{self, Event, EventStream};
use futures_util::StreamExt;

/// Time to wait for another key. A later key gets a separate frame.
const LOOK: Duration = Duration::from_micros(50);

pub(super) struct Keys(Option<EventStream>);

impl Keys {
    pub(super) fn read() -> Self {
        Self(Some(EventStream::new()))
    }

    /// Returns the next key or other event; `None` if there is no terminal.
    pub(super) async fn next(&mut self) -> Option<io::Result<Event>> {
        match &mut self.0 {
            Some(stream) => stream.next().await,
            None => None,
        }
    }

    pub(super) fn poll_queued() -> io::Result<Option<Event>> {
        if event::poll(LOOK)? {
            event::read().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Stops reading. Afterwards, nothing in this process reads keys.
    pub(super) fn stop(&mut self) {
        self.0 = None;
        // Creating a reader takes the lock, and so waits for the previous reader to end.
        drop(EventStream::new());
    }
}
