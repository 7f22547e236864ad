//! The settings that delete or bind everyone: one resource, the same for all nodes of an installation.

use std::{fmt, time::Duration};

use crate::domain::{Name, RecordId};

/// The settings of an installation, as they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Distinguishes them from those of another installation.
    pub id: RecordId,
    /// Always [`Settings::NAME`].
    pub name: Name,
    /// The values.
    pub values: SharedSettings,
    /// Which of them the settings file of the only node of a data folder gives, as files name them: a
    /// call changes none of these.
    pub from_file: Vec<String>,
    /// Counts their edits from 1; the etag is derived from it.
    pub revision: u64,
    /// When they were stored first, in milliseconds since 1970.
    pub create_ms: i64,
    /// When they were edited last, in milliseconds since 1970.
    pub update_ms: i64,
}

impl Settings {
    /// What the only settings that there are are called.
    pub const NAME: &str = "service";

    /// Settings with the default values that are stored for the first time.
    pub fn first(id: RecordId, name: Name, now_ms: i64) -> Self {
        Self {
            id,
            name,
            values: SharedSettings::default(),
            from_file: Vec::new(),
            revision: 1,
            create_ms: now_ms,
            update_ms: now_ms,
        }
    }
}

/// How a value is written in a settings file.
trait Written {
    fn written(&self) -> String;
}

impl Written for String {
    fn written(&self) -> String {
        format!("{self:?}")
    }
}

impl Written for u32 {
    fn written(&self) -> String {
        self.to_string()
    }
}

impl Written for Duration {
    fn written(&self) -> String {
        let milliseconds = self.as_millis();
        let units = [
            (86_400_000, "d"),
            (3_600_000, "h"),
            (60_000, "m"),
            (1_000, "s"),
        ];
        let whole = units
            .into_iter()
            .find(|(length, _)| milliseconds > 0 && milliseconds.is_multiple_of(*length));
        match whole {
            Some((length, unit)) => format!("{:?}", format!("{}{unit}", milliseconds / length)),
            None if milliseconds == 0 => "\"0s\"".into(),
            None => format!("\"{milliseconds}ms\""),
        }
    }
}

/// What a value is in two places where it should be the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingDifference {
    /// The setting, as files name it.
    pub key: &'static str,
    /// The value in the first place, as files write it.
    pub here: String,
    /// The value in the second place.
    pub there: String,
}

impl fmt::Display for SettingDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, here, there } = self;
        write!(f, "{key} = {here} (stored: {there})")
    }
}

/// The values, with the names that files and messages have for them, and their defaults.
macro_rules! shared_settings {
    ($($(#[doc = $doc:literal])+ $field:ident: $type:ty = $default:expr, $key:literal, $json:literal;)+) => {
        /// The values of the settings that all nodes share.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct SharedSettings {
            $($(#[doc = $doc])+ pub $field: $type,)+
            /// Since when nothing is sent, escalated, closed by age or missed, in milliseconds since 1970;
            /// none while the service works. No file sets it.
            pub quiet_since_ms: Option<i64>,
        }

        impl Default for SharedSettings {
            fn default() -> Self {
                Self {
                    $($field: $default,)+
                    quiet_since_ms: None,
                }
            }
        }

        impl SharedSettings {
            /// The settings, as files name them and as messages do.
            pub const KEYS: &[(&str, &str)] = &[$(($key, $json)),+];

            /// Takes the value of a setting from others.
            pub fn take(&mut self, key: &str, from: &Self) {
                match key {
                    $($key => self.$field = from.$field.clone(),)+
                    _ => {}
                }
            }

            /// What differs from others.
            pub fn differences(&self, other: &Self) -> Vec<SettingDifference> {
                let mut found = Vec::new();
                $(if self.$field != other.$field {
                    found.push(SettingDifference {
                        key: $key,
                        here: self.$field.written(),
                        there: other.$field.written(),
                    });
                })+
                found
            }
        }
    };
}

const HOUR: Duration = Duration::from_secs(3600);

shared_settings! {
    /// The installation's name, as messages show it.
    tenant: String = "bellwether".into(), "tenant", "tenant";
    /// How long debug and info occurrences stay open without news; zero means for ever.
    info_age_max: Duration = 4 * HOUR, "lifetime.info_age_max", "infoAgeMax";
    /// The same of warning occurrences.
    warning_age_max: Duration = 24 * HOUR, "lifetime.warning_age_max", "warningAgeMax";
    /// The same of error and critical occurrences.
    error_age_max: Duration = 7 * 24 * HOUR, "lifetime.error_age_max", "errorAgeMax";
    /// How long closed occurrences are kept; zero means for ever.
    event_retention: Duration = 30 * 24 * HOUR, "lifetime.retention", "eventRetention";
    /// How long ended deliveries are kept.
    delivery_retention: Duration = 30 * 24 * HOUR, "delivery.retention", "deliveryRetention";
    /// How long entries of the audit log are kept.
    audit_retention: Duration = 365 * 24 * HOUR, "audit.retention", "auditRetention";
    /// More openings than this, of one rule without groups, that one hold releases are one group;
    /// zero reports each separately.
    together_from: u32 = 10, "release.together_from", "releaseTogetherFrom";
}

impl SharedSettings {
    /// Those in which nothing ages and nothing is forgotten.
    pub fn without_end() -> Self {
        Self {
            info_age_max: Duration::ZERO,
            warning_age_max: Duration::ZERO,
            error_age_max: Duration::ZERO,
            event_retention: Duration::ZERO,
            ..Self::default()
        }
    }

    /// Whether nothing is sent, escalated, closed by age or missed.
    pub fn is_quiet(&self) -> bool {
        self.quiet_since_ms.is_some()
    }

    /// How many openings of a rule without groups are reported one by one when one hold frees them.
    pub fn released_singly_max(&self) -> usize {
        match self.together_from {
            0 => usize::MAX,
            most => usize::try_from(most).unwrap_or(usize::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_files_write_them() {
        let lengths = [
            (Duration::ZERO, "\"0s\""),
            (Duration::from_millis(1_500), "\"1500ms\""),
            (Duration::from_secs(90), "\"90s\""),
            (Duration::from_secs(120), "\"2m\""),
            (36 * HOUR, "\"36h\""),
            (48 * HOUR, "\"2d\""),
        ];
        for (length, written) in lengths {
            assert_eq!(length.written(), written);
        }
    }

    #[test]
    fn each_setting_is_taken_and_compared_by_its_name() {
        let others = SharedSettings {
            tenant: "acme".into(),
            info_age_max: HOUR,
            warning_age_max: HOUR,
            error_age_max: HOUR,
            event_retention: HOUR,
            delivery_retention: HOUR,
            audit_retention: HOUR,
            together_from: 3,
            quiet_since_ms: None,
        };
        let mut settings = SharedSettings::default();
        let differences = settings.differences(&others);
        assert_eq!(differences.len(), SharedSettings::KEYS.len());
        assert_eq!(
            differences[0].to_string(),
            "tenant = \"bellwether\" (stored: \"acme\")"
        );
        for (at, (key, _)) in SharedSettings::KEYS.iter().enumerate() {
            assert_eq!(differences[at].key, *key);
            settings.take(key, &others);
        }
        assert_eq!(settings, others);
        assert_eq!(settings.differences(&others), []);
    }
}
