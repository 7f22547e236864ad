//! Lists that forms show as lines: methods of a contact, layers of a schedule, and steps of an
//! escalation policy.

use bellwether_language::text::enum_word;
use serde_json::{Map, Value, json};

use crate::data::when;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFormat {
    /// Methods of a contact, such as `call after 2m from error in office hours: phone=+49301234`.
    Methods,
    /// Layers of a schedule, such as `nights: ana, -, ben + cleo from 2027-01-04T08:00:00 weekly
    /// since 2027-02-01T08:00:00 until 2027-06-01T08:00:00 in office hours`.
    Layers,
    /// Steps of a policy, such as `schedule nights, contact cleo, chat wait 10m`.
    Steps,
}

const SEVERITIES: [&str; 5] = ["debug", "info", "warning", "error", "critical"];
const NO_ONE: &str = "-";
const RECURRENCES: [(&str, &str); 3] = [
    ("daily", "FREQ=DAILY"),
    ("weekly", "FREQ=WEEKLY"),
    ("monthly", "FREQ=MONTHLY"),
];

impl LineFormat {
    pub(crate) fn format(self, value: Option<&Value>) -> String {
        let all = value.and_then(Value::as_array).into_iter().flatten();
        let line = match self {
            Self::Methods => format_method,
            Self::Layers => format_layer,
            Self::Steps => format_step,
        };
        all.map(line).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn parse(self, text: &str) -> Result<Value, String> {
        let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
        let read = match self {
            Self::Methods => parse_method,
            Self::Layers => parse_layer,
            Self::Steps => parse_step,
        };
        lines.map(read).collect()
    }
}

fn text_field<'a>(of: &'a Value, field: &str) -> &'a str {
    of[field].as_str().unwrap_or_default()
}

fn format_length(of: &Value, field: &str) -> Option<String> {
    let seconds = text_field(of, field)
        .strip_suffix('s')?
        .parse::<i64>()
        .ok()?;
    (seconds > 0).then(|| when::format_duration(seconds.saturating_mul(1_000)))
}

fn parse_length(written: &str) -> Result<Value, String> {
    let ms = when::parse_duration_ms(written)
        .ok_or_else(|| format!("`{written}` is not a duration; expected {}", when::LENGTHS))?;
    Ok(json!(format!("{}s", ms / 1_000)))
}

fn split_suffix<'a>(line: &'a str, word: &str) -> (&'a str, Option<&'a str>) {
    let between = format!(" {word} ");
    match line.rsplit_once(&between) {
        Some((rest, part)) => (rest.trim(), Some(part.trim())),
        None => (line, None),
    }
}

fn add_part(line: &mut String, word: &str, part: &str) {
    if !part.is_empty() {
        line.push_str(word);
        line.push_str(part);
    }
}

fn format_method(method: &Value) -> String {
    let mut line = text_field(method, "destinationName").to_owned();
    let severity = enum_word(text_field(method, "minSeverity"), "SEVERITY_");
    let severity = Some(severity).filter(|it| it != "default");
    let variables = method["variables"].as_object().into_iter().flatten();
    let variables = variables
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect::<Vec<_>>();
    add_part(
        &mut line,
        " after ",
        &format_length(method, "after").unwrap_or_default(),
    );
    add_part(&mut line, " from ", &severity.unwrap_or_default());
    add_part(&mut line, " in ", text_field(method, "calendarName"));
    add_part(&mut line, ": ", &variables.join(", "));
    line
}

fn parse_method(line: &str) -> Result<Value, String> {
    let (head, variables) = match line.split_once(": ") {
        Some((head, variables)) => (head.trim(), variables),
        None => (line, ""),
    };
    let (head, calendar) = split_suffix(head, "in");
    let (head, severity) = split_suffix(head, "from");
    let (name, after) = split_suffix(head, "after");
    let mut method = Map::new();
    method.insert("destinationName".into(), json!(name));
    if let Some(after) = after {
        method.insert("after".into(), parse_length(after)?);
    }
    if let Some(severity) = severity {
        if !SEVERITIES.contains(&severity) {
            let known = SEVERITIES.join(", ");
            return Err(format!(
                "`{severity}` is not a severity; expected one of {known}"
            ));
        }
        let severity = format!("SEVERITY_{}", severity.to_uppercase());
        method.insert("minSeverity".into(), json!(severity));
    }
    if let Some(calendar) = calendar {
        method.insert("calendarName".into(), json!(calendar));
    }
    let mut all = Map::new();
    for pair in variables
        .split(',')
        .map(str::trim)
        .filter(|it| !it.is_empty())
    {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("`{pair}`: write `name=value`"))?;
        all.insert(key.trim().into(), json!(value.trim()));
    }
    if !all.is_empty() {
        method.insert("variables".into(), Value::Object(all));
    }
    Ok(Value::Object(method))
}

fn format_layer(layer: &Value) -> String {
    let slots = layer["slots"].as_array().into_iter().flatten();
    let slots = slots.map(|slot| {
        let names = slot["contactNames"].as_array().into_iter().flatten();
        let names = names.filter_map(Value::as_str);
        match names.collect::<Vec<_>>().as_slice() {
            [] => NO_ONE.to_owned(),
            names => names.join(" + "),
        }
    });
    let rule = text_field(layer, "rrule");
    let word = RECURRENCES.iter().find(|(_, written)| *written == rule);
    let mut line = text_field(layer, "name").to_owned();
    let between = if line.is_empty() { "" } else { ": " };
    add_part(&mut line, between, &slots.collect::<Vec<_>>().join(", "));
    add_part(&mut line, " from ", text_field(layer, "dtstart"));
    add_part(&mut line, " ", word.map_or(rule, |(word, _)| word));
    add_part(&mut line, " since ", text_field(layer, "from"));
    add_part(&mut line, " until ", text_field(layer, "until"));
    add_part(&mut line, " in ", text_field(layer, "calendarName"));
    line
}

fn parse_layer(line: &str) -> Result<Value, String> {
    let (rest, calendar) = split_suffix(line, "in");
    let (rest, until) = split_suffix(rest, "until");
    let (rest, since) = split_suffix(rest, "since");
    let (slots, hand_offs) = split_suffix(rest, "from");
    let hand_offs = hand_offs
        .ok_or_else(|| format!("`{line}`: expected `ana, ben from 2027-01-04T08:00:00 weekly`"))?;
    let (name, slots) = match slots.split_once(": ") {
        Some((name, slots)) => (name.trim(), slots),
        None => ("", slots),
    };
    let (dtstart, rule) = match hand_offs.split_once(' ') {
        Some((dtstart, rule)) => (dtstart, rule.trim()),
        None => (hand_offs, ""),
    };
    let written = RECURRENCES.iter().find(|(word, _)| *word == rule);
    let slots = slots.split(',').map(|slot| {
        let names = slot.split('+').map(str::trim);
        let names: Vec<_> = names.filter(|it| *it != NO_ONE).collect();
        json!({ "contactNames": names })
    });
    let mut layer = json!({
        "slots": slots.collect::<Vec<_>>(),
        "dtstart": dtstart,
        "rrule": written.map_or(rule, |(_, written)| written),
    });
    if !name.is_empty() {
        layer["name"] = json!(name);
    }
    for (field, part) in [
        ("from", since),
        ("until", until),
        ("calendarName", calendar),
    ] {
        if let Some(part) = part {
            layer[field] = json!(part);
        }
    }
    Ok(layer)
}

fn format_step(step: &Value) -> String {
    let targets = step["targets"].as_array().into_iter().flatten();
    let targets = targets.map(|target| {
        match (
            text_field(target, "contactName"),
            text_field(target, "scheduleName"),
        ) {
            ("", "") => text_field(target, "destinationName").to_owned(),
            ("", schedule) => format!("schedule {schedule}"),
            (contact, _) => format!("contact {contact}"),
        }
    });
    let targets = targets.collect::<Vec<_>>().join(", ");
    match format_length(step, "wait") {
        Some(wait) => format!("{targets} wait {wait}"),
        None => format!("{targets} wait 0s"),
    }
}

fn parse_step(line: &str) -> Result<Value, String> {
    let (targets, wait) = split_suffix(line, "wait");
    let targets = targets
        .split(',')
        .map(str::trim)
        .filter(|it| !it.is_empty());
    let targets = targets.map(|target| {
        match (
            target.strip_prefix("contact "),
            target.strip_prefix("schedule "),
        ) {
            (Some(name), _) => json!({ "contactName": name.trim() }),
            (None, Some(name)) => json!({ "scheduleName": name.trim() }),
            (None, None) => json!({ "destinationName": target }),
        }
    });
    let mut step = json!({ "targets": targets.collect::<Vec<_>>() });
    if let Some(wait) = wait {
        step["wait"] = parse_length(wait)?;
    }
    Ok(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_round_trip() {
        let cases = [
            (LineFormat::Methods, "push"),
            (
                LineFormat::Methods,
                "call out after 2m from error in office hours: name=ana, phone=+49 30",
            ),
            (LineFormat::Layers, "ana from 2027-01-04T08:00:00"),
            (
                LineFormat::Layers,
                "nights: ana, ben + cleo from 2027-01-04T08:00:00 weekly in office hours",
            ),
            (
                LineFormat::Layers,
                "ana, - from 2027-01-04T08:00:00 daily since 2027-02-01T08:00:00 until 2027-06-01T08:00:00 in x",
            ),
            (
                LineFormat::Layers,
                "- from 2027-01-04T08:00:00 until 2027-06-01T08:00:00",
            ),
            (
                LineFormat::Layers,
                "ana, ben from 2027-01-04T08:00:00 FREQ=WEEKLY;BYDAY=MO,FR",
            ),
            (
                LineFormat::Steps,
                "schedule nights, contact cleo, chat room wait 10m",
            ),
        ];
        for (form, line) in cases {
            let value = form.parse(line).unwrap();
            assert_eq!(form.format(Some(&value)), line, "{value}");
        }
    }

    #[test]
    fn invalid_lines_are_rejected() {
        let cases = [
            (LineFormat::Methods, "push from bad", "not a severity"),
            (LineFormat::Methods, "push after soon", "not a duration"),
            (LineFormat::Methods, "push: phone", "name=value"),
            (LineFormat::Layers, "ana weekly", "from 2027"),
            (LineFormat::Steps, "ana wait long", "not a duration"),
        ];
        for (form, line, expected) in cases {
            let error = form.parse(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
