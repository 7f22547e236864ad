//! Limits of the console.

use std::time::Duration;

/// Maximum number of occurrences in the list of events; the oldest are dropped first.
pub(crate) const HELD_EVENTS: usize = 100_000;
pub(crate) const EVENT_PAGE: i32 = 500;
pub(crate) const EVENT_GROUPS: i32 = 1_000;
pub(crate) const DELIVERY_PAGE: i32 = 200;
pub(crate) const HELD_DELIVERIES: usize = 20_000;
/// Maximum number of deliveries retried or cancelled per call. Small, so that progress is visible.
pub(crate) const BULK_STEP: i32 = 100;
/// Maximum number of events changed by one action, and per call. Their ids are held in memory.
pub(crate) const BULK_EVENTS: usize = 10_000;
pub(crate) const BULK_EVENT_STEP: usize = 100;
pub(crate) const BULK_UNDO_STEP: usize = 500;
pub(crate) const HELD_AUDIT: usize = 200;
pub(crate) const AUDIT_CALLS: usize = 20;
pub(crate) const UPDATE_CALLS: usize = 30;
pub(crate) const HELD_OBLIGATIONS: usize = 1_000;
pub(crate) const HELD_RESOURCES: usize = 10_000;
pub(crate) const RESOURCE_PAGE: i32 = 1_000;
pub(crate) const BULK_ITEMS: usize = 1_000;
/// Minimum columns and rows for the overview as a wall.
pub(crate) const WALL: (u16, u16) = (72, 20);
pub(crate) const TAB_ROWS: u16 = 18;
/// Maximum number of keys in the footer, in addition to those that are always shown.
pub(crate) const HINTS: usize = 6;
/// Minimum columns for a list with the selected item beside it.
pub(crate) const SPLIT_COLUMNS: u16 = 140;
pub(crate) const HISTORY_PAGES: usize = 50;
pub(crate) const QUEUE: usize = 256;
pub(crate) const NEWS_BUDGET: usize = 256;
pub(crate) const FIELD_BYTES: usize = 64 * 1024;
pub(crate) const DOCUMENT_LINES: usize = 5_000;
pub(crate) const CLIPBOARD_BYTES: usize = 64 * 1024;
pub(crate) const MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Maximum concurrent calls. A service allows one client a quarter of its 24 slots for lists.
pub(crate) const CALLS_AT_ONCE: usize = 4;
/// Interval at which the API key is renewed: normally, and while no key is pressed.
pub(crate) const KEY_LOOK: Duration = Duration::from_secs(15);
pub(crate) const KEY_CHECK_UNATTENDED: Duration = Duration::from_secs(120);
pub(crate) const CONNECT: Duration = Duration::from_secs(3);
/// Time without data after which the service is pinged. Together with [`PING_TIMEOUT`], it ensures
/// that a dead peer is detected within 3 s.
pub(crate) const PING: Duration = Duration::from_millis(1_700);
/// Time without data tolerated while no key is pressed: twice the interval of the stream's keepalive
/// messages.
pub(crate) const SILENCE: Duration = Duration::from_secs(32);
/// Time after a key press during which the console counts as attended.
pub(crate) const ATTENDED: Duration = Duration::from_secs(30);
/// Interval of TCP keepalive probes, and the number of failed probes after which the connection is
/// dropped.
pub(crate) const PROBE: Duration = Duration::from_secs(1);
pub(crate) const PROBES: u32 = 2;
pub(crate) const PING_TIMEOUT: Duration = Duration::from_secs(1);
pub(crate) const CALL: Duration = Duration::from_secs(15);
/// Timeout of a test, or of a batch of deliveries; an attempt may take 30 s.
pub(crate) const TEST_CALL: Duration = Duration::from_secs(40);
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(200);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Minimum time between two frames without a key press.
pub(crate) const FRAME: Duration = Duration::from_millis(33);
/// Refresh interval of a list that the service does not stream.
pub(crate) const REFRESH_MS: i64 = 9_000;
/// Age of the last response after which the display is marked as stale; longer than the interval
/// between reads.
pub(crate) const STALE_MS: i64 = 10_000;
/// Maximum age of the counts in the tabs while there are changes.
pub(crate) const TABS_MS: i64 = 5_000;
/// Refresh interval while nothing changes in the service and only the passage of time changes the
/// display.
pub(crate) const UNCHANGED_MS: i64 = 180_000;
/// Time after a change during which responses may not contain the change.
pub(crate) const SETTLED_MS: i64 = 5_000;
pub(crate) const COUNTED_MS: i64 = 9_000;
/// Refresh interval of the charts while no event is received.
pub(crate) const COUNTED_IDLE_MS: i64 = 180_000;
/// Interval at which the rows of a live list are counted again while there are changes.
pub(crate) const LIVE_MS: i64 = 1_000;
/// Age from which the number of rows of a live list is displayed with its age, if events have
/// changed since it was counted.
pub(crate) const LIVE_OLD_MS: i64 = 3_000;
/// Age from which counts are displayed with their age, if there were changes since they were read.
pub(crate) const OLD_MS: i64 = 15_000;
/// Minimum pause before a refresh of the charts, as a multiple of the duration of the previous
/// refresh.
pub(crate) const COUNTED_PAUSE: i64 = 10;
pub(crate) const CYCLE_MS: i64 = 20_000;
pub(crate) const REFRESH_SOON_MS: i64 = 1_000;
/// Minimum columns for a form with the service's result beside it.
pub(crate) const FORM_SPLIT_COLUMNS: u16 = 110;
/// Minimum columns for a destination form with a pane of its test bench beside it.
pub(crate) const BENCH_COLUMNS: u16 = 100;
/// Minimum columns for both panes of the test bench beside the form.
pub(crate) const BOTH_PANES_COLUMNS: u16 = 120;
pub(crate) const BENCH_TESTS: usize = 5;
/// Time for which a row that replaced another must be visible before a key acts on it.
pub(crate) const SEEN_MS: i64 = 400;
/// Time for which the cursor must rest on a row before its details are read, and the number of
/// deliveries in the details.
pub(crate) const BESIDE_PAUSE_MS: i64 = 150;
pub(crate) const BESIDE_DELIVERIES: i32 = 5;
/// Number of events, from the first visible one, for which the coverage by silences is read, and
/// the minimum time between two reads.
pub(crate) const COVERAGE_ROWS: usize = 200;
pub(crate) const COVERAGE_PACE_MS: i64 = 1_000;
/// Time before a failed read of the coverage is repeated.
pub(crate) const COVERAGE_RETRY_MS: i64 = 10_000;
/// Delay between the last key in a form and its validation by the service.
pub(crate) const CHECK_PAUSE_MS: i64 = 500;
/// Delay between the last key in a filter and counting its matches.
pub(crate) const COUNT_PAUSE_MS: i64 = 150;
pub(crate) const OLDER_FILTERS: usize = 50;
pub(crate) const SILENCE_MS: i64 = 30 * 86_400_000;
pub(crate) const TOAST_MS: i64 = 10_000;
/// Minimum interval between notices, and between reads of the open events for them.
pub(crate) const NOTICE_MS: i64 = 1_000;
pub(crate) const NOTICE_PAGE: i32 = 100;
pub(crate) const NOTICED_EVENTS: usize = 10_000;
/// Maximum number of links of an event in a list, and the maximum length of each.
pub(crate) const LINKS: usize = 16;
pub(crate) const LINK_BYTES: usize = 2_048;
/// Limits of a custom command: its time, and the bytes and lines of its output.
pub(crate) const PROGRAM: Duration = Duration::from_secs(60);
pub(crate) const OUTPUT_BYTES: usize = 256 * 1024;
pub(crate) const OUTPUT_LINES: usize = 2_000;
/// Number of changes that can be undone, and the time limit for an undo.
pub(crate) const UNDO_STEPS: usize = 20;
pub(crate) const UNDO_MS: i64 = 600_000;
pub(crate) const PALETTE_EVENTS: usize = 200;
/// Bytes of an event id; the id of an occurrence is longer.
pub(crate) const EVENT_ID_BYTES: usize = 28;
pub(crate) const KEYS_PER_ACTION: usize = 8;
pub(crate) const KEYS_IN_SEQUENCE: usize = 4;
/// Time after which an incomplete key sequence is dropped; long enough to read the list of keys
/// that can follow.
pub(crate) const SEQUENCE_MS: i64 = 15_000;
/// Rows and lines printed at first in plain mode.
pub(crate) const PRINTED_ROWS: usize = 20;
pub(crate) const PRINTED_LINES: usize = 80;
/// Maximum number of changes of a list that plain mode announces individually.
pub(crate) const PRINTED_CHANGES: usize = 20;
pub(crate) const ANNOUNCE: Duration = Duration::from_millis(500);
pub(crate) const PROGRESS_MS: i64 = 2_000;
/// Time after which the console shows that it is waiting for a response.
pub(crate) const STILL_BUSY: Duration = Duration::from_secs(5);
pub(crate) const COLOUR_BYTES: usize = 32;
pub(crate) const KEYS_AHEAD: usize = 8;
pub(crate) const PASTE_PAUSE: Duration = Duration::from_millis(500);
pub(crate) const ESCAPE_BYTES: usize = 64;
