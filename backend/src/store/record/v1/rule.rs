//! Rules.

use crate::domain::{FlappingLimits, Grouping, Name, RecordId, Rule, TemplateLanguage};

#[derive(Clone, PartialEq, prost::Message)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
pub(crate) struct RuleV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    description: String,
    #[prost(string, repeated, tag = "4")]
    tags: Vec<String>,
    #[prost(bool, tag = "5")]
    enabled: bool,
    #[prost(string, repeated, tag = "6")]
    trigger_names: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    destination_names: Vec<String>,
    #[prost(string, tag = "8")]
    message: String,
    #[prost(bool, tag = "9")]
    repeat: bool,
    #[prost(uint32, tag = "10")]
    repeat_interval_seconds: u32,
    #[prost(bool, tag = "11")]
    send_updates: bool,
    #[prost(uint64, tag = "12")]
    revision: u64,
    #[prost(int64, tag = "13")]
    create_ms: i64,
    #[prost(int64, tag = "14")]
    update_ms: i64,
    #[prost(int64, tag = "15")]
    delay_ms: i64,
    #[prost(string, optional, tag = "16")]
    active_calendar: Option<String>,
    #[prost(int64, tag = "17")]
    auto_pause_ms: i64,
    #[prost(message, optional, tag = "18")]
    group: Option<GroupingV1>,
    #[prost(bool, tag = "19")]
    shadow: bool,
    #[prost(message, optional, tag = "20")]
    flapping: Option<FlappingLimitsV1>,
    #[prost(int32, tag = "21")]
    template_language: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct GroupingV1 {
    #[prost(string, repeated, tag = "1")]
    by: Vec<String>,
    #[prost(int64, tag = "2")]
    wait_ms: i64,
    #[prost(int64, tag = "3")]
    interval_ms: i64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct FlappingLimitsV1 {
    #[prost(uint32, tag = "1")]
    open_count: u32,
    #[prost(int64, tag = "2")]
    window_ms: i64,
    #[prost(int64, tag = "3")]
    settle_ms: i64,
}

impl From<&Rule> for RuleV1 {
    fn from(rule: &Rule) -> Self {
        Self {
            id: rule.id.to_bytes().into(),
            name: rule.name.as_str().into(),
            description: rule.description.clone(),
            tags: rule.tags.clone(),
            enabled: rule.enabled,
            trigger_names: texts(&rule.trigger_names),
            destination_names: texts(&rule.destination_names),
            message: rule.message.clone(),
            template_language: rule.template_language.number(),
            repeat: rule.repeat,
            repeat_interval_seconds: rule.repeat_interval_seconds,
            send_updates: rule.send_updates,
            revision: rule.revision,
            create_ms: rule.create_ms,
            update_ms: rule.update_ms,
            delay_ms: rule.delay_ms,
            auto_pause_ms: rule.auto_pause_ms,
            active_calendar: rule.active_calendar.as_ref().map(ToString::to_string),
            group: rule.group.as_ref().map(|it| GroupingV1 {
                by: it.by.clone(),
                wait_ms: it.wait_ms,
                interval_ms: it.interval_ms,
            }),
            shadow: rule.shadow,
            flapping: rule.flapping.map(|it| FlappingLimitsV1 {
                open_count: it.open_count,
                window_ms: it.window_ms,
                settle_ms: it.settle_ms,
            }),
        }
    }
}

impl RuleV1 {
    pub(crate) fn into_rule(self) -> Option<Rule> {
        Some(Rule {
            id: RecordId::from_bytes(self.id.try_into().ok()?),
            name: Name::parse(&self.name).ok()?,
            description: self.description,
            tags: self.tags,
            enabled: self.enabled,
            trigger_names: names(&self.trigger_names)?,
            destination_names: names(&self.destination_names)?,
            message: self.message,
            template_language: TemplateLanguage::of_number(self.template_language)?,
            repeat: self.repeat,
            repeat_interval_seconds: self.repeat_interval_seconds,
            send_updates: self.send_updates,
            revision: self.revision,
            create_ms: self.create_ms,
            update_ms: self.update_ms,
            delay_ms: self.delay_ms,
            auto_pause_ms: self.auto_pause_ms,
            active_calendar: optional_name(self.active_calendar.as_deref()).ok()?,
            group: self.group.map(|it| Grouping {
                by: it.by,
                wait_ms: it.wait_ms,
                interval_ms: it.interval_ms,
            }),
            shadow: self.shadow,
            flapping: self.flapping.map(|it| FlappingLimits {
                open_count: it.open_count,
                window_ms: it.window_ms,
                settle_ms: it.settle_ms,
            }),
        })
    }
}

/// A name that may be absent.
pub(crate) fn optional_name(text: Option<&str>) -> Result<Option<Name>, String> {
    text.map(Name::parse).transpose()
}

pub(crate) fn texts(names: &[Name]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

pub(crate) fn names(texts: &[String]) -> Option<Vec<Name>> {
    texts.iter().map(|text| Name::parse(text).ok()).collect()
}
