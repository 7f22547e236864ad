//! Fixed limits of the gateway; configurable ones are in `config`.

use std::time::Duration;

/// Maximum size of the form on a linked page, in bytes. The form contains a key and an action.
pub(crate) const FORM_BYTES: usize = 4 * 1024;
pub(crate) const SIGN_IN_CACHE_TIME: Duration = Duration::from_secs(60);
/// Maximum duration of a browser sign-in, in seconds.
pub(crate) const SIGN_IN_SECONDS: u32 = 600;
/// Maximum bytes of a session token; most browsers limit a cookie, including its name, to 4,096.
pub(crate) const SESSION_BYTES: usize = 4_000;
pub(crate) const LISTED_EVENTS: i32 = 50;
pub(crate) const LINKED_MEMBERS: i32 = 100;
pub(crate) const QUERY_PAIRS: usize = 2_000;
pub(crate) const ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of a response body passed to the connection at a time.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;
/// Memory for the bodies of all requests in flight, in KiB.
pub(crate) const BODIES_KIB: usize = 96 * 1024;
/// Memory for bodies that have to be read before the key is known, in KiB.
pub(crate) const PRE_AUTH_BODIES_KIB: usize = 16 * 1024;
/// Maximum bytes of a body without a key that are drained before the response is sent.
pub(crate) const PRE_AUTH_BODY_BYTES: usize = 256 * 1024;
/// Maximum concurrent unauthenticated connections. Above the limit, the oldest are closed.
pub(crate) const UNAUTHENTICATED: usize = 1_024;
/// Maximum concurrent unauthenticated connections per address (for IPv6, per /64 network).
pub(crate) const UNAUTHENTICATED_OF_ADDRESS: usize = 512;
/// Maximum concurrent requests on unauthenticated connections. Above the limit, the oldest
/// connections are closed.
pub(crate) const UNAUTHENTICATED_REQUESTS: usize = 2_048;
pub(crate) const UNAUTHENTICATED_REQUESTS_OF_ADDRESS: usize = 1_024;
pub(crate) const UNAUTHENTICATED_QUIET: Duration = Duration::from_secs(30);
pub(crate) const COMPRESSED_FROM: usize = 1024;
/// Maximum bytes compressed on the current thread.
pub(crate) const COMPRESSED_INLINE_MAX: usize = 128 * 1024;
pub(crate) const STREAMS_PER_CONNECTION: u32 = 100;
pub(crate) const READINESS: Duration = Duration::from_secs(2);
/// Duration above which a successful request is logged like a failed request.
pub(crate) const SLOW: Duration = Duration::from_secs(1);
pub(crate) const CONNECT: Duration = Duration::from_secs(5);
/// HTTP/2 flow control window of a connection or a call. The HTTP library derives from it the
/// number of small messages that can be queued before it assumes an attack.
pub(crate) const WINDOW_BYTES: u32 = 1024 * 1024;
/// Interval of keep-alive probes on idle connections to the backend, and on idle HTTP/2 connections
/// from a client.
pub(crate) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);
pub(crate) const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Seconds after which a client rejected for load should retry.
pub(crate) const RETRY_AFTER_S: u64 = 1;
/// Time for which a connection may wait for its next request and headers. Longer than common
/// sending intervals, because a request that is sent while the connection closes fails.
pub(crate) const IDLE: Duration = Duration::from_secs(75);
pub(crate) const BODY_BYTES: usize = 4 * 1024 * 1024;
/// Maximum bytes of a body with a batch of events, unless the configured limit is below its
/// default.
pub(crate) const BATCH_BODY_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of JSON values in a body above the usual limit.
pub(crate) const BATCH_VALUES: usize = 1_000_000;
/// Maximum bytes of a text that occurs once in a message and is stored with each of its events.
pub(crate) const REPEATED_TEXT_BYTES: usize = 2 * 1024;
/// Maximum bytes of a reporter's name, as in the backend.
pub(crate) const REPORTER_BYTES: usize = 256;
/// Maximum number of invalid items that the response to a message describes.
pub(crate) const REFUSED_SHOWN: usize = 10;
pub(crate) const SUMMARY_BYTES: usize = 1024;
/// Maximum nesting of lists and objects in event metadata; each level is up to three messages.
pub(crate) const METADATA_DEPTH: usize = 24;
/// Maximum number of headers passed to a mapping, as in the backend.
pub(crate) const WEBHOOK_HEADERS: usize = 100;
pub(crate) const PAGERDUTY_BODY_BYTES: usize = 512 * 1024;
/// Maximum number of alerts returned by a request to the Alertmanager API, most severe first.
pub(crate) const ALERTS: usize = 10_000;
pub(crate) const ALERTS_PER_PAGE: i32 = 1_000;
/// Bytes of alerts after which reading stops.
pub(crate) const ALERTS_BYTES: usize = 32 * 1024 * 1024;
pub(crate) const ANNOTATION_BYTES: usize = 4 * 1024;
/// Duration of an alert without an end, in milliseconds.
pub(crate) const RESOLVE_TIMEOUT_MS: i64 = 5 * 60 * 1000;
/// Maximum number of silences or receivers returned by a request to the Alertmanager API, as in the
/// backend.
pub(crate) const SILENCES: usize = 10_000;
pub(crate) const SILENCES_PER_PAGE: i32 = 1_000;
pub(crate) const MATCHERS: usize = 50;
pub(crate) const UNKNOWN_PARAMETERS_SHOWN: usize = 5;
pub(crate) const MATCHER_REGEX_BYTES: usize = 256 * 1024;
