//! Limits of stored records, backups and checks.

pub const BACKUP_PAGE_RECORDS_MAX: usize = 1_000;
pub const BACKUP_STEP_BYTES: usize = 1024 * 1024;
/// Maximum bytes of one message of a backup. A step extends to the end of a commit, and a delivery
/// includes all its attempts.
pub const BACKUP_MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Number of commits after which a running backup reads the change log, so that the log is not
/// trimmed past the backup's position.
pub const BACKUP_LOG_STEPS: u64 = 1_000;
/// Maximum bytes of the block checksums of a store, and of their journal. The limit is sufficient
/// for a store of one terabyte. Without checksums the store is scanned.
pub const STORE_CHECKSUM_BYTES_MAX: u64 = 1024 * 1024 * 1024;
pub const BACKUP_PIECE_BYTES: u64 = 64 * 1024 * 1024;
