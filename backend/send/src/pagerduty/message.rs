//! Messages for PagerDuty's Events API v2.

use serde_json::{Value, json};

use url::Url;

use crate::{
    domain::{Severity, destination::PagerDuty},
    message::{Facts, cut, domain_json},
    template::Escape,
};

/// PagerDuty rejects events over 512 KB.
pub(super) const BODY_BYTES_MAX: usize = 512 * 1024;
const SUMMARY_CHARACTERS_MAX: usize = 1_024;
/// Maximum bytes of a URL; longer ones are left out.
const URL_BYTES_MAX: usize = 2_048;
/// Maximum number of links, and of images, per event.
const ENTRIES_MAX: usize = 50;
/// Maximum bytes of one long value in the details, as JSON.
const DETAIL_BYTES_MAX: usize = 64 * 1024;

const REDUCED_CHARACTERS_MAX: usize = 200;
const PAYLOAD_REQUIRED: [&str; 3] = ["summary", "source", "severity"];

/// Builds an event that opens, acknowledges or resolves an alert; the thread identifies the alert.
#[expect(clippy::too_many_lines, reason = "one member after another")]
pub(super) fn body(facts: &mut Facts<'_>, pagerduty: &PagerDuty) -> Value {
    let occurrence = facts.occurrence();
    let summary = facts.message.as_deref().map(str::trim).unwrap_or_default();
    let summary = match summary {
        "" => facts.headline.clone(),
        message => message.to_owned(),
    };
    let start = cut::truncate_chars(&summary, SUMMARY_CHARACTERS_MAX);
    let limit = format!("{SUMMARY_CHARACTERS_MAX} characters for a summary");
    let summary = facts.warn_truncated(&summary, start, "PagerDuty", &limit);
    let source = match facts.entity.as_str() {
        "" => facts.context.tenant,
        entity => entity,
    };
    let source = cut::truncate_chars(source, SUMMARY_CHARACTERS_MAX);
    let class = render_line(facts, "the class", &pagerduty.class, &occurrence.kind);
    let component = render_line(
        facts,
        "the component",
        &pagerduty.component,
        &occurrence.name,
    );
    let group = render_line(facts, "the group", &pagerduty.group, facts.context.tenant);
    let own_details = render_json(
        facts,
        "the details",
        &pagerduty.custom_details,
        Value::is_object,
    );
    let custom_details = own_details.unwrap_or_else(|| details(facts));
    let mut body = json!({
        "event_action": action(facts),
        "dedup_key": facts.thread_id(),
        "client": "Bellwether",
        "payload": {
            "summary": summary,
            "source": source,
            "severity": severity(occurrence.severity),
            "timestamp": domain_json::time(occurrence.last_seen_ms),
            "component": component,
            "class": class,
            "group": group,
            "custom_details": custom_details,
        },
    });
    if !facts.link.is_empty() {
        body["client_url"] = facts.link.as_str().into();
        body["links"] = json!([{"href": facts.link, "text": "Open the event"}]);
    }
    let links = render_list(
        facts,
        "the links",
        &pagerduty.links,
        ("href", &["text"]),
        "http",
    );
    if let (Some(list), false) = (
        body.get_mut("links").and_then(Value::as_array_mut),
        links.is_empty(),
    ) {
        list.extend(links);
    } else if !links.is_empty() {
        body["links"] = links.into();
    }
    let rest = ("src", &["href", "alt"][..]);
    let images = render_list(facts, "the images", &pagerduty.images, rest, "https");
    if !images.is_empty() {
        body["images"] = images.into();
    }
    if body.to_string().len() > BODY_BYTES_MAX {
        let note = "details omitted: the event would exceed PagerDuty's limit";
        body["payload"]["custom_details"] = json!({"note": note});
    }
    body
}

pub(super) fn reduced_message(facts: &mut Facts<'_>, pagerduty: &PagerDuty) -> Value {
    let mut reduced = body(facts, pagerduty);
    if let Some(event) = reduced.as_object_mut() {
        for member in ["images", "links", "client_url"] {
            event.remove(member);
        }
    }
    if let Some(payload) = reduced["payload"].as_object_mut() {
        payload.retain(|member, _| PAYLOAD_REQUIRED.contains(&member.as_str()));
    }
    let summary = cut::to_one_line(&facts.headline, REDUCED_CHARACTERS_MAX);
    reduced["payload"]["summary"] = summary.into();
    reduced
}

fn render_line(facts: &mut Facts<'_>, what: &str, template: &str, default: &str) -> String {
    let filled = facts.render(what, template, Escape::None);
    let filled = filled.filter(|text| !text.trim().is_empty());
    cut::to_one_line(filled.as_deref().unwrap_or(default), SUMMARY_CHARACTERS_MAX)
}

/// Renders a template to JSON; `None` if it does not have the expected form.
fn render_json(
    facts: &mut Facts<'_>,
    what: &str,
    template: &str,
    is_form: impl Fn(&Value) -> bool,
) -> Option<Value> {
    let filled = facts.render(what, template, Escape::Json)?;
    let made: Result<Value, _> = serde_json::from_str(&filled);
    match made {
        Ok(value) if is_form(&value) => return Some(value),
        Ok(_) => facts.warn(
            what,
            "the rendered template has the wrong structure; omitted",
        ),
        Err(error) => {
            let wrong = format!("the rendered template is not JSON ({error}); omitted");
            facts.warn(what, &wrong);
        }
    }
    None
}

/// Returns the valid entries of a rendered list: each has an address, and optional texts.
fn render_list(
    facts: &mut Facts<'_>,
    what: &str,
    template: &str,
    (address, texts): (&str, &[&str]),
    scheme: &str,
) -> Vec<Value> {
    let Some(Value::Array(list)) = render_json(facts, what, template, Value::is_array) else {
        return Vec::new();
    };
    let found = list.len();
    let shown = list.into_iter().take(ENTRIES_MAX).filter_map(|entry| {
        let url = url_within_limit(&entry[address], scheme)?;
        let mut shown = json!({address: url});
        for name in texts {
            let text = match *name {
                "href" => url_within_limit(&entry[*name], "http"),
                name => entry[name]
                    .as_str()
                    .map(|text| cut::truncate_chars(text, SUMMARY_CHARACTERS_MAX)),
            };
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                shown[*name] = text.into();
            }
        }
        Some(shown)
    });
    let shown: Vec<_> = shown.collect();
    if shown.len() < found {
        let wrong = format!(
            "{} of {found} omitted: `{address}` is not a `{scheme}` URL, or there are more than {ENTRIES_MAX}",
            found - shown.len()
        );
        facts.warn(what, &wrong);
    }
    shown
}

/// Returns a URL with this scheme, unless it is too long for PagerDuty: a truncated one would lead
/// elsewhere.
fn url_within_limit(value: &Value, scheme: &str) -> Option<String> {
    let url = Url::parse(value.as_str()?).ok()?;
    let is_fit = url.has_host() && url.scheme().starts_with(scheme);
    let url = String::from(url);
    (is_fit && url.len() <= URL_BYTES_MAX).then_some(url)
}

/// Returns the event action. Only updates acknowledge, because an alert must exist before it can be
/// acknowledged.
fn action(facts: &Facts<'_>) -> &'static str {
    match facts.content.clear {
        _ if facts.are_all_closed() => "resolve",
        true if facts.is_acknowledged() => "acknowledge",
        _ => "trigger",
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info | Severity::Debug => "info",
    }
}

fn details(facts: &Facts<'_>) -> Value {
    let occurrence = facts.occurrence();
    let trigger = facts.content.trigger.as_ref();
    let mut details = json!({
        "message": cut::truncate_json(facts.message(), DETAIL_BYTES_MAX),
        "summary": occurrence.summary,
        "body": cut::truncate_json(&occurrence.body, DETAIL_BYTES_MAX),
        "status": occurrence.status.as_str(),
        "acknowledged": occurrence.acknowledged,
        "count": occurrence.count,
        "event_id": occurrence.event.to_string(),
        "dimensions": occurrence.dimensions,
        "fields": domain_json::object(&occurrence.metadata),
        "rule": facts.content.rule.name,
        "trigger": trigger.map(|trigger| trigger.name.as_str()),
    });
    if let Some(members) = facts.members() {
        details["members"] = members.into();
    }
    details
}
