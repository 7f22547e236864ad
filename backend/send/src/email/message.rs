//! Subject and body of a mail: from the author's templates or by default.

use std::fmt::Write as _;

use super::{Mail, html};
use crate::{
    domain::destination::Email,
    message::{Facts, cut, domain_json, is_blank},
    template::{self, Escape},
};

const SUBJECT_CHARACTERS_MAX: usize = 250;
const ENTITY_CHARACTERS_MAX: usize = 100;
/// Maximum bytes of one value in the default body.
const VALUE_BYTES_MAX: usize = 64 * 1024;

pub(super) fn build_mail(facts: &mut Facts<'_>, email: &Email) -> Mail {
    let subject = subject(facts, email);
    let body = own_template(facts, &email.body);
    let custom = facts.render("the mail's body", body, Escape::Html);
    let is_shown = |html: &str| html.contains("<img") || !is_blank(&html::to_text(html));
    let (custom, blank): (Option<String>, _) = match custom {
        Some(filled) if is_shown(&filled) => (Some(filled), false),
        other => (None, other.is_some()),
    };
    if blank {
        facts.warn(
            "the mail's body",
            "renders blank for this event; the default is used",
        );
    }
    let (text, html) = match (custom, &facts.message) {
        (Some(filled), _) if body.contains('<') => (html::to_text(&filled), filled),
        // A template without tags is plain text with escaped values, but values that are not
        // escaped may contain HTML.
        (Some(filled), _) if filled.contains('<') => {
            let html = filled.replace('\n', "<br>\n");
            (html::to_text(&html), html)
        }
        (Some(filled), _) => {
            let text = html::html_to_text(&filled).into_owned();
            let html = html::html_from_text(&text);
            (text, html)
        }
        (None, Some(message)) => (message.clone(), html::html_from_text(message)),
        (None, None) => default_body(facts),
    };
    Mail {
        subject,
        text,
        html,
    }
}

pub(super) fn reduced_message(facts: &mut Facts<'_>, email: &Email) -> Mail {
    let mut text = facts.headline.clone();
    if let Some(change) = facts.change_label() {
        let _infallible = write!(text, " ({change})");
    }
    for (label, value) in facts.fields() {
        let _infallible = write!(text, "\n{label}: {value}");
    }
    let _infallible = write!(text, "\n{}", facts.link);
    Mail {
        subject: subject(facts, email),
        html: html::html_from_text(&text),
        text,
    }
}

/// Returns the author's template, or an empty one for a digest that the template does not support.
fn own_template<'a>(facts: &Facts<'_>, template: &'a str) -> &'a str {
    let is_left_out = facts.content.digest.is_some() && !template.contains("digest");
    if is_left_out { "" } else { template }
}

/// Returns the subject of the first message of the thread, so that mail programs show one
/// conversation.
fn subject(facts: &mut Facts<'_>, email: &Email) -> String {
    let Some(opening) = facts.context.opening else {
        return own_subject(facts, email);
    };
    let mut first = Facts::new(opening, facts.context);
    first.language = facts.language;
    let subject = own_subject(&mut first, email);
    format!("Re: {subject}")
}

fn own_subject(facts: &mut Facts<'_>, email: &Email) -> String {
    let template = own_template(facts, &email.subject);
    facts
        .render("the mail's subject", template, Escape::None)
        .map(|text| cut::to_one_line(&text, SUBJECT_CHARACTERS_MAX))
        .filter(|line| !line.is_empty())
        .unwrap_or_else(|| default_subject(facts))
}

fn default_subject(facts: &Facts<'_>) -> String {
    let tenant = facts.context.tenant;
    let severity = facts.occurrence().severity.as_str();
    let mut subject = format!("[{tenant}] {severity}: {}", facts.headline);
    // The subject names the host, so that the same problem on two hosts makes two conversations.
    let is_single = facts.content.digest.is_none() && facts.content.group.is_none();
    if is_single && !facts.entity.is_empty() && !facts.headline.contains(&facts.entity) {
        let entity = cut::truncate_chars(&facts.entity, ENTITY_CHARACTERS_MAX);
        let _infallible = write!(subject, " ({entity})");
    }
    if let Some(change) = facts.change_label() {
        let _infallible = write!(subject, " ({change})");
    }
    cut::to_one_line(&subject, SUBJECT_CHARACTERS_MAX)
}

struct MailSection {
    heading: String,
    pairs: Vec<(String, String)>,
    text: String,
}

fn default_body(facts: &Facts<'_>) -> (String, String) {
    let parts = mail_sections(facts);
    (render_text(&parts), render_html(&parts))
}

fn mail_sections(facts: &Facts<'_>) -> Vec<MailSection> {
    let heading = match facts.change_label() {
        Some(change) => format!("{} ({change})", facts.headline),
        None => facts.headline.clone(),
    };
    let section = |heading: &str, pairs: Vec<(String, String)>| MailSection {
        heading: heading.into(),
        pairs,
        text: String::new(),
    };
    let members = MailSection {
        heading: "Events".into(),
        pairs: Vec::new(),
        text: facts.members().unwrap_or_default().join("\n"),
    };
    if facts.content.digest.is_some() {
        let pairs = facts.fields().into_iter();
        let pairs = pairs.map(|(label, value)| (label.to_owned(), value));
        return vec![section(&heading, pairs.collect()), members];
    }
    let occurrence = facts.occurrence();
    let dimensions = occurrence.dimensions.iter();
    let metadata = occurrence.metadata.iter();
    let notes = occurrence.annotations.iter().map(|note| {
        let heading = format!("{}, {}", note.author, domain_json::time(note.update_ms));
        (heading, note.text.clone())
    });
    let parts = vec![
        section(&heading, overview_fields(facts)),
        members,
        section(
            "Dimensions",
            dimensions
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        ),
        section(
            "Fields",
            metadata
                .map(|(key, value)| (key.clone(), domain_json::text(value)))
                .collect(),
        ),
        MailSection {
            heading: "Details".into(),
            pairs: Vec::new(),
            text: occurrence.body.clone(),
        },
        section("Annotations", notes.collect()),
    ];
    let is_filled = |part: &MailSection| !part.pairs.is_empty() || !part.text.is_empty();
    parts.into_iter().filter(is_filled).collect()
}

fn overview_fields(facts: &Facts<'_>) -> Vec<(String, String)> {
    let occurrence = facts.occurrence();
    let rule = &facts.content.rule;
    let trigger = facts.content.trigger.as_ref();
    let acknowledged = if facts.is_acknowledged() { "yes" } else { "no" };
    let pairs = [
        ("Severity", occurrence.severity.as_str().to_owned()),
        ("Status", occurrence.status.as_str().to_owned()),
        ("Acknowledged", acknowledged.to_owned()),
        ("Name", occurrence.name.clone()),
        ("Type", occurrence.kind.clone()),
        ("Entity", facts.entity.clone()),
        ("Count", occurrence.count.to_string()),
        ("Started", domain_json::time(occurrence.start_ms)),
        ("Last seen", domain_json::time(occurrence.last_seen_ms)),
        ("Rule", rule.name.clone()),
        (
            "Trigger",
            trigger.map_or_else(String::new, |trigger| trigger.name.to_string()),
        ),
        ("Event", occurrence.id().to_string()),
        ("Link", facts.link.clone()),
        ("Acknowledge", facts.acknowledge_link().unwrap_or_default()),
    ];
    let pairs = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    pairs
        .map(|(label, value)| (label.to_owned(), value))
        .collect()
}

fn render_text(parts: &[MailSection]) -> String {
    let mut text = String::new();
    for part in parts {
        if !text.is_empty() {
            text.push('\n');
        }
        let _infallible = writeln!(text, "{}", part.heading);
        for (label, value) in &part.pairs {
            let value = cut::truncate_bytes(value, VALUE_BYTES_MAX).replace('\n', "\n    ");
            let _infallible = writeln!(text, "  {label}: {value}");
        }
        if !part.text.is_empty() {
            let _infallible = writeln!(text, "{}", part.text);
        }
    }
    text
}

fn render_html(parts: &[MailSection]) -> String {
    let mut body = String::from("<!DOCTYPE html>\n<html><body style=\"font-family:sans-serif\">\n");
    for part in parts {
        let _infallible = writeln!(body, "<h3>{}</h3>", template::escape_html(&part.heading));
        if !part.pairs.is_empty() {
            body.push_str("<table cellpadding=\"4\">\n");
            for (label, value) in &part.pairs {
                let label = template::escape_html(label);
                let value = html::html_from_text(&cut::truncate_bytes(value, VALUE_BYTES_MAX));
                let _infallible = writeln!(
                    body,
                    "<tr><td valign=\"top\"><b>{label}</b></td><td>{value}</td></tr>"
                );
            }
            body.push_str("</table>\n");
        }
        if !part.text.is_empty() {
            let _infallible = writeln!(body, "<p>{}</p>", html::html_from_text(&part.text));
        }
    }
    body.push_str("</body></html>\n");
    body
}
