//! Destinations: named targets of messages.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Cell, Column, FieldKind, FieldSpec, Key, KindSpec, RenderContext,
    field::{DESCRIPTION, LANGUAGE, NAME, TAGS},
    shared,
};
use crate::{
    data::{HealthState, Kind, Label, Object, Role, health_word, urgency_rank},
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
    service: "DestinationService",
    list: "ListDestinations",
    create: Some("CreateDestination"),
    update: Some("UpdateDestination"),
    delete: Some("DeleteDestination"),
    detail: None,
    naming: None,
    message: "Destination",
    nested: true,
    output: shared::OUTPUT,
    role: Role::Editor,
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
        FieldSpec::new(
        "type",
        "Type",
        FieldKind::Choice(TYPES),
        "Receiver type. Left and Right choose, letters search; other types keep their values."),
        FieldSpec::new(
            "type.webhook.url",
            "URL",
            FieldKind::Text,
            "http or https, without a user name. Path and query may contain variables.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.secretUrl",
            "Secret URL",
            FieldKind::Secret,
            "Used instead of URL if the URL itself is secret. Path and query may contain variables.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.method",
            "Method",
            FieldKind::Choice(METHODS),
            "The HTTP method.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.headers",
            "Headers",
            FieldKind::Pairs,
            "One `name: value` per line, up to 50. Values are secret and may be templates.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.payload",
            "Payload",
            FieldKind::Lines,
            "Template for the body, escaped per its content-type. Empty: the standard document.").only_for("webhook"),
        FieldSpec::new(
            "type.email.to",
            "To",
            FieldKind::Text,
            "ops@example.com or Ops <ops@example.com>, separated by commas; up to 20 including copies.").with_required().only_for("email"),
        FieldSpec::new(
            "type.email.cc",
            "Copies to",
            FieldKind::Text,
            "CC addresses, separated by commas.").only_for("email"),
        FieldSpec::new(
            "type.email.subject",
            "Subject",
            FieldKind::Text,
            "Template. Empty: `[tenant] severity: headline`.").only_for("email"),
        FieldSpec::new(
            "type.email.body",
            "Body",
            FieldKind::Lines,
            "Template, sent as HTML. Empty: a readable summary of the event.").only_for("email"),
        FieldSpec::new(
            "type.slack.channel",
            "Channel",
            FieldKind::Text,
            "Channel name or id.").with_required().only_for("slack"),
        FieldSpec::new(
            "type.slack.token",
            "Token",
            FieldKind::Secret,
            "A bot token.").with_required().only_for("slack"),
        FieldSpec::new(
            "type.slack.blocks",
            "Blocks",
            FieldKind::Lines,
            "Template for a JSON list of Block Kit blocks. Empty: the default blocks.").only_for("slack"),
        FieldSpec::new(
            "type.slack.updateFirst",
            "Edit the first",
            FieldKind::Toggle,
            "Also edit the first message when the event changes.").only_for("slack"),
        FieldSpec::new(
            "type.slack.broadcastReplies",
            "Broadcast",
            FieldKind::Toggle,
            "Also post thread replies to the channel.").only_for("slack"),
        FieldSpec::new(
            "type.msteams.url",
            "URL",
            FieldKind::Secret,
            "URL of the incoming webhook (secret).").with_required().only_for("msteams"),
        FieldSpec::new(
            "type.pagerduty.routingKey",
            "Routing key",
            FieldKind::Secret,
            "Integration key of the service.").with_required().only_for("pagerduty"),
        FieldSpec::new(
            "type.pagerduty.class",
            "Class",
            FieldKind::Text,
            "Template. Empty: the event's type.").only_for("pagerduty"),
        FieldSpec::new(
            "type.pagerduty.component",
            "Component",
            FieldKind::Text,
            "Template. Empty: the event's name.").only_for("pagerduty"),
        FieldSpec::new(
            "type.pagerduty.group",
            "Group",
            FieldKind::Text,
            "Template. Empty: the tenant.").only_for("pagerduty"),
        FieldSpec::new(
            "type.pagerduty.customDetails",
            "Details",
            FieldKind::Lines,
            "Template for a JSON object. Empty: all details of the event.").only_for("pagerduty"),
        FieldSpec::new(
            "type.pagerduty.links",
            "Links",
            FieldKind::Lines,
            "Template for a JSON list of {\"href\", \"text\"}, after the link to the event.").only_for("pagerduty"),
        FieldSpec::new(
            "type.pagerduty.images",
            "Images",
            FieldKind::Lines,
            "Template for a JSON list of {\"src\", \"href\", \"alt\"}.").only_for("pagerduty"),
        FieldSpec::new(
            "type.servicenow.instanceUrl",
            "Instance URL",
            FieldKind::Text,
            "URL of the instance.").with_required().only_for("servicenow"),
        FieldSpec::new(
            "type.servicenow.clientId",
            "Client id",
            FieldKind::Text,
            "OAuth client.").with_required().only_for("servicenow"),
        FieldSpec::new(
            "type.servicenow.clientSecret",
            "Client secret",
            FieldKind::Secret,
            "OAuth client secret.").with_required().only_for("servicenow"),
        FieldSpec::new(
            "type.servicenow.tokenUrl",
            "Token URL",
            FieldKind::Text,
            "Token endpoint. Empty: the instance URL.").only_for("servicenow"),
        FieldSpec::new(
            "type.servicenow.refreshToken",
            "Refresh token",
            FieldKind::Secret,
            "OAuth refresh token. Empty: client credentials grant.").only_for("servicenow"),
        FieldSpec::new(
            "type.event.nameTemplate",
            "Event name",
            FieldKind::Text,
            "Template for the new event's name.").with_required().only_for("event"),
        FieldSpec::new(
            "type.event.typeTemplate",
            "Event type",
            FieldKind::Text,
            "Template for the new event's type.").with_required().only_for("event"),
        FieldSpec::new(
            "type.event.summaryTemplate",
            "Summary",
            FieldKind::Text,
            "Template for the new event's summary.").with_required().only_for("event"),
        FieldSpec::new(
            "type.event.severity",
            "Severity",
            FieldKind::Named(SEVERITIES),
            "Severity of the new event.").only_for("event"),
        DESCRIPTION,
        TAGS,
        LANGUAGE,
        FieldSpec::section(
            "#mail",
            "Sender and headers",
            "Sender, reply address, BCC addresses, and headers for mail clients.",
        )
        .only_for("email"),
        FieldSpec::new(
            "type.email.from",
            "From",
            FieldKind::Text,
            "Sender address. Empty: smtp.from in the settings.").only_for("email"),
        FieldSpec::new(
            "type.email.replyTo",
            "Reply to",
            FieldKind::Text,
            "Reply-to addresses, separated by commas. Empty: the sender.").only_for("email"),
        FieldSpec::new(
            "type.email.bcc",
            "Blind copies to",
            FieldKind::Text,
            "Blind copy addresses, separated by commas.").only_for("email"),
        FieldSpec::new(
            "type.email.listId",
            "List id",
            FieldKind::Text,
            "List-Id header, for mail filters, such as alerts.example.com.").only_for("email"),
        FieldSpec::new(
            "type.email.priority",
            "Priority",
            FieldKind::Named(PRIORITIES),
            "By severity: high while an event with severity error or critical is open.").only_for("email"),
        FieldSpec::section(
            "#sign",
            "Authentication",
            "Signature; basic, bearer, OAuth 2, client certificate or AWS.",
        )
        .only_for("webhook"),
        FieldSpec::new(
            "type.webhook.signingSecret",
            "Signing secret",
            FieldKind::Secret,
            "Signing secret (Standard Webhooks): whsec_ and base64. Leave it unchanged to keep the stored secret.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.basic.username",
            "User name",
            FieldKind::Text,
            "Basic: user name, without a colon. Set at most one method.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.basic.password",
            "Password",
            FieldKind::Secret,
            "Basic: password.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.bearer.token",
            "Bearer token",
            FieldKind::Secret,
            "Bearer: token in the authorization header.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.oauth2.tokenUrl",
            "OAuth2 address",
            FieldKind::Text,
            "OAuth 2 client credentials: token endpoint.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.oauth2.clientId",
            "OAuth2 client",
            FieldKind::Text,
            "OAuth 2 client id.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.oauth2.clientSecret",
            "OAuth2 secret",
            FieldKind::Secret,
            "OAuth 2 client secret.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.oauth2.scope",
            "OAuth2 scope",
            FieldKind::Text,
            "OAuth 2 scopes, separated by spaces.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.oauth2.audience",
            "OAuth2 API",
            FieldKind::Text,
            "OAuth 2 audience, if the server requires one.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.oauth2.params",
            "OAuth2 params",
            FieldKind::Pairs,
            "OAuth 2: extra parameters of the token request, one `name: value` per line.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.mtls.certificate",
            "Certificate",
            FieldKind::Lines,
            "Client certificate in PEM, then its intermediates. The URL must be https.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.mtls.privateKey",
            "Private key",
            FieldKind::Secret,
            "Private key of the client certificate, unencrypted PEM. Paste it; line breaks are kept.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.aws.accessKeyId",
            "AWS key id",
            FieldKind::Text,
            "AWS Signature Version 4: id of the access key.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.aws.secretAccessKey",
            "AWS secret",
            FieldKind::Secret,
            "AWS: secret access key.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.aws.region",
            "AWS region",
            FieldKind::Text,
            "AWS: region, such as eu-central-1.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.auth.aws.service",
            "AWS service",
            FieldKind::Text,
            "AWS: service in the signature, such as sns or events.").only_for("webhook"),
        FieldSpec::section(
            "#closings",
            "When the event changes or closes",
            "For receivers that expect changes or closings at another URL or in another format.",
        )
        .only_for("webhook"),
        FieldSpec::new(
            "type.webhook.keep",
            "Keep",
            FieldKind::Pairs,
            "Values of the response for later messages, such as `issue: key` or `tag: header:etag` for {{kept.issue}}.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.keepSecret",
            "Keep secret",
            FieldKind::Words,
            "Names in Keep whose values are secret.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.onUpdate.url",
            "Change: URL",
            FieldKind::Text,
            "URL for messages after the first one. Empty: the same URL.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.onUpdate.method",
            "Change: method",
            FieldKind::Text,
            "Method for these messages: POST, PUT, PATCH or DELETE. Empty: POST.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.onUpdate.payload",
            "Change: body",
            FieldKind::Lines,
            "Template for the body of these messages. Empty: the standard document.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.onUpdate.goneClause",
            "Change: gone",
            FieldKind::Clause,
            "Condition on a response: there is nothing to change, so send like the first message.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.onClear.url",
            "Closing: URL",
            FieldKind::Text,
            "URL for closings. Empty: the same URL.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.onClear.method",
            "Closing: method",
            FieldKind::Text,
            "Method for closings: POST, PUT, PATCH or DELETE. Empty: POST.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.onClear.payload",
            "Closing: body",
            FieldKind::Lines,
            "Template for the body of closings. Empty: the standard document.").only_for("webhook"),
        FieldSpec::section(
            "#answers",
            "Value maps and accepted responses",
            "Template variables, compression, and accepted responses.",
        )
        .only_for("webhook"),
        FieldSpec::new(
            "type.webhook.compress",
            "Compress",
            FieldKind::Toggle,
            "Compress bodies of 1 KiB or more with gzip.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.testEffect",
            "Test effect",
            FieldKind::Text,
            "Effect of a test at the receiver, such as a text message.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.values",
            "Values",
            FieldKind::Maps,
            "Template variables, such as `priority: event.severity, critical=P1, *=P3` for {{values.priority}}.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.expect.status",
            "Expect: status",
            FieldKind::Numbers,
            "Response codes that count as accepted, such as 200, 202. Empty: 200 to 299.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.expect.bodyClause",
            "Expect: body",
            FieldKind::Clause,
            "Condition on the JSON response, for APIs that return 200 for errors: `ok equals true`.").only_for("webhook"),
        FieldSpec::new(
            "type.webhook.expect.destinationClause",
            "Expect: wrong",
            FieldKind::Clause,
            "Condition for rejections due to wrong settings, such as `code equals 10003`.").only_for("webhook"),
        FieldSpec::section(
            "#limits",
            "Limits",
            "Timeout, retries, rate limit, and the message budget.",
        ),
        FieldSpec::new(
        "delivery.timeout",
        "Timeout",
        FieldKind::Length,
        "Timeout of an attempt, 1s to 30s. Empty: 15s."),
        FieldSpec::new(
        "delivery.maxInFlight",
        "Concurrency",
        FieldKind::Number(0, 64),
        "Maximum concurrent attempts, 1 to 64. Empty: 32."),
        FieldSpec::new(
        "delivery.maxPerMinute",
        "Per minute",
        FieldKind::Number(0, 1_000_000),
        "Attempts started per minute. Empty: no limit."),
        FieldSpec::new(
        "delivery.maxAttempts",
        "Attempts",
        FieldKind::Number(0, 8),
        "Attempts per delivery, 1 to 8. Empty: 8."),
        FieldSpec::new(
        "delivery.budget.messages",
        "Budget",
        FieldKind::Number(1, 10_000),
        "Individual messages per window, 1 to 10,000; the rest go in a digest. Empty: no budget."),
        FieldSpec::new(
        "delivery.budget.per",
        "Budget per",
        FieldKind::Length,
        "Window of the budget, 10s to 1d; the digest is sent at its end."),
        FieldSpec::new(
        "delivery.budget.criticalShare",
        "For critical",
        FieldKind::Number(0, 100),
        "Percentage of the budget reserved for critical messages. Empty: 20."),
    ],
    document: Some(write_document),
    empty: "No destinations yet.\n\n\
        A destination receives messages, such as a webhook or a mail address.\n\
        ‹new› creates one, and in its form ‹form_test› tests it before it is saved.\n\n\
        For example: name `on-call`, type webhook, URL `https://hooks.example.com/on-call`.",
    beside: &[Kind::Rule],
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
