//! Every bound of what is decided, by name.

use std::time::Duration;

/// Attempts that are kept to determine the health of a destination.
pub const HEALTH_ATTEMPTS_MAX: usize = 50;
/// One attempt in so many must fail for a destination to be failing whose last one did not,
pub const FLAKY_FROM: usize = 4;
/// and at least so many,
pub const FLAKY_FAILURES_MIN: usize = 4;
/// until so many in a row are delivered.
pub const WELL_AGAIN_AFTER: usize = 5;
/// Levels of nested clauses in a query.
pub use bellwether_proto::filter::DEPTH_MAX as CLAUSE_DEPTH_MAX;
/// Clauses in a query.
pub const CLAUSES_MAX: usize = 500;
/// Bytes of a template.
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a rendered template.
pub const RENDERED_BYTES_MAX: usize = 256 * 1024;
/// Steps that rendering one template may take: parts of it, entries of lists, look-ups of names, and
/// each 64 bytes written or compared.
pub const TEMPLATE_STEPS_MAX: usize = 100_000;
/// Steps that rendering all templates of one message may take.
pub const MESSAGE_STEPS_MAX: usize = 200_000;
/// Steps that rendering a template without variables may take, where requests are served.
pub const BLANK_STEPS_MAX: usize = 5_000;
/// Bytes of an event's name or type.
pub const EVENT_NAME_BYTES_MAX: usize = 256;
/// The time after the end of a condition in which another reporter's report of it is a late one, and the
/// most that the clock of a reporter may be ahead, in milliseconds.
pub const REPORT_LATE_MAX_MS: i64 = 150_000;
/// History entries kept for one occurrence.
pub const HISTORY_MAX: usize = 100;
/// Receivers that one response notifies, in all of its rounds.
pub const RESPONSE_RECEIVERS_MAX: usize = 500;
/// How often it is looked whether what holds a response is over, where no time ends it, in milliseconds.
pub const RESPONSE_HELD_LOOK_MS: i64 = 60_000;
/// Members of a group that are read at a time to find one that can carry its response.
pub const RESPONSE_MOVES_AT_ONCE: usize = 20;
/// Silences and causes that are noted of a response that is held; beyond these it is evaluated every
/// [`RESPONSE_HELD_LOOK_MS`].
pub const RESPONSE_HOLDS_MAX: usize = 256;

/// Variables of a webhook's own.
pub const VALUES_MAX: usize = 20;
/// Bytes of a value by which a rule groups.
pub const GROUP_VALUE_BYTES_MAX: usize = 256;
/// How long after a message the next one of the group goes out, where the rule does not say.
pub const GROUP_INTERVAL_DEFAULT: Duration = Duration::from_secs(300);
/// Occurrences that a group takes.
pub const GROUP_MEMBERS_MAX: u32 = 10_000;
/// Members whose text a message keeps.
pub const GROUP_SHOWN_MAX: usize = 100;
/// Bytes of their texts together.
pub const GROUP_SHOWN_BYTES_MAX: usize = 160 * 1024;
/// Counts by rule and severity that a digest has.
pub const DIGEST_ROWS_MAX: usize = 200;
/// Messages whose occurrence a digest shows.
pub const DIGEST_SHOWN_MAX: usize = 20;
/// Bytes of the texts of these together.
pub const DIGEST_SHOWN_BYTES_MAX: usize = 160 * 1024;
/// Dates that a window leaves out, and that it adds.
pub const CALENDAR_DATES_MAX: usize = 500;
/// Days that one span of a calendar lasts at most.
pub const CALENDAR_LENGTH_DAYS_MAX: i32 = 366;
/// Periods between two of a recurrence.
pub const CALENDAR_INTERVAL_MAX: u16 = 1_000;
/// Starts that a recurrence counts.
pub const CALENDAR_COUNT_MAX: u16 = 10_000;
/// Days that are looked at to find the last start of a recurrence that counts.
pub const CALENDAR_COUNTED_MAX: usize = 200_000;
/// Days that looking up a moment of a calendar looks at.
pub const CALENDAR_CANDIDATES_MAX: usize = 10_000;
/// Years within which a recurrence must produce something.
pub const CALENDAR_FIRST_YEARS: i16 = 10;
/// Links of a chain of causes that are followed.
pub const INHIBITION_CHAIN_MAX: usize = 16;
/// Causes in all that are looked at for one event.
pub const INHIBITION_CAUSES_MAX: usize = 256;
/// Rules that may lead to an event one after the other, through `event` destinations.
pub const CHAIN_MAX: usize = 16;
/// Changes of what waits that an occurrence keeps of each rule.
pub const HOLD_CHANGES_MAX: usize = 20;
