//! Destinations: named targets of messages.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Cell, Column, FieldKind, FieldSpec, Key, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, LANGUAGE, NAME, TAGS},
    shared,
};
use crate::{
    data::{HealthState, Kind, Label, Object, health_word, urgency_rank},
    document::{Document, Link, format_duration, label, span},
    text,
    theme::Token,
};

const TYPES: &[&str] = &[
    "webhook",
    "email",
    "slack",
    "msteams",
    "pagerduty",
    "servicenow",
    "event",
];
const METHODS: &[&str] = &["POST", "PUT", "PATCH", "DELETE"];
const PRIORITIES: &[(&str, &str)] = &[
    ("normal", ""),
    ("by severity", "SEVERITY"),
    ("high", "HIGH"),
    ("low", "LOW"),
];
const SEVERITIES: &[(&str, &str)] = &[
    ("info", "SEVERITY_INFO"),
    ("debug", "SEVERITY_DEBUG"),
    ("warning", "SEVERITY_WARNING"),
    ("error", "SEVERITY_ERROR"),
    ("critical", "SEVERITY_CRITICAL"),
];

pub(super) const SPEC: KindSpec = KindSpec {
    columns: &[
        Column::new("Name", 20, 1, 0, |_, it: &Object| {
            Cell::new(Token::Text, it.name())
        })
        .sort_by_key(|it| Key::Text(it.name().to_owned())),
        Column::new("Type", 10, 0, 5, |_, it: &Object| {
            Cell::new(Token::Text, it.type_word())
        })
        .sort_by_key(|it| Key::Text(it.type_word().to_owned())),
        Column::new("Health", 8, 0, 0, |_, it: &Object| {
            Cell::new(health_state(it), health_word(health_state(it), it.text("health.lastError")))
        })
        .sort_by_key(|it| Key::Number(i64::try_from(urgency_rank(health_state(it))).unwrap_or(i64::MAX))),
        Column::new("Target", 16, 1, 7, |_, it: &Object| {
            let target = target_address(it);
            let place = target.split_once("://").map_or(target, |(_, place)| place);
            Cell::new(Token::Dim, place)
        }),
        Column::new("Waiting", 8, 0, 1, |_, it: &Object| {
            let waiting = it.number("health.waitingCount").unwrap_or_default();
            let token = if waiting == 0 { Token::Dim } else { Token::Info };
            Cell::new(token, text::group_digits(waiting))
        })
        .right_align()
        .sort_descending(|it| Key::Number(it.number("health.waitingCount").unwrap_or_default())),
        Column::new("Dead 24 h", 9, 0, 3, |around, it: &Object| {
            let dead = around.dead_letter_count(it.name());
            let token = if dead == Some(0) { Token::Dim } else { Token::Bad };
            Cell::new(token, dead.map_or_else(String::new, text::group_digits))
        })
        .right_align()
        .hide_if_empty(),
        Column::new("Behind", 8, 0, 2, |_, it: &Object| {
            Cell::new(Token::Warning, estimated_backlog(it).unwrap_or_default())
        })
        .right_align()
        .hide_if_empty(),
        shared::recent_column(8),
        Column::new("p50", 7, 0, 6, |_, it: &Object| {
            Cell::new(Token::Text, it.value_at("health.p50").and_then(Value::as_str).map_or_else(String::new, format_seconds))
        })
        .right_align()
        .hide_if_empty(),
        Column::new("p95", 7, 0, 6, |_, it: &Object| {
            Cell::new(Token::Text, it.value_at("health.p95").and_then(Value::as_str).map_or_else(String::new, format_seconds))
        })
        .right_align()
        .hide_if_empty(),
        Column::new("Sent 1 h", 10, 0, 5, |around, it: &Object| {
            Cell::new(Token::Good, around.last_hour(it.name()).delivered)
        })
        .hide_if_empty(),
        Column::new("Failed 1 h", 11, 0, 4, |around, it: &Object| {
            Cell::new(Token::Bad, around.last_hour(it.name()).failed)
        })
        .hide_if_empty(),
        Column::new("Last error", 16, 3, 2, |_, it: &Object| {
            Cell::new(Token::Bad, text::shorten_error(it.text("health.lastError")))
        }),
    ],
    searched: |it| vec![it.type_word(), target_address(it), health_state(it).label()],
    fields: &[
        NAME,
        FieldSpec::new("type", "Type", FieldKind::Choice(TYPES))
            .help("Receiver type. Left and Right choose, letters search; other types keep their values."),
        FieldSpec::text("type.webhook.url", "URL").only_for("webhook")
            .help("http or https, without a user name. Path and query may contain variables."),
        FieldSpec::secret("type.webhook.secretUrl", "Secret URL").only_for("webhook")
            .help("Used instead of URL if the URL itself is secret. Path and query may contain variables."),
        FieldSpec::new("type.webhook.method", "Method", FieldKind::Choice(METHODS)).only_for("webhook")
            .help("The HTTP method."),
        FieldSpec::pairs("type.webhook.headers", "Headers").only_for("webhook")
            .help("One `name: value` per line, up to 50. Values are secret and may be templates."),
        FieldSpec::lines("type.webhook.payload", "Payload").only_for("webhook")
            .help("Template for the body, escaped per its content-type. Empty: the standard document."),
        FieldSpec::text("type.email.to", "To").with_required().only_for("email")
            .help("ops@example.com or Ops <ops@example.com>, separated by commas; up to 20 including copies."),
        FieldSpec::text("type.email.cc", "Copies to").only_for("email")
            .help("CC addresses, separated by commas."),
        FieldSpec::text("type.email.subject", "Subject").only_for("email")
            .help("Template. Empty: `[tenant] severity: headline`."),
        FieldSpec::lines("type.email.body", "Body").only_for("email")
            .help("Template, sent as HTML. Empty: a readable summary of the event."),
        FieldSpec::text("type.slack.channel", "Channel").with_required().only_for("slack")
            .help("Channel name or id."),
        FieldSpec::secret("type.slack.token", "Token").with_required().only_for("slack")
            .help("A bot token."),
        FieldSpec::lines("type.slack.blocks", "Blocks").only_for("slack")
            .help("Template for a JSON list of Block Kit blocks. Empty: the default blocks."),
        FieldSpec::toggle("type.slack.updateFirst", "Edit the first").only_for("slack")
            .help("Also edit the first message when the event changes."),
        FieldSpec::toggle("type.slack.broadcastReplies", "Broadcast").only_for("slack")
            .help("Also post thread replies to the channel."),
        FieldSpec::secret("type.msteams.url", "URL").with_required().only_for("msteams")
            .help("URL of the incoming webhook (secret)."),
        FieldSpec::secret("type.pagerduty.routingKey", "Routing key").with_required().only_for("pagerduty")
            .help("Integration key of the service."),
        FieldSpec::text("type.pagerduty.class", "Class").only_for("pagerduty")
            .help("Template. Empty: the event's type."),
        FieldSpec::text("type.pagerduty.component", "Component").only_for("pagerduty")
            .help("Template. Empty: the event's name."),
        FieldSpec::text("type.pagerduty.group", "Group").only_for("pagerduty")
            .help("Template. Empty: the tenant."),
        FieldSpec::lines("type.pagerduty.customDetails", "Details").only_for("pagerduty")
            .help("Template for a JSON object. Empty: all details of the event."),
        FieldSpec::lines("type.pagerduty.links", "Links").only_for("pagerduty")
            .help("Template for a JSON list of {\"href\", \"text\"}, after the link to the event."),
        FieldSpec::lines("type.pagerduty.images", "Images").only_for("pagerduty")
            .help("Template for a JSON list of {\"src\", \"href\", \"alt\"}."),
        FieldSpec::text("type.servicenow.instanceUrl", "Instance URL").with_required().only_for("servicenow")
            .help("URL of the instance."),
        FieldSpec::text("type.servicenow.clientId", "Client id").with_required().only_for("servicenow")
            .help("OAuth client."),
        FieldSpec::secret("type.servicenow.clientSecret", "Client secret").with_required().only_for("servicenow")
            .help("OAuth client secret."),
        FieldSpec::text("type.servicenow.tokenUrl", "Token URL").only_for("servicenow")
            .help("Token endpoint. Empty: the instance URL."),
        FieldSpec::secret("type.servicenow.refreshToken", "Refresh token").only_for("servicenow")
            .help("OAuth refresh token. Empty: client credentials grant."),
        FieldSpec::text("type.event.nameTemplate", "Event name").with_required().only_for("event")
            .help("Template for the new event's name."),
        FieldSpec::text("type.event.typeTemplate", "Event type").with_required().only_for("event")
            .help("Template for the new event's type."),
        FieldSpec::text("type.event.summaryTemplate", "Summary").with_required().only_for("event")
            .help("Template for the new event's summary."),
        FieldSpec::new("type.event.severity", "Severity", FieldKind::Named(SEVERITIES)).only_for("event")
            .help("Severity of the new event."),
        DESCRIPTION,
        TAGS,
        LANGUAGE,
        FieldSpec::section("#mail", "Sender and headers").only_for("email")
            .help("Sender, reply address, BCC addresses, and headers for mail clients."),
        FieldSpec::text("type.email.from", "From").only_for("email")
            .help("Sender address. Empty: smtp.from in the settings."),
        FieldSpec::text("type.email.replyTo", "Reply to").only_for("email")
            .help("Reply-to addresses, separated by commas. Empty: the sender."),
        FieldSpec::text("type.email.bcc", "Blind copies to").only_for("email")
            .help("Blind copy addresses, separated by commas."),
        FieldSpec::text("type.email.listId", "List id").only_for("email")
            .help("List-Id header, for mail filters, such as alerts.example.com."),
        FieldSpec::new("type.email.priority", "Priority", FieldKind::Named(PRIORITIES)).only_for("email")
            .help("By severity: high while an event with severity error or critical is open."),
        FieldSpec::section("#sign", "Authentication").only_for("webhook")
            .help("Signature; basic, bearer, OAuth 2, client certificate or AWS."),
        FieldSpec::secret("type.webhook.signingSecret", "Signing secret").only_for("webhook")
            .help("Signing secret (Standard Webhooks): whsec_ and base64. Leave it unchanged to keep the stored secret."),
        FieldSpec::text("type.webhook.auth.basic.username", "User name").only_for("webhook")
            .help("Basic: user name, without a colon. Set at most one method."),
        FieldSpec::secret("type.webhook.auth.basic.password", "Password").only_for("webhook")
            .help("Basic: password."),
        FieldSpec::secret("type.webhook.auth.bearer.token", "Bearer token").only_for("webhook")
            .help("Bearer: token in the authorization header."),
        FieldSpec::text("type.webhook.auth.oauth2.tokenUrl", "OAuth2 address").only_for("webhook")
            .help("OAuth 2 client credentials: token endpoint."),
        FieldSpec::text("type.webhook.auth.oauth2.clientId", "OAuth2 client").only_for("webhook")
            .help("OAuth 2 client id."),
        FieldSpec::secret("type.webhook.auth.oauth2.clientSecret", "OAuth2 secret").only_for("webhook")
            .help("OAuth 2 client secret."),
        FieldSpec::text("type.webhook.auth.oauth2.scope", "OAuth2 scope").only_for("webhook")
            .help("OAuth 2 scopes, separated by spaces."),
        FieldSpec::text("type.webhook.auth.oauth2.audience", "OAuth2 API").only_for("webhook")
            .help("OAuth 2 audience, if the server requires one."),
        FieldSpec::pairs("type.webhook.auth.oauth2.params", "OAuth2 params").only_for("webhook")
            .help("OAuth 2: extra parameters of the token request, one `name: value` per line."),
        FieldSpec::lines("type.webhook.auth.mtls.certificate", "Certificate").only_for("webhook")
            .help("Client certificate in PEM, then its intermediates. The URL must be https."),
        FieldSpec::secret("type.webhook.auth.mtls.privateKey", "Private key").only_for("webhook")
            .help("Private key of the client certificate, unencrypted PEM. Paste it; line breaks are kept."),
        FieldSpec::text("type.webhook.auth.aws.accessKeyId", "AWS key id").only_for("webhook")
            .help("AWS Signature Version 4: id of the access key."),
        FieldSpec::secret("type.webhook.auth.aws.secretAccessKey", "AWS secret").only_for("webhook")
            .help("AWS: secret access key."),
        FieldSpec::text("type.webhook.auth.aws.region", "AWS region").only_for("webhook")
            .help("AWS: region, such as eu-central-1."),
        FieldSpec::text("type.webhook.auth.aws.service", "AWS service").only_for("webhook")
            .help("AWS: service in the signature, such as sns or events."),
        FieldSpec::section("#closings", "When the event changes or closes").only_for("webhook")
            .help("For receivers that expect changes or closings at another URL or in another format."),
        FieldSpec::pairs("type.webhook.keep", "Keep").only_for("webhook")
            .help("Values of the response for later messages, such as `issue: key` or `tag: header:etag` for {{kept.issue}}."),
        FieldSpec::words("type.webhook.keepSecret", "Keep secret").only_for("webhook")
            .help("Names in Keep whose values are secret."),
        FieldSpec::text("type.webhook.onUpdate.url", "Change: URL").only_for("webhook")
            .help("URL for messages after the first one. Empty: the same URL."),
        FieldSpec::text("type.webhook.onUpdate.method", "Change: method").only_for("webhook")
            .help("Method for these messages: POST, PUT, PATCH or DELETE. Empty: POST."),
        FieldSpec::lines("type.webhook.onUpdate.payload", "Change: body").only_for("webhook")
            .help("Template for the body of these messages. Empty: the standard document."),
        FieldSpec::clause("type.webhook.onUpdate.goneClause", "Change: gone").only_for("webhook")
            .help("Condition on a response: there is nothing to change, so send like the first message."),
        FieldSpec::text("type.webhook.onClear.url", "Closing: URL").only_for("webhook")
            .help("URL for closings. Empty: the same URL."),
        FieldSpec::text("type.webhook.onClear.method", "Closing: method").only_for("webhook")
            .help("Method for closings: POST, PUT, PATCH or DELETE. Empty: POST."),
        FieldSpec::lines("type.webhook.onClear.payload", "Closing: body").only_for("webhook")
            .help("Template for the body of closings. Empty: the standard document."),
        FieldSpec::section("#answers", "Value maps and accepted responses").only_for("webhook")
            .help("Template variables, compression, and accepted responses."),
        FieldSpec::toggle("type.webhook.compress", "Compress").only_for("webhook")
            .help("Compress bodies of 1 KiB or more with gzip."),
        FieldSpec::text("type.webhook.testEffect", "Test effect").only_for("webhook")
            .help("Effect of a test at the receiver, such as a text message."),
        FieldSpec::new("type.webhook.values", "Values", FieldKind::Maps).only_for("webhook")
            .help("Template variables, such as `priority: event.severity, critical=P1, *=P3` for {{values.priority}}."),
        FieldSpec::new("type.webhook.expect.status", "Expect: status", FieldKind::Numbers).only_for("webhook")
            .help("Response codes that count as accepted, such as 200, 202. Empty: 200 to 299."),
        FieldSpec::clause("type.webhook.expect.bodyClause", "Expect: body").only_for("webhook")
            .help("Condition on the JSON response, for APIs that return 200 for errors: `ok equals true`."),
        FieldSpec::clause("type.webhook.expect.destinationClause", "Expect: wrong").only_for("webhook")
            .help("Condition for rejections due to wrong settings, such as `code equals 10003`."),
        FieldSpec::section("#limits", "Limits")
            .help("Timeout, retries, rate limit, and the message budget."),
        FieldSpec::length("delivery.timeout", "Timeout")
            .help("Timeout of an attempt, 1s to 30s. Empty: 15s."),
        FieldSpec::new("delivery.maxInFlight", "Concurrency", FieldKind::Number(0, 64))
            .help("Maximum concurrent attempts, 1 to 64. Empty: 32."),
        FieldSpec::new("delivery.maxPerMinute", "Per minute", FieldKind::Number(0, 1_000_000))
            .help("Attempts started per minute. Empty: no limit."),
        FieldSpec::new("delivery.maxAttempts", "Attempts", FieldKind::Number(0, 8))
            .help("Attempts per delivery, 1 to 8. Empty: 8."),
        FieldSpec::new("delivery.budget.messages", "Budget", FieldKind::Number(1, 10_000))
            .help("Individual messages per window, 1 to 10,000; the rest go in a digest. Empty: no budget."),
        FieldSpec::length("delivery.budget.per", "Budget per")
            .help("Window of the budget, 10s to 1d; the digest is sent at its end."),
        FieldSpec::new("delivery.budget.criticalShare", "For critical", FieldKind::Number(0, 100))
            .help("Percentage of the budget reserved for critical messages. Empty: 20."),
    ],
    document: Some(write_document),
    empty: "No destinations yet.\n\n\
        A destination receives messages, such as a webhook or a mail address.\n\
        ‹new› creates one, and in its form ‹form_test› tests it before it is saved.\n\n\
        For example: name `on-call`, type webhook, URL `https://hooks.example.com/on-call`.",
    beside: &[Kind::Rule],
    ..edited!("Destination", "Destinations")
};

/// Returns the words for the health by which a filter can select: the state, and the word in the
/// column, which can be the class of a failure.
pub(crate) fn health_names(destination: &Object) -> Vec<String> {
    let state = health_state(destination);
    let word = health_word(state, destination.text("health.lastError"));
    vec![state.label().to_owned(), word.to_owned()]
}

pub(crate) fn health_state(destination: &Object) -> HealthState {
    HealthState::from_str_name(destination.text("health.state")).unwrap_or_default()
}

fn target_address(destination: &Object) -> &str {
    match destination.type_word() {
        "webhook" if destination.text("type.webhook.url").is_empty() => "secret address",
        "webhook" => destination.text("type.webhook.url"),
        "email" => destination.text("type.email.to"),
        "slack" => destination.text("type.slack.channel"),
        "msteams" => "incoming webhook",
        "pagerduty" => "events API",
        "servicenow" => destination.text("type.servicenow.instanceUrl"),
        "event" => destination.text("type.event.nameTemplate"),
        _ => "",
    }
}

/// Returns the path of the form field with the receiver's address; empty if there is none.
pub(crate) fn address_field(kind: &str) -> &'static str {
    match kind {
        "webhook" => "type.webhook.url",
        "msteams" => "type.msteams.url",
        "servicenow" => "type.servicenow.instanceUrl",
        "slack" => "type.slack.channel",
        _ => "",
    }
}

/// Returns the path of the form field or section with the credentials; empty if there is none.
pub(crate) fn credential_field(kind: &str) -> &'static str {
    match kind {
        "webhook" => "#sign",
        "msteams" => "type.msteams.url",
        "servicenow" => "type.servicenow.clientSecret",
        "slack" => "type.slack.token",
        "pagerduty" => "type.pagerduty.routingKey",
        _ => "",
    }
}

fn write_rejections(into: &mut Document, around: &dyn RenderContext, destination: &Object) {
    let refused = destination.value_at("health.refusedRecipients");
    let refused = refused.and_then(Value::as_array).into_iter().flatten();
    for recipient in refused {
        let text = |field: &str| recipient[field].as_str().unwrap_or_default();
        let since: Option<Timestamp> = text("since").parse().ok();
        let since = since.map_or_else(String::new, |since| {
            format!(" (since {})", around.format_time(since.as_millisecond()))
        });
        let words = format!("{}: {}{since}", text("address"), text("answer"));
        into.field("refused", Token::Bad, &words);
    }
}

fn write_health_evidence(into: &mut Document, around: &dyn RenderContext, destination: &Object) {
    let number = |path: &str| {
        destination
            .value_at(path)
            .and_then(Value::as_i64)
            .unwrap_or(0)
    };
    let tried = number("health.attemptCount");
    if tried > 0 {
        let failed = number("health.failedAttemptCount");
        let took = |path: &str| {
            let took = destination.value_at(path).and_then(Value::as_str);
            took.map_or_else(|| "–".to_owned(), format_seconds)
        };
        let words = format!(
            "{tried}, {failed} failed; p50 {}, p95 {}",
            took("health.p50"),
            took("health.p95")
        );
        into.field("recent attempts", Token::Text, &words);
    }
    let last = destination
        .value_at("health.lastAttempts")
        .and_then(Value::as_array);
    let last = last.into_iter().flatten().map(|one| {
        let took = one["duration"]
            .as_str()
            .map_or_else(String::new, format_seconds);
        let is_delivered = one["delivered"] == true;
        let (token, sign) = if is_delivered {
            (Token::Good, "✓")
        } else {
            (Token::Bad, "✗")
        };
        span(token, &format!("{sign} {took}  "))
    });
    let last: Vec<_> = std::iter::once(label("last attempts"))
        .chain(last)
        .collect();
    if last.len() > 1 {
        into.line(last);
    }
    if let Some(ms) = destination.timestamp_ms("health.lastSuccessTime") {
        let words = format!("{}, tests included", around.format_full_time(ms));
        into.field("last success", Token::Text, &words);
    }
    let waiting = number("health.waitingCount");
    if waiting > 0 {
        let oldest = destination.timestamp_ms("health.oldestWaitingTime");
        let oldest = oldest.map_or_else(String::new, |ms| {
            format!(", oldest since {}", around.format_time(ms))
        });
        let drain = estimated_backlog(destination).map_or_else(String::new, |time| {
            format!("; {time} behind at the last hour's rate")
        });
        let words = format!("{}{oldest}{drain}", text::group_digits(waiting));
        into.field("waiting", Token::Warning, &words);
    }
}

fn estimated_backlog(destination: &Object) -> Option<String> {
    let waiting = destination
        .number("health.waitingCount")
        .unwrap_or_default();
    let drain = destination
        .value_at("health.drainTime")
        .and_then(Value::as_str);
    let drain = drain.filter(|_| waiting > 0);
    drain.map(|time| format!("~{}", format_seconds(time)))
}

fn format_seconds(time: &str) -> String {
    let found: Option<f64> = time.strip_suffix('s').and_then(|it| it.parse().ok());
    #[expect(clippy::cast_possible_truncation, reason = "at most a few days")]
    let ms = found.map(|found| (found * 1_000.0).round() as i64);
    ms.map_or_else(|| time.to_owned(), format_duration)
}

fn write_settings<'a>(
    into: &mut Document,
    settings: impl IntoIterator<Item = (&'a String, &'a Value)>,
) {
    for (key, value) in settings {
        match value {
            Value::Object(_) | Value::Array(_) => into.tree(0, key, value),
            Value::String(text) => into.field(key, Token::Text, text),
            other => into.field(key, Token::Text, &other.to_string()),
        }
    }
}

fn write_document(into: &mut Document, around: &dyn RenderContext, destination: &Object) {
    shared::write_head(into, destination);
    let health = health_state(destination);
    let since = destination.timestamp_ms("health.since");
    let since = since.map_or_else(String::new, |ms| {
        format!(" since {}", around.format_time(ms))
    });
    into.line(vec![
        label("health"),
        span(health.into(), health.label()),
        span(Token::Text, &since),
    ]);
    let last_error = destination.text("health.lastError");
    if !last_error.is_empty() {
        into.field("last error", Token::Bad, last_error);
    }
    write_rejections(into, around, destination);
    write_health_evidence(into, around, destination);
    shared::write_notifications(into, destination);
    let link = Link::deliveries("destination", destination.name());
    into.link("deliveries", "to this destination", link);
    shared::write_times(into, around, destination);
    if health != HealthState::Healthy || shared::recent_count(destination) == 0 {
        let words = "‹test_destination› sends a test message and shows its request and response";
        into.text(Token::Dim, 0, &around.expand_keys(words));
    }
    into.heading(&format!("Type {}", destination.type_word()));
    let kind = destination.value_at("type").and_then(Value::as_object);
    let settings = kind.into_iter().flat_map(|kind| kind.values());
    write_settings(into, settings.filter_map(Value::as_object).flatten());
    if let Some(Value::Object(delivery)) = destination.value_at("delivery") {
        into.heading("Delivery");
        write_settings(into, delivery);
    }
    shared::write_users(into, around, destination);
}
