//! The files of the presets: destinations and a heartbeat as YAML, and ingest mappings as JSON.

use super::Preset;

macro_rules! files {
    ($folder:literal, $ending:literal, $($name:literal),* $(,)?) => {
        &[$(Preset {
            name: $name,
            text: include_str!(concat!(
                "../../../../tests/examples/", $folder, "/", $name, ".", $ending
            )),
            is_json: matches!($ending.as_bytes(), b"json"),
        }),*]
    };
}

pub(super) const PRESETS: &[Preset] = files!(
    "presets",
    "yaml",
    "alertmanager",
    "amazon-eventbridge",
    "amazon-sns",
    "apprise",
    "better-stack",
    "cloudevents",
    "dingtalk",
    "discord",
    "discord-buttons",
    "discord-edit",
    "feishu",
    "github-issue",
    "gitlab-issue",
    "google-chat",
    "gotify",
    "grafana-oncall",
    "home-assistant",
    "incident-io",
    "jira-issue",
    "jira-service-management",
    "kafka-rest",
    "line",
    "matrix",
    "mattermost",
    "mattermost-bot",
    "ntfy",
    "opsgenie",
    "pushover",
    "rocket-chat",
    "rocket-chat-bot",
    "slack-buttons",
    "slack-webhook",
    "splunk-on-call",
    "squadcast",
    "telegram",
    "telegram-buttons",
    "telegram-edit",
    "threema",
    "twilio-sms",
    "twilio-voice",
    "watchdog",
    "webex",
    "webex-bot",
    "wecom",
    "zendesk",
    "zulip",
);

pub(super) const MAPPINGS: &[Preset] = files!(
    "mappings",
    "json",
    "aws-sns",
    "azure-event-grid",
    "azure-monitor",
    "datadog",
    "github",
    "google-cloud-monitoring",
    "sentry",
    "statuspage",
    "uptime-kuma",
    "zabbix",
);

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn every_example_file_is_embedded_in_the_program() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/examples");
        for (folder, files) in [("presets", PRESETS), ("mappings", MAPPINGS)] {
            let found = fs::read_dir(examples.join(folder)).unwrap();
            let found = found.map(|entry| entry.unwrap().path());
            let found = found.filter(|path| path.extension().is_some_and(|it| it != "md"));
            let found = found.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
            let known = files.iter().map(|file| file.name.to_owned());
            assert_eq!(known.collect::<BTreeSet<_>>(), found.collect());
        }
    }
}
