//! How long occurrences stay open and are kept.

use std::time::Duration;

/// How long occurrences live. A zero duration means for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifetimeConfig {
    /// How long debug and info occurrences stay open without news.
    pub info_age_max: Duration,
    /// How long warning occurrences stay open without news.
    pub warning_age_max: Duration,
    /// How long error and critical occurrences stay open without news.
    pub error_age_max: Duration,
    /// How long closed occurrences are kept.
    pub retention: Duration,
}

const HOUR: Duration = Duration::from_secs(3600);

impl Default for LifetimeConfig {
    fn default() -> Self {
        Self {
            info_age_max: 4 * HOUR,
            warning_age_max: 24 * HOUR,
            error_age_max: 7 * 24 * HOUR,
            retention: 30 * 24 * HOUR,
        }
    }
}
