//! Limits of the engines.

use std::time::Duration;

/// Sets of changes that wait in each lane of the store.
pub const STORE_QUEUE_SETS_MAX: usize = 8_192;
/// Bytes of sets of changes that wait in the store's lanes, above which bulk changes are refused.
pub const STORE_QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Sets of changes in one commit.
pub const STORE_BATCH_SETS_MAX: usize = 2_000;
/// Bytes of sets of changes after which a commit takes no more.
pub const STORE_BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of the service's own changes, such as deliveries and releases, after which a commit takes no more of them,
/// unless it has as many of others: what people and clients wait for is in the commit after it.
pub const STORE_BATCH_OWN_BYTES: usize = 64 * 1024;
/// Bytes of the store's file from which on every commit saves what a start after a kill would have
/// to find out: a smaller file is scanned faster than people notice.
pub const STORE_QUICK_REPAIR_FROM: u64 = 128 * 1024 * 1024;
/// Bytes of changes that the store holds in memory before it moves them into its file.
pub const STORE_MEMORY_BYTES: usize = 32 * 1024 * 1024;
/// Bytes of each of the two files of the store's log, unless one commit needs more.
pub const STORE_LOG_BYTES: u64 = 64 * 1024 * 1024;
/// Runs of index entries of about one size that become one.
pub const STORE_RUNS_UNITED: usize = 8;
/// How long a read waits for a file that is opened again after an error.
pub const STORE_REOPEN_TIME_MAX: Duration = Duration::from_secs(2);
/// Commits that the change log remembers.
pub const STORE_LOG_COMMITS_MAX: u64 = 100_000;
/// Changes that the change log remembers.
pub const STORE_LOG_CHANGES_MAX: u64 = 1_000_000;
/// How long connecting to one host of a database may take.
pub const STORE_CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
/// How long a session in a database may take to begin, over all its hosts.
pub const STORE_OPEN_TIME_MAX: Duration = Duration::from_secs(8);
/// How long a database may not confirm what it was sent before its connection is given up.
pub const STORE_SILENCE_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a commit waits for a lock.
pub const STORE_LOCK_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a commit that was begun may stand still: so long each of the three writers of a process that
/// stops amid a commit holds up others.
pub const STORE_STANDSTILL_MAX: Duration = Duration::from_secs(2);
/// How long a read of a database may take.
pub const STORE_READ_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a commit to a database may go unanswered before its connection is given up.
pub const STORE_COMMIT_TIME_MAX: Duration = Duration::from_secs(30);
/// How long is tried to find out the outcome of a commit, and to get one through after passing
/// faults.
pub const STORE_DOUBT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long an answered commit waits for the steps of others before it to be read.
pub const STORE_STEPS_TIME_MAX: Duration = Duration::from_millis(250);
/// Bytes of the newest steps of the change log that are kept beside a database.
pub const STORE_STEPS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How long the change log in a database remembers at the least.
pub const STORE_LOG_TIME_MIN: Duration = Duration::from_secs(15 * 60);
/// How often a node over a shared store renews that it lives, and that it leads.
pub const STORE_NODE_RENEWED_EVERY: Duration = Duration::from_secs(1);
/// Time without an answer from the database after which waiting calls fail and the node is not ready.
pub const STORE_AWAY_AFTER: Duration = Duration::from_secs(5);
/// How long after the last time it counts as dead, and others take what it owns.
pub const STORE_NODE_TIME_MAX: Duration = Duration::from_secs(6);
/// How long a node may not advance with what it owns or leads before it leaves that to others.
pub const STORE_LEADER_STALL_MAX: Duration = Duration::from_secs(30);
/// How often a node without work records that it advances.
pub const STORE_LEADER_ADVANCED_EVERY: Duration = Duration::from_secs(5);
/// How long a node that could not work leaves that to others; the next time it is twice as long,
pub const STORE_REST_TIME_MIN: Duration = Duration::from_secs(15);
/// up to this. After as long without another time it begins with the first.
pub const STORE_REST_TIME_MAX: Duration = Duration::from_secs(15 * 60);
/// How long after the last time it may not write any more.
pub const STORE_NODE_FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Connections of a node to a database that do not read for many concurrent calls: three that
/// write, one that follows, one that says that the node lives, one for backups.
pub const STORE_CONNECTIONS_APART: usize = 6;
/// Connections of a node to a database, unless specified: of the rest each reads for many
/// concurrent calls.
pub const STORE_CONNECTIONS: usize = 10;
/// The most that a node may have.
pub const STORE_CONNECTIONS_MAX: usize = 100;
