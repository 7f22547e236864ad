//! Every bound of stored records, backups and checks, by name.

/// Records of one step of a backup.
pub const BACKUP_PAGE_RECORDS_MAX: usize = 1_000;
/// Bytes that a step of a backup is meant to have.
pub const BACKUP_STEP_BYTES: usize = 1024 * 1024;
/// Bytes of one message of a backup. A step continues until the end of a commit, and a delivery
/// comes with all its attempts.
pub const BACKUP_MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Commits after which a backup under way looks at the change log, so that it is not overtaken.
pub const BACKUP_LOG_STEPS: u64 = 1_000;
/// Bytes of the checksums of a store's blocks, and of their journal: those of a store of a
/// terabyte. Without them the store is scanned.
pub const STORE_CHECKSUM_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Bytes of one file of a backup.
pub const BACKUP_PIECE_BYTES: u64 = 64 * 1024 * 1024;
