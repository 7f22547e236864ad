//! Limits of the model.

use std::time::Duration;

/// Maximum number of attempts stored to determine the health of a destination.
pub const HEALTH_ATTEMPTS_MAX: usize = 50;
/// Reciprocal of the minimum share of failed attempts at which a destination is failing although
/// its last attempt succeeded.
pub const FLAKY_FROM: usize = 4;
/// Minimum number of failed attempts for a destination to be failing although its last attempt
/// succeeded.
pub const FLAKY_FAILURES_MIN: usize = 4;
/// Number of consecutive successful attempts after which earlier failures no longer make a
/// destination failing.
pub const RECOVERED_AFTER: usize = 5;
pub use bellwether_language::filter::DEPTH_MAX as CLAUSE_DEPTH_MAX;
pub const CLAUSES_MAX: usize = 500;
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of snippets: templates that other templates include.
pub const SNIPPETS_MAX: usize = 50;
/// Maximum length of the name of a snippet, in bytes.
pub const SNIPPET_NAME_MAX: usize = 64;
pub const SNIPPET_BYTES_MAX: usize = 16 * 1024;
pub const SNIPPETS_BYTES_MAX: usize = 128 * 1024;
/// Maximum depth of templates that include other templates.
pub const SNIPPET_DEPTH_MAX: usize = 4;
pub const RENDERED_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of steps to render a template. Each part, list entry and name lookup is a step,
/// and so are each 64 bytes written or compared.
pub const TEMPLATE_STEPS_MAX: usize = 100_000;
/// Maximum number of steps to render all templates of a message.
pub const MESSAGE_STEPS_MAX: usize = 200_000;
/// Maximum number of steps to render a template without variables while serving a request.
pub const BLANK_STEPS_MAX: usize = 5_000;
/// Maximum size of the name or kind of an event, in bytes.
pub const EVENT_NAME_BYTES_MAX: usize = 256;
/// Time after the end of a condition during which a report of it by another reporter counts as
/// late. Also the maximum lead of a reporter's clock. In milliseconds.
pub const REPORT_LATE_MAX_MS: i64 = 150_000;
/// The delay of a due run of a drill from which the run is skipped, in milliseconds.
pub const DRILL_LATE_MAX_MS: i64 = 3_600_000;
pub const HISTORY_MAX: usize = 100;
/// Maximum number of receivers notified by a response in all its rounds.
pub const RESPONSE_RECEIVERS_MAX: usize = 500;
/// Interval between evaluations of a held response whose hold has no known end, in milliseconds.
pub const RESPONSE_HELD_REVIEW_MS: i64 = 60_000;
/// Number of group members read at a time to find one that can carry the response.
pub const RESPONSE_MOVES_AT_ONCE: usize = 20;
/// Maximum number of silences and causes recorded for a held response. With more, the response is
/// evaluated every [`RESPONSE_HELD_REVIEW_MS`].
pub const RESPONSE_HOLDS_MAX: usize = 256;

/// Maximum number of custom variables of a webhook.
pub const VALUES_MAX: usize = 20;
/// Maximum number of values that a webhook keeps from responses.
pub const KEPT_MAX: usize = 8;
pub const KEPT_BYTES_MAX: usize = 1024;
pub const GROUP_VALUE_BYTES_MAX: usize = 256;
pub const GROUP_INTERVAL_DEFAULT: Duration = Duration::from_secs(300);
pub const GROUP_MEMBERS_MAX: u32 = 10_000;
/// Maximum number of members whose text is stored in a message.
pub const GROUP_SHOWN_MAX: usize = 100;
/// Maximum total size of the text of members stored in a message, in bytes.
pub const GROUP_SHOWN_BYTES_MAX: usize = 160 * 1024;
/// Maximum number of members stored in a message whose templates name all members.
pub const GROUP_ALL_SHOWN_MAX: usize = 500;
/// Maximum total size of the text of members stored in a message whose templates name all members,
/// in bytes.
pub const GROUP_ALL_SHOWN_BYTES_MAX: usize = 512 * 1024;
pub const DIGEST_ROWS_MAX: usize = 200;
/// Maximum number of messages whose occurrence a digest shows.
pub const DIGEST_SHOWN_MAX: usize = 20;
/// Maximum total size of the text of occurrences that a digest shows, in bytes.
pub const DIGEST_SHOWN_BYTES_MAX: usize = 160 * 1024;
/// Maximum number of excluded and of added dates in a window.
pub const CALENDAR_DATES_MAX: usize = 500;
pub const CALENDAR_LENGTH_DAYS_MAX: i32 = 366;
/// Maximum interval of a recurrence, in periods.
pub const CALENDAR_INTERVAL_MAX: u16 = 1_000;
pub const CALENDAR_COUNT_MAX: u16 = 10_000;
/// Maximum number of days scanned for the last start of a recurrence with a count.
pub const CALENDAR_COUNTED_MAX: usize = 200_000;
/// Maximum number of days scanned to look up a time in a calendar.
pub const CALENDAR_CANDIDATES_MAX: usize = 10_000;
/// Number of years within which a recurrence must start at least once.
pub const CALENDAR_FIRST_YEARS: i16 = 10;
pub const INHIBITION_CHAIN_MAX: usize = 16;
pub const INHIBITION_CAUSES_MAX: usize = 256;
/// Maximum number of rules in a chain through `event` destinations.
pub const CHAIN_MAX: usize = 16;
/// Maximum number of hold changes stored per rule in an occurrence.
pub const HOLD_CHANGES_MAX: usize = 20;
/// Maximum size of the CSV of an enrichment table, in bytes.
pub const ENRICHMENT_BYTES_MAX: usize = 1024 * 1024;
pub const ENRICHMENT_ROWS_MAX: usize = 10_000;
pub const ENRICHMENT_COLUMNS_MAX: usize = 20;
pub const ENRICHMENT_MATCH_FIELDS_MAX: usize = 4;
pub const ENRICHMENT_CELL_BYTES_MAX: usize = 1024;
/// Maximum number of different lengths of values that end in `*`, per enrichment table. Each costs
/// one lookup per event.
pub const ENRICHMENT_PREFIX_LENGTHS_MAX: usize = 64;
/// Maximum number of errors that are reported for an enrichment table.
pub const ENRICHMENT_ERRORS_MAX: usize = 10;
/// Maximum total size of the metadata that all enrichment tables add to an event, in bytes.
pub const ENRICHED_BYTES_MAX: usize = 16 * 1024;
