//! Rules between the wire and the domain.

use bellwether_proto::v1;

use super::{
    json,
    list::count,
    time::{self, timestamp},
};
use crate::ops::{
    etag::etag,
    rule::{FlappingDraft, GroupingDraft, Preview, Previews, RuleDraft, RuleView},
};

impl From<v1::Rule> for RuleDraft {
    fn from(wire: v1::Rule) -> Self {
        Self {
            name: wire.name,
            description: wire.description,
            tags: wire.tags,
            enabled: wire.enabled.unwrap_or_default(),
            trigger_names: wire.trigger_names,
            destination_names: wire.destination_names,
            message: wire.message,
            template_language: wire.template_language,
            repeat: wire.repeat.unwrap_or_default(),
            repeat_interval: wire.repeat_interval,
            send_updates: wire.send_updates.unwrap_or_default(),
            delay_ms: wire.delay.as_ref().map(time::length_ms),
            auto_pause_ms: wire.auto_pause.as_ref().map(time::length_ms),
            group: wire.group.map(grouping),
            flapping: wire.flapping.map(|it| FlappingDraft {
                open_count: it.open_count,
                window_ms: it.window.as_ref().map(time::length_ms),
                settle_ms: it.settle.as_ref().map(time::length_ms),
            }),
            shadow: wire.shadow.unwrap_or_default(),
            active_calendar: wire.active_calendar_name,
            etag: wire.etag,
        }
    }
}

/// How a rule is to gather occurrences.
pub fn grouping(wire: v1::Grouping) -> GroupingDraft {
    GroupingDraft {
        by: wire.by,
        wait_ms: wire.wait.as_ref().map(time::length_ms),
        interval_ms: wire.interval.as_ref().map(time::length_ms),
    }
}

impl From<RuleView> for v1::Rule {
    fn from(view: RuleView) -> Self {
        let rule = view.rule;
        let texts = |names: &[crate::domain::Name]| names.iter().map(ToString::to_string).collect();
        Self {
            etag: etag(rule.id, rule.revision),
            name: rule.name.to_string(),
            trigger_names: texts(&rule.trigger_names),
            destination_names: texts(&rule.destination_names),
            description: rule.description,
            tags: rule.tags,
            enabled: Some(rule.enabled),
            message: rule.message,
            template_language: rule.template_language.number(),
            repeat: Some(rule.repeat),
            repeat_interval: Some(rule.repeat_interval_seconds.into()),
            send_updates: Some(rule.send_updates),
            delay: (rule.delay_ms > 0).then(|| time::length(rule.delay_ms)),
            auto_pause: (rule.auto_pause_ms > 0).then(|| time::length(rule.auto_pause_ms)),
            active_calendar_name: rule
                .active_calendar
                .map(|it| it.to_string())
                .unwrap_or_default(),
            group: rule.group.map(|it| v1::Grouping {
                by: it.by,
                wait: Some(time::length(it.wait_ms)),
                interval: Some(time::length(it.interval_ms)),
            }),
            flapping: rule.flapping.map(|it| v1::Flapping {
                open_count: it.open_count.try_into().unwrap_or(i32::MAX),
                window: Some(time::length(it.window_ms)),
                settle: Some(time::length(it.settle_ms)),
            }),
            shadow: Some(rule.shadow),
            recent_shadow_count: Some(count(view.recent_shadows)),
            recent_notification_count: Some(count(view.recent_notifications)),
            last_notification_time: view.last_notification_ms.map(timestamp),
            create_time: Some(timestamp(rule.create_ms)),
            update_time: Some(timestamp(rule.update_ms)),
        }
    }
}

impl From<Previews> for v1::PreviewRuleResponse {
    fn from(previews: Previews) -> Self {
        Self {
            previews: previews.previews.into_iter().map(Into::into).collect(),
            warnings: previews.warnings,
        }
    }
}

impl From<Preview> for v1::RulePreview {
    fn from(preview: Preview) -> Self {
        Self {
            destination_name: preview.destination_name.to_string(),
            rendered: preview.rendered.map(json::object),
            size_bytes: Some(count(preview.size_bytes)),
            limit_bytes: preview.limit_bytes.map(count),
            warnings: preview.warnings,
        }
    }
}
