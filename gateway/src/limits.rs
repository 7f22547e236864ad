//! Fixed bounds of what the gateway accepts and hands out; those that can be set are in `config`.

use std::time::Duration;

/// Bytes of the form on the page that a link leads to: a key and what is asked for.
pub(crate) const FORM_BYTES: usize = 4 * 1024;
/// How long the gateway goes by what the backend said of signing in.
pub(crate) const SIGN_IN_KNOWN: Duration = Duration::from_secs(60);
/// How long a browser may be away to sign in, in seconds.
pub(crate) const SIGN_IN_SECONDS: u32 = 600;
/// Bytes of a token that a browser keeps; most take 4,096 for a cookie with its name.
pub(crate) const SESSION_BYTES: usize = 4_000;
/// Open events on the first page.
pub(crate) const LISTED_EVENTS: i32 = 50;
/// Members of a group on such a page.
pub(crate) const LINKED_MEMBERS: i32 = 100;
/// Keys and values in one query string.
pub(crate) const QUERY_PAIRS: usize = 2_000;
/// Bytes of one answer of the backend.
pub(crate) const ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of an answer's body handed to the connection at a time.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;
/// Memory for the bodies of all requests under way, in KiB.
pub(crate) const BODIES_KIB: usize = 96 * 1024;
/// The same for bodies that have to be read before it is known whether they come with a key.
pub(crate) const STRANGE_BODIES_KIB: usize = 16 * 1024;
/// Bytes of a body without a key that are read over before the answer.
pub(crate) const STRANGE_BODY_BYTES: usize = 256 * 1024;
/// Concurrent unauthenticated connections, in all and of one address (of IPv6: of one network of 64
/// bits). Above it the oldest are closed.
pub(crate) const UNAUTHENTICATED: usize = 1_024;
/// Those of one address.
pub(crate) const UNAUTHENTICATED_OF_ADDRESS: usize = 512;
/// Concurrent requests on such connections; above it the oldest connections are closed.
pub(crate) const UNAUTHENTICATED_REQUESTS: usize = 2_048;
/// Those of one address.
pub(crate) const UNAUTHENTICATED_REQUESTS_OF_ADDRESS: usize = 1_024;
/// How long nothing may happen on such a connection.
pub(crate) const UNAUTHENTICATED_QUIET: Duration = Duration::from_secs(30);
/// Bytes from which on an answer is compressed for who takes that.
pub(crate) const COMPRESSED_FROM: usize = 1024;
/// Bytes up to which it is compressed without leaving the thread.
pub(crate) const COMPRESSED_AT_ONCE: usize = 128 * 1024;
/// Requests under way on one HTTP/2 connection.
pub(crate) const STREAMS_PER_CONNECTION: u32 = 100;
/// How long the backend may take to show whether it is ready.
pub(crate) const READINESS: Duration = Duration::from_secs(2);
/// A request that took longer leaves a line in the log, like one that failed.
pub(crate) const SLOW: Duration = Duration::from_secs(1);
/// How long connecting to the backend may take.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);
/// Bytes that a connection or a call may send ahead of being read. The HTTP/2 library derives from
/// it how many small messages may wait before it takes them for an attack.
pub(crate) const WINDOW_BYTES: u32 = 1024 * 1024;
/// How often an idle connection (to the backend, or HTTP/2 from a client) is probed.
pub(crate) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// How long the answer to such a probe may take.
pub(crate) const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// When a client that was turned away for load should come back, in seconds.
pub(crate) const RETRY_AFTER_S: u64 = 1;
/// How long a connection that was used may wait for its next request, headers and all. Longer
/// than common senders' intervals: closing just when a request is on its way costs that request.
pub(crate) const IDLE: Duration = Duration::from_secs(75);
/// Bytes of a body, unless another limit is configured.
pub(crate) const BODY_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of the body of a sender that sends many events in one request, unless less is configured
/// for all.
pub(crate) const BATCH_BODY_BYTES: usize = 16 * 1024 * 1024;
/// Values in the JSON of such a body that is larger than other bodies.
pub(crate) const BATCH_VALUES: usize = 1_000_000;
/// Bytes of a text that occurs once in a message and is kept with each of its events.
pub(crate) const REPEATED_TEXT_BYTES: usize = 2 * 1024;
/// Bytes of the name of a reporter, as the backend takes them.
pub(crate) const REPORTER_BYTES: usize = 256;
/// Items of a message that are wrong, of which the answer shows what.
pub(crate) const REFUSED_SHOWN: usize = 10;
/// Bytes of an event's summary, as the backend takes them.
pub(crate) const SUMMARY_BYTES: usize = 1024;
/// Lists and objects inside one another in an event's metadata; each is up to three messages.
pub(crate) const METADATA_DEPTH: usize = 24;
/// Headers of a request that a mapping sees, as the backend takes them.
pub(crate) const WEBHOOK_HEADERS: usize = 100;
/// Bytes of a request of PagerDuty's interface.
pub(crate) const PAGERDUTY_BODY_BYTES: usize = 512 * 1024;
/// Alerts that a request of Alertmanager's API looks at, the most severe first.
pub(crate) const ALERTS: usize = 10_000;
/// Alerts that are looked at in one step.
pub(crate) const ALERTS_PER_PAGE: i32 = 1_000;
/// Bytes of alerts after which no more are looked at.
pub(crate) const ALERTS_BYTES: usize = 32 * 1024 * 1024;
/// Bytes of one annotation of an alert.
pub(crate) const ANNOTATION_BYTES: usize = 4 * 1024;
/// How far ahead the end of an alert lies that states none, in milliseconds.
pub(crate) const RESOLVE_TIMEOUT_MS: i64 = 5 * 60 * 1000;
/// Silences, and receivers, that a request of Alertmanager's API reads, up to what the backend stores.
pub(crate) const SILENCES: usize = 10_000;
/// Those that are looked at in one step.
pub(crate) const SILENCES_PER_PAGE: i32 = 1_000;
/// Matchers of one request or silence.
pub(crate) const MATCHERS: usize = 50;
/// Bytes of a compiled regular expression of a matcher.
pub(crate) const MATCHER_REGEX_BYTES: usize = 256 * 1024;
