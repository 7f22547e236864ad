//! A program on a pseudo-terminal, with the time at which each of its frames was complete.

use std::{
    io::{Read, Write},
    num::NonZero,
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use vt100::Screen;

/// A terminal wide enough for the wall display, and for a list with the selected item beside it.
pub(crate) const WIDE: PtySize = PtySize {
    rows: 50,
    cols: 200,
    pixel_width: 0,
    pixel_height: 0,
};
const SIZE: PtySize = PtySize {
    rows: 36,
    cols: 120,
    pixel_width: 0,
    pixel_height: 0,
};
/// End of a frame: the end of a synchronized update (mode 2026).
const FRAME_END: &[u8] = b"\x1b[?2026l";
/// Timeout for a frame.
const PATIENCE: Duration = Duration::from_secs(30);

/// A condition on the awaited screen.
type ScreenPredicate = Box<dyn FnMut(&Screen) -> bool + Send>;

/// A program on a separate terminal.
pub(crate) struct Pty {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    seen: Arc<(Mutex<ScreenState>, Condvar)>,
    // Dropping this closes the terminal.
    _master: Box<dyn MasterPty + Send>,
}

/// Output of the program so far.
struct ScreenState {
    screen: vt100::Parser,
    bytes: u32,
    /// Number of bytes of [`FRAME_END`] matched so far.
    matched: usize,
    wanted: Option<ScreenPredicate>,
    /// Time at which the awaited frame was complete.
    met: Option<Instant>,
}

impl ScreenState {
    fn take(&mut self, bytes: &[u8], at: Instant) {
        let length = u32::try_from(bytes.len()).expect("a chunk");
        self.bytes = self.bytes.wrapping_add(length);
        let mut shown = 0;
        for (index, byte) in bytes.iter().enumerate() {
            self.matched = match self.matched {
                matched if *byte == FRAME_END[matched] => matched + 1,
                _ => usize::from(*byte == FRAME_END[0]),
            };
            if self.matched == FRAME_END.len() {
                self.matched = 0;
                self.screen.process(&bytes[shown..=index]);
                shown = index + 1;
                self.check(at);
            }
        }
        self.screen.process(&bytes[shown..]);
    }

    fn check(&mut self, at: Instant) {
        let Some(wanted) = &mut self.wanted else {
            return;
        };
        if wanted(self.screen.screen()) {
            self.met = Some(at);
            self.wanted = None;
        }
    }
}

impl Pty {
    /// Starts a program, with `keys_ahead` typed before. Returns the program, and the time until
    /// the end of the first awaited frame.
    pub(crate) fn start(
        command: CommandBuilder,
        keys_ahead: &str,
        wanted: impl FnMut(&Screen) -> bool + Send + 'static,
    ) -> (Self, Duration) {
        Self::start_at(SIZE, command, keys_ahead, wanted)
    }

    /// Like [`Self::start`], on a terminal of another size.
    pub(crate) fn start_at(
        size: PtySize,
        command: CommandBuilder,
        keys_ahead: &str,
        wanted: impl FnMut(&Screen) -> bool + Send + 'static,
    ) -> (Self, Duration) {
        let pty = native_pty_system().openpty(size).expect("a terminal");
        let mut keys = pty.master.take_writer().expect("its keys");
        let mut reader = pty.master.try_clone_reader().expect("its screen");
        keys.write_all(keys_ahead.as_bytes()).expect("its keys");
        let [rows, columns] =
            [size.rows, size.cols].map(|cells| NonZero::new(cells).expect("some"));
        let seen = ScreenState {
            screen: vt100::Parser::new(rows, columns, 0),
            bytes: 0,
            matched: 0,
            wanted: Some(Box::new(wanted)),
            met: None,
        };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut chunk = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = reader.read(&mut chunk) {
                let at = Instant::now();
                shared
                    .0
                    .lock()
                    .expect("a lock that is not poisoned")
                    .take(&chunk[..length], at);
                shared.1.notify_all();
            }
        });
        let start = Instant::now();
        let child = pty.slave.spawn_command(command).expect("it starts");
        drop(pty.slave);
        let pty = Self {
            child,
            keys,
            seen,
            _master: pty.master,
        };
        let met = pty.met();
        (pty, met - start)
    }

    /// Presses keys, and returns the time until the end of the first awaited frame.
    pub(crate) fn press(
        &mut self,
        keys: &str,
        wanted: impl FnMut(&Screen) -> bool + Send + 'static,
    ) -> Duration {
        self.want(wanted);
        let start = Instant::now();
        self.keys.write_all(keys.as_bytes()).expect("its keys");
        self.met() - start
    }

    /// Waits until the screen meets a condition, now or after a later frame.
    pub(crate) fn until(&self, mut wanted: impl FnMut(&Screen) -> bool + Send + 'static) {
        let is_met = self.read(&mut wanted);
        if !is_met {
            self.want(wanted);
            self.met();
        }
    }

    /// Sets the condition that the awaited frame meets; [`Self::met`] waits for that frame.
    pub(crate) fn want(&self, wanted: impl FnMut(&Screen) -> bool + Send + 'static) {
        let mut seen = self.seen.0.lock().expect("a lock that is not poisoned");
        seen.met = None;
        seen.wanted = Some(Box::new(wanted));
    }

    /// Presses keys without waiting.
    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("its keys");
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Screen) -> T) -> T {
        read(
            self.seen
                .0
                .lock()
                .expect("a lock that is not poisoned")
                .screen
                .screen(),
        )
    }

    /// Waits for the awaited frame, and returns the time at which it was complete.
    pub(crate) fn met(&self) -> Instant {
        let (seen, changed) = &*self.seen;
        let seen = seen.lock().expect("a lock that is not poisoned");
        let (seen, waited) = changed
            .wait_timeout_while(seen, PATIENCE, |seen| seen.met.is_none())
            .expect("a lock that is not poisoned");
        let screen = seen.screen.screen();
        assert!(
            !waited.timed_out(),
            "timed out waiting for a frame; the last one is\n{}",
            screen.contents()
        );
        seen.met.expect("it was awaited")
    }

    /// Presses `q`, and returns the time until the process ended.
    pub(crate) fn quit(mut self) -> Duration {
        let start = Instant::now();
        self.keys.write_all(b"q").expect("its keys");
        let status = self.child.wait().expect("its end");
        let took = start.elapsed();
        assert!(status.success(), "{status:?}");
        took
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.process_id().expect("it runs")
    }

    /// Returns the bytes written to the terminal so far.
    pub(crate) fn bytes(&self) -> u32 {
        self.seen
            .0
            .lock()
            .expect("a lock that is not poisoned")
            .bytes
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns a condition that the screen shows a text.
pub(crate) fn shows(text: &'static str) -> impl FnMut(&Screen) -> bool + Send + 'static {
    move |screen| screen.contents().contains(text)
}

/// Returns the row with the cursor of a list.
pub(crate) fn selected(screen: &Screen) -> Option<String> {
    let mut rows = screen.rows(0, SIZE.cols);
    rows.find(|row| row.starts_with('\u{25b6}'))
}
