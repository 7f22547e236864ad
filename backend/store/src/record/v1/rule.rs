//! Rules.

use crate::{
    domain::{FlappingLimits, Grouping, Rule, TemplateLanguage},
    record::table::{field::number, record},
};

record! { Rule {
    1 id, 2 name, 3 description, 4 tags, 5 enabled, 6 trigger_names, 7 destination_names, 8 message,
    9 repeat, 10 repeat_interval_seconds, 11 send_updates, 12 revision, 13 create_ms, 14 update_ms,
    15 delay_ms, 16 active_calendar, 17 auto_pause_ms, 18 group, 19 shadow, 20 flapping,
    21 template_language, 22 escalation_policy as OptionalForm,
} }

record! { Grouping { 1 by, 2 wait_ms, 3 interval_ms } }

record! { FlappingLimits { 1 open_count, 2 window_ms, 3 settle_ms } }

number!(
    TemplateLanguage,
    |it: &TemplateLanguage| it.number(),
    TemplateLanguage::from_number
);
