//! Keyboard input, read beside the main loop, and paused while another program has the terminal.

use std::{io, time::Duration};

use crossterm::event::{self, Event, EventStream};
use futures_util::StreamExt;

/// Time to check for a further key. It is already available, or it gets a separate frame.
const LOOK: Duration = Duration::from_micros(50);

/// The reader of keys, of which there is one at a time.
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

    pub(super) fn waiting() -> io::Result<Option<Event>> {
        if event::poll(LOOK)? {
            event::read().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Stops reading. After it returns, nothing in this process reads keys.
    pub(super) fn stop(&mut self) {
        self.0 = None;
        // A new reader waits for the lock of the previous one, which has ended then.
        drop(EventStream::new());
    }
}
