//! A program on a pseudo-terminal, and when each of its frames was complete.

use std::{
    io::{Read, Write},
    num::NonZero,
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use vt100::Screen;

/// A terminal with room for the wall, and for a list beside what is selected.
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
/// What ends a frame: the end of a synchronized update (mode 2026).
const FRAME_END: &[u8] = b"\x1b[?2026l";
/// How long a frame or an end is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns whether a screen is the one that is waited for.
type ScreenPredicate = Box<dyn FnMut(&Screen) -> bool + Send>;

/// A program on a separate terminal.
pub(crate) struct Pty {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    seen: Arc<(Mutex<ScreenState>, Condvar)>,
    // The terminal is gone when this is dropped.
    _master: Box<dyn MasterPty + Send>,
}

/// What the terminal has seen so far.
struct ScreenState {
    screen: vt100::Parser,
    bytes: u32,
    /// How much of the end of a frame was read.
    matched: usize,
    wanted: Option<ScreenPredicate>,
    /// When the frame that was wanted was complete.
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
    /// Starts a program; answers how long it took to the end of the first frame that is wanted.
    /// The keys are there before it starts.
    pub(crate) fn start(
        command: CommandBuilder,
        keys_ahead: &str,
        wanted: impl FnMut(&Screen) -> bool + Send + 'static,
    ) -> (Self, Duration) {
        Self::start_at(SIZE, command, keys_ahead, wanted)
    }

    /// The same on a terminal of another size.
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
                shared.0.lock().expect("a seen").take(&chunk[..length], at);
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

    /// Presses keys; answers how long it took to the end of the first frame that is wanted.
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

    /// Waits until the screen is as it is wanted, now or after a later frame.
    pub(crate) fn until(&self, mut wanted: impl FnMut(&Screen) -> bool + Send + 'static) {
        let is_met = self.read(&mut wanted);
        if !is_met {
            self.want(wanted);
            self.met();
        }
    }

    /// Lets the frames to come be looked at; [`Self::met`] says when one was it.
    pub(crate) fn want(&self, wanted: impl FnMut(&Screen) -> bool + Send + 'static) {
        let mut seen = self.seen.0.lock().expect("a seen");
        seen.met = None;
        seen.wanted = Some(Box::new(wanted));
    }

    /// Presses keys and waits for nothing.
    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("its keys");
    }

    /// Looks at the screen.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Screen) -> T) -> T {
        read(self.seen.0.lock().expect("a seen").screen.screen())
    }

    /// When the frame that is wanted was complete.
    pub(crate) fn met(&self) -> Instant {
        let (seen, changed) = &*self.seen;
        let seen = seen.lock().expect("a seen");
        let (seen, waited) = changed
            .wait_timeout_while(seen, PATIENCE, |seen| seen.met.is_none())
            .expect("a seen");
        let screen = seen.screen.screen();
        assert!(
            !waited.timed_out(),
            "waited in vain for a frame; the last one is\n{}",
            screen.contents()
        );
        seen.met.expect("it was waited for")
    }

    /// Presses `q`; answers how long it took until the process was gone.
    pub(crate) fn quit(mut self) -> Duration {
        let start = Instant::now();
        self.keys.write_all(b"q").expect("its keys");
        let status = self.child.wait().expect("its end");
        let took = start.elapsed();
        assert!(status.success(), "{status:?}");
        took
    }

    /// The number of the process.
    pub(crate) fn process(&self) -> u32 {
        self.child.process_id().expect("it runs")
    }

    /// Bytes written to the terminal so far.
    pub(crate) fn bytes(&self) -> u32 {
        self.seen.0.lock().expect("a seen").bytes
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Whether the screen shows a text.
pub(crate) fn shows(text: &'static str) -> impl FnMut(&Screen) -> bool + Send + 'static {
    move |screen| screen.contents().contains(text)
}

/// The row that the cursor of a list is on.
pub(crate) fn selected(screen: &Screen) -> Option<String> {
    let mut rows = screen.rows(0, SIZE.cols);
    rows.find(|row| row.starts_with('\u{25b6}'))
}
