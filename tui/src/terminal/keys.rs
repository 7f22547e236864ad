//! Keyboard input, paused while another program uses the terminal.

use std::{
    io,
    task::Poll,
    time::{Duration, Instant},
};

use crossterm::event::{Event, EventStream};
use futures_util::{StreamExt, poll};

/// Time to wait for another key. A later key gets a separate frame.
const QUEUED_WITHIN: Duration = Duration::from_micros(50);

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

    /// Returns a key that is already queued; `None` if there is none. Only the stream's thread may
    /// read: after an incomplete sequence, a read blocks until the next byte arrives.
    pub(super) async fn next_queued(&mut self) -> io::Result<Option<Event>> {
        let Some(stream) = &mut self.0 else {
            return Ok(None);
        };
        let end = Instant::now() + QUEUED_WITHIN;
        loop {
            match poll!(stream.next()) {
                Poll::Ready(event) => return event.transpose(),
                Poll::Pending if Instant::now() >= end => return Ok(None),
                Poll::Pending => tokio::task::yield_now().await,
            }
        }
    }

    /// Stops reading. Afterwards, nothing in this process reads keys.
    pub(super) fn stop(&mut self) {
        self.0 = None;
        // Creating a reader takes the lock, and so waits for the previous reader to end.
        drop(EventStream::new());
    }
}
