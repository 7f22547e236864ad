//! The limits of the service.

use std::time::Duration;

pub use bellwether_backend_engine::limits::*;
pub use bellwether_backend_model::limits::*;
pub use bellwether_backend_store::limits::*;

pub const EVENTS_PER_REQUEST_MAX: usize = 1_000;
/// Events in one request of another dialect, including the event that reports omitted ones.
pub const DIALECT_EVENTS_MAX: usize = bellwether_proto::bulk::EVENTS_MAX + 1;
/// Items in one annotate or status request.
pub const ITEMS_PER_REQUEST_MAX: usize = 1_000;
pub const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;
pub use bellwether_proto::bulk::BYTES_MAX as DIALECT_BYTES_MAX;
/// Maximum count of deliveries per state without a filter.
pub const DELIVERIES_COUNTED_MAX: usize = 1_000_000;
/// Maximum number of ways in which a rule reaches destinations, and of rules that reach one, in a
/// response.
pub const REACH_MAX: usize = 1_000;
pub const CONTACTS_MAX: usize = 1_000;
pub const SCHEDULES_MAX: usize = 1_000;
pub const POLICIES_MAX: usize = 1_000;
pub const CONTACT_METHODS_MAX: usize = 10;
/// Latest time after paging a contact at which a method is used.
pub const CONTACT_AFTER_MAX: Duration = Duration::from_secs(3_600);
/// Time ahead that is searched for windows in which a method can be used.
pub const CONTACT_CALENDAR_AHEAD: Duration = Duration::from_secs(400 * 86_400);
pub const CONTACT_SUBJECT_CHARACTERS_MAX: usize = 200;
pub const CONTACT_VARIABLES_MAX: usize = 20;
pub const CONTACT_VALUE_CHARACTERS_MAX: usize = 500;
pub const SCHEDULE_LAYERS_MAX: usize = 10;
pub const SCHEDULE_SLOTS_MAX: usize = 100;
/// Contacts per slot or override.
pub const SCHEDULE_CONTACTS_MAX: usize = 10;
pub const LAYER_NAME_CHARACTERS_MAX: usize = 100;
/// Current and future overrides per schedule.
pub const OVERRIDES_MAX: usize = 100;
pub const OVERRIDE_LENGTH_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
pub const OVERRIDE_RETENTION: Duration = Duration::from_secs(30 * 24 * 3_600);
pub const OVERRIDE_REASON_CHARACTERS_MAX: usize = 250;
pub const SHIFTS_MAX: usize = 1_000;
pub const SHIFTS_TIME_MAX: Duration = Duration::from_secs(400 * 24 * 3_600);
pub const ON_CALL_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Longest time between checks of one schedule.
pub const ON_CALL_CHECK_MAX: Duration = Duration::from_secs(600);
/// Time after which the event of a hand-off closes.
pub const ON_CALL_NEWS_AGE: Duration = Duration::from_secs(900);
/// Time ahead within which a gap in a schedule is reported.
pub const ON_CALL_AHEAD: Duration = Duration::from_secs(24 * 3_600);
pub const ESCALATION_STEPS_MAX: usize = 20;
pub const ESCALATION_TARGETS_MAX: usize = 20;
pub const ESCALATION_ROUNDS_MAX: u32 = 10;
pub const ESCALATION_NOTICES_MAX: usize = 1_000;
pub const ESCALATION_WAIT_MAX: Duration = Duration::from_secs(24 * 3_600);
pub const ESCALATION_WAIT_DEFAULT: Duration = Duration::from_secs(300);
pub const ACKNOWLEDGEMENT_MIN: Duration = Duration::from_secs(60);
pub const ACKNOWLEDGEMENT_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
pub const HEARTBEATS_MAX: usize = 1_000;
/// Fields whose values identify a beat.
pub const HEARTBEAT_FIELDS_MAX: usize = 5;
pub const HEARTBEAT_DIMENSIONS_MAX: usize = 10;
pub const HEARTBEAT_EVERY_MIN: Duration = Duration::from_secs(30);
pub const HEARTBEAT_EVERY_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
/// Shortest default grace of a heartbeat.
pub const HEARTBEAT_GRACE_MIN: Duration = Duration::from_secs(10);
pub const HEARTBEAT_GRACE_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
pub const HEARTBEAT_GRACE_OF_CRON: Duration = Duration::from_secs(3_600);
/// Default time for which a set of values is expected after its last beat.
pub const HEARTBEAT_FORGET_DEFAULT: Duration = Duration::from_secs(30 * 24 * 3_600);
pub const HEARTBEAT_FORGET_MAX: Duration = Duration::from_secs(3_660 * 24 * 3_600);
pub const HEARTBEAT_RUN_MIN: Duration = Duration::from_secs(1);
pub const HEARTBEAT_RUN_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
pub const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Largest forward clock step to which due times are adjusted. Before a larger step, the clock was
/// plainly wrong, and all records with a due time before the new time are due.
pub const CLOCK_FORWARD_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Time after which a step of the database's clock that the leader has not noticed is attributed to
/// this node only.
pub const CLOCK_STEP_OWN_AFTER: Duration = Duration::from_secs(60);
/// Time after which index entries are adjusted once more. All nodes have noticed the clock step by
/// then.
pub const CLOCK_INDEX_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Longest wait for commits in progress when a clock step is applied.
pub const CLOCK_STILL_WAIT_MAX: Duration = Duration::from_secs(1);
/// Smallest clock step that temporarily widens the windows of heartbeats.
pub const CLOCK_STEP_MIN: Duration = Duration::from_secs(2);
/// Largest amount by which a clock step widens the windows of heartbeats.
pub const CLOCK_SLACK_MAX: Duration = Duration::from_secs(48 * 3_600);
/// Time for which a clock step widens the windows of heartbeats.
pub const CLOCK_SLACK_TIME: Duration = Duration::from_secs(24 * 3_600);
pub const PING_TIMEOUT: Duration = Duration::from_secs(10);
pub const PING_EVERY_MIN: Duration = Duration::from_secs(10);
pub const PING_EVERY_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Expected sets of values per heartbeat.
pub const EXPECTATIONS_MAX: usize = 10_000;
/// Expected sets of values of all heartbeats. A backup keeps all of them in memory at its end.
pub const ALL_EXPECTATIONS_MAX: usize = 100_000;
/// Time within which beats of a heartbeat without fields count as one.
pub const BEATS_APART: Duration = Duration::from_secs(1);
pub const HEARTBEAT_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Interval at which the service time is stored. Nodes may differ by this amount.
pub const SERVICE_TIME_INTERVAL: Duration = Duration::from_secs(5);
/// Size of a response in bytes: a full page of the largest events.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
pub const PAGE_SIZE_MAX: usize = 1_000;
pub const PAGE_SIZE_DEFAULT: usize = 50;
/// Bytes of triggers, destinations or rules on one page, unless a single one is larger. With the
/// overhead of the wire format, a page fits into the default limit of gRPC clients, 4 MiB.
pub const LIST_PAGE_BYTES: usize = 3 * 1024 * 1024;
/// Triggers, destinations or rules that a list reads in its first step.
pub const LIST_STEP_FIRST: usize = 16;
/// Triggers, destinations or rules that a list reads per step.
pub const LIST_STEP_MAX: usize = 256;

pub const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Tolerated difference between the clocks of the service and an identity provider.
pub const TOKEN_CLOCK_LEEWAY: Duration = Duration::from_secs(60);
/// Tokens tracked in order to end their calls on expiry. Above the limit, the token that expires
/// first is dropped together with its calls.
pub const TOKENS_KNOWN_MAX: usize = 10_000;
pub const PROVIDER_KEYS_MAX: usize = 64;
pub const PROVIDER_KEYS_INTERVAL: Duration = Duration::from_secs(600);
/// Shortest time between two fetches, regardless of the presented tokens.
pub const PROVIDER_KEYS_PAUSE: Duration = Duration::from_secs(5);
/// Concurrent browser sign-ins that query the provider, including those of unauthenticated clients.
/// One address may use a quarter.
pub const BROWSER_SIGN_INS_MAX: usize = 16;
/// Time for a browser to complete the sign-in.
pub const BROWSER_SIGN_IN: Duration = Duration::from_secs(600);

/// Duration of attempts from which a destination counts as slow.
pub const SLOW_FROM: Duration = Duration::from_secs(5);
/// Age of the oldest waiting delivery from which a destination counts as delayed.
pub const BEHIND_FROM: Duration = Duration::from_secs(300);

/// Retention of the counters per minute, in minutes: a day, plus the start of its first column.
pub const COUNTER_MINUTES: u32 = 25 * 60;
/// Retention of the counters per hour, in hours: 30 days, plus the start of their first column.
pub const COUNTER_HOURS: u32 = 31 * 24;
/// Retention of the counters for the noise report, in days.
pub const NOISE_DAYS: u32 = 400;
pub const NOISE_SPAN: Duration = Duration::from_secs(7 * 24 * 3600);
pub const NOISE_ROWS_MAX: usize = 1_000;
pub const NOISE_COUNTERS_MAX: usize = 2_000_000;
/// Deliveries, and occurrences, read for a noise report, newest first.
pub const NOISE_RECORDS_MAX: usize = 50_000;
pub const NOISE_EVENTS_MAX: usize = 5;
pub const STATISTICS_SPAN_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
pub const STATISTICS_COLUMNS_MAX: u32 = 120;
/// Destinations, and rules, covered by statistics.
pub const STATISTICS_SUBJECTS_MAX: usize = 200;

/// Steps for the templates and conditions of a mapping per document.
pub const MAPPING_STEPS_MAX: usize = 4_000_000;

pub const EVENT_SUMMARY_BYTES_MAX: usize = 1024;
pub const EVENT_BODY_BYTES_MAX: usize = 64 * 1024;
pub const EVENT_DIMENSIONS_MAX: usize = 64;
/// Total size of the keys and values of an event's dimensions, in bytes.
pub const EVENT_DIMENSION_BYTES_MAX: usize = 64 * 1024;
/// Size of an event's metadata fields as JSON, in bytes.
pub const EVENT_METADATA_BYTES_MAX: usize = 64 * 1024;
/// Size in bytes to which dimension values are truncated if their total is too large.
pub const FITTED_DIMENSION_BYTES: usize = 512;
pub const EVENT_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
pub const EVENT_AHEAD_MAX: Duration = Duration::from_secs(3600);
pub const REPORTER_BYTES_MAX: usize = 256;
pub const ANNOTATIONS_MAX: usize = 100;
pub const ANNOTATION_BYTES_MAX: usize = 16 * 1024;
pub const URL_CHARACTERS_MAX: usize = 2_048;
pub const VALUE_NAME_MAX: usize = 50;
pub const VALUE_MAP_MAX: usize = 100;
pub const STATUSES_MAX: usize = 20;
pub const MAPPINGS_MAX: usize = 1_000;
pub const MAPPING_PATH_BYTES_MAX: usize = 256;
/// Paths of encoded parts per mapping.
pub const MAPPING_PARSE_MAX: usize = 10;
/// Nesting depth of a document after its encoded parts are decoded, as for the JSON of a body.
pub const MAPPING_DEPTH_MAX: usize = 127;
/// Rejected or dropped documents that are kept for each mapping and client.
pub const REJECTED_DOCUMENTS_MAX: usize = 20;
/// Pairs of mapping and client whose rejected documents are kept.
pub const REJECTED_SENDERS_MAX: usize = 500;
pub const REJECTED_DOCUMENT_BYTES_MAX: usize = 2 * 1024;
pub const REJECTED_REASON_BYTES_MAX: usize = 500;
/// Body of a request that can be a handshake, in bytes.
pub const HANDSHAKE_BYTES_MAX: usize = 64 * 1024;
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Total output of a mapping for one document, in bytes.
pub const MAPPED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Nesting depth of the stored part of a document.
pub const MAPPED_DATA_DEPTH_MAX: usize = 24;
pub const MAPPING_TEST_BYTES_MAX: usize = 1024 * 1024;
pub const MAPPING_HEADERS_MAX: usize = 100;
/// Greatest age of a request whose signature covers its time.
pub const SIGNATURE_AGE_MAX: Duration = Duration::from_secs(300);
pub const MAIL_ADDRESSES_MAX: usize = 20;
pub const MAIL_NAME_CHARACTERS_MAX: usize = 200;
pub const MAIL_LIST_ID_CHARACTERS_MAX: usize = 255;
pub const MAIL_REPLY_LINE_BYTES_MAX: usize = 4 * 1024;
pub const MAIL_REPLY_BYTES_MAX: usize = 64 * 1024;
/// Longest timeout for a mail server's reply to DATA (RFC 5321, 4.5.3.2.6).
pub const MAIL_ANSWER_TIMEOUT_MAX: Duration = Duration::from_secs(600);
pub const HEADERS_MAX: usize = 50;
/// Total size of a header's name and value, in bytes.
pub const HEADER_VALUE_BYTES_MAX: usize = 8 * 1024;
/// Size of a secret, and of other single-line settings of a destination, in bytes.
pub const SETTING_BYTES_MAX: usize = 4 * 1024;
pub const PEM_BYTES_MAX: usize = 16 * 1024;
pub const DESCRIPTION_CHARACTERS_MAX: usize = 1_000;
pub const TAGS_MAX: usize = 20;
pub const TAG_CHARACTERS_MAX: usize = 100;
pub const RULE_DELAY_MAX: Duration = Duration::from_secs(24 * 3_600);
pub const GROUP_BY_MAX: usize = 10;
pub const GROUP_WAIT_DEFAULT: Duration = Duration::from_secs(30);
pub const GROUP_WAIT_MAX: Duration = Duration::from_secs(3_600);
pub const GROUP_INTERVAL_MIN: Duration = Duration::from_secs(10);
pub const GROUP_INTERVAL_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Occurrences that can join a group in one message, or that can be reported as changed in one.
pub const GROUP_JOINING_MAX: usize = 1_000;
/// Longest duration in a shared setting: a million days.
pub const SETTING_TIME_MAX: Duration = Duration::from_secs(1_000_000 * 24 * 3_600);
pub const TENANT_CHARACTERS_MAX: usize = 200;
/// Largest setting for the number of openings that one hold releases one by one.
pub const TOGETHER_FROM_MAX: u32 = 1_000_000;
pub const BUDGET_MESSAGES_MAX: u32 = 10_000;
pub const BUDGET_PER_MIN: Duration = Duration::from_secs(10);
pub const BUDGET_PER_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Default share of a budget that is reserved for critical messages, in percent.
pub const BUDGET_CRITICAL_SHARE_DEFAULT: u32 = 20;
pub const RULE_AUTO_PAUSE_MIN: Duration = Duration::from_secs(30);
pub const RULE_AUTO_PAUSE_MAX: Duration = Duration::from_secs(3_600);
pub const FLAPPING_OPENINGS_MIN: u32 = 3;
pub const FLAPPING_OPENINGS_MAX: u32 = 50;
/// Shortest time for counting openings, and for the quiet time that ends flapping.
pub const FLAPPING_TIME_MIN: Duration = Duration::from_secs(60);
pub const FLAPPING_TIME_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Triggers, or destinations, per rule.
pub const RULE_NAMES_MAX: usize = 100;
/// Earlier revisions stored per trigger or rule.
pub const REVISIONS_OF_ONE_MAX: u64 = 100;
pub const REVISIONS_MAX: usize = 10_000;
pub const REVISIONS_STEP: usize = 100;
pub const REPEAT_INTERVAL_SECONDS_MAX: u32 = 31_536_000;

pub const CALENDARS_MAX: usize = 1_000;
pub const CALENDAR_WINDOWS_MAX: usize = 50;
pub const CALENDAR_EXCEPT_MAX: usize = 10;
pub const CALENDAR_SPANS_MAX: usize = 1_000;
pub const INHIBITIONS_MAX: usize = 500;
pub const VIEWS_MAX: usize = 500;
pub const VIEW_COLUMNS_MAX: usize = 20;
pub const VIEW_COLUMN_CHARACTERS_MAX: usize = 40;
pub const INHIBITION_EQUAL_MAX: usize = 8;
pub const INHIBITION_LINGER_DEFAULT: Duration = Duration::from_secs(60);
pub const INHIBITION_LINGER_MAX: Duration = Duration::from_secs(3_600);
/// Sources with the same values read in the first step. More are read until an active source is
/// found, or until all are read.
pub const INHIBITION_SOURCES_READ: usize = 16;
/// Rounds of a decision, each of which reads the causes and groups requested by the previous one.
/// Each link of a chain of causes takes two rounds, and more are needed if many causes have the
/// same values.
pub const SETTLE_ROUNDS_MAX: usize = 100;
/// Current and future silences.
pub const SILENCES_MAX: usize = 10_000;
/// Open events that a silence may cover without confirmation by its author.
pub const SILENCE_COVERS_MAX: usize = 1_000;
/// Number of open events from which a silence that covers half of them requires confirmation.
pub const SILENCE_SHARE_FROM: usize = 20;
pub const SILENCE_LENGTH_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Longest time for which a silence may cover no events before it ends.
pub const SILENCE_IDLE_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
/// Length of a silence's reason, and of a comment, in characters.
pub const SILENCE_TEXT_CHARACTERS_MAX: usize = 1_000;
pub const SILENCE_COMMENTS_MAX: usize = 100;
pub const SILENCE_ANNOTATIONS_MAX: usize = 50;
/// Silences on a page that are counted again because they were edited concurrently.
pub const SILENCES_RECOUNTED_MAX: usize = 10;
/// Maximum count of the events that a silence covers, holds or has skipped.
pub const SILENCES_COUNTED_MAX: usize = 100_000;
pub const TIMELINE_MAX: usize = 1_000;
pub const HOLDS_SHOWN_MAX: usize = 16;

/// Occurrences scanned by a trigger test without progress reports.
pub const TRIGGER_TEST_OCCURRENCES_MAX: usize = 200_000;
pub const TRIGGER_TEST_TIME_MAX: Duration = Duration::from_secs(10);
pub const TRIGGER_TEST_STEP: usize = 2_000;
pub const TRIGGER_TEST_SHOWN_MAX: usize = 100;

pub const REPLAY_DAYS_MAX: u32 = 30;
pub const REPLAY_DAYS: u32 = 7;
/// Occurrences in a replay, the newest first.
pub const REPLAY_OCCURRENCES_MAX: usize = 10_000;
pub const REPLAY_STEPS_MAX: usize = 200_000;
/// Repeats of one occurrence among the steps of a replay.
pub const REPLAY_REPEATS_MAX: u64 = 1_000;
/// Rows of about 1.3 kB that a replay keeps in memory: occurrences and messages, with about six
/// index entries each, and commits.
pub const REPLAY_ROWS_MAX: u64 = 200_000;
/// Steps of a replay after which the limits are checked.
pub const REPLAY_STEP: usize = 100;
/// Time limit of a replay; an impact consists of two.
pub const REPLAY_TIME_MAX: Duration = Duration::from_secs(10);
/// Time before the reported days at which a replay begins.
pub const REPLAY_WARM_UP: Duration = Duration::from_secs(24 * 3_600);
pub const IMPACT_SHOWN_MAX: usize = 20;

/// Threads for searches, previews, explanations and exports, and the same number for reviews,
/// releases and retention, but at most half of the CPUs.
pub const BACKGROUND_THREADS_MAX: usize = 4;
/// Threads that read the store for the background threads.
pub const BACKGROUND_READERS_MAX: usize = 8;
/// Concurrent searches, previews, explanations and exports. One client may use a quarter of these
/// and of the waiting ones.
pub const SCANS_RUNNING_MAX: usize = 16;
/// Searches, previews, explanations and exports that may wait.
pub const SCANS_WAITING_MAX: usize = 128;
/// Waiting renderings per purpose, such as previews. One client may use a quarter.
pub const RENDERS_WAITING_MAX: usize = 128;
/// CPU time limit for rendering one message, or the events of one document; ten times as long in
/// unoptimized builds.
pub const RENDER_TIME_MAX: Duration =
    Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 200 });
pub const RENDER_STUCK_AFTER: Duration = Duration::from_secs(10);
pub const RENDER_STUCK_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Concurrent steps of streams, such as watches, on the background threads.
pub const SCAN_STEPS_RUNNING_MAX: usize = 16;
/// Time slice of one step of a stream.
pub const SCAN_TURN: Duration = Duration::from_millis(2);
/// Bytes of records that one step of a stream reads at a time, unless a single record is larger.
pub const SCAN_BATCH_BYTES: usize = 2 * 1024 * 1024;

/// Time limit for filling a page of events, deliveries, outstanding resolutions, groups or audit
/// entries. An incomplete page is returned with a token for the remaining items.
pub const PAGE_TIME_MAX: Duration = Duration::from_secs(10);

/// Occurrences, the newest first, read to collect the fields of events.
pub const FIELDS_READ_MAX: usize = 20_000;
/// Changed occurrences that are read individually; if there are more, all are read again.
pub const FIELDS_NEWS_MAX: usize = 2_000;
pub const FIELD_NAMES_MAX: usize = 10_000;

pub const CONNECTIONS_MAX: usize = 10_240;
/// Concurrent unauthenticated connections. Above the limit, the oldest are closed.
pub const UNAUTHENTICATED_MAX: usize = 1_024;
/// Concurrent unauthenticated connections per address (for IPv6, per /64 network).
pub const UNAUTHENTICATED_OF_ADDRESS_MAX: usize = 512;
/// Concurrent calls on unauthenticated connections. Above the limit, the oldest connections are
/// closed.
pub const UNAUTHENTICATED_CALLS_MAX: usize = 4_096;
pub const UNAUTHENTICATED_CALLS_OF_ADDRESS_MAX: usize = 2_048;
pub const UNAUTHENTICATED_QUIET_MAX: Duration = Duration::from_secs(30);
pub const UNAUTHENTICATED_REQUEST_BYTES_MAX: usize = 4 * 1024;
/// Concurrent calls per connection. Clients open further connections for more calls.
pub const STREAMS_PER_CONNECTION_MAX: u32 = 256;
/// Flow-control window of a connection or a call in bytes.
///
/// From the window, the HTTP/2 library derives the number of small messages that may wait on a
/// connection before it assumes an attack. This value leaves room for a small message on each of
/// [`STREAMS_PER_CONNECTION_MAX`] calls.
pub const WINDOW_BYTES: u32 = 1024 * 1024;
pub const HEADER_BYTES_MAX: usize = 16 * 1024;
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
pub const FIRST_CALL_TIME_MAX: Duration = Duration::from_secs(20);
pub const CONNECTION_IDLE_MAX: Duration = Duration::from_secs(600);
/// Calls per connection that were reset before they were accepted.
pub const RESETS_PENDING_MAX: usize = 200;
pub const HEADER_READ_TIME_MAX: Duration = Duration::from_secs(10);
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// Occurrences of one event per request.
pub const OCCURRENCES_PER_REQUEST_MAX: usize = 100;
pub const ROUTES_PER_REQUEST_MAX: usize = 1_000;
/// Interrupted attempts after which a delivery is given up, because its message may be crashing the
/// service. They do not count as regular attempts.
pub const CUT_OFFS_MAX: u32 = 16;
/// Attempts of one delivery that are stored in full although the receiver deferred them. Of further
/// attempts, only the error is stored.
pub const DEFERRALS_MAX: u32 = 50;
/// Deliveries to a destination with a backlog that are sorted by severity. Later deliveries follow
/// in order of time.
pub const RANKED_MAX: usize = 20_000;
pub const OAUTH_PARAMS_MAX: usize = 20;
/// Consecutive messages that a destination rejects with the same response before the destination is
/// considered misconfigured, instead of each message.
pub const REFUSALS_ALIKE_MAX: usize = 20;
/// Attempts of one delivery in a response.
pub const ATTEMPTS_MAX: usize = 100;
pub const TESTS_MAX: usize = 64;
pub const TESTS_RETRY_AFTER: Duration = Duration::from_secs(5);
/// Tests of drafts remembered until the draft is stored.
pub const DRAFT_TESTS_MAX: usize = 64;
pub const DRAFT_TESTS_AFTER: Duration = Duration::from_secs(600);
/// Unreadable deliveries that are skipped until the next start.
pub const SET_ASIDE_MAX: usize = 100_000;
/// Deliveries scanned by one call that resends or cancels.
pub const DELIVERIES_SCANNED_MAX: usize = 10_000;
/// Deliveries resent or cancelled in one commit.
pub const BULK_STEP: usize = 100;
/// Default number of deliveries resent or cancelled by one call.
pub const BULK_DEFAULT: usize = 100;
pub const BULK_MAX: usize = 1_000;
/// Deliveries scanned by one dry run.
pub const BULK_COUNTED_MAX: usize = 50_000;

/// Time for which the response to revoking a key waits until every node has read the revocation.
pub const STORE_NODES_FOLLOW_TIME_MAX: Duration = Duration::from_secs(15);

/// Occurrences that a page of a walk reads from the change log to find those that moved
/// concurrently.
pub const WALK_LOG_NAMES_MAX: usize = 100_000;

/// Size of the intake queue in KiB. Above the limit, senders have to retry.
pub const INTAKE_QUEUE_KIB_MAX: u32 = 64 * 1024;
pub const INTAKE_RETRY_AFTER: Duration = Duration::from_secs(1);
/// Events per commit, unless one request has more.
pub const INTAKE_BATCH_EVENTS: usize = 1_000;
/// Time for which the decision about events is repeated while other clients keep changing the same
/// occurrences.
pub const INTAKE_CONFLICT_TIME_MAX: Duration = Duration::from_secs(10);
/// Intake workers. While one worker waits for its commit, the other workers decide.
pub const INTAKE_WORKERS: usize = 4;
pub const STREAM_BATCH_EVENTS: usize = 200;
/// Longest time for which an event of a stream waits for other events, so that they are decided
/// together.
pub const STREAM_GATHER_TIME: Duration = Duration::from_millis(5);
/// Occurrences per step of ageing and retention.
pub const REVIEW_BATCH: usize = 100;
/// Deliveries of an event or group that are scanned to order a thread.
pub const THREAD_SCANNED_MAX: usize = 1_024;
/// Occurrences whose held notifications are decided in one commit.
pub const HOLDS_BATCH: usize = 50;
/// Concurrent commits that decide held notifications.
pub const HOLDS_AT_ONCE: usize = 4;
/// Groups of a rule notified in one commit.
pub const NOTIFY_BATCH: usize = 32;
/// Reported occurrences after which a commit accepts no more groups.
pub const NOTIFY_MEMBERS: usize = 200;
/// Time limit for the groups of a rule that are notified in one commit, so that groups of other
/// rules need not wait longer.
pub const NOTIFY_TIME_MAX: Duration = Duration::from_secs(30);
/// Concurrent commits that notify the groups of a rule.
pub const NOTIFY_BATCHES_AT_ONCE: usize = 4;
pub const REVIEW_RETRY: Duration = Duration::from_secs(1);
pub const HOLDS_WATCH_INTERVAL: Duration = Duration::from_secs(5);
/// Age of a due hold above which the service reports it in an event.
pub const HOLDS_LATE_EVENT: Duration = Duration::from_secs(60);
/// Age of a due hold above which the service is not ready. Releasing 10,000 notifications at a time
/// takes less.
pub const HOLDS_LATE_MAX: Duration = Duration::from_secs(300);
/// Longest time between two runs of ageing and retention.
pub const REVIEW_INTERVAL_MAX: Duration = Duration::from_secs(60);
/// Longest time until a record that a commit made due is found.
pub const REVIEW_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Concurrent intake requests. One client may use a quarter of this limit and of each of the
/// following limits.
pub const INTAKE_IN_FLIGHT_MAX: usize = 2_048;
pub const READS_IN_FLIGHT_MAX: usize = 256;
/// Concurrent calls that make changes other than to events.
pub const CHANGES_IN_FLIGHT_MAX: usize = 256;
/// Concurrent calls with potentially large responses: pages of lists, previews, explanations.
pub const PAGES_IN_FLIGHT_MAX: usize = 24;
pub const WATCHES_OPEN_MAX: usize = 256;
pub const STREAMS_IN_FLIGHT_MAX: usize = 1_024;
/// Concurrent health check streams, which require no key.
pub const HEALTH_WATCHES_MAX: usize = 64;
/// Concurrent unary calls whose message has not arrived yet.
pub const CALLS_ARRIVING_MAX: usize = 8_192;
pub const REQUEST_MEMORY_KIB_MAX: usize = 128 * 1024;
pub const OVERLOAD_RETRY_AFTER: Duration = Duration::from_secs(1);
/// Top-level fields of one request, counting each entry of a list.
pub const MESSAGE_ENTRIES_MAX: usize = DIALECT_EVENTS_MAX + 100;
/// Bytes of occurrences in one message of a watch, unless a single one is larger.
pub const WATCH_MESSAGE_BYTES: usize = 128 * 1024;
pub const CLIENT_REQUESTS_PER_SECOND_MAX: u32 = 1_000_000;
pub const CLIENT_EVENTS_PER_SECOND_MAX: u32 = 10_000_000;
/// Rejected calls of one address or client within a minute that are reported as an event.
pub const REFUSALS_REPORTED_FROM: u32 = 20;
/// Addresses and clients whose rejected calls are counted concurrently.
pub const REFUSED_SUBJECTS_MAX: usize = 256;
/// Addresses and clients per hour with separate events about rejected calls.
pub const REFUSED_SUBJECTS_REPORTED_MAX: usize = 10;
pub const IDEMPOTENCY_KEY_CHARACTERS_MAX: usize = 255;
/// Time for which the response to a request with an idempotency key is repeated.
pub const RECEIPT_TIME: Duration = Duration::from_secs(24 * 3600);
/// Stored responses for repetition. Above the limit, the oldest are deleted early.
pub const RECEIPTS_MAX: usize = 1_000_000;
/// Total size of stored responses in bytes. Above the limit, the oldest are deleted early.
pub const RECEIPT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of the reasons for rejected events in one stored response. Further events are rejected
/// without a reason.
pub const RECEIPT_REASON_BYTES_MAX: usize = 64 * 1024;
pub const RECEIPT_BATCH: usize = 500;
pub const RECEIPT_SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Default rate at which a backup reads from a running service, in bytes per second.
pub const BACKUP_BYTES_PER_SECOND: u64 = 32 * 1024 * 1024;
pub const BACKUPS_MAX: usize = 2;
pub const CHECKS_MAX: usize = 1;

/// Free space, as a multiple of the floor, below which the disk is reported as nearly full.
pub const DISK_NEARLY_FULL_FLOORS: u64 = 2;
/// Free space, as a multiple of the floor, above which the disk no longer counts as nearly full.
pub const DISK_SPACIOUS_FLOORS: u64 = 3;
pub const CONFIG_DOCUMENTS_MAX: usize = 1_000;

/// Callers and methods distinguished per minute for rejected calls.
pub const AUDIT_REFUSALS_MAX: usize = 100;
