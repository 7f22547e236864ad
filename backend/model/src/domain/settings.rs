//! The installation-wide settings, shared by all nodes.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use crate::domain::{Name, RecordId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub id: RecordId,
    /// Always [`Settings::NAME`].
    pub name: Name,
    pub values: SharedSettings,
    /// The keys of the settings that a single-node installation reads from its settings file. They
    /// cannot be changed through the API.
    pub from_file: Vec<String>,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}

impl Settings {
    pub const NAME: &str = "service";

    pub fn new_initial(id: RecordId, name: Name, now_ms: i64) -> Self {
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

/// Templates that other templates include, by name.
pub type Snippets = BTreeMap<String, String>;

/// An empty set of snippets, for templates that cannot include any.
pub static NO_SNIPPETS: Snippets = Snippets::new();

/// Maximum length of templates when they are formatted, in characters.
const WRITTEN_CHARACTERS_MAX: usize = 200;

/// A value that can be formatted as in a settings file.
trait SettingText {
    fn setting_text(&self) -> String;
}

impl SettingText for String {
    fn setting_text(&self) -> String {
        format!("{self:?}")
    }
}

impl SettingText for u32 {
    fn setting_text(&self) -> String {
        self.to_string()
    }
}

impl SettingText for Arc<Snippets> {
    fn setting_text(&self) -> String {
        let pairs = self.iter();
        let pairs: Vec<_> = pairs
            .map(|(name, text)| format!("{name} = {text:?}"))
            .collect();
        let mut written = format!("{{ {} }}", pairs.join(", "));
        if let Some((end, _)) = written.char_indices().nth(WRITTEN_CHARACTERS_MAX) {
            written.replace_range(end.., "\u{2026}");
        }
        written
    }
}

impl SettingText for Duration {
    fn setting_text(&self) -> String {
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingDifference {
    pub key: &'static str,
    /// The value in one of the compared settings, in the form used in settings files.
    pub here: String,
    /// The value in the other settings.
    pub there: String,
}

impl fmt::Display for SettingDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, here, there } = self;
        write!(f, "{key} = {here} (stored: {there})")
    }
}

/// Defines the settings, their names in files and in messages, and their defaults.
macro_rules! shared_settings {
    ($($(#[doc = $doc:literal])+ $field:ident: $type:ty = $default:expr, $key:literal, $json:literal;)+) => {
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct SharedSettings {
            $($(#[doc = $doc])+ pub $field: $type,)+
            /// Start of the quiet period, in milliseconds since 1970; `None` in normal operation.
            /// During a quiet period, no messages are sent, no events are aged, and no escalation
            /// or alarm takes place. Not set by any file.
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
            /// The keys of the settings in files, with their names in messages.
            pub const KEYS: &[(&str, &str)] = &[$(($key, $json)),+];

            pub fn copy_setting(&mut self, key: &str, from: &Self) {
                match key {
                    $($key => self.$field = from.$field.clone(),)+
                    _ => {}
                }
            }

            pub fn differences(&self, other: &Self) -> Vec<SettingDifference> {
                let mut found = Vec::new();
                $(if self.$field != other.$field {
                    found.push(SettingDifference {
                        key: $key,
                        here: self.$field.setting_text(),
                        there: other.$field.setting_text(),
                    });
                })+
                found
            }
        }
    };
}

const HOUR: Duration = Duration::from_secs(3600);

shared_settings! {
    /// The name of the installation, as shown in messages.
    tenant: String = "bellwether".into(), "tenant", "tenant";
    /// Time for which debug and info occurrences stay open without events; zero means forever.
    info_age_max: Duration = 4 * HOUR, "lifetime.info_age_max", "infoAgeMax";
    /// Time for which warning occurrences stay open without events; zero means forever.
    warning_age_max: Duration = 24 * HOUR, "lifetime.warning_age_max", "warningAgeMax";
    /// Time for which error and critical occurrences stay open without events; zero means forever.
    error_age_max: Duration = 7 * 24 * HOUR, "lifetime.error_age_max", "errorAgeMax";
    /// Retention of closed occurrences; zero means forever.
    event_retention: Duration = 30 * 24 * HOUR, "lifetime.retention", "eventRetention";
    /// Retention of ended deliveries.
    delivery_retention: Duration = 30 * 24 * HOUR, "delivery.retention", "deliveryRetention";
    /// Retention of the audit log.
    audit_retention: Duration = 365 * 24 * HOUR, "audit.retention", "auditRetention";
    /// Maximum number of openings of a rule without groups that are sent separately when one hold
    /// ends; more become a group. Zero means unlimited.
    together_from: u32 = 10, "release.together_from", "releaseTogetherFrom";
    /// The templates that other templates include.
    templates: Arc<Snippets> = Arc::default(), "templates", "templates";
}

impl SharedSettings {
    /// Returns settings with which no record ages or is deleted.
    pub fn without_expiry() -> Self {
        Self {
            info_age_max: Duration::ZERO,
            warning_age_max: Duration::ZERO,
            error_age_max: Duration::ZERO,
            event_retention: Duration::ZERO,
            ..Self::default()
        }
    }

    pub fn is_quiet_mode(&self) -> bool {
        self.quiet_since_ms.is_some()
    }

    /// Returns the maximum number of openings of a rule without groups that are sent separately
    /// when one hold ends.
    pub fn separate_release_max(&self) -> usize {
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
    fn durations_are_written_in_config_syntax() {
        let lengths = [
            (Duration::ZERO, "\"0s\""),
            (Duration::from_millis(1_500), "\"1500ms\""),
            (Duration::from_secs(90), "\"90s\""),
            (Duration::from_secs(120), "\"2m\""),
            (36 * HOUR, "\"36h\""),
            (48 * HOUR, "\"2d\""),
        ];
        for (length, written) in lengths {
            assert_eq!(length.setting_text(), written);
        }
    }

    #[test]
    fn settings_are_compared_and_adopted_by_key() {
        let others = SharedSettings {
            tenant: "acme".into(),
            info_age_max: HOUR,
            warning_age_max: HOUR,
            error_age_max: HOUR,
            event_retention: HOUR,
            delivery_retention: HOUR,
            audit_retention: HOUR,
            together_from: 3,
            templates: Arc::new(Snippets::from([("a".into(), "b".into())])),
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
            settings.copy_setting(key, &others);
        }
        assert_eq!(settings, others);
        assert_eq!(settings.differences(&others), []);
    }
}
