//! What a message can tell about the rule and the trigger that led to it.

use super::{Match, Past, Snapshot};
use crate::domain::{
    Name, Notified, RevisionId, Rule, TemplateLanguage, Trigger, delivery::RuleContent,
};

/// What messages can tell about a rule.
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

/// What is left to report on a rule that was deleted.
fn gone(name: &Name) -> RuleContent {
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

/// What an update reports on its rule: as it is now, else as it was at the opening message.
pub fn of_update(entry: &Notified, rule: Option<&Rule>, past: &Past) -> RuleContent {
    let then = || {
        past.rule(&RevisionId {
            name: entry.rule_name.clone(),
            id: entry.rule,
            revision: entry.opening.as_ref()?.rule_revision,
        })
    };
    rule.or_else(then)
        .map_or_else(|| gone(&entry.rule_name), rule_content)
}

/// The trigger that an update reports on: that of the opening message. Where that was not noted,
/// one that matches, else the rule's first.
pub fn trigger_of_update(
    entry: &Notified,
    rule: Option<&Rule>,
    matches: &[Match<'_>],
    (snapshot, past): (&Snapshot, &Past),
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
