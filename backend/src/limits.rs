//! Every bound of the service, by name.

use std::time::Duration;

pub use bellwether_backend_engine::limits::*;
pub use bellwether_backend_model::limits::*;
pub use bellwether_backend_store::limits::*;

/// Events in one request.
pub const EVENTS_PER_REQUEST_MAX: usize = 1_000;
/// Events in one request of another dialect, with one that shows what was left out.
pub const DIALECT_EVENTS_MAX: usize = bellwether_proto::bulk::EVENTS_MAX + 1;
/// Items in one annotate or status request.
pub const ITEMS_PER_REQUEST_MAX: usize = 1_000;
/// Bytes of one request message.
pub const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of one request message with the events of another dialect.
pub use bellwether_proto::bulk::BYTES_MAX as DIALECT_BYTES_MAX;
/// Deliveries of one state that are counted without a filter.
pub const DELIVERIES_COUNTED_MAX: usize = 1_000_000;
/// Contacts, schedules and escalation policies, each in all.
pub const CONTACTS_MAX: usize = 1_000;
/// See [`CONTACTS_MAX`].
pub const SCHEDULES_MAX: usize = 1_000;
/// See [`CONTACTS_MAX`].
pub const POLICIES_MAX: usize = 1_000;
/// Methods of a contact.
pub const CONTACT_METHODS_MAX: usize = 10;
/// How long after a contact is paged a method is used at the latest.
pub const CONTACT_AFTER_MAX: Duration = Duration::from_secs(3_600);
/// Characters of the user name of a contact.
pub const CONTACT_SUBJECT_CHARACTERS_MAX: usize = 200;
/// Variables of a method, and characters of the value of one.
pub const CONTACT_VARIABLES_MAX: usize = 20;
/// See [`CONTACT_VARIABLES_MAX`].
pub const CONTACT_VALUE_CHARACTERS_MAX: usize = 500;
/// Layers of a schedule, slots of a layer, and contacts of a slot or an override.
pub const SCHEDULE_LAYERS_MAX: usize = 10;
/// See [`SCHEDULE_LAYERS_MAX`].
pub const SCHEDULE_SLOTS_MAX: usize = 100;
/// See [`SCHEDULE_LAYERS_MAX`].
pub const SCHEDULE_CONTACTS_MAX: usize = 10;
/// Characters of the name of a layer.
pub const LAYER_NAME_CHARACTERS_MAX: usize = 100;
/// Overrides of a schedule that are not over.
pub const OVERRIDES_MAX: usize = 100;
/// The longest override.
pub const OVERRIDE_LENGTH_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
/// How long an override is kept after its end.
pub const OVERRIDE_KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Characters of the reason of an override.
pub const OVERRIDE_REASON_CHARACTERS_MAX: usize = 250;
/// Shifts that one answer has, and the time that one may ask for.
pub const SHIFTS_MAX: usize = 1_000;
/// See [`SHIFTS_MAX`].
pub const SHIFTS_TIME_MAX: Duration = Duration::from_secs(400 * 24 * 3_600);
/// How often schedules are looked at for hand-offs, how long one is left alone at the most, and how far
/// ahead a gap is reported.
pub const ON_CALL_LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// See [`ON_CALL_LOOK_INTERVAL`].
pub const ON_CALL_LOOK_MAX: Duration = Duration::from_secs(600);
/// See [`ON_CALL_LOOK_INTERVAL`].
pub const ON_CALL_AHEAD: Duration = Duration::from_secs(24 * 3_600);
/// Steps of an escalation policy, targets of a step, and rounds.
pub const ESCALATION_STEPS_MAX: usize = 20;
/// See [`ESCALATION_STEPS_MAX`].
pub const ESCALATION_TARGETS_MAX: usize = 20;
/// See [`ESCALATION_STEPS_MAX`].
pub const ESCALATION_ROUNDS_MAX: u32 = 10;
/// Messages that the preview of a policy shows.
pub const ESCALATION_NOTICES_MAX: usize = 1_000;
/// How long the next step waits at the most, and where a step does not say.
pub const ESCALATION_WAIT_MAX: Duration = Duration::from_secs(24 * 3_600);
/// See [`ESCALATION_WAIT_MAX`].
pub const ESCALATION_WAIT_DEFAULT: Duration = Duration::from_secs(300);
/// How long an acknowledgement counts at the least, where it ends, and at the most.
pub const ACKNOWLEDGEMENT_MIN: Duration = Duration::from_secs(60);
/// See [`ACKNOWLEDGEMENT_MIN`].
pub const ACKNOWLEDGEMENT_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Heartbeats in all.
pub const HEARTBEATS_MAX: usize = 1_000;
/// Fields whose values distinguish beats.
pub const HEARTBEAT_FIELDS_MAX: usize = 5;
/// Dimensions that an event of a heartbeat has beside its own.
pub const HEARTBEAT_DIMENSIONS_MAX: usize = 10;
/// The shortest and the longest time between two beats.
pub const HEARTBEAT_EVERY_MIN: Duration = Duration::from_secs(30);
/// See [`HEARTBEAT_EVERY_MIN`].
pub const HEARTBEAT_EVERY_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
/// The least grace of a heartbeat that does not give one, and the longest.
pub const HEARTBEAT_GRACE_MIN: Duration = Duration::from_secs(10);
/// See [`HEARTBEAT_GRACE_MIN`].
pub const HEARTBEAT_GRACE_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
/// The grace of a heartbeat with a cron expression, unless given.
pub const HEARTBEAT_GRACE_OF_CRON: Duration = Duration::from_secs(3_600);
/// How long after its last beat a set of values is expected, unless a heartbeat says otherwise; and the
/// longest.
pub const HEARTBEAT_FORGET_DEFAULT: Duration = Duration::from_secs(30 * 24 * 3_600);
/// See [`HEARTBEAT_FORGET_DEFAULT`].
pub const HEARTBEAT_FORGET_MAX: Duration = Duration::from_secs(3_660 * 24 * 3_600);
/// The shortest and the longest time that a run may take.
pub const HEARTBEAT_RUN_MIN: Duration = Duration::from_secs(1);
/// See [`HEARTBEAT_RUN_MIN`].
pub const HEARTBEAT_RUN_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Time between two checks whether the clock was set.
pub const CLOCK_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A clock that is set forward by more than this was plainly wrong before: what is due by the new time is due.
pub const CLOCK_FORWARD_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Time after which a step of the database's clock that the node that leads has not noticed is of one node alone.
pub const CLOCK_STEP_OWN_AFTER: Duration = Duration::from_secs(60);
/// Time after which index entries are put in order once more: nodes have noticed a step of the clock by then.
pub const CLOCK_INDEX_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// The longest wait for decisions that are being stored when a step of the clock is applied.
pub const CLOCK_STILL_WAIT_MAX: Duration = Duration::from_secs(1);
/// A step of the clock that makes the windows of heartbeats wider for a time.
pub const CLOCK_STEP_MIN: Duration = Duration::from_secs(2);
/// By how much, at most.
pub const CLOCK_SLACK_MAX: Duration = Duration::from_secs(48 * 3_600);
/// How long after the step.
pub const CLOCK_SLACK_TIME: Duration = Duration::from_secs(24 * 3_600);
/// How long a ping of an external monitor may take.
pub const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// The shortest and the longest time between two pings.
pub const PING_EVERY_MIN: Duration = Duration::from_secs(10);
/// See [`PING_EVERY_MIN`].
pub const PING_EVERY_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Sets of values that one heartbeat expects.
pub const EXPECTATIONS_MAX: usize = 10_000;
/// Sets of values that all heartbeats expect: the end of a backup holds all of them in memory.
pub const ALL_EXPECTATIONS_MAX: usize = 100_000;
/// Beats of heartbeats without fields within this time are one.
pub const BEATS_APART: Duration = Duration::from_secs(1);
/// The longest time between two looks at heartbeats that nothing is known to happen to.
pub const HEARTBEAT_LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// How often the time of service is stored; a node may be that much behind another.
pub const SERVICE_TIME_INTERVAL: Duration = Duration::from_secs(5);
/// Bytes of one answer: a full page of the largest events.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How long a unary request may take.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
/// Records on one page of a list.
pub const PAGE_SIZE_MAX: usize = 1_000;
/// Records on a page when the caller does not say.
pub const PAGE_SIZE_DEFAULT: usize = 50;
/// Bytes of triggers, destinations or rules on one page, unless one alone has more: with what each
/// adds on the wire, a page fits into the 4 MiB that gRPC clients take by default.
pub const LIST_PAGE_BYTES: usize = 3 * 1024 * 1024;
/// Triggers, destinations or rules that a list reads at a time to begin with.
pub const LIST_STEP_FIRST: usize = 16;
/// Triggers, destinations or rules that a list reads at a time.
pub const LIST_STEP_MAX: usize = 256;

/// Bytes of a token that a user signs in with.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// How far the clocks of the service and of a provider of identities may be apart.
pub const TOKEN_CLOCK_LEEWAY: Duration = Duration::from_secs(60);
/// Tokens whose calls are ended when they end; above it that which ends first is let go with its
/// calls.
pub const TOKENS_KNOWN_MAX: usize = 10_000;
/// Keys of a provider of identities.
pub const PROVIDER_KEYS_MAX: usize = 64;
/// How often a provider is asked for its keys.
pub const PROVIDER_KEYS_INTERVAL: Duration = Duration::from_secs(600);
/// How long it is not asked again, whatever tokens are shown.
pub const PROVIDER_KEYS_PAUSE: Duration = Duration::from_secs(5);
/// Sign-ins by browsers that ask a provider concurrently, whatever unauthenticated clients begin;
/// those of one address have a quarter.
pub const BROWSER_SIGN_INS_MAX: usize = 16;
/// How long a browser may be away to sign in.
pub const BROWSER_SIGN_IN: Duration = Duration::from_secs(600);

/// A destination is slow when its attempts take so long.
pub const SLOW_FROM: Duration = Duration::from_secs(5);
/// A destination is behind when something has waited for it so long.
pub const BEHIND_FROM: Duration = Duration::from_secs(300);

/// Minutes for which what happened in each is kept: a day, and what a column of a day begins with.
pub const COUNTER_MINUTES: u32 = 25 * 60;
/// Hours for which what happened in each is kept: 30 days, and what a column of them begins with.
pub const COUNTER_HOURS: u32 = 31 * 24;
/// Days for which what shows noise is kept.
pub const NOISE_DAYS: u32 = 400;
/// How far back a noise report reaches by default.
pub const NOISE_SPAN: Duration = Duration::from_secs(7 * 24 * 3600);
/// Rows of a noise report.
pub const NOISE_ROWS_MAX: usize = 1_000;
/// Counters that a noise report reads.
pub const NOISE_COUNTERS_MAX: usize = 2_000_000;
/// Stored deliveries, and occurrences, that a noise report reads, the newest first.
pub const NOISE_RECORDS_MAX: usize = 50_000;
/// Events that each row of it names.
pub const NOISE_EVENTS_MAX: usize = 5;
/// How far back statistics reach.
pub const STATISTICS_SPAN_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// Columns of statistics.
pub const STATISTICS_COLUMNS_MAX: u32 = 120;
/// Destinations, and rules, that statistics report on.
pub const STATISTICS_SUBJECTS_MAX: usize = 200;

/// Steps that the templates and conditions of a mapping may take for one document.
pub const MAPPING_STEPS_MAX: usize = 4_000_000;

/// Bytes of an event's summary.
pub const EVENT_SUMMARY_BYTES_MAX: usize = 1024;
/// Bytes of an event's body.
pub const EVENT_BODY_BYTES_MAX: usize = 64 * 1024;
/// Dimensions of an event.
pub const EVENT_DIMENSIONS_MAX: usize = 64;
/// Bytes of the keys and values of an event's dimensions together.
pub const EVENT_DIMENSION_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an event's metadata fields, as JSON.
pub const EVENT_METADATA_BYTES_MAX: usize = 64 * 1024;
/// Bytes to which the values of dimensions are cut that are too large together.
pub const FITTED_DIMENSION_BYTES: usize = 512;
/// How old an event's timestamp may be.
pub const EVENT_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// How far ahead an event's timestamp may be.
pub const EVENT_AHEAD_MAX: Duration = Duration::from_secs(3600);
/// Bytes of the name of a reporter.
pub const REPORTER_BYTES_MAX: usize = 256;
/// Annotations on one occurrence.
pub const ANNOTATIONS_MAX: usize = 100;
/// Bytes of an annotation.
pub const ANNOTATION_BYTES_MAX: usize = 16 * 1024;
/// Characters of an address that messages go to.
pub const URL_CHARACTERS_MAX: usize = 2_048;
/// Characters of the name of a variable.
pub const VALUE_NAME_MAX: usize = 50;
/// Values that a variable tells apart.
pub const VALUE_MAP_MAX: usize = 100;
/// Statuses that a webhook expects.
pub const STATUSES_MAX: usize = 20;
/// Intake mappings.
pub const MAPPINGS_MAX: usize = 1_000;
/// Bytes of the path of a member of a document.
pub const MAPPING_PATH_BYTES_MAX: usize = 256;
/// Bytes of all that a mapping makes of one document.
pub const MAPPED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Lists and objects inside one another in what is kept of a document.
pub const MAPPED_DATA_DEPTH_MAX: usize = 24;
/// Bytes of a document that a mapping is tried on.
pub const MAPPING_TEST_BYTES_MAX: usize = 1024 * 1024;
/// Headers of a request that a mapping sees.
pub const MAPPING_HEADERS_MAX: usize = 100;
/// How old a request that is signed with its time may be.
pub const SIGNATURE_AGE_MAX: Duration = Duration::from_secs(300);
/// Addresses that one mail goes to.
pub const MAIL_ADDRESSES_MAX: usize = 20;
/// Characters of the name beside a mail address.
pub const MAIL_NAME_CHARACTERS_MAX: usize = 200;
/// Characters of the name of a mailing list.
pub const MAIL_LIST_ID_CHARACTERS_MAX: usize = 255;
/// Bytes of a line of a mail server's reply.
pub const MAIL_REPLY_LINE_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a mail server's reply.
pub const MAIL_REPLY_BYTES_MAX: usize = 64 * 1024;
/// How long a mail server may take to answer the text of a mail (RFC 5321, 4.5.3.2.6).
pub const MAIL_ANSWER_TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// Headers of a webhook.
pub const HEADERS_MAX: usize = 50;
/// Bytes of a header's name and value together.
pub const HEADER_VALUE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a secret, and of other single-line settings of a destination.
pub const SETTING_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a certificate or a key in PEM.
pub const PEM_BYTES_MAX: usize = 16 * 1024;
/// Characters of a description.
pub const DESCRIPTION_CHARACTERS_MAX: usize = 1_000;
/// Tags of a resource.
pub const TAGS_MAX: usize = 20;
/// Characters of a tag.
pub const TAG_CHARACTERS_MAX: usize = 100;
/// How long a rule waits from the first match before it notifies, at most.
pub const RULE_DELAY_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Fields by which a rule groups.
pub const GROUP_BY_MAX: usize = 10;
/// How long the first message of a group waits for more, where the rule does not say.
pub const GROUP_WAIT_DEFAULT: Duration = Duration::from_secs(30);
/// How long the first message of a group waits for more, at most.
pub const GROUP_WAIT_MAX: Duration = Duration::from_secs(3_600);
/// How long after a message the next one of the group goes out, at least.
pub const GROUP_INTERVAL_MIN: Duration = Duration::from_secs(10);
/// The same, at most.
pub const GROUP_INTERVAL_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Occurrences that join a group with one message, and that a message tells a change of.
pub const GROUP_JOINING_MAX: usize = 1_000;
/// The longest time that a setting which all nodes share may be: a million days.
pub const SETTING_TIME_MAX: Duration = Duration::from_secs(1_000_000 * 24 * 3_600);
/// Characters of the name of an installation.
pub const TENANT_CHARACTERS_MAX: usize = 200;
/// Openings that one hold may release one by one, as a setting.
pub const TOGETHER_FROM_MAX: u32 = 1_000_000;
/// Messages that a budget lets go by themselves.
pub const BUDGET_MESSAGES_MAX: u32 = 10_000;
/// How long the window of a budget is, at least.
pub const BUDGET_PER_MIN: Duration = Duration::from_secs(10);
/// The same, at most.
pub const BUDGET_PER_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Of a hundred messages of a budget, how many are kept free for what is critical, where it does not say.
pub const BUDGET_CRITICAL_SHARE_DEFAULT: u32 = 20;
/// How long a rule waits for what mostly closes automatically, at least.
pub const RULE_AUTO_PAUSE_MIN: Duration = Duration::from_secs(30);
/// The same, at most.
pub const RULE_AUTO_PAUSE_MAX: Duration = Duration::from_secs(3_600);
/// Openings with which a rule takes an event for flapping, at least.
pub const FLAPPING_OPENINGS_MIN: u32 = 3;
/// The same, at most.
pub const FLAPPING_OPENINGS_MAX: u32 = 50;
/// Within what time these are counted, and for how long nothing opens or closes at the end: at least.
pub const FLAPPING_TIME_MIN: Duration = Duration::from_secs(60);
/// The same, at most.
pub const FLAPPING_TIME_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Triggers or destinations of a rule.
pub const RULE_NAMES_MAX: usize = 100;
/// Earlier revisions that are kept of one trigger or rule.
pub const REVISIONS_OF_ONE_MAX: u64 = 100;
/// Earlier revisions of triggers and rules that are kept in all.
pub const REVISIONS_MAX: usize = 10_000;
/// Revisions that one commit forgets.
pub const REVISIONS_STEP: usize = 100;
/// Longest repeat interval of a rule: a year.
pub const REPEAT_INTERVAL_SECONDS_MAX: u32 = 31_536_000;

/// Calendars.
pub const CALENDARS_MAX: usize = 1_000;
/// Windows of a calendar.
pub const CALENDAR_WINDOWS_MAX: usize = 50;
/// Calendars whose windows a calendar takes out.
pub const CALENDAR_EXCEPT_MAX: usize = 10;
/// Spans of a calendar that are answered at a time.
pub const CALENDAR_SPANS_MAX: usize = 1_000;
/// Inhibitions.
pub const INHIBITIONS_MAX: usize = 500;
/// Views.
pub const VIEWS_MAX: usize = 500;
/// Columns of a view.
pub const VIEW_COLUMNS_MAX: usize = 20;
/// Characters of the title of one.
pub const VIEW_COLUMN_CHARACTERS_MAX: usize = 40;
/// Pairs of fields of an inhibition.
pub const INHIBITION_EQUAL_MAX: usize = 8;
/// How long an inhibition holds on after its source closed, when it does not say.
pub const INHIBITION_LINGER_DEFAULT: Duration = Duration::from_secs(60);
/// The same, at most.
pub const INHIBITION_LINGER_MAX: Duration = Duration::from_secs(3_600);
/// Sources with the same values that are read at first. More are read until one of them holds, or all are read.
pub const INHIBITION_SOURCES_READ: usize = 16;
/// Rounds of one decision, each of which reads the causes and groups that the one before requested: two for each
/// link of a chain of causes, and some more where many causes have the same values.
pub const SETTLE_ROUNDS_MAX: usize = 100;
/// Silences that are not over.
pub const SILENCES_MAX: usize = 10_000;
/// Open events that a silence covers without its author saying that so many are meant.
pub const SILENCE_COVERS_MAX: usize = 1_000;
/// Open events from which on half of them are too many for a silence.
pub const SILENCE_SHARE_FROM: usize = 20;
/// How long a silence lasts at most.
pub const SILENCE_LENGTH_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
/// How long a silence may cover nothing before it ends, at most.
pub const SILENCE_IDLE_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
/// Characters of a silence's reason, and of a comment.
pub const SILENCE_TEXT_CHARACTERS_MAX: usize = 1_000;
/// Comments of a silence.
pub const SILENCE_COMMENTS_MAX: usize = 100;
/// Silences of a page that are counted again, since they were edited in this moment.
pub const SILENCES_RECOUNTED_MAX: usize = 10;
/// Where counting what a silence covers, holds or skipped stops.
pub const SILENCES_COUNTED_MAX: usize = 100_000;
/// Entries of the timeline of an occurrence.
pub const TIMELINE_MAX: usize = 1_000;
/// Holds of one occurrence or rule that are shown.
pub const HOLDS_SHOWN_MAX: usize = 16;

/// Occurrences that a test of a trigger without progress looks at.
pub const TRIGGER_TEST_OCCURRENCES_MAX: usize = 200_000;
/// How long such a test continues looking.
pub const TRIGGER_TEST_TIME_MAX: Duration = Duration::from_secs(10);
/// Occurrences that a test of a trigger looks at between two tellings of its progress.
pub const TRIGGER_TEST_STEP: usize = 2_000;
/// Matches of a test of a trigger that are shown.
pub const TRIGGER_TEST_SHOWN_MAX: usize = 100;

/// Days that can be replayed, and how many are unless specified.
pub const REPLAY_DAYS_MAX: u32 = 30;
/// How many are unless specified.
pub const REPLAY_DAYS: u32 = 7;
/// Occurrences that a replay takes, the newest first.
pub const REPLAY_OCCURRENCES_MAX: usize = 10_000;
/// What happened to them that it takes.
pub const REPLAY_STEPS_MAX: usize = 200_000;
/// Repeats of one occurrence among that.
pub const REPLAY_REPEATS_MAX: u64 = 1_000;
/// Rows that a replay keeps in memory, of some 1.3 kB: occurrences and messages, each with about six
/// index entries, and commits.
pub const REPLAY_ROWS_MAX: u64 = 200_000;
/// After how many steps it looks at its limits.
pub const REPLAY_STEP: usize = 100;
/// How long one replay takes at most; an impact is two.
pub const REPLAY_TIME_MAX: Duration = Duration::from_secs(10);
/// How long before the reported days a replay begins.
pub const REPLAY_WARM_UP: Duration = Duration::from_secs(24 * 3_600);
/// Occurrences that an impact shows of those that would notify no one any more.
pub const IMPACT_SHOWN_MAX: usize = 20;

/// Threads for searches, previews, explanations and exports, and as many for reviews, releases and
/// retention, at most; half the processors otherwise.
pub const BACKGROUND_THREADS_MAX: usize = 4;
/// Threads that read the store for them.
pub const BACKGROUND_READERS_MAX: usize = 8;
/// Searches, previews, explanations and exports under way concurrently; of these and of those that
/// wait one client has at most a quarter.
pub const SCANS_RUNNING_MAX: usize = 16;
/// Those that wait.
pub const SCANS_WAITING_MAX: usize = 128;
/// Renderings of one purpose that wait, such as previews; of these one client has at most a quarter.
pub const RENDERS_WAITING_MAX: usize = 128;
/// Processor time that rendering one message, or the events of one document, may take; ten times as long where
/// code is not optimized.
pub const RENDER_TIME_MAX: Duration =
    Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 200 });
/// How long a rendering is under way until its thread counts as stuck.
pub const RENDER_STUCK_AFTER: Duration = Duration::from_secs(10);
/// How often threads that are stuck are looked for.
pub const RENDER_STUCK_LOOK: Duration = Duration::from_secs(2);
/// Steps of streams, such as watches, that are under way on these threads concurrently.
pub const SCAN_STEPS_RUNNING_MAX: usize = 16;
/// How long one of them runs before others get their turn.
pub const SCAN_TURN: Duration = Duration::from_millis(2);
/// Bytes of records that one of them reads at a time, unless one alone has more.
pub const SCAN_BATCH_BYTES: usize = 2 * 1024 * 1024;

/// How long a page of events, deliveries, outstanding resolutions, groups or audit entries is filled; a
/// page that is not full by then ends early, with a token for the rest.
pub const PAGE_TIME_MAX: Duration = Duration::from_secs(10);

/// Occurrences, the newest first, that are read for the fields that events have.
pub const FIELDS_READ_MAX: usize = 20_000;
/// Occurrences that changed since then that are read for them, before all are read again.
pub const FIELDS_NEWS_MAX: usize = 2_000;
/// Names of such fields that are kept.
pub const FIELD_NAMES_MAX: usize = 10_000;

/// Concurrent connections.
pub const CONNECTIONS_MAX: usize = 10_240;
/// Concurrent unauthenticated connections, in all and of one address (of IPv6: of one network of 64
/// bits). Above it the oldest are closed.
pub const UNAUTHENTICATED_MAX: usize = 1_024;
/// Those of one address.
pub const UNAUTHENTICATED_OF_ADDRESS_MAX: usize = 512;
/// Concurrent calls on such connections; above it the oldest connections are closed.
pub const UNAUTHENTICATED_CALLS_MAX: usize = 4_096;
/// Those of one address.
pub const UNAUTHENTICATED_CALLS_OF_ADDRESS_MAX: usize = 2_048;
/// How long nothing may happen on such a connection.
pub const UNAUTHENTICATED_QUIET_MAX: Duration = Duration::from_secs(30);
/// Bytes of the request of a call that needs no key.
pub const UNAUTHENTICATED_REQUEST_BYTES_MAX: usize = 4 * 1024;
/// Concurrent calls on one connection; a client that has more makes another connection.
pub const STREAMS_PER_CONNECTION_MAX: u32 = 256;
/// Bytes that a connection or a call may send ahead of being read.
///
/// The HTTP/2 library derives from it how many small messages may wait on a connection before it
/// takes them for an attack: this leaves room for a small message on each of
/// [`STREAMS_PER_CONNECTION_MAX`] calls.
pub const WINDOW_BYTES: u32 = 1024 * 1024;
/// Bytes of one request's headers.
pub const HEADER_BYTES_MAX: usize = 16 * 1024;
/// How long a client may take to agree on TLS.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a connection may stay without its first call.
pub const FIRST_CALL_TIME_MAX: Duration = Duration::from_secs(20);
/// How long a connection may stay without another call.
pub const CONNECTION_IDLE_MAX: Duration = Duration::from_secs(600);
/// Calls on one connection that were taken back before anybody looked at them.
pub const RESETS_PENDING_MAX: usize = 200;
/// How long a client may take to send its headers.
pub const HEADER_READ_TIME_MAX: Duration = Duration::from_secs(10);
/// How often a silent HTTP/2 connection is asked whether it is still there.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// How long a connection may take to say that it is still there.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long calls under way may take when the service stops.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// Occurrences of one event read at a time.
pub const OCCURRENCES_PER_REQUEST_MAX: usize = 100;
/// Occurrences routed by one request.
pub const ROUTES_PER_REQUEST_MAX: usize = 1_000;
/// Attempts of one delivery that stops of the service cut off, after which it is given up: its message
/// may be what stops the service. None of them counts as one of the attempts that it gets.
pub const CUT_OFFS_MAX: u32 = 16;
/// Further parameters of a request for an OAuth token.
pub const OAUTH_PARAMS_MAX: usize = 20;
/// Messages that a destination refuses alike in a row, with none taken between them, after which the
/// destination is taken to be at fault and no longer each message.
pub const REFUSALS_ALIKE_MAX: usize = 20;
/// Attempts of one delivery that are answered.
pub const ATTEMPTS_MAX: usize = 100;
/// Tests of destinations that are under way concurrently.
pub const TESTS_MAX: usize = 64;
/// When a caller that asks for one more is asked to come back.
pub const TESTS_RETRY_AFTER: Duration = Duration::from_secs(5);
/// Tests of drafts that are remembered until the draft is stored.
pub const DRAFT_TESTS_MAX: usize = 64;
/// How long such a test is remembered.
pub const DRAFT_TESTS_AFTER: Duration = Duration::from_secs(600);
/// Deliveries that cannot be read and are left aside until the next start.
pub const SET_ASIDE_MAX: usize = 100_000;
/// Deliveries that one call that sends again or cancels looks at.
pub const DELIVERIES_SCANNED_MAX: usize = 10_000;
/// Deliveries that one commit sends again or cancels.
pub const BULK_STEP: usize = 100;
/// Deliveries that one call sends again or cancels when its caller does not say.
pub const BULK_DEFAULT: usize = 100;
/// Deliveries that one call sends again or cancels.
pub const BULK_MAX: usize = 1_000;
/// Deliveries that one dry run looks at.
pub const BULK_COUNTED_MAX: usize = 50_000;

/// How long the answer to who revokes a key waits until every node knows it.
pub const STORE_NODES_FOLLOW_TIME_MAX: Duration = Duration::from_secs(15);

/// Occurrences that a page of a walk takes out of the change log, to find what moved meanwhile.
pub const WALK_LOG_NAMES_MAX: usize = 100_000;

/// Events that wait for intake, in KiB; above it senders are asked to come back.
pub const INTAKE_QUEUE_KIB_MAX: u32 = 64 * 1024;
/// When senders are asked to come back.
pub const INTAKE_RETRY_AFTER: Duration = Duration::from_secs(1);
/// Events that are committed together, unless one request has more.
pub const INTAKE_BATCH_EVENTS: usize = 1_000;
/// How long events are re-evaluated while others keep changing the same occurrences.
pub const INTAKE_CONFLICT_TIME_MAX: Duration = Duration::from_secs(10);
/// Intake workers; while one waits for its commit the others decide.
pub const INTAKE_WORKERS: usize = 4;
/// Events of a stream that are committed together.
pub const STREAM_BATCH_EVENTS: usize = 200;
/// How long an event of a stream waits at most for others that are decided together with it.
pub const STREAM_GATHER_TIME: Duration = Duration::from_millis(5);
/// Occurrences that one step of ageing and retention looks at.
pub const REVIEW_BATCH: usize = 100;
/// Deliveries about an event, or of a group, among which the order of a thread is looked for.
pub const THREAD_LOOKED_AT_MAX: usize = 1_024;
/// Occurrences of which what waits is decided in one commit.
pub const LOOK_BATCH: usize = 50;
/// Concurrent commits of that kind.
pub const LOOKS_AT_ONCE: usize = 4;
/// Groups of a rule that one commit reports on.
pub const TELL_BATCH: usize = 32;
/// Occurrences reported after which a commit takes no more groups.
pub const TELL_MEMBERS: usize = 200;
/// Time for the groups of a rule that are notified in one commit; the groups of other rules do not wait longer.
pub const TELL_TIME_MAX: Duration = Duration::from_secs(30);
/// Concurrent commits of that kind.
pub const TELLS_AT_ONCE: usize = 4;
/// How long it takes until what failed of a review is tried again.
pub const REVIEW_RETRY: Duration = Duration::from_secs(1);
/// Interval at which the age of the oldest due hold is checked.
pub const HOLDS_WATCH_INTERVAL: Duration = Duration::from_secs(5);
/// Age of a due hold from which an event of the service's own reports it.
pub const HOLDS_LATE_EVENT: Duration = Duration::from_secs(60);
/// Age of a due hold from which the service is not ready: more than the release of 10,000 at a time takes.
pub const HOLDS_LATE_MAX: Duration = Duration::from_secs(300);
/// Longest wait between two looks at ageing and retention.
pub const REVIEW_INTERVAL_MAX: Duration = Duration::from_secs(60);
/// How long what is made due by a commit may wait for the look that finds it.
pub const REVIEW_LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Concurrent lists of events. Of these and of the capacities that follow one client has at most a
/// quarter.
pub const INTAKE_UNDER_WAY_MAX: usize = 2_048;
/// Other concurrent calls that read.
pub const READS_UNDER_WAY_MAX: usize = 256;
/// Concurrent calls that change something other than events.
pub const CHANGES_UNDER_WAY_MAX: usize = 256;
/// Concurrent calls whose answers may be large: pages of lists, previews, explanations.
pub const PAGES_UNDER_WAY_MAX: usize = 24;
/// Concurrent watches.
pub const WATCHES_OPEN_MAX: usize = 256;
/// Other concurrent streams.
pub const STREAMS_UNDER_WAY_MAX: usize = 1_024;
/// Concurrent streams of health checks, which need no key.
pub const HEALTH_WATCHES_MAX: usize = 64;
/// Concurrent unary calls whose message has not arrived yet.
pub const CALLS_ARRIVING_MAX: usize = 8_192;
/// Memory for the requests under way, in KiB.
pub const REQUEST_MEMORY_KIB_MAX: usize = 128 * 1024;
/// When a call that found no place should come again.
pub const OVERLOAD_RETRY_AFTER: Duration = Duration::from_secs(1);
/// Outermost fields of one request, counting each entry of a list.
pub const MESSAGE_ENTRIES_MAX: usize = DIALECT_EVENTS_MAX + 100;
/// Bytes of occurrences in one message of a watch, unless one alone has more.
pub const WATCH_MESSAGE_BYTES: usize = 128 * 1024;
/// Calls that a client may be allowed in a second.
pub const CLIENT_REQUESTS_PER_SECOND_MAX: u32 = 1_000_000;
/// Events that a client may be allowed in a second.
pub const CLIENT_EVENTS_PER_SECOND_MAX: u32 = 10_000_000;
/// Refused calls of one address or client within a minute that make an event.
pub const REFUSALS_REPORTED_FROM: u32 = 20;
/// Addresses and clients whose refused calls are counted concurrently.
pub const REFUSED_SUBJECTS_MAX: usize = 256;
/// Addresses and clients with separate events about refused calls, within an hour.
pub const REFUSED_SUBJECTS_REPORTED_MAX: usize = 10;
/// Characters of an idempotency key.
pub const IDEMPOTENCY_KEY_CHARACTERS_MAX: usize = 255;
/// How long the answer to a request with an idempotency key is given again.
pub const RECEIPT_TIME: Duration = Duration::from_secs(24 * 3600);
/// Answers that are kept to be given again; above it the oldest are forgotten early.
pub const RECEIPTS_MAX: usize = 1_000_000;
/// Bytes of the answers that are kept to be given again; above it the oldest are forgotten early.
pub const RECEIPT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of the reasons for refused events in one answer that is kept; what comes after them is
/// refused without its reason.
pub const RECEIPT_REASON_BYTES_MAX: usize = 64 * 1024;
/// Answers that one commit forgets.
pub const RECEIPT_BATCH: usize = 500;
/// How often old answers are looked for.
pub const RECEIPT_SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Bytes that a backup reads in a second from a service in use, unless its caller says otherwise.
pub const BACKUP_BYTES_PER_SECOND: u64 = 32 * 1024 * 1024;
/// Backups read concurrently from one service.
pub const BACKUPS_MAX: usize = 2;
/// Checks of a service in use concurrently.
pub const CHECKS_MAX: usize = 1;

/// The disk is called nearly full while less is free than so many times the floor below which
/// nothing is added.
pub const DISK_NEARLY_FULL_FLOORS: u64 = 2;
/// The disk is called roomy again when so many times the floor are free.
pub const DISK_SPACIOUS_FLOORS: u64 = 3;
/// Documents that are applied at a time.
pub const CONFIG_DOCUMENTS_MAX: usize = 1_000;

/// Callers and methods that are distinguished in a minute when their calls are refused.
pub const AUDIT_REFUSALS_MAX: usize = 100;
