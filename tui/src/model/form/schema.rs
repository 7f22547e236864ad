//! The fields of each kind of resource: their paths, words and limits.

use crate::data::Kind;

/// One field of a form.
#[derive(Clone, Debug)]
pub(crate) struct FieldSpec {
    /// As in the JSON of the object: `type.webhook.url`.
    pub(crate) path: &'static str,
    pub(crate) label: &'static str,
    /// One line of help, shown while the field is focused.
    pub(crate) help: &'static str,
    pub(crate) kind: FieldKind,
    pub(crate) required: bool,
    /// The destination type it belongs to; empty for all.
    pub(crate) only: &'static str,
}

/// How a field is typed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FieldKind {
    Text,
    Secret,
    /// Text with line ends.
    Lines,
    /// A whole number between two bounds.
    Number(i64, i64),
    /// Words parted by commas.
    Words,
    Toggle,
    Choice(&'static [&'static str]),
    /// Names of stored resources.
    Names(Kind),
    /// A line `name: value` for each pair.
    Pairs,
    Clause,
}

const fn field(
    path: &'static str,
    label: &'static str,
    kind: FieldKind,
    help: &'static str,
) -> FieldSpec {
    FieldSpec {
        path,
        label,
        help,
        kind,
        required: false,
        only: "",
    }
}

const fn required(spec: FieldSpec) -> FieldSpec {
    FieldSpec {
        required: true,
        ..spec
    }
}

const fn only(word: &'static str, spec: FieldSpec) -> FieldSpec {
    FieldSpec { only: word, ..spec }
}

/// The fields of a kind, in the order they are filled in.
pub(super) fn of(kind: Kind) -> &'static [FieldSpec] {
    match kind {
        Kind::Trigger => TRIGGER,
        Kind::Destination => DESTINATION,
        Kind::Rule => RULE,
    }
}

const NAME: FieldSpec = required(field(
    "name",
    "Name",
    FieldKind::Text,
    "1 to 100 letters, digits, . _ - and inner spaces. It never changes.",
));
const DESCRIPTION: FieldSpec = field(
    "description",
    "Description",
    FieldKind::Text,
    "For people. At most 1,000 characters.",
);
const TAGS: FieldSpec = field(
    "tags",
    "Tags",
    FieldKind::Words,
    "Labels for finding it again, parted by commas.",
);

const TRIGGER: &[FieldSpec] = &[
    NAME,
    required(field(
        "type.event.query.clause",
        "Query",
        FieldKind::Clause,
        "Which events match. ‹form_add_clause› adds a clause, ‹form_remove_clause› removes it, ‹form_clause_view› shows JSON, ‹form_test› tries it on stored events.",
    )),
    DESCRIPTION,
    TAGS,
];

const RULE: &[FieldSpec] = &[
    NAME,
    field(
        "enabled",
        "Enabled",
        FieldKind::Toggle,
        "Only an enabled rule notifies.",
    ),
    field(
        "triggerNames",
        "Triggers",
        FieldKind::Names(Kind::Trigger),
        "Any of these that matches notifies. Enter chooses from the stored ones.",
    ),
    field(
        "destinationNames",
        "Destinations",
        FieldKind::Names(Kind::Destination),
        "All of these are notified. Enter chooses from the stored ones.",
    ),
    field(
        "message",
        "Message",
        FieldKind::Lines,
        "A template, as {{event.summary}}. Empty means the destination's default. ‹form_test› previews it.",
    ),
    field(
        "sendUpdates",
        "Send updates",
        FieldKind::Toggle,
        "Notify again when the occurrence is closed, acknowledged or changes its severity.",
    ),
    field(
        "repeat",
        "Repeat",
        FieldKind::Toggle,
        "Notify again on later matches of the same occurrence.",
    ),
    field(
        "repeatInterval",
        "Repeat after",
        FieldKind::Number(0, 31_536_000),
        "Seconds that must pass before a repeat. Empty means 3600; 0 means every match.",
    ),
    DESCRIPTION,
    TAGS,
];

const METHODS: &[&str] = &["POST", "PUT", "PATCH"];
const SEVERITIES: &[&str] = &["info", "debug", "warning", "error", "critical"];

const DESTINATION: &[FieldSpec] = &[
    NAME,
    field(
        "type",
        "Type",
        FieldKind::Choice(&crate::data::DestinationType::WORDS),
        "Where messages go. Left and Right choose; what was typed for another type is kept.",
    ),
    only(
        "webhook",
        required(field(
            "type.webhook.url",
            "URL",
            FieldKind::Text,
            "Where to: http or https, at most 2,048 characters, no user name in it.",
        )),
    ),
    only(
        "webhook",
        field(
            "type.webhook.method",
            "Method",
            FieldKind::Choice(METHODS),
            "The HTTP method.",
        ),
    ),
    only(
        "webhook",
        field(
            "type.webhook.headers",
            "Headers",
            FieldKind::Pairs,
            "A line `name: value` for each, at most 50. Values of authorization-like names are secret.",
        ),
    ),
    only(
        "webhook",
        field(
            "type.webhook.payload",
            "Payload",
            FieldKind::Lines,
            "A template for the body. Empty means the standard document.",
        ),
    ),
    only(
        "webhook",
        field(
            "type.webhook.signingSecret",
            "Signing secret",
            FieldKind::Secret,
            "Signs requests (Standard Webhooks): whsec_ and base64. Left as it is, the stored one stays.",
        ),
    ),
    only(
        "email",
        required(field(
            "type.email.to",
            "To",
            FieldKind::Text,
            "One mail address.",
        )),
    ),
    only(
        "email",
        field(
            "type.email.subject",
            "Subject",
            FieldKind::Text,
            "A template. Empty means `[tenant] severity: headline`.",
        ),
    ),
    only(
        "email",
        field(
            "type.email.body",
            "Body",
            FieldKind::Lines,
            "A template, sent as HTML. Empty means a readable account of the event.",
        ),
    ),
    only(
        "slack",
        required(field(
            "type.slack.channel",
            "Channel",
            FieldKind::Text,
            "A channel's name or id.",
        )),
    ),
    only(
        "slack",
        required(field(
            "type.slack.token",
            "Token",
            FieldKind::Secret,
            "A bot token.",
        )),
    ),
    only(
        "msteams",
        required(field(
            "type.msteams.url",
            "URL",
            FieldKind::Secret,
            "The whole address of the incoming webhook; it is a secret.",
        )),
    ),
    only(
        "pagerduty",
        required(field(
            "type.pagerduty.routingKey",
            "Routing key",
            FieldKind::Secret,
            "The integration key of the service.",
        )),
    ),
    only(
        "servicenow",
        required(field(
            "type.servicenow.instanceUrl",
            "Instance URL",
            FieldKind::Text,
            "The instance's address.",
        )),
    ),
    only(
        "servicenow",
        required(field(
            "type.servicenow.clientId",
            "Client id",
            FieldKind::Text,
            "OAuth client.",
        )),
    ),
    only(
        "servicenow",
        required(field(
            "type.servicenow.clientSecret",
            "Client secret",
            FieldKind::Secret,
            "OAuth client secret.",
        )),
    ),
    only(
        "servicenow",
        field(
            "type.servicenow.tokenUrl",
            "Token URL",
            FieldKind::Text,
            "Where tokens come from. Empty means the instance's own address.",
        ),
    ),
    only(
        "servicenow",
        field(
            "type.servicenow.refreshToken",
            "Refresh token",
            FieldKind::Secret,
            "OAuth refresh token. Empty means the client credentials grant.",
        ),
    ),
    only(
        "event",
        required(field(
            "type.event.nameTemplate",
            "Event name",
            FieldKind::Text,
            "A template for the new event's name.",
        )),
    ),
    only(
        "event",
        required(field(
            "type.event.typeTemplate",
            "Event type",
            FieldKind::Text,
            "A template for the new event's type.",
        )),
    ),
    only(
        "event",
        required(field(
            "type.event.summaryTemplate",
            "Summary",
            FieldKind::Text,
            "A template for the new event's summary.",
        )),
    ),
    only(
        "event",
        field(
            "type.event.severity",
            "Severity",
            FieldKind::Choice(SEVERITIES),
            "The new event's severity.",
        ),
    ),
    DESCRIPTION,
    TAGS,
    field(
        "delivery.timeout",
        "Timeout",
        FieldKind::Text,
        "How long an attempt may take, 1s to 30s. Empty means 15s.",
    ),
    field(
        "delivery.maxInFlight",
        "At once",
        FieldKind::Number(0, 64),
        "Attempts under way at once, 1 to 64. Empty means 8.",
    ),
    field(
        "delivery.maxPerMinute",
        "Per minute",
        FieldKind::Number(0, 1_000_000),
        "Attempts that may start in a minute. Empty means no limit.",
    ),
    field(
        "delivery.maxAttempts",
        "Attempts",
        FieldKind::Number(0, 8),
        "How many attempts a delivery gets, 1 to 8. Empty means 8.",
    ),
];

/// The fields of a new client.
pub(super) const CLIENT: &[FieldSpec] = &[
    NAME,
    field(
        "role",
        "Role",
        FieldKind::Choice(&["ingest", "viewer", "operator", "editor", "admin"]),
        "ingest sends events; viewer reads; operator also acts on events; editor also changes rules; admin all.",
    ),
    field(
        "requestsPerSecond",
        "Calls a second",
        FieldKind::Number(0, 1_000_000),
        "More are refused with the time to wait. Empty means as many as it likes.",
    ),
    field(
        "eventsPerSecond",
        "Events a second",
        FieldKind::Number(0, 10_000_000),
        "More are refused with the time to wait. Empty means as many as it likes.",
    ),
];
