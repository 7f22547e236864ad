//! Tests of the conversion of Go templates, as tables.

use super::*;

fn assert_conversions(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(
            convert_text(text, Language::Jinja).as_deref(),
            Ok(*expected),
            "{text}"
        );
    }
}

#[test]
fn fields_and_functions_are_converted_to_jinja() {
    assert_conversions(&[
        ("plain \"text\"", "plain \"text\""),
        (
            "{{ .Status }}",
            "{{ (\"resolved\" if is_over else \"firing\") }}",
        ),
        (
            "{{ .Status | toUpper }}!",
            "{{ (\"resolved\" if is_over else \"firing\")|upper }}!",
        ),
        ("{{.CommonLabels.alertname}}", "{{ event.name }}"),
        ("{{ $.GroupLabels.host }}", "{{ event.dimensions.host }}"),
        (
            "{{ index .CommonLabels \"a-b\" | title }}",
            "{{ event.dimensions[\"a-b\"]|title }}",
        ),
        (
            "{{ .CommonLabels.severity }}",
            "{{ (event.dimensions.severity|default(event.severity, true)) }}",
        ),
        (
            "{{ .CommonAnnotations.summary }} {{ .CommonAnnotations.runbook_url }}",
            "{{ event.summary }} {{ event.metadata.annotations.runbook_url }}",
        ),
        (
            "{{ len .Alerts.Firing }} of {{ .Alerts | len }}",
            "{{ (group.open_count if group else (0 if event.is_closed else 1)) }} of \
             {{ (group.count if group else 1) }}",
        ),
        (
            "{{ (index .Alerts 0).Labels.host }}",
            "{{ event.dimensions.host }}",
        ),
        (
            "{{ printf \"%s-%v\" .Receiver .CommonLabels.a }}",
            "{{ \"%s-%s\"|format(destination.name, event.dimensions.a) }}",
        ),
        (
            "{{ .CommonLabels.seconds | humanizeDuration }}",
            "{{ event.dimensions.seconds|humanizeDuration }}",
        ),
        (
            "{{ reReplaceAll \"a(.)\" \"$1\" .CommonLabels.x }}",
            "{{ event.dimensions.x|regex_replace(\"a(.)\", \"$1\") }}",
        ),
        ("a{{/* a note */}}b {{- /* another */ -}} c", "abc"),
    ]);
}

#[test]
fn loops_and_conditions_are_converted_to_jinja() {
    assert_conversions(&[
        (
            "{{ range .Alerts }}{{ .Labels.host }}: {{ .Annotations.description }};{{ end }}",
            "{% for alert1 in group.events|default([event], true) %}\
             {{ alert1.dimensions.host }}: {{ alert1.body }};{% endfor %}",
        ),
        (
            "{{ range $_, $a := .Alerts.Firing }}{{ $a.StartsAt }}{{ else }}none{{ end }}",
            "{% for alert1 in group.events|default([event], true)|rejectattr(\"is_closed\") %}\
             {{ alert1.start_time }}{% else %}none{% endfor %}",
        ),
        (
            "{{ range .CommonLabels.SortedPairs }} {{ .Name }}={{ .Value }}{{ end }}",
            "{% for name1, value1 in event.dimensions|items %} {{ name1 }}={{ value1 }}{% endfor %}",
        ),
        (
            "{{ range $k, $v := .CommonLabels }}{{ $k }}{{ $v }}{{ end }}",
            "{% for name1, value1 in event.dimensions|items %}{{ name1 }}{{ value1 }}{% endfor %}",
        ),
        (
            "{{ .GroupLabels.Values | join \", \" }}",
            "{{ (group.by if group else event.dimensions).values()|join(\", \") }}",
        ),
        (
            "a {{- if eq .Status \"firing\" -}} x {{- else if .CommonLabels.y }} y {{ end }}",
            "a{% if ((\"resolved\" if is_over else \"firing\") == \"firing\") %}x\
             {% elif event.dimensions.y %} y {% endif %}",
        ),
        (
            "{{ with .CommonAnnotations.summary }}{{ . }}{{ end }}",
            "{% if event.summary %}{{ event.summary }}{% endif %}",
        ),
        (
            "{{ if and (gt (len .Alerts) 1) (not .CommonLabels.x) }}m{{ end }}",
            "{% if (((group.count if group else 1) > 1) and (not event.dimensions.x)) %}m{% endif %}",
        ),
    ]);
}

#[test]
fn other_templates_are_not_converted() {
    for (text, why) in [
        ("{{ template \"slack.default.text\" . }}", "uses `template`"),
        ("{{ .Status", "lacks a `}}`"),
        ("{{ if .Status }}", "lacks an `end`"),
        ("{{ end }}", "has an `end` without a start"),
        ("{{ .Nothing }}", "uses `.Nothing`"),
        ("{{ $x := .Status }}", "sets a variable"),
        ("{{ $x }}", "uses `$x`"),
        ("{{ date \"15:04\" .Alerts }}", "uses `date`"),
        ("{{ .CommonLabels }}", "inserts a value of several parts"),
        (
            "{{ range $i, $a := .Alerts }}{{ end }}",
            "uses the number of an item",
        ),
        ("{{ range .Status }}{{ end }}", "has a loop over"),
        (
            "{{ (.CommonLabels.Remove (stringSlice \"a\")).Names }}",
            "uses",
        ),
        ("{% raw %}", "contains a tag of Jinja"),
        ("{{{ .Status }}}", "has an unknown part"),
        ("{{ \"a }}", "lacks a `}}`"),
    ] {
        let found = convert_text(text, Language::Jinja).unwrap_err();
        assert!(found.contains(why), "{text}: {found}");
    }
    let deep = format!(
        "{{{{ {}.Status{} }}}}",
        "(".repeat(1_000),
        ")".repeat(1_000)
    );
    assert!(convert_text(&deep, Language::Jinja).is_err());
    let deep = "{{ if .Status }}".repeat(1_000);
    assert!(convert_text(&deep, Language::Jinja).is_err());
}

#[test]
fn mustache_has_only_placeholders() {
    let convert = |text| convert_text(text, Language::Mustache);
    assert_eq!(
        convert("#{{ .CommonLabels.team }}").as_deref(),
        Ok("#{{event.dimensions.team}}")
    );
    assert!(convert("{{ .Status }}").is_err());
    assert!(convert("{{ if .Receiver }}{{ end }}").is_err());
}

#[test]
fn payload_is_a_json_template() {
    let payload = json!({
        "text": "say \"{{ .CommonLabels.alertname }}\"\n",
        "count": 1, "flag": true, "none": null,
        "labels": "{{ .CommonLabels | toJson }}",
        "list": ["{{ .Receiver }}", {}],
        "raw": "{\"a\": \"{{ .Receiver }}\"}",
        "title": "[{{ .Receiver }}] x",
    });
    let expected = "{ \"count\": 1, \"flag\": true, \"labels\": {{ event.dimensions|json }}, \
                    \"list\": [\"{{ destination.name }}\", {  }], \"none\": null, \
                    \"raw\": {\"a\": \"{{ destination.name }}\"}, \
                    \"text\": \"say \\\"{{ event.name }}\\\"\\n\", \
                    \"title\": \"[{{ destination.name }}] x\" }";
    assert_eq!(convert_json(&payload).as_deref(), Ok(expected));
}
