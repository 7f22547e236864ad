//! The fields of an occurrence that queries can use.

use crate::{
    domain::{
        Occurrence, Value,
        value::{Fields, list_index},
    },
    limits::EVENT_NAME_BYTES_MAX,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Field {
    Id,
    Name,
    Type,
    Summary,
    Body,
    Severity,
    Status,
    Acknowledged,
    Assignee,
    Count,
    StartTime,
    /// The newest timestamp set by a sender; also called `timestamp`.
    LastSeen,
    Dimension(String),
    /// A metadata field; dots reach into nested objects.
    Metadata(String),
    /// The dimension with this name, or else the metadata field.
    Either(String),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FieldValue<'a> {
    Text(&'a str),
    /// A number. Severity and status are compared by order, times in milliseconds since 1970.
    Number(f64),
    Bool(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    Text,
    Number,
    Time,
    Severity,
    Status,
    Bool,
    /// Any type, chosen by the sender.
    Anything,
}

const FIXED: [(&str, Field); 13] = [
    ("id", Field::Id),
    ("name", Field::Name),
    ("type", Field::Type),
    ("summary", Field::Summary),
    ("body", Field::Body),
    ("severity", Field::Severity),
    ("status", Field::Status),
    ("acknowledged", Field::Acknowledged),
    ("assignee", Field::Assignee),
    ("count", Field::Count),
    ("timestamp", Field::LastSeen),
    ("startTime", Field::StartTime),
    ("lastSeen", Field::LastSeen),
];

impl Field {
    pub fn fixed_names() -> [&'static str; 13] {
        FIXED.map(|(name, _)| name)
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("is required: the field to check".into());
        }
        if text.len() > EVENT_NAME_BYTES_MAX {
            return Err(format!(
                "is {} bytes; the limit is {EVENT_NAME_BYTES_MAX}",
                text.len()
            ));
        }
        if let Some((_, field)) = FIXED.iter().find(|(name, _)| *name == text) {
            return Ok(field.clone());
        }
        let inside = |prefix: &str| text.strip_prefix(prefix).map(str::to_owned);
        match (inside("dimensions."), inside("metadata.")) {
            (Some(key), _) | (_, Some(key)) if key.is_empty() => {
                Err(format!("`{text}` has no key after the dot"))
            }
            (Some(key), _) => Ok(Self::Dimension(key)),
            (_, Some(key)) => Ok(Self::Metadata(key)),
            _ => Ok(Self::Either(text.to_owned())),
        }
    }

    /// Parses the name of a field by which occurrences can be grouped.
    ///
    /// # Errors
    /// Returns the reason why the field is invalid or cannot be shared, as a clause of an error
    /// message.
    pub fn parse_shared(text: &str) -> Result<Self, String> {
        let field = Self::parse(text)?;
        match field {
            Self::Name
            | Self::Type
            | Self::Severity
            | Self::Status
            | Self::Acknowledged
            | Self::Assignee
            | Self::Dimension(_)
            | Self::Metadata(_)
            | Self::Either(_) => Ok(field),
            Self::Id
            | Self::Summary
            | Self::Body
            | Self::Count
            | Self::StartTime
            | Self::LastSeen => Err(format!(
                "occurrences cannot be grouped by `{text}`; expected `name`, `type`, `severity`, \
                 `status`, `acknowledged`, `assignee`, a dimension or a metadata field"
            )),
        }
    }

    /// Whether the field keeps its value when the event is sent again.
    pub fn is_retained(&self) -> bool {
        !matches!(self, Self::Count | Self::LastSeen)
    }

    pub fn value_type(&self) -> ValueType {
        match self {
            Self::Id
            | Self::Name
            | Self::Type
            | Self::Summary
            | Self::Body
            | Self::Assignee
            | Self::Dimension(_) => ValueType::Text,
            Self::Severity => ValueType::Severity,
            Self::Status => ValueType::Status,
            Self::Acknowledged => ValueType::Bool,
            Self::Count => ValueType::Number,
            Self::StartTime | Self::LastSeen => ValueType::Time,
            Self::Metadata(_) | Self::Either(_) => ValueType::Anything,
        }
    }

    /// Whether any value of the field passes the test. False if the event does not have the field.
    pub fn any_value(
        &self,
        occurrence: &Occurrence,
        test: &mut dyn FnMut(FieldValue<'_>) -> bool,
    ) -> bool {
        let number = |value: i64| {
            #[expect(
                clippy::cast_precision_loss,
                reason = "exact up to 2^53: until the year 287396"
            )]
            FieldValue::Number(value as f64)
        };
        match self {
            Self::Id => test(FieldValue::Text(&occurrence.event.to_string())),
            Self::Name => test(FieldValue::Text(&occurrence.name)),
            Self::Type => test(FieldValue::Text(&occurrence.kind)),
            Self::Summary => test(FieldValue::Text(&occurrence.summary)),
            Self::Body => test(FieldValue::Text(&occurrence.body)),
            Self::Severity => test(number(occurrence.severity as i64)),
            Self::Status => test(number(occurrence.status as i64)),
            Self::Acknowledged => test(FieldValue::Bool(occurrence.acknowledged)),
            Self::Assignee => {
                let assignee = occurrence.assignee.as_ref();
                assignee.is_some_and(|it| test(FieldValue::Text(it.as_str())))
            }
            Self::Count => test(number(i64::try_from(occurrence.count).unwrap_or(i64::MAX))),
            Self::StartTime => test(number(occurrence.start_ms)),
            Self::LastSeen => test(number(occurrence.last_seen_ms)),
            Self::Dimension(key) => occurrence
                .dimensions
                .get(key)
                .is_some_and(|value| test(FieldValue::Text(value))),
            Self::Metadata(path) => any_value_at_path(&occurrence.metadata, path, test),
            Self::Either(key) => match occurrence.dimensions.get(key) {
                Some(value) => test(FieldValue::Text(value)),
                None => any_value_at_path(&occurrence.metadata, key, test),
            },
        }
    }
}

/// Tests every value that a dotted path reaches. Since keys may contain dots, the longest prefix of
/// the path that is a key is used. In a list, a number selects one entry.
fn any_value_at_path(
    fields: &Fields,
    path: &str,
    test: &mut dyn FnMut(FieldValue<'_>) -> bool,
) -> bool {
    if let Some(value) = fields.get(path) {
        return any_value_within(value, "", test);
    }
    let ends = path.rmatch_indices('.').map(|(at, _)| at);
    for at in ends {
        let (key, rest) = (&path[..at], &path[at + 1..]);
        if let Some(value) = fields.get(key) {
            return any_value_within(value, rest, test);
        }
    }
    false
}

fn any_value_within(
    value: &Value,
    path: &str,
    test: &mut dyn FnMut(FieldValue<'_>) -> bool,
) -> bool {
    match (value, path) {
        (Value::List(values), _) => {
            let (first, rest) = path.split_once('.').unwrap_or((path, ""));
            match list_index(first) {
                Some(at) => values
                    .get(at)
                    .is_some_and(|it| any_value_within(it, rest, test)),
                None => values
                    .iter()
                    .any(|value| any_value_within(value, path, test)),
            }
        }
        (Value::Object(fields), path) if !path.is_empty() => any_value_at_path(fields, path, test),
        (Value::Text(value), "") => test(FieldValue::Text(value)),
        (Value::Number(number), "") => test(FieldValue::Number(*number)),
        (Value::Bool(flag), "") => test(FieldValue::Bool(*flag)),
        _ => false,
    }
}
