//! Every bound of the console, by name.

use std::time::Duration;

/// Occurrences held in the events list; the oldest are dropped first.
pub(crate) const HELD_EVENTS: usize = 100_000;
/// Occurrences asked for at a time.
pub(crate) const EVENT_PAGE: i32 = 500;
/// Groups of events asked for.
pub(crate) const EVENT_GROUPS: i32 = 1_000;
/// Deliveries asked for at a time.
pub(crate) const DELIVERY_PAGE: i32 = 200;
/// Deliveries held in a list.
pub(crate) const HELD_DELIVERIES: usize = 20_000;
/// Deliveries that one call sends again or cancels: small, so that there is progress to see.
pub(crate) const BULK_STEP: i32 = 100;
/// Events that one action changes at most, and with one call: their ids are held meanwhile.
pub(crate) const BULK_EVENTS: usize = 10_000;
pub(crate) const BULK_EVENT_STEP: usize = 100;
/// Events that one call changes back.
pub(crate) const BULK_UNDO_STEP: usize = 500;
/// Entries of the audit log that are read.
pub(crate) const HELD_AUDIT: usize = 200;
/// Calls that read them.
pub(crate) const AUDIT_CALLS: usize = 20;
/// Calls that count the messages which a change sends.
pub(crate) const UPDATE_CALLS: usize = 30;
/// Obligations that are read.
pub(crate) const HELD_OBLIGATIONS: usize = 1_000;
/// Triggers, destinations, rules or clients held in a list.
pub(crate) const HELD_RESOURCES: usize = 10_000;
/// Resources asked for at a time.
pub(crate) const RESOURCE_PAGE: i32 = 1_000;
/// Items changed by one action.
pub(crate) const BULK_ITEMS: usize = 1_000;
/// Columns and rows from which the overview is a wall.
pub(crate) const WALL: (u16, u16) = (72, 20);
/// Rows from which the tabs have a separate line below the head.
pub(crate) const TAB_ROWS: u16 = 18;
/// Keys shown in the footer, in addition to those that always are.
pub(crate) const HINTS: usize = 6;
/// Columns from which a list is beside what is selected.
pub(crate) const SPLIT_COLUMNS: u16 = 140;
/// Pages remembered for going back.
pub(crate) const HISTORY_PAGES: usize = 50;
/// Commands and news that may wait between the console and the connection.
pub(crate) const QUEUE: usize = 256;
/// News handled before the keys are looked at again.
pub(crate) const NEWS_BUDGET: usize = 256;
/// Bytes typed or pasted into one field.
pub(crate) const FIELD_BYTES: usize = 64 * 1024;
/// Lines of a document, such as an event or a transcript.
pub(crate) const DOCUMENT_LINES: usize = 5_000;
/// Bytes copied to the clipboard.
pub(crate) const CLIPBOARD_BYTES: usize = 64 * 1024;
/// Bytes of a message from the service.
pub(crate) const MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Concurrent calls: a service gives one client a quarter of 24 for lists.
pub(crate) const CALLS_AT_ONCE: usize = 4;
/// Between two looks whether the key has become another one, and while no key is pressed.
pub(crate) const KEY_LOOK: Duration = Duration::from_secs(15);
pub(crate) const KEY_LOOK_UNATTENDED: Duration = Duration::from_secs(120);
/// Until a connection attempt is given up.
pub(crate) const CONNECT: Duration = Duration::from_secs(3);
/// How long the service may be silent before its health is requested; with [`PING_TIMEOUT`] a dead peer is
/// noticed within 3 s.
pub(crate) const PING: Duration = Duration::from_millis(1_700);
/// The same while no key is pressed: twice the interval of the stream's messages without news.
pub(crate) const SILENCE: Duration = Duration::from_secs(32);
/// How long after a key someone is there.
pub(crate) const ATTENDED: Duration = Duration::from_secs(30);
/// Between the probes of the system whether the network is there, and how many of them get no answer.
pub(crate) const PROBE: Duration = Duration::from_secs(1);
pub(crate) const PROBES: u32 = 2;
/// Until an unanswered ping breaks the link.
pub(crate) const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// Until an ordinary call is given up.
pub(crate) const CALL: Duration = Duration::from_secs(15);
/// Until a test, or a part of what is done to many deliveries, is given up; an attempt may take 30 s.
pub(crate) const TEST_CALL: Duration = Duration::from_secs(40);
/// The first pause between connection attempts.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause between connection attempts.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Between two frames that no key asked for.
pub(crate) const FRAME: Duration = Duration::from_millis(33);
/// Between two readings of a list that the service does not stream.
pub(crate) const REFRESH_MS: i64 = 10_000;
/// How old the counts beside the tabs get at most while something changes.
pub(crate) const TABS_MS: i64 = 5_000;
/// The same of all that is read again and again while nothing is stored: what changes then is what time does.
pub(crate) const UNCHANGED_MS: i64 = 180_000;
/// How long after a change what was read may be from before it.
pub(crate) const SETTLED_MS: i64 = 5_000;
/// Between two readings of what the charts of the overview show.
pub(crate) const COUNTED_MS: i64 = 9_000;
/// The same while nothing happens.
pub(crate) const COUNTED_IDLE_MS: i64 = 180_000;
/// From when on what such a reading found has its age beside it, where something changed since.
pub(crate) const OLD_MS: i64 = 15_000;
/// How many times as long as such a reading took the next one waits at least.
pub(crate) const COUNTED_PAUSE: i64 = 10;
/// Between two spans on a wall.
pub(crate) const CYCLE_MS: i64 = 20_000;
/// Between news and the reading of what they change on a screen that counts.
pub(crate) const REFRESH_SOON_MS: i64 = 1_000;
/// Columns from which a form is beside the result from the service.
pub(crate) const FORM_SPLIT_COLUMNS: u16 = 110;
/// Columns from which the form of a destination is beside its test bench.
pub(crate) const BENCH_COLUMNS: u16 = 120;
/// Tests that a form keeps.
pub(crate) const BENCH_TESTS: usize = 5;
/// How long a row has to be under the cursor to be what a key is about.
pub(crate) const SEEN_MS: i64 = 400;
/// How long a list that follows stays still after a key.
pub(crate) const STILL_MS: i64 = 3_000;
/// Between the last key in a form and its check by the service.
pub(crate) const CHECK_PAUSE_MS: i64 = 500;
/// Between the last key in a filter and counting what it leaves.
pub(crate) const COUNT_PAUSE_MS: i64 = 150;
/// Filters of before that a screen keeps.
pub(crate) const OLDER_FILTERS: usize = 50;
/// How long a silence lasts at most.
pub(crate) const SILENCE_MS: i64 = 30 * 86_400_000;
/// How long the hint to undo is shown.
pub(crate) const TOAST_MS: i64 = 10_000;
/// How much can be undone, and how long after it was done.
pub(crate) const UNDO_STEPS: usize = 20;
pub(crate) const UNDO_MS: i64 = 600_000;
/// Events that the palette offers.
pub(crate) const PALETTE_EVENTS: usize = 200;
/// Bytes of the id of an event; that of an occurrence is longer.
pub(crate) const EVENT_ID_BYTES: usize = 28;
/// Keys and sequences of keys that one action may have.
pub(crate) const KEYS_PER_ACTION: usize = 8;
/// Keys that one sequence may have.
pub(crate) const KEYS_IN_SEQUENCE: usize = 4;
/// Between the keys of a sequence, before what was begun is dropped.
pub(crate) const SEQUENCE_MS: i64 = 3_000;
/// Rows and lines that a console without a screen tells immediately.
pub(crate) const TOLD_ROWS: usize = 20;
pub(crate) const TOLD_LINES: usize = 80;
/// Changes of a list that it tells immediately.
pub(crate) const TOLD_CHANGES: usize = 20;
/// Between a change of a list and its telling.
pub(crate) const ANNOUNCE: Duration = Duration::from_millis(500);
/// Between two tellings of how far something is.
pub(crate) const PROGRESS_MS: i64 = 2_000;
/// Time until a hint is shown that a response is awaited.
pub(crate) const STILL_BUSY: Duration = Duration::from_secs(5);
/// Bytes of a colour that a terminal tells.
pub(crate) const COLOUR_BYTES: usize = 32;
/// Keys that are kept for a question that is about to be asked.
pub(crate) const KEYS_AHEAD: usize = 8;
/// How long a paste that arrives in pieces may pause.
pub(crate) const PASTE_PAUSE: Duration = Duration::from_millis(500);
/// Bytes of the parameters of an escape sequence.
pub(crate) const ESCAPE_BYTES: usize = 64;
