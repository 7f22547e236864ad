//! The limits of the service.

use std::time::Duration;

pub use bellwether_backend_engine::limits::*;
pub use bellwether_backend_model::limits::*;
pub use bellwether_backend_store::limits::*;

pub const EVENTS_PER_REQUEST_MAX: usize = 1_000;
/// Maximum number of events in one request of another dialect, including an event that reports
/// omitted ones.
pub const DIALECT_EVENTS_MAX: usize = bellwether_proto::bulk::EVENTS_MAX + 1;
/// Maximum number of items in one request to annotate or to change statuses.
pub const ITEMS_PER_REQUEST_MAX: usize = 1_000;
/// Maximum length of the name that a calling program gives itself, in characters.
pub const AGENT_CHARS_MAX: usize = 100;
pub const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;
pub use bellwether_proto::bulk::BYTES_MAX as DIALECT_BYTES_MAX;
/// Maximum number of deliveries counted per state if there is no filter.
pub const DELIVERIES_COUNTED_MAX: usize = 1_000_000;
/// Maximum number of routes from one rule to destinations in a response; also the limit for rules
/// that reach one destination.
pub const REACH_MAX: usize = 1_000;
pub const CONTACTS_MAX: usize = 1_000;
pub const SCHEDULES_MAX: usize = 1_000;
pub const POLICIES_MAX: usize = 1_000;
pub const DRILLS_MAX: usize = 50;
pub const DRILL_DIMENSIONS_MAX: usize = 10;
pub const DRILL_EVERY_MIN: Duration = Duration::from_secs(3_600);
pub const DRILL_EVERY_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
pub const DRILL_ACKNOWLEDGE_MIN: Duration = Duration::from_secs(60);
pub const DRILL_ACKNOWLEDGE_MAX: Duration = Duration::from_secs(24 * 3_600);
pub const DRILL_ACKNOWLEDGE_DEFAULT: Duration = Duration::from_secs(900);
pub const CONTACT_METHODS_MAX: usize = 10;
/// Longest delay of a contact method after its contact was paged.
pub const CONTACT_AFTER_MAX: Duration = Duration::from_secs(3_600);
/// Time ahead that is searched for windows in which a method can be used.
pub const CONTACT_CALENDAR_AHEAD: Duration = Duration::from_secs(400 * 86_400);
pub const CONTACT_SUBJECT_CHARACTERS_MAX: usize = 200;
pub const CONTACT_VARIABLES_MAX: usize = 20;
pub const CONTACT_VALUE_CHARACTERS_MAX: usize = 500;
pub const SCHEDULE_LAYERS_MAX: usize = 10;
pub const SCHEDULE_SLOTS_MAX: usize = 100;
/// Maximum number of contacts per slot or override.
pub const SCHEDULE_CONTACTS_MAX: usize = 10;
pub const LAYER_NAME_CHARACTERS_MAX: usize = 100;
/// Maximum number of current and future overrides per schedule.
pub const OVERRIDES_MAX: usize = 100;
pub const OVERRIDE_LENGTH_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
pub const OVERRIDE_RETENTION: Duration = Duration::from_secs(30 * 24 * 3_600);
pub const OVERRIDE_REASON_CHARACTERS_MAX: usize = 250;
pub const SHIFTS_MAX: usize = 1_000;
pub const SHIFTS_TIME_MAX: Duration = Duration::from_secs(400 * 24 * 3_600);
pub const ON_CALL_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Longest time between checks of one schedule.
pub const ON_CALL_CHECK_MAX: Duration = Duration::from_secs(600);
/// Age at which the event about a hand-off closes.
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
/// Maximum number of fields whose values identify a beat.
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
/// Largest forward clock step to which due times are adjusted. A larger step corrects a clock that
/// was plainly wrong; everything due before the new time is due.
pub const CLOCK_FORWARD_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Time after which a clock step that the leader has not noticed is attributed to this node only.
pub const CLOCK_STEP_OWN_AFTER: Duration = Duration::from_secs(60);
/// Delay before index entries are adjusted again. By then, all nodes have noticed the clock step.
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
/// Maximum number of expected sets of values per heartbeat.
pub const EXPECTATIONS_MAX: usize = 10_000;
/// Maximum number of expected sets of values of all heartbeats. A backup keeps all of them in
/// memory at its end.
pub const ALL_EXPECTATIONS_MAX: usize = 100_000;
/// Time within which beats of a heartbeat without fields count as one.
pub const BEATS_APART: Duration = Duration::from_secs(1);
pub const HEARTBEAT_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Interval at which the service time is stored. Nodes may differ by this amount.
pub const SERVICE_TIME_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum size of a response in bytes: a full page of the largest events.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
pub const PAGE_SIZE_MAX: usize = 1_000;
pub const PAGE_SIZE_DEFAULT: usize = 50;
/// Maximum size of the triggers, destinations or rules on one page, in bytes, unless a single one
/// is larger. With the overhead of the wire format, a page fits into the default limit of gRPC
/// clients, 4 MiB.
pub const LIST_PAGE_BYTES: usize = 3 * 1024 * 1024;
/// Number of triggers, destinations or rules that a list reads in its first step.
pub const LIST_STEP_FIRST: usize = 16;
/// Maximum number of triggers, destinations or rules that a list reads per step.
pub const LIST_STEP_MAX: usize = 256;

pub const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Tolerated difference between the clocks of the service and an identity provider.
pub const TOKEN_CLOCK_LEEWAY: Duration = Duration::from_secs(60);
/// Maximum number of tokens tracked in order to end their calls on expiry. Above the limit, the
/// token that expires first is dropped together with its calls.
pub const TOKENS_KNOWN_MAX: usize = 10_000;
pub const PROVIDER_KEYS_MAX: usize = 64;
pub const PROVIDER_KEYS_INTERVAL: Duration = Duration::from_secs(600);
/// Shortest time between two fetches, regardless of the presented tokens.
pub const PROVIDER_KEYS_PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of concurrent browser sign-ins that query the provider, including those of
/// unauthenticated clients. One address may use a quarter.
pub const BROWSER_SIGN_INS_MAX: usize = 16;
/// Time for a browser to complete the sign-in.
pub const BROWSER_SIGN_IN: Duration = Duration::from_secs(600);

/// Minimum duration of attempts for which a destination counts as slow.
pub const SLOW_FROM: Duration = Duration::from_secs(5);
/// Minimum age of the oldest waiting delivery for which a destination counts as delayed.
pub const BEHIND_FROM: Duration = Duration::from_secs(300);

/// Retention of the counters per minute, in minutes: a day, plus the column that the day begins in.
pub const COUNTER_MINUTES: u32 = 25 * 60;
/// Retention of the counters per hour, in hours: 30 days, plus the column that they begin in.
pub const COUNTER_HOURS: u32 = 31 * 24;
/// Retention of the counters for the noise report, in days.
pub const NOISE_DAYS: u32 = 400;
pub const NOISE_SPAN: Duration = Duration::from_secs(7 * 24 * 3600);
pub const NOISE_ROWS_MAX: usize = 1_000;
pub const NOISE_COUNTERS_MAX: usize = 2_000_000;
/// Maximum number of deliveries read for a noise report, newest first; also the limit for
/// occurrences.
pub const NOISE_RECORDS_MAX: usize = 50_000;
pub const NOISE_EVENTS_MAX: usize = 5;
pub const STATISTICS_SPAN_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
pub const STATISTICS_COLUMNS_MAX: u32 = 120;
/// Maximum number of destinations covered by statistics; also the limit for rules.
pub const STATISTICS_SUBJECTS_MAX: usize = 200;

/// Maximum number of steps that the templates and conditions of a mapping may take per document.
pub const MAPPING_STEPS_MAX: usize = 4_000_000;

pub const EVENT_SUMMARY_BYTES_MAX: usize = 1024;
pub const EVENT_BODY_BYTES_MAX: usize = 64 * 1024;
pub const EVENT_DIMENSIONS_MAX: usize = 64;
/// Maximum total size of the keys and values of an event's dimensions, in bytes.
pub const EVENT_DIMENSION_BYTES_MAX: usize = 64 * 1024;
/// Maximum size of an event's metadata fields as JSON, in bytes.
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
/// Maximum number of paths of encoded parts per mapping.
pub const MAPPING_PARSE_MAX: usize = 10;
/// Maximum nesting depth of a document after its encoded parts are decoded, as for the JSON of a
/// body.
pub const MAPPING_DEPTH_MAX: usize = 127;
/// Maximum number of rejected or dropped documents that are kept for each mapping and client.
pub const REJECTED_DOCUMENTS_MAX: usize = 20;
/// Maximum number of pairs of mapping and client whose rejected documents are kept.
pub const REJECTED_SENDERS_MAX: usize = 500;
pub const REJECTED_DOCUMENT_BYTES_MAX: usize = 2 * 1024;
pub const REJECTED_REASON_BYTES_MAX: usize = 500;
/// Maximum size of a request body that can be a handshake, in bytes.
pub const HANDSHAKE_BYTES_MAX: usize = 64 * 1024;
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of actions from one request to a mapping.
pub const MAPPED_ACTIONS_MAX: usize = 100;
pub const MAPPED_DESTINATIONS_MAX: usize = 20;
/// Maximum total output of a mapping for one document, in bytes.
pub const MAPPED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum nesting depth of the stored part of a document.
pub const MAPPED_DATA_DEPTH_MAX: usize = 24;
pub const MAPPING_TEST_BYTES_MAX: usize = 1024 * 1024;
pub const MAPPING_HEADERS_MAX: usize = 100;
/// Maximum age of a request whose signature covers its time.
pub const SIGNATURE_AGE_MAX: Duration = Duration::from_secs(300);
pub const MAIL_ADDRESSES_MAX: usize = 20;
pub const MAIL_NAME_CHARACTERS_MAX: usize = 200;
pub const MAIL_LIST_ID_CHARACTERS_MAX: usize = 255;
pub const MAIL_REPLY_LINE_BYTES_MAX: usize = 4 * 1024;
pub const MAIL_REPLY_BYTES_MAX: usize = 64 * 1024;
/// Longest timeout for a mail server's reply to DATA (RFC 5321, 4.5.3.2.6).
pub const MAIL_ANSWER_TIMEOUT_MAX: Duration = Duration::from_secs(600);
pub const HEADERS_MAX: usize = 50;
/// Maximum total size of a header's name and value, in bytes.
pub const HEADER_VALUE_BYTES_MAX: usize = 8 * 1024;
/// Maximum size of a secret, and of other single-line settings of a destination, in bytes.
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
/// Maximum number of occurrences that can join a group in one message, or that can be reported as
/// changed in one.
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
/// Shortest period in which openings are counted, and shortest quiet time that ends flapping.
pub const FLAPPING_TIME_MIN: Duration = Duration::from_secs(60);
pub const FLAPPING_TIME_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Maximum number of triggers per rule; also the limit for destinations.
pub const RULE_NAMES_MAX: usize = 100;
/// Maximum number of earlier revisions stored per trigger or rule.
pub const REVISIONS_OF_ONE_MAX: u64 = 100;
pub const REVISIONS_MAX: usize = 10_000;
pub const REVISIONS_STEP: usize = 100;
pub const REPEAT_INTERVAL_SECONDS_MAX: u32 = 31_536_000;

pub const CALENDARS_MAX: usize = 1_000;
pub const CALENDAR_WINDOWS_MAX: usize = 50;
pub const CALENDAR_EXCEPT_MAX: usize = 10;
pub const CALENDAR_SPANS_MAX: usize = 1_000;
pub const INHIBITIONS_MAX: usize = 500;
pub const ENRICHMENT_TABLES_MAX: usize = 20;
/// Maximum number of stored events in a preview of an enrichment table, newest first.
pub const ENRICHMENT_PREVIEW_EVENTS_MAX: usize = 10_000;
pub const ENRICHMENT_PREVIEW_SHOWN_MAX: usize = 20;
pub const VIEWS_MAX: usize = 500;
pub const VIEW_COLUMNS_MAX: usize = 20;
pub const VIEW_COLUMN_CHARACTERS_MAX: usize = 40;
pub const INHIBITION_EQUAL_MAX: usize = 8;
pub const INHIBITION_LINGER_DEFAULT: Duration = Duration::from_secs(60);
pub const INHIBITION_LINGER_MAX: Duration = Duration::from_secs(3_600);
/// Number of sources with the same values that are read first. More are read until an active source
/// is found, or all have been read.
pub const INHIBITION_SOURCES_READ: usize = 16;
/// Maximum number of rounds of a decision. Each round reads the causes and groups that the previous
/// one requested. Each link in a chain of causes takes two rounds, and more if many causes have the
/// same values.
pub const SETTLE_ROUNDS_MAX: usize = 100;
/// Maximum number of current and future silences.
pub const SILENCES_MAX: usize = 10_000;
/// Maximum number of open events that a silence may cover without confirmation by its author.
pub const SILENCE_COVERS_MAX: usize = 1_000;
/// Minimum number of open events for which a silence that covers half of them requires
/// confirmation.
pub const SILENCE_SHARE_FROM: usize = 20;
pub const SILENCE_LENGTH_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Longest time for which a silence may cover no events before it ends.
pub const SILENCE_IDLE_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
/// Maximum length of a silence's reason, and of a comment, in characters.
pub const SILENCE_TEXT_CHARACTERS_MAX: usize = 1_000;
pub const SILENCE_COMMENTS_MAX: usize = 100;
pub const SILENCE_ANNOTATIONS_MAX: usize = 50;
/// Maximum number of silences on a page that are counted again because they were edited
/// concurrently.
pub const SILENCES_RECOUNTED_MAX: usize = 10;
/// Maximum number of events counted as covered, held or skipped by a silence.
pub const SILENCES_COUNTED_MAX: usize = 100_000;
pub const TIMELINE_MAX: usize = 1_000;
pub const HOLDS_SHOWN_MAX: usize = 16;

/// Maximum number of occurrences scanned by a trigger test whose client receives no progress
/// reports.
pub const TRIGGER_TEST_OCCURRENCES_MAX: usize = 200_000;
pub const TRIGGER_TEST_TIME_MAX: Duration = Duration::from_secs(10);
pub const TRIGGER_TEST_STEP: usize = 2_000;
pub const TRIGGER_TEST_SHOWN_MAX: usize = 100;

pub const REPLAY_DAYS_MAX: u32 = 30;
pub const REPLAY_DAYS: u32 = 7;
/// Maximum number of occurrences in a replay. The newest ones are replayed.
pub const REPLAY_OCCURRENCES_MAX: usize = 10_000;
pub const REPLAY_STEPS_MAX: usize = 200_000;
/// Maximum number of repeats of one occurrence that a replay includes.
pub const REPLAY_REPEATS_MAX: u64 = 1_000;
/// Maximum number of rows that a replay keeps in memory, each about 1.3 kB: commits, and
/// occurrences and messages with about six index entries each.
pub const REPLAY_ROWS_MAX: u64 = 200_000;
/// Number of steps of a replay between two checks of the limits.
pub const REPLAY_STEP: usize = 100;
/// Time limit of a replay; an impact preview consists of two replays.
pub const REPLAY_TIME_MAX: Duration = Duration::from_secs(10);
/// Time before the reported days at which a replay begins.
pub const REPLAY_WARM_UP: Duration = Duration::from_secs(24 * 3_600);
pub const IMPACT_SHOWN_MAX: usize = 20;

/// Maximum number of threads for searches, previews, explanations and exports. At most half of the
/// CPUs are used. Reviews, releases and retention have the same number of threads.
pub const BACKGROUND_THREADS_MAX: usize = 4;
/// Maximum number of threads that read the store for the background threads.
pub const BACKGROUND_READERS_MAX: usize = 8;
/// Maximum number of concurrent searches, previews, explanations and exports. One client may use a
/// quarter of these and of the waiting ones.
pub const SCANS_RUNNING_MAX: usize = 16;
/// Maximum number of searches, previews, explanations and exports that may wait.
pub const SCANS_WAITING_MAX: usize = 128;
/// Maximum number of waiting renderings per purpose, such as previews. One client may use a
/// quarter.
pub const RENDERS_WAITING_MAX: usize = 128;
/// CPU time limit for rendering one message, or the events of one document; ten times as long in
/// unoptimized builds.
pub const RENDER_TIME_MAX: Duration =
    Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 200 });
pub const RENDER_STUCK_AFTER: Duration = Duration::from_secs(10);
pub const RENDER_STUCK_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of concurrent steps of streams, such as watches, on the background threads.
pub const SCAN_STEPS_RUNNING_MAX: usize = 16;
/// Time that one step of a stream may take.
pub const SCAN_TURN: Duration = Duration::from_millis(2);
/// Number of bytes of records that one step of a stream reads at a time, unless a single record is
/// larger.
pub const SCAN_BATCH_BYTES: usize = 2 * 1024 * 1024;

/// Time limit for filling a page of events, deliveries, outstanding resolutions, groups or audit
/// entries. An incomplete page is returned with a token for the remaining items.
pub const PAGE_TIME_MAX: Duration = Duration::from_secs(10);

/// Maximum number of occurrences read to collect the fields of events, newest first.
pub const FIELDS_READ_MAX: usize = 20_000;
/// Maximum number of changed occurrences that are read individually; if there are more, all are
/// read again.
pub const FIELDS_NEWS_MAX: usize = 2_000;
pub const FIELD_NAMES_MAX: usize = 10_000;

pub const CONNECTIONS_MAX: usize = 10_240;
/// Maximum number of concurrent unauthenticated connections. Above the limit, the oldest are
/// closed.
pub const UNAUTHENTICATED_MAX: usize = 1_024;
/// Maximum number of concurrent unauthenticated connections per address (for IPv6, per /64
/// network).
pub const UNAUTHENTICATED_OF_ADDRESS_MAX: usize = 512;
/// Maximum number of concurrent calls on unauthenticated connections. Above the limit, the oldest
/// connections are closed.
pub const UNAUTHENTICATED_CALLS_MAX: usize = 4_096;
pub const UNAUTHENTICATED_CALLS_OF_ADDRESS_MAX: usize = 2_048;
pub const UNAUTHENTICATED_QUIET_MAX: Duration = Duration::from_secs(30);
pub const UNAUTHENTICATED_REQUEST_BYTES_MAX: usize = 4 * 1024;
/// Maximum number of concurrent calls per connection. Clients open further connections for more
/// calls.
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
/// Maximum number of calls per connection that were reset before they were accepted.
pub const RESETS_PENDING_MAX: usize = 200;
pub const HEADER_READ_TIME_MAX: Duration = Duration::from_secs(10);
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum number of occurrences of one event that a request may name.
pub const OCCURRENCES_PER_REQUEST_MAX: usize = 100;
pub const ROUTES_PER_REQUEST_MAX: usize = 1_000;
/// Number of interrupted attempts after which a delivery is given up, because its message may be
/// crashing the service. Interrupted attempts do not count as regular ones.
pub const CUT_OFFS_MAX: u32 = 16;
/// Maximum number of attempts of one delivery that are stored in full although the receiver
/// deferred them. Of further attempts, only the error is stored.
pub const DEFERRALS_MAX: u32 = 50;
/// Maximum number of deliveries to a destination with a backlog that are sorted by severity. Later
/// deliveries follow in order of time.
pub const RANKED_MAX: usize = 20_000;
pub const OAUTH_PARAMS_MAX: usize = 20;
/// Number of consecutive messages rejected with the same response after which the destination
/// counts as misconfigured, rather than each message as faulty.
pub const REFUSALS_ALIKE_MAX: usize = 20;
/// Maximum number of attempts of one delivery in a response.
pub const ATTEMPTS_MAX: usize = 100;
pub const TESTS_MAX: usize = 64;
pub const TESTS_RETRY_AFTER: Duration = Duration::from_secs(5);
/// Maximum number of tests of drafts remembered until their drafts are stored.
pub const DRAFT_TESTS_MAX: usize = 64;
pub const DRAFT_TESTS_AFTER: Duration = Duration::from_secs(600);
/// Maximum number of unreadable deliveries that are skipped until the next start.
pub const SET_ASIDE_MAX: usize = 100_000;
/// Maximum number of deliveries scanned by one call that resends or cancels.
pub const DELIVERIES_SCANNED_MAX: usize = 10_000;
/// Maximum number of deliveries resent or cancelled in one commit.
pub const BULK_STEP: usize = 100;
/// Default number of deliveries resent or cancelled by one call.
pub const BULK_DEFAULT: usize = 100;
pub const BULK_MAX: usize = 1_000;
/// Maximum number of deliveries scanned by one dry run.
pub const BULK_COUNTED_MAX: usize = 50_000;

/// Maximum time that the response to revoking a key waits for every node to read the revocation.
pub const STORE_NODES_FOLLOW_TIME_MAX: Duration = Duration::from_secs(15);

/// Maximum number of occurrences that a page reads from the change log to find those that moved
/// while the list was paged through.
pub const WALK_LOG_NAMES_MAX: usize = 100_000;

/// Maximum size of the intake queue in KiB. Above the limit, senders have to retry.
pub const INTAKE_QUEUE_KIB_MAX: u32 = 64 * 1024;
pub const INTAKE_RETRY_AFTER: Duration = Duration::from_secs(1);
/// Maximum number of events per commit, unless one request has more.
pub const INTAKE_BATCH_EVENTS: usize = 1_000;
/// Maximum time for which events are decided again while other clients keep changing the same
/// occurrences.
pub const INTAKE_CONFLICT_TIME_MAX: Duration = Duration::from_secs(10);
/// Number of intake workers. While one worker waits for its commit, the other workers decide.
pub const INTAKE_WORKERS: usize = 4;
pub const STREAM_BATCH_EVENTS: usize = 200;
/// Longest time for which an event of a stream waits for other events, so that they are decided
/// together.
pub const STREAM_GATHER_TIME: Duration = Duration::from_millis(5);
/// Number of occurrences per step of ageing and retention.
pub const REVIEW_BATCH: usize = 100;
/// Maximum number of deliveries of an event or group that are scanned to order a thread.
pub const THREAD_SCANNED_MAX: usize = 1_024;
/// Number of occurrences whose held notifications are decided in one commit.
pub const HOLDS_BATCH: usize = 50;
/// Number of concurrent commits that decide held notifications.
pub const HOLDS_AT_ONCE: usize = 4;
/// Maximum number of groups of a rule that are notified in one commit.
pub const NOTIFY_BATCH: usize = 32;
/// Number of reported occurrences after which a commit accepts no more groups.
pub const NOTIFY_MEMBERS: usize = 200;
/// Time limit for the groups of a rule that are notified in one commit, so that groups of other
/// rules need not wait longer.
pub const NOTIFY_TIME_MAX: Duration = Duration::from_secs(30);
/// Number of concurrent commits that notify the groups of a rule.
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
/// Maximum number of concurrent intake requests. One client may use a quarter of this limit, and of
/// each of those below.
pub const INTAKE_IN_FLIGHT_MAX: usize = 2_048;
pub const READS_IN_FLIGHT_MAX: usize = 256;
/// Maximum number of concurrent calls that change anything other than events.
pub const CHANGES_IN_FLIGHT_MAX: usize = 256;
/// Maximum number of concurrent calls with potentially large responses: pages of lists, previews,
/// explanations.
pub const PAGES_IN_FLIGHT_MAX: usize = 24;
pub const WATCHES_OPEN_MAX: usize = 256;
pub const STREAMS_IN_FLIGHT_MAX: usize = 1_024;
/// Maximum number of concurrent health check streams, which require no key.
pub const HEALTH_WATCHES_MAX: usize = 64;
/// Maximum number of concurrent unary calls whose message has not arrived yet.
pub const CALLS_ARRIVING_MAX: usize = 8_192;
pub const REQUEST_MEMORY_KIB_MAX: usize = 128 * 1024;
pub const OVERLOAD_RETRY_AFTER: Duration = Duration::from_secs(1);
/// Maximum number of top-level fields of one request, counting each entry of a list.
pub const MESSAGE_ENTRIES_MAX: usize = DIALECT_EVENTS_MAX + 100;
/// Maximum size of the occurrences in one message of a watch, in bytes, unless a single one is
/// larger.
pub const WATCH_MESSAGE_BYTES: usize = 128 * 1024;
pub const CLIENT_REQUESTS_PER_SECOND_MAX: u32 = 1_000_000;
pub const CLIENT_EVENTS_PER_SECOND_MAX: u32 = 10_000_000;
/// Number of rejected calls of one address or client within a minute above which an event reports
/// them.
pub const REFUSALS_REPORTED_FROM: u32 = 20;
/// Maximum number of addresses and clients whose rejected calls are counted concurrently.
pub const REFUSED_SUBJECTS_MAX: usize = 256;
/// Maximum number of addresses and clients per hour with separate events about rejected calls.
pub const REFUSED_SUBJECTS_REPORTED_MAX: usize = 10;
pub const IDEMPOTENCY_KEY_CHARACTERS_MAX: usize = 255;
/// Time for which the response to a request with an idempotency key is repeated.
pub const RECEIPT_TIME: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of stored responses for repetition. Above the limit, the oldest are deleted
/// early.
pub const RECEIPTS_MAX: usize = 1_000_000;
/// Maximum total size of stored responses in bytes. Above the limit, the oldest are deleted early.
pub const RECEIPT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Maximum size of the reasons for rejected events in one stored response, in bytes. Further
/// reasons are omitted.
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

/// Maximum number of callers and methods distinguished per minute for rejected calls.
pub const AUDIT_REFUSALS_MAX: usize = 100;
