//! The table of all settings: each key, and a function that applies its value.

use bellwether_proto::cloud::Severity;
use bellwether_tui::{ESCAPE_DELAY_MAX, Popup, QuietHours, Theme};

use super::service;
use super::{
    KeySource, LogFormat, Part,
    entry::{Setting, set},
    value,
};

const COMMAND: &[Setting] = &[
    set!("data_dir" => data_dir: value::parse_path),
    set!("grpc_listen" => Some(grpc_listen): value::parse_address),
    set!("rest_listen" => Some(rest_listen): value::parse_address),
    set!("backend" => backend: value::parse_url),
    set!("connect" => Some(connect): value::parse_url),
    set!("tls_cert" => Some(tls.cert): value::parse_path),
    set!("tls_key" => Some(tls.key): value::parse_path),
    set!("tls_client_ca" => Some(tls.client_ca): value::parse_path),
    set!("tls_client_crl" => Some(tls.client_crl): value::parse_path),
    set!("tls_client_optional" => tls.client_optional: value::parse_flag),
    set!("tls_client_cert" => Some(tls.client_cert): value::parse_path),
    set!("tls_client_key" => Some(tls.client_key): value::parse_path),
    set!("tls_ca" => Some(tls.ca): value::parse_path),
    set!("tls_name" => Some(tls.name): value::parse_text),
    Setting::new("key_file", |settings, value| {
        settings.key = KeySource::File(value::parse_path(value)?);
        Ok(())
    }),
    set!("read_only" => read_only: value::parse_flag),
    set!("plain" => plain: value::parse_flag),
    set!("mouse" => mouse: value::parse_flag),
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
    set!("notice.enabled" => notices.enabled: value::parse_flag),
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
    set!("notice.bell" => notices.bell: value::parse_flag),
    Setting::new("notice.popup", |settings, value| {
        let words = Popup::ALL.map(|popup| (popup.as_str(), popup));
        settings.notices.popup = value::one_of_names(value, &words)?;
        Ok(())
    }),
    set!("notice.title" => notices.title: value::parse_flag),
    Setting::new("notice.quiet", |settings, value| {
        let expected = "a span of local time such as \"22:00-07:00\"";
        let is_set = value.as_str() != Some("");
        let quiet = is_set.then(|| value::parse_from_str::<QuietHours>(value, expected));
        settings.notices.quiet = quiet.transpose()?;
        Ok(())
    }),
    set!("notice.plain" => notices.plain: value::parse_flag),
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
    set!("insecure" => insecure: value::parse_flag),
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
