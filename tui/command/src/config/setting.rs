//! The table of all settings: each key, and a function that applies its value.

use bellwether_proto::cloud::Severity;
use bellwether_tui::{ESCAPE_DELAY_MAX, Popup, QuietHours, Theme};

use super::service;
use super::{KeySource, LogFormat, Part, entry::Setting, value};

const COMMAND: &[Setting] = &[
    Setting::new("data_dir", |settings, value| {
        settings.data_dir = value::parse_path(value)?;
        Ok(())
    }),
    Setting::new("grpc_listen", |settings, value| {
        settings.grpc_listen = Some(value::parse_address(value)?);
        Ok(())
    }),
    Setting::new("rest_listen", |settings, value| {
        settings.rest_listen = Some(value::parse_address(value)?);
        Ok(())
    }),
    Setting::new("backend", |settings, value| {
        settings.backend = value::parse_url(value)?;
        Ok(())
    }),
    Setting::new("connect", |settings, value| {
        settings.connect = Some(value::parse_url(value)?);
        Ok(())
    }),
    Setting::new("tls_cert", |settings, value| {
        settings.tls.cert = Some(value::parse_path(value)?);
        Ok(())
    }),
    Setting::new("tls_key", |settings, value| {
        settings.tls.key = Some(value::parse_path(value)?);
        Ok(())
    }),
    Setting::new("tls_client_ca", |settings, value| {
        settings.tls.client_ca = Some(value::parse_path(value)?);
        Ok(())
    }),
    Setting::new("tls_client_crl", |settings, value| {
        settings.tls.client_crl = Some(value::parse_path(value)?);
        Ok(())
    }),
    Setting::new("tls_client_optional", |settings, value| {
        settings.tls.client_optional = value::parse_flag(value)?;
        Ok(())
    }),
    Setting::new("tls_client_cert", |settings, value| {
        settings.tls.client_cert = Some(value::parse_path(value)?);
        Ok(())
    }),
    Setting::new("tls_client_key", |settings, value| {
        settings.tls.client_key = Some(value::parse_path(value)?);
        Ok(())
    }),
    Setting::new("tls_ca", |settings, value| {
        settings.tls.ca = Some(value::parse_path(value)?);
        Ok(())
    }),
    Setting::new("tls_name", |settings, value| {
        settings.tls.name = Some(value::parse_text(value)?);
        Ok(())
    }),
    Setting::new("key_file", |settings, value| {
        settings.key = KeySource::File(value::parse_path(value)?);
        Ok(())
    }),
    Setting::new("read_only", |settings, value| {
        settings.read_only = value::parse_flag(value)?;
        Ok(())
    }),
    Setting::new("plain", |settings, value| {
        settings.plain = value::parse_flag(value)?;
        Ok(())
    }),
    Setting::new("mouse", |settings, value| {
        settings.mouse = value::parse_flag(value)?;
        Ok(())
    }),
    Setting::new("escape_delay", |settings, value| {
        let delay = value::parse_duration(value)?;
        if delay > ESCAPE_DELAY_MAX {
            return Err(value::invalid_value_message(
                "a duration from \"0ms\" to \"1s\"",
                value,
            ));
        }
        settings.escape_delay = delay;
        Ok(())
    }),
    Setting::new("theme", |settings, value| {
        let words = Theme::ALL.map(|theme| (theme.as_str(), theme));
        settings.theme = value::one_of_names(value, &words)?;
        Ok(())
    }),
    Setting::new("notice.enabled", |settings, value| {
        settings.notices.enabled = value::parse_flag(value)?;
        Ok(())
    }),
    Setting::new("notice.severity", |settings, value| {
        let words = [
            ("debug", Severity::Debug),
            ("info", Severity::Info),
            ("warning", Severity::Warning),
            ("error", Severity::Error),
            ("critical", Severity::Critical),
        ];
        settings.notices.severity = value::one_of_names(value, &words)?;
        Ok(())
    }),
    Setting::new("notice.bell", |settings, value| {
        settings.notices.bell = value::parse_flag(value)?;
        Ok(())
    }),
    Setting::new("notice.popup", |settings, value| {
        let words = Popup::ALL.map(|popup| (popup.as_str(), popup));
        settings.notices.popup = value::one_of_names(value, &words)?;
        Ok(())
    }),
    Setting::new("notice.title", |settings, value| {
        settings.notices.title = value::parse_flag(value)?;
        Ok(())
    }),
    Setting::new("notice.quiet", |settings, value| {
        let expected = "a span of local time such as \"22:00-07:00\"";
        let is_set = value.as_str() != Some("");
        let quiet = is_set.then(|| value::parse_from_str::<QuietHours>(value, expected));
        settings.notices.quiet = quiet.transpose()?;
        Ok(())
    }),
    Setting::new("notice.plain", |settings, value| {
        settings.notices.plain = value::parse_flag(value)?;
        Ok(())
    }),
    Setting::new("log_format", |settings, value| {
        let words = [("text", LogFormat::Text), ("json", LogFormat::Json)];
        settings.log_format = value::one_of_names(value, &words)?;
        Ok(())
    }),
    Setting::new("log_filter", |settings, value| {
        let expected = "a level such as \"info\", or levels by module such as \
                        \"warn,bellwether_backend=debug\"";
        settings.log_filter = value::parse_from_str(value, expected)?;
        Ok(())
    }),
    Setting::new("insecure", |settings, value| {
        settings.insecure = value::parse_flag(value)?;
        Ok(())
    }),
];

pub(crate) fn all_settings() -> impl Iterator<Item = &'static Setting> {
    COMMAND.iter().chain(service::SETTINGS)
}

pub(crate) fn part_of_key(key: &str) -> Part {
    const SERVED: [&str; 5] = [
        "rest_listen",
        "backend",
        "tls_client_ca",
        "tls_client_crl",
        "tls_client_optional",
    ];

    let is_of_the_command = COMMAND.iter().any(|setting| setting.key == key);
    match key {
        _ if key.starts_with("store.") => Part::Store,
        _ if is_of_the_command && !SERVED.contains(&key) => Part::Client,
        _ => Part::Service,
    }
}

pub(crate) fn find_setting(key: &str) -> Option<&'static Setting> {
    all_settings().find(|setting| setting.key == key)
}

pub(crate) fn section_names() -> impl Iterator<Item = &'static str> {
    all_settings().filter_map(|setting| Some(setting.key.split_once('.')?.0))
}

pub(crate) fn is_section(name: &str) -> bool {
    section_names().any(|section| section == name)
}

const REMOVED: [(&str, &str); 1] = [(
    "store.two_phase_commit",
    "every commit needs two syncs, because a single one can fail unnoticed",
)];

pub(crate) fn removal_message(key: &str) -> Option<String> {
    let mut removed = REMOVED.iter();
    let (_, why) = removed.find(|(removed, _)| *removed == key)?;
    Some(format!("setting removed: {why}; delete it"))
}

pub(crate) fn removed_keys() -> impl Iterator<Item = &'static str> {
    REMOVED.iter().map(|(key, _)| *key)
}

pub(crate) fn nearest_key(key: &str) -> &'static str {
    nearest_name(all_settings().map(|setting| setting.key), key)
}

pub(crate) fn nearest_name(
    names: impl Iterator<Item = &'static str>,
    searched: &str,
) -> &'static str {
    names
        .min_by_key(|known| strsim::damerau_levenshtein(known, searched))
        .expect("there are settings")
}
