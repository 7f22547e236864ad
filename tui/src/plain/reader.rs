//! Reads lines of standard input one at a time, on demand: after a command that starts an editor,
//! the following lines belong to the editor.

use std::{
    io::{self, BufRead, Read},
    sync::mpsc as blocking,
    thread,
};

use tokio::sync::mpsc;

use crate::limits;

#[derive(Debug)]
pub(super) enum InputLine {
    Line(String),
    /// The line exceeds the limit and was discarded.
    TooLong,
    End,
}

#[derive(Debug)]
pub(super) struct Reader {
    line_requests: blocking::Sender<()>,
    lines: mpsc::Receiver<io::Result<InputLine>>,
    wanted: bool,
    ended: bool,
}

impl Reader {
    pub(super) fn start() -> Self {
        let (line_requests, wished) = blocking::channel();
        let (sender, lines) = mpsc::channel(1);
        thread::spawn(move || {
            while wished.recv().is_ok() {
                if sender.blocking_send(read(io::stdin().lock())).is_err() {
                    return;
                }
            }
        });
        Self {
            line_requests,
            lines,
            wanted: false,
            ended: false,
        }
    }

    pub(super) fn request_line(&mut self) {
        if !self.wanted {
            self.wanted = true;
            // If the thread has ended, `next` returns the end.
            let _ended = self.line_requests.send(());
        }
    }

    pub(super) fn is_line_requested(&self) -> bool {
        self.wanted
    }

    /// Waits for the requested line; forever if none is requested.
    ///
    /// # Cancel safety
    /// No line is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> io::Result<InputLine> {
        if !self.wanted {
            return std::future::pending().await;
        }
        if self.ended {
            self.wanted = false;
            return Ok(InputLine::End);
        }
        let typed = self.lines.recv().await.unwrap_or(Ok(InputLine::End));
        self.ended = matches!(typed, Ok(InputLine::End));
        self.wanted = false;
        typed
    }
}

fn read(mut input: impl BufRead) -> io::Result<InputLine> {
    let limit = u64::try_from(limits::FIELD_BYTES).unwrap_or(u64::MAX);
    let mut line = Vec::new();
    input.by_ref().take(limit).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(InputLine::End);
    }
    if line.len() >= limits::FIELD_BYTES && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
        return Ok(InputLine::TooLong);
    }
    let line = String::from_utf8_lossy(&line);
    Ok(InputLine::Line(
        line.trim_end_matches(['\r', '\n']).to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_and_overlong_ones_dropped() {
        let mut input: &[u8] = b"events\r\n\nack 1";
        let mut all = Vec::new();
        while let InputLine::Line(line) = read(&mut input).unwrap() {
            all.push(line);
        }
        assert_eq!(all, ["events", "", "ack 1"]);
        let long = [vec![b'x'; limits::FIELD_BYTES + 5], b"\nquit\n".to_vec()].concat();
        let mut input = long.as_slice();
        assert!(matches!(read(&mut input).unwrap(), InputLine::TooLong));
        assert!(matches!(read(&mut input).unwrap(), InputLine::Line(line) if line == "quit"));
    }
}
