//! The rule and trigger as shown in messages.

use super::{Match, PastDefinitions, Snapshot};
use crate::domain::{
    Name, Notified, RevisionId, Rule, TemplateLanguage, Trigger, delivery::RuleContent,
};

pub fn rule_content(rule: &Rule) -> RuleContent {
    RuleContent {
        name: rule.name.as_str().into(),
        description: rule.description.clone(),
        message: rule.message.clone(),
        template_language: rule.template_language,
        enabled: rule.enabled,
        repeat_interval_seconds: rule.repeat_interval_seconds,
        trigger_names: rule.trigger_names.clone(),
        destination_names: rule.destination_names.clone(),
    }
}

fn deleted_rule_content(name: &Name) -> RuleContent {
    RuleContent {
        name: name.as_str().into(),
        description: String::new(),
        message: String::new(),
        template_language: TemplateLanguage::default(),
        enabled: false,
        repeat_interval_seconds: 0,
        trigger_names: Vec::new(),
        destination_names: Vec::new(),
    }
}

/// Returns the rule as an update shows it: its current definition, or else its definition at the
/// time of the opening message.
pub fn update_content(
    entry: &Notified,
    rule: Option<&Rule>,
    past: &PastDefinitions,
) -> RuleContent {
    let then = || {
        past.rule(&RevisionId {
            name: entry.rule_name.clone(),
            id: entry.rule,
            revision: entry.opening.as_ref()?.rule_revision,
        })
    };
    rule.or_else(then)
        .map_or_else(|| deleted_rule_content(&entry.rule_name), rule_content)
}

/// Returns the trigger that an update shows: the trigger of the opening message, or, if that is not
/// recorded, a matching one or else the first trigger of the rule.
pub fn update_trigger(
    entry: &Notified,
    rule: Option<&Rule>,
    matches: &[Match<'_>],
    (snapshot, past): (&Snapshot, &PastDefinitions),
) -> Option<Trigger> {
    if let Some(opening) = &entry.opening {
        let current = snapshot.trigger(&opening.trigger.name);
        let same = current.filter(|it| RevisionId::from(*it) == opening.trigger);
        let then = same.or_else(|| past.trigger(&opening.trigger));
        if let Some(trigger) = then {
            return Some(trigger.clone());
        }
    }
    let matched = matches.iter().find(|it| it.rule.id == entry.rule);
    let first = || {
        let mut names = rule?.trigger_names.iter();
        names.find_map(|name| snapshot.trigger(name))
    };
    matched.map(|it| it.trigger).or_else(first).cloned()
}
