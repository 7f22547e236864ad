//! Limits of the engines.

use std::time::Duration;

/// Maximum number of sets of changes waiting in each lane.
pub const STORE_QUEUE_SETS_MAX: usize = 8_192;
/// Total bytes of waiting sets above which bulk changes are refused.
pub const STORE_QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
pub const STORE_BATCH_SETS_MAX: usize = 2_000;
/// Bytes of sets of changes after which a commit is full.
pub const STORE_BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of the service's own changes, such as deliveries and releases, that each commit accepts. A
/// commit accepts more only up to the size of the other changes, so that users and clients do not
/// wait long for the next commit.
pub const STORE_BATCH_OWN_BYTES: usize = 64 * 1024;
/// File size from which every commit saves the data that a repair would otherwise compute by
/// scanning. Scanning a smaller file is fast enough.
pub const STORE_QUICK_REPAIR_FROM: u64 = 128 * 1024 * 1024;
/// Bytes of changes in memory that trigger a move into the store's file.
pub const STORE_MEMORY_BYTES: usize = 32 * 1024 * 1024;
/// Size of each of the two log files in bytes, unless one commit requires more.
pub const STORE_LOG_BYTES: u64 = 64 * 1024 * 1024;
/// Number of index runs of similar size that are merged into one.
pub const STORE_RUNS_UNITED: usize = 8;
/// Timeout of a read that waits for the file to be reopened after an error.
pub const STORE_REOPEN_TIME_MAX: Duration = Duration::from_secs(2);
pub const STORE_LOG_COMMITS_MAX: u64 = 100_000;
pub const STORE_LOG_CHANGES_MAX: u64 = 1_000_000;
pub const STORE_CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
/// Timeout for opening a database session, over all hosts.
pub const STORE_OPEN_TIME_MAX: Duration = Duration::from_secs(8);
/// Time without a TCP acknowledgement from the database after which a connection is dropped.
pub const STORE_SILENCE_TIME_MAX: Duration = Duration::from_secs(5);
pub const STORE_LOCK_TIME_MAX: Duration = Duration::from_secs(5);
/// Time for which a started commit may be idle. A process that stalls inside a commit blocks other
/// processes for this long, once for each of its three writers.
pub const STORE_STANDSTILL_MAX: Duration = Duration::from_secs(2);
pub const STORE_READ_TIME_MAX: Duration = Duration::from_secs(30);
/// Timeout of a database commit, after which the connection is dropped.
pub const STORE_COMMIT_TIME_MAX: Duration = Duration::from_secs(30);
/// Timeout for resolving a commit in doubt, and for retrying one after transient errors.
pub const STORE_DOUBT_TIME_MAX: Duration = Duration::from_secs(10);
/// Time for which a confirmed commit waits for earlier commits to become readable in the log.
pub const STORE_STEPS_TIME_MAX: Duration = Duration::from_millis(250);
/// Maximum size of the newest change log steps that a node of a shared store caches, in bytes.
pub const STORE_STEPS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Minimum retention time of the change log in a database.
pub const STORE_LOG_TIME_MIN: Duration = Duration::from_secs(15 * 60);
/// Interval at which a node of a shared store renews its liveness and leadership.
pub const STORE_NODE_RENEWED_EVERY: Duration = Duration::from_secs(1);
/// Time without a response from the database after which waiting calls fail and the node is not
/// ready.
pub const STORE_UNREACHABLE_AFTER: Duration = Duration::from_secs(5);
/// Time since its last renewal after which a node counts as dead and other nodes take over its
/// slots.
pub const STORE_NODE_TIME_MAX: Duration = Duration::from_secs(6);
/// Time without progress after which a node gives up its slots and leadership.
pub const STORE_LEADER_STALL_MAX: Duration = Duration::from_secs(30);
/// Interval at which an idle node records progress.
pub const STORE_LEADER_ADVANCED_EVERY: Duration = Duration::from_secs(5);
/// Time for which a stalled node first leaves its work to other nodes; doubled each time, up to
/// [`STORE_REST_TIME_MAX`].
pub const STORE_REST_TIME_MIN: Duration = Duration::from_secs(15);
/// Maximum time for which a stalled node leaves its work to other nodes. After as long without a
/// stall, the time starts from [`STORE_REST_TIME_MIN`] again.
pub const STORE_REST_TIME_MAX: Duration = Duration::from_secs(15 * 60);
/// Time since its last renewal after which a node may no longer write.
pub const STORE_NODE_FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Connections of a node that are not used for reads: three writers, one follower, one for liveness
/// and one for backups.
pub const STORE_CONNECTIONS_APART: usize = 6;
/// Default number of database connections per node. Each connection for reads serves many
/// concurrent calls.
pub const STORE_CONNECTIONS: usize = 10;
pub const STORE_CONNECTIONS_MAX: usize = 100;
