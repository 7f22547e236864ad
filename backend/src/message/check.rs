//! What is wrong with templates, told when they are saved.

use crate::{domain::DestinationKind, error::Violation, template::Template};

/// What is wrong with the templates of a destination, every one of them; paths begin at the
/// destination, such as `type.email.subject`.
pub fn check(kind: &DestinationKind) -> Vec<Violation> {
    let templates: Vec<(&str, &str)> = match kind {
        DestinationKind::Webhook(webhook) => vec![("payload", &webhook.payload)],
        DestinationKind::Email(email) => vec![("subject", &email.subject), ("body", &email.body)],
        DestinationKind::Event(event) => vec![
            ("nameTemplate", &event.name_template),
            ("typeTemplate", &event.type_template),
            ("summaryTemplate", &event.summary_template),
        ],
        DestinationKind::Slack(_)
        | DestinationKind::MsTeams(_)
        | DestinationKind::PagerDuty(_)
        | DestinationKind::ServiceNow(_) => Vec::new(),
    };
    let faults = templates.into_iter().filter_map(|(field, source)| {
        let path = format!("type.{}.{field}", kind.word());
        fault(path, source)
    });
    faults.collect()
}

/// What is wrong with a rule's message; the path is `message`.
pub fn check_message(message: &str) -> Vec<Violation> {
    fault("message".into(), message).into_iter().collect()
}

/// What a rule's message will not show, for people: variables that no event can have.
pub fn message_warnings(message: &str) -> Vec<String> {
    let unknown = Template::parse(message).map(|template| template.unknown_variables());
    let unknown = unknown.unwrap_or_default().into_iter();
    unknown
        .map(|name| format!("the rule's message: no event has a variable `{name}`"))
        .collect()
}

fn fault(path: String, source: &str) -> Option<Violation> {
    let error = Template::parse(source).err()?;
    Some(Violation::new(path, error.to_string()))
}
