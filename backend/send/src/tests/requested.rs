//! Common Jinja templates with hostile event texts in every position.

use serde_json::{Value as Json, json};

use super::*;
use crate::{
    domain::{EventId, Grouping, Value, delivery::ReportedState},
    template::{Escape, escape_text},
};

/// A room, a link, a mention, a tag, the end of a JSON text, and a header line.
const HOSTILE: &str = "<!channel> @all [x](https://e/) <at>a</at> \"}\n</b>&{{event.id}}{{ 7*7 }}";

/// The position of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Slack,
    Teams,
    Mail,
    Subject,
    Json,
    Text,
    Markdown,
    Form,
    Xml,
}

impl Place {
    fn escape(self) -> Escape {
        match self {
            Self::Slack => Escape::Slack,
            Self::Teams => Escape::Card,
            Self::Mail | Self::Xml => Escape::Html,
            Self::Json => Escape::Json,
            Self::Markdown => Escape::Markdown,
            Self::Form => Escape::Percent,
            Self::Text | Self::Subject => Escape::None,
        }
    }

    /// Returns content for a destination with the template in this position; for chats, in the
    /// rule's message.
    fn content(self, template: &str) -> Content {
        let typed = |content_type| webhook(template, Some(content_type));
        let (kind, message) = match self {
            Self::Slack => (slack(), template),
            Self::Teams => (teams(), template),
            Self::Mail => (email("", template), ""),
            Self::Subject => (email(template, ""), ""),
            Self::Json => (webhook(template, None), ""),
            Self::Text => (typed("text/plain"), ""),
            Self::Markdown => (typed("text/markdown"), ""),
            Self::Form => (typed("application/x-www-form-urlencoded"), ""),
            Self::Xml => (typed("application/xml"), ""),
        };
        let mut content = content(kind, message);
        content.template_language = TemplateLanguage::Jinja;
        content.rule.template_language = TemplateLanguage::Jinja;
        content
    }

    fn text(self, shown: &Json) -> &str {
        let pointer = match self {
            Self::Slack => "/text",
            Self::Teams => "/attachments/0/content/body/0/text",
            Self::Mail => "/html",
            Self::Subject => "/subject",
            _ => "/body",
        };
        shown.pointer(pointer).unwrap().as_str().unwrap()
    }
}

fn happen(content: &mut Content) {
    let text = |text: &str| Value::Text(text.into());
    let occurrence = &mut content.occurrence;
    occurrence.summary = HOSTILE.into();
    occurrence.body = format!("{HOSTILE}{}", "\u{e4}".repeat(5_000));
    occurrence.count = 3;
    occurrence.dimensions.insert("a.b/c".into(), HOSTILE.into());
    occurrence.dimensions.insert("env".into(), "prod".into());
    let mounts = ["/var", "/srv"].map(|path| {
        Value::Object(
            [
                ("path".to_owned(), text(path)),
                ("used".to_owned(), Value::Number(91.5)),
            ]
            .into(),
        )
    });
    let metadata = [
        ("runbook", text("https://wiki.example.com/a b?c=d&e=\"f\"")),
        ("started", text("2026-01-31T07:15:30Z")),
        ("seconds", Value::Number(3_725.0)),
        (
            "tags",
            Value::List(vec![text("db"), text(HOSTILE), text("eu")]),
        ),
        ("mounts", Value::List(mounts.into())),
        ("owner", Value::Null),
        ("hostile", text(HOSTILE)),
    ];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value));
    occurrence.metadata.extend(metadata);
}

/// Description, position, template and expected result. `S` is the hostile text escaped for the
/// position; in a document, `K` is the text escaped for Slack, `T` for Telegram, `M` for Markdown,
/// and `B` the first 130 characters of the body.
const REQUESTED: [(&str, Place, &str, &str); 40] = [
    (
        "a link with a name",
        Place::Slack,
        "<{{ event.metadata.runbook|replace(' ', '%20') }}|Runbook>",
        "<https://wiki.example.com/a%20b?c=d&amp;e=\"f\"|Runbook>",
    ),
    (
        "a runbook by the event's name",
        Place::Slack,
        "<https://wiki/{{ event.name|urlencode }}|Runbook> {{ event.summary }}",
        "<https://wiki/disk-full|Runbook> S",
    ),
    (
        "a mention of the author's for what is critical",
        Place::Slack,
        "{% if event.severity_number >= 4 %}<!here> {% endif %}{{ event.summary }}",
        "<!here> S",
    ),
    (
        "a mention as a value of the author's",
        Place::Slack,
        "{{ '<@U123>'|safe }} {{ event.summary }}",
        "<@U123> S",
    ),
    (
        "a formatted line of the author's",
        Place::Slack,
        "{{ '*%s* on `%s`'|safe|format(event.summary, event.dimensions.env) }}",
        "*S* on `prod`",
    ),
    (
        "a colour by severity",
        Place::Slack,
        "{{ {'critical': ':red_circle:', 'error': ':orange_circle:'}[event.severity]|default(':white_circle:') }}",
        ":orange_circle:",
    ),
    (
        "details one a line",
        Place::Slack,
        "{% for key, value in event.dimensions|items %}*{{ key }}*: {{ value }}\n{% endfor %}",
        "*a.b/c*: S\n*env*: prod\n*host*: db-1.example.com\n*source*: bellwether-test\n",
    ),
    (
        "only some of the labels",
        Place::Slack,
        "{% for key, value in event.dimensions|items if key not in ['source', 'a.b/c'] %}{{ key }}={{ value }} {% endfor %}",
        "env=prod host=db-1.example.com ",
    ),
    (
        "a code block",
        Place::Slack,
        "```{{ event.metadata.hostile|truncate(5) }}```",
        "```&lt;!ch\u{2026}```",
    ),
    (
        "another word when a field is missing",
        Place::Slack,
        "{{ event.metadata.gone|default('nobody') }} {{ event.metadata.owner|default('none', true) }}",
        "nobody none",
    ),
    (
        "a card of the chat",
        Place::Teams,
        "**{{ event.severity|upper }}** {{ event.summary }}",
        "**ERROR** S",
    ),
    (
        "a link of the author's in a card",
        Place::Teams,
        "[Dashboard](https://g/d?host={{ event.dimensions.host|urlencode }}) {{ event.summary }}",
        "[Dashboard](https://g/d?host=db-1.example.com) S",
    ),
    (
        "text of an event with Markdown's signs",
        Place::Teams,
        "{{ '*'|markdown }}{{ event.dimensions.env|markdown }}",
        "\\*prod",
    ),
    (
        "a subject with status, severity and host",
        Place::Subject,
        "[{{ event.status|upper }}] {{ event.severity|title }}: {{ event.name }} on {{ event.dimensions.host }}",
        "[OPEN] Error: disk-full on db-1.example.com",
    ),
    (
        "a subject that is cut",
        Place::Subject,
        "{{ event.body|truncate(12) }}",
        "<!channel> \u{2026}",
    ),
    (
        "a table of details",
        Place::Mail,
        "<table>{% for key, value in event.dimensions.items() %}<tr><td>{{ key }}</td><td>{{ value }}</td></tr>{% endfor %}</table>",
        "<table><tr><td>a.b/c</td><td>S</td></tr><tr><td>env</td><td>prod</td></tr><tr><td>host</td><td>db-1.example.com</td></tr><tr><td>source</td><td>bellwether-test</td></tr></table>",
    ),
    (
        "a link in a mail",
        Place::Mail,
        "<a href=\"{{ link }}\">{{ event.summary }}</a>",
        "<a href=\"https://bw.example.com/events/ID\">S</a>",
    ),
    (
        "a colour in a mail",
        Place::Mail,
        "<p style=\"color:{% if event.severity == 'error' %}red{% else %}gray{% endif %}\">{{ event.summary }}</p>",
        "<p style=\"color:red\">S</p>",
    ),
    (
        "the same row for several values",
        Place::Mail,
        "{% for name, value in [('Summary', event.summary), ('Count', event.count)] %}<b>{{ name }}</b> {{ value }}<br>{% endfor %}",
        "<b>Summary</b> S<br><b>Count</b> 3<br>",
    ),
    (
        "a date in a zone",
        Place::Text,
        "{{ event.start_time|date('%d.%m.%Y %H:%M %Z', 'Europe/Berlin') }}",
        "31.01.2026 09:00 CET",
    ),
    (
        "a date in another zone, by name",
        Place::Text,
        "{{ event.metadata.started|date(format='%A %I:%M %p', zone='America/New_York') }}",
        "Saturday 02:15 AM",
    ),
    (
        "how long ago",
        Place::Text,
        "{{ event.metadata.started|ago }}",
        "44m 30s ago",
    ),
    (
        "a length of time",
        Place::Text,
        "{{ event.metadata.seconds|duration }}",
        "1h 2m 5s",
    ),
    (
        "a list joined",
        Place::Text,
        "{{ event.metadata.tags|join(', ')|replace('\\n', ' ') }}",
        "db, <!channel> @all [x](https://e/) <at>a</at> \"} </b>&{{event.id}}{{ 7*7 }}, eu",
    ),
    (
        "a list sorted, first and last",
        Place::Text,
        "{{ event.metadata.tags|sort|last }} {{ event.metadata.tags|first }} {{ event.metadata.tags|length }}",
        "eu db 3",
    ),
    (
        "a sum over a list of objects",
        Place::Text,
        "{{ event.metadata.mounts|map(attribute='used')|sum }}",
        "183",
    ),
    (
        "a list of objects",
        Place::Text,
        "{% for it in event.metadata.mounts %}{{ loop.index }}. {{ it.path }}{% if not loop.last %}; {% endif %}{% endfor %}",
        "1. /var; 2. /srv",
    ),
    (
        "a host without its domain",
        Place::Text,
        "{{ event.dimensions.host|regex_replace('\\\\..*$', '') }}",
        "db-1",
    ),
    (
        "at most so many bytes",
        Place::Text,
        "{{ event.body|truncate(bytes=10) }}",
        "<!chann\u{2026}",
    ),
    (
        "a dimension whose name has dots",
        Place::Text,
        "{{ event.dimensions['a.b/c'] }}",
        "S",
    ),
    (
        "what a receiver reads as Markdown",
        Place::Markdown,
        "## {{ event.name }}\n{{ event.summary }}",
        "## disk\\-full\nS",
    ),
    (
        "a form",
        Place::Form,
        "title={{ event.name }}&text={{ event.summary }}",
        "title=disk-full&text=S",
    ),
    (
        "XML",
        Place::Xml,
        "<alert><text>{{ event.summary }}</text></alert>",
        "<alert><text>S</text></alert>",
    ),
    (
        "a document of one's own",
        Place::Json,
        "{\"text\": \"{{ event.summary }}\", \"n\": {{ event.count }}, \"up\": {{ event.is_open }}}",
        "{\"text\": \"S\", \"n\": 3, \"up\": true}",
    ),
    (
        "values as JSON",
        Place::Json,
        "{\"tags\": {{ event.metadata.tags|first|json }}, \"none\": {{ event.metadata.gone|json }}, \"s\": {{ event.summary|json }}}",
        "{\"tags\": \"db\", \"none\": null, \"s\": \"S\"}",
    ),
    (
        "a priority by severity",
        Place::Json,
        "{\"priority\": \"{% if event.severity in ['critical', 'error'] and event.is_open %}P1{% else %}P4{% endif %}\"}",
        "{\"priority\": \"P1\"}",
    ),
    (
        "a title that the receiver takes",
        Place::Json,
        "{\"message\": \"{{ event.body|truncate(130) }}\"}",
        "{\"message\": \"B\"}",
    ),
    (
        "text for Slack in a document",
        Place::Json,
        "{\"text\": \"<https://r|Runbook> {{ event.dimensions['a.b/c']|slack }}\"}",
        "{\"text\": \"<https://r|Runbook> K\"}",
    ),
    (
        "text for Telegram in a document",
        Place::Json,
        "{\"parse_mode\": \"MarkdownV2\", \"text\": \"*{{ event.name|telegram }}* {{ event.summary|telegram }}\"}",
        "{\"parse_mode\": \"MarkdownV2\", \"text\": \"*disk\\\\-full* T\"}",
    ),
    (
        "text for Discord and Mattermost in a document",
        Place::Json,
        "{\"content\": \"**{{ event.severity }}** {{ event.summary|markdown }}\"}",
        "{\"content\": \"**error** M\"}",
    ),
];

#[test]
fn requested_messages_render_for_hostile_events() {
    for (what, place, template, expected) in REQUESTED {
        let mut content = place.content(template);
        happen(&mut content);
        let rendered = render(&content, &context());
        let warnings = rendered.warnings.iter();
        let warnings: Vec<_> = warnings.filter(|it| !it.contains("no event has")).collect();
        assert!(warnings.is_empty(), "{what}: {warnings:?}");
        let text = place.text(&rendered.shown);
        let id = content.occurrence.id().to_string();
        let hostile = match place {
            // In Teams, a line break takes an empty line.
            Place::Teams => escape_text(HOSTILE, Escape::Card).replace('\n', "\n\n"),
            place => escape_text(HOSTILE, place.escape()).into_owned(),
        };
        let start: String = content.occurrence.body.chars().take(129).collect();
        let in_document = |text: &str| escape_text(text, Escape::Json).into_owned();
        let marks = [
            ('S', hostile),
            ('K', in_document(&escape_text(HOSTILE, Escape::Slack))),
            ('T', in_document(&escape_text(HOSTILE, Escape::Telegram))),
            ('M', in_document(&escape_text(HOSTILE, Escape::Markdown))),
            ('B', in_document(&format!("{start}\u{2026}"))),
        ];
        let expected = replace_marks(expected, &marks).replace("/ID", &format!("/{id}"));
        assert_eq!(text, expected, "{what}");
        if place == Place::Json {
            let document: Json = serde_json::from_str(text).unwrap();
            assert!(document.get("y").is_none(), "{what}: {text}");
        }
    }
}

/// Replaces each mark, a word of a single letter, with its text.
fn replace_marks(expected: &str, marks: &[(char, String)]) -> String {
    let mut text = String::new();
    let chars: Vec<_> = expected.chars().collect();
    for (at, c) in chars.iter().enumerate() {
        let is_letter = |at: Option<usize>| {
            at.and_then(|at| chars.get(at))
                .is_some_and(|c| c.is_alphanumeric())
        };
        let is_word = !is_letter(at.checked_sub(1)) && !is_letter(Some(at + 1));
        let mark = marks.iter().find(|(letter, _)| is_word && letter == c);
        match mark {
            Some((_, mark)) => text.push_str(mark),
            None => text.push(*c),
        }
    }
    text
}

#[test]
fn chat_filters_neutralize_mentions_and_links_in_json() {
    for filter in ["slack", "markdown", "telegram"] {
        let template = format!("{{\"text\": \"{{{{ event.summary|{filter} }}}}\"}}");
        let mut content = Place::Json.content(&template);
        happen(&mut content);
        let shown = render(&content, &context()).shown;
        let document: Json = serde_json::from_str(Place::Json.text(&shown)).unwrap();
        let text = document["text"]
            .as_str()
            .unwrap()
            .replace(['\u{2060}', '\\'], "|");
        for call in ["@all", "<!channel", "<at>"] {
            assert!(!text.contains(call), "{filter}: {text}");
        }
        assert!(
            filter == "slack" || !text.contains("]("),
            "{filter}: {text}"
        );
    }
}

#[test]
fn group_members_are_listed_under_a_heading() {
    let template = "{{ group.open_count }} open{% for it in group.events %}\n\u{2022} {{ it.severity }}: {{ it.summary|truncate(10) }}{% endfor %}";
    let mut content = Place::Slack.content(template);
    let grouping = Grouping {
        by: vec!["host".into()],
        wait_ms: 0,
        interval_ms: 60_000,
    };
    content.group = Some(sample::sample_group(&grouping, &content.occurrence));
    let rendered = render(&content, &context());
    let text = Place::Slack.text(&rendered.shown);
    assert!(text.starts_with("3 open\n\u{2022} error: "), "{text}");
    assert_eq!(text.lines().count(), 4, "{text}");
}

#[test]
fn all_members_of_a_group_are_available_on_request() {
    let cases = [
        (
            "{{ group.events|length }} {{ group.all_events|length }}",
            "20 500",
        ),
        (
            "{{ group.all_events|selectattr('severity', 'equalto', 'error')|selectattr('summary', 'matching', 'host 4..$')|map(attribute='id')|unique|length }}",
            "100",
        ),
        (
            "{% for it in group.all_events if it.summary is matching('host 499$') %}{{ it.change }}{% endfor %}",
            "joined",
        ),
        ("{{ group.events|length }}", "20"),
    ];
    for (template, expected) in cases {
        let mut content = Place::Slack.content(template);
        let grouping = Grouping {
            by: Vec::new(),
            wait_ms: 0,
            interval_ms: 60_000,
        };
        let mut group = sample::sample_group(&grouping, &content.occurrence);
        let (change, like) = group.members.swap_remove(0);
        group.members = (0..500_u32)
            .map(|at| {
                let mut member = like.clone();
                member.event = EventId::derive(&format!("host {at:03}"), &member.dimensions);
                member.summary = format!("disk full on host {at:03}");
                (change, member)
            })
            .collect();
        group.count = 500;
        content.group = Some(group);
        let rendered = render(&content, &context());
        assert_eq!(rendered.warnings, [""; 0], "{template}");
        assert_eq!(Place::Slack.text(&rendered.shown), expected, "{template}");
    }
}

#[test]
fn state_of_the_previous_message_is_available() {
    let template = "{% if previous %}{{ previous.severity }} ({{ previous.status }}) → {% endif %}{{ event.severity }}";
    let mut content = Place::Slack.content(template);
    let text = |content: &Content| {
        let rendered = render(content, &context());
        assert_eq!(rendered.warnings, [""; 0]);
        Place::Slack.text(&rendered.shown).to_owned()
    };
    assert_eq!(text(&content), "error");
    content.previous = Some(ReportedState {
        severity: Severity::Warning,
        status: Status::Closed,
    });
    assert_eq!(text(&content), "warning (closed) → error");
}

#[test]
fn stored_template_with_a_removed_construct_sends_the_default_message() {
    for template in [
        "{% macro f(x) %}{{ x }}{% endmacro %}{{ f(event.summary) }}",
        "{% set x = namespace(n=0) %}{{ x.n }}",
        "{% set tags = event.metadata.tags %}{{ tags|length }}",
    ] {
        let mut content = Place::Slack.content(template);
        happen(&mut content);
        let rendered = render(&content, &context());
        let warned = rendered.warnings.join(" ");
        assert!(warned.contains("the rule's message: line 1"), "{warned}");
        let text = Place::Slack.text(&rendered.shown);
        assert!(text.contains("&lt;!channel&gt;"), "{text}");
    }
}

#[test]
fn failing_payload_is_sent_in_its_simplest_form() {
    let long = "{% for a in event.metadata.l %}{% for b in event.metadata.l %}{{ a }}{% endfor %}{% endfor %}";
    let square =
        "{{#event.metadata.l}}{{#event.metadata.l}}{{.}}{{/event.metadata.l}}{{/event.metadata.l}}";
    let of = |language, payload: String| {
        let mut content = content(webhook(&payload, None), "");
        content.template_language = language;
        content.occurrence.summary = HOSTILE.repeat(20);
        let list = Value::List(vec![Value::Number(1.0); 30_000]);
        content.occurrence.metadata.insert("l".into(), list);
        let rendered = render(&content, &context());
        let body: Json = serde_json::from_str(rendered.shown["body"].as_str().unwrap()).unwrap();
        (body, rendered)
    };
    for (language, loops) in [
        (TemplateLanguage::Jinja, long),
        (TemplateLanguage::Mustache, square),
    ] {
        let payload = format!(
            "{{\"alias\": \"{{{{event.id}}}}\", \"text\": \"{{{{event.summary}}}}\", \"l\": \"{loops}\"}}"
        );
        let (body, rendered) = of(language, payload);
        assert!(rendered.exceeded.is_some());
        let warned = rendered.warnings.join(" ");
        assert!(warned.contains("reduced form"), "{warned}");
        assert_eq!(body["alias"].as_str().map(str::len), Some(28));
        assert!(
            body["text"].as_str().unwrap().starts_with("<!channel>"),
            "{body}"
        );
        assert_eq!(body["l"], "", "{body}");
    }
    // Unescaped values that break the document are escaped or become null.
    let raw = "{\"text\": \"{{{event.summary}}}\", \"gone\": {{{event.metadata.gone}}}, \"n\": {{{event.count}}}}";
    let (body, _) = of(TemplateLanguage::Mustache, raw.into());
    assert_eq!((&body["gone"], &body["n"]), (&json!(null), &json!(1)));
    assert!(
        body["text"].as_str().unwrap().starts_with("<!channel>"),
        "{body}"
    );
    // A result that is still not a valid document is replaced by the default one.
    let (body, _) = of(TemplateLanguage::Mustache, "{{event.summary}}".into());
    assert!(
        body["fallback"].as_str().unwrap().contains("not JSON"),
        "{body}"
    );
}
