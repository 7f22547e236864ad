//! Filters as operators type them: words and comparisons, parsed into queries.

mod clock;
pub(crate) mod completion;
pub(crate) mod local;

pub(crate) use self::clock::Clock;
use bellwether_language::filter::{self, FilterError};
use bellwether_proto::v1::{Clause, DeliveryFilter};
use jiff::Timestamp;

pub(crate) const FIELDS: [&str; 13] = [
    "severity",
    "summary",
    "name",
    "type",
    "status",
    "body",
    "acknowledged",
    "assignee",
    "count",
    "startTime",
    "lastSeen",
    "timestamp",
    "id",
];

#[derive(Clone, Debug)]
pub(crate) struct Reader {
    pub(crate) clock: Clock,
    pub(crate) seen: Vec<String>,
}

/// Parses an event filter such as `severity>=error env=prod -host=*lab* since=2h disk` as the
/// service does, with local times in the console's time zone.
pub(crate) fn parse_event_filter(
    text: &str,
    reader: &Reader,
) -> Result<Option<Clause>, FilterError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let parsed = filter::parse(text, Some(reader.clock.time_reference()))?;
    Ok(Some((&parsed.clause).into()))
}

/// Returns a warning for the first field that is probably misspelled: no event seen has the field,
/// but one has a similar field. Other events may have the field.
pub(crate) fn filter_hint(text: &str, reader: &Reader) -> Option<FilterError> {
    let parsed = filter::parse(text, Some(reader.clock.time_reference())).ok()?;
    let mut fields = parsed.fields().into_iter();
    fields.find_map(|(field, at)| {
        let message = reader.hint(field)?;
        Some(FilterError { at, message })
    })
}

impl Reader {
    fn hint(&self, field: &str) -> Option<String> {
        let seen = self.seen.iter().map(String::as_str);
        let known = FIELDS.into_iter().chain(seen);
        if known.clone().any(|known| known == field) {
            return None;
        }
        let unknown = format!("no event here has a field `{field}`");
        if let Some(here) = filter::local_field_name(field) {
            return Some(format!("{unknown}; use `{here}`"));
        }
        // There is no warning for a full name: it is valid for any field.
        let (_, nearest) = filter::nearest_field(field, known).filter(|_| !field.contains('.'))?;
        Some(format!("{unknown}: `{nearest}`?"))
    }
}

const WAITING: &str = "waiting";

pub(crate) const DELIVERY_TABS: [(&str, &str); 5] = [
    ("all", ""),
    (WAITING, "state=waiting"),
    ("dead", DEAD),
    ("delivered", "state=delivered"),
    ("shadowed", "state=shadowed"),
];

pub(crate) const DEAD: &str = "state=dead resent=false";

#[derive(Default)]
struct FilterParts {
    all: Vec<(filter::Clause, String)>,
    /// Whether the filter is a single disjunction without parentheses.
    is_either: bool,
}

impl FilterParts {
    fn read(text: &str, clock: &Clock) -> Result<Self, FilterError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let parsed = filter::parse(text, Some(clock.time_reference()))?;
        let all = parsed.conjuncts();
        Ok(Self {
            all: all
                .map(|(it, text)| (it.clone(), text.to_owned()))
                .collect(),
            is_either: parsed.is_disjunction(),
        })
    }

    fn joined_text(self) -> String {
        let texts: Vec<String> = self.all.into_iter().map(|(_, text)| text).collect();
        texts.join(" ")
    }
}

fn is_tab_clause(clause: &filter::Clause) -> bool {
    matches!(clause, filter::Clause::Equals(field, _) if field == "state" || field == "resent")
}

pub(crate) fn delivery_tab_index(text: &str, clock: &Clock) -> Option<usize> {
    let parts = FilterParts::read(text, clock).ok()?;
    if parts.is_either {
        return None;
    }
    let own = parts
        .all
        .into_iter()
        .filter(|(clause, _)| is_tab_clause(clause));
    let own: Vec<String> = own.map(|(_, text)| text).collect();
    let own = own.join(" ");
    DELIVERY_TABS.iter().position(|(_, tab)| *tab == own)
}

pub(crate) fn with_delivery_tab(text: &str, tab: usize, clock: &Clock) -> String {
    let mut parts = FilterParts::read(text, clock).unwrap_or_default();
    parts.all.retain(|(clause, _)| !is_tab_clause(clause));
    let is_either = parts.is_either;
    let Some((_, own)) = DELIVERY_TABS.get(tab).filter(|_| tab > 0) else {
        // Removes parentheses that were needed only in combination with the tab's condition.
        if let [(clause @ filter::Clause::Or(_), text)] = &mut parts.all[..]
            && !is_either
            && !filter::is_search(clause)
        {
            *text = text[1..text.len() - 1].to_owned();
        }
        return parts.joined_text();
    };
    let rest = parts.joined_text();
    let rest = if is_either { format!("({rest})") } else { rest };
    format!("{own} {rest}").trim_end().to_owned()
}

/// Parses a delivery filter such as `state=dead destination=pager severity>=error since=2h
/// until=09:30`.
pub(crate) fn parse_delivery_filter(
    text: &str,
    clock: &Clock,
) -> Result<DeliveryFilter, FilterError> {
    Ok(DeliveryFilter {
        filter: replace_times(text, clock, |moment| format!("{moment:.0}"))?,
        ..DeliveryFilter::default()
    })
}

/// Replaces relative times in a delivery filter by absolute ones, so that every page and action
/// selects the same deliveries.
pub(crate) fn with_absolute_times(text: &str, clock: &Clock) -> String {
    replace_times(text, clock, |moment| clock.write(moment)).unwrap_or_else(|_| text.to_owned())
}

fn replace_times(
    text: &str,
    clock: &Clock,
    write: impl Fn(Timestamp) -> String,
) -> Result<String, FilterError> {
    let mut parts = FilterParts::read(text, clock)?;
    for (clause, text) in &mut parts.all {
        let (filter::Clause::GreaterAndEquals(_, filter::Literal::Text(moment))
        | filter::Clause::Less(_, filter::Literal::Text(moment))) = clause
        else {
            continue;
        };
        let name = ["since", "until"].into_iter().find(|it| {
            let behind = text.strip_prefix(it);
            behind.is_some_and(|it| it.trim_start().starts_with('='))
        });
        if let (Some(name), Ok(moment)) = (name, moment.parse()) {
            *text = format!("{name}={}", write(moment));
        }
    }
    Ok(parts.joined_text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::describe;

    #[test]
    fn typed_filter_becomes_a_query() {
        for (typed, read) in [
            ("", ""),
            ("severity>=error", "severity>=error"),
            ("env=prod -host=*lab*", "env=prod host!=*lab*"),
            ("name=\"a b\"", "name=\"a b\""),
            ("disk or has:ticket", "disk or has:ticket"),
        ] {
            let clause = parse_event_filter(typed, &reader()).unwrap();
            let again = clause.as_ref().map_or(String::new(), describe);
            assert_eq!(again, read, "{typed}");
        }
        for (typed, place) in [("severity>=", 11), ("=x", 1), ("a (b", 3)] {
            let error = parse_event_filter(typed, &reader())
                .unwrap_err()
                .to_string();
            let begins = format!("at character {place}: ");
            assert!(error.starts_with(&begins), "{typed}: {error}");
        }
    }

    fn reader() -> Reader {
        Reader {
            clock: Clock::new(0, jiff::tz::TimeZone::UTC),
            seen: vec!["host".to_owned()],
        }
    }

    #[test]
    fn misspelt_fields_get_a_suggestion_and_times_are_parsed() {
        for (typed, nearest) in [("severty>=error", "`severity`"), ("hots=a", "`host`")] {
            assert!(
                parse_event_filter(typed, &reader()).is_ok(),
                "older events may have this field"
            );
            let words = filter_hint(typed, &reader()).unwrap().to_string();
            assert!(words.contains(nearest), "{words}");
        }
        let since = parse_event_filter("since=1970-01-01", &reader())
            .unwrap()
            .unwrap();
        assert_eq!(describe(&since), "lastSeen>=1970-01-01T00:00:00.000Z");
        assert!(parse_event_filter("since=soon", &reader()).is_err());
        for typed in ["anything=1", "host=a", "dimensions.hots=a", "a=\""] {
            assert_eq!(filter_hint(typed, &reader()), None, "{typed}");
        }
        for (typed, here) in [("alertname=x", "`name`"), ("labels.host=a", "`host`")] {
            let text = filter_hint(typed, &reader()).unwrap().to_string();
            assert!(text.contains(&format!("use {here}")), "{text}");
        }
    }

    #[test]
    fn delivery_tab_replaces_only_the_state() {
        let clock = Clock::new(0, jiff::tz::TimeZone::UTC);
        for (text, own, dead) in [
            ("", Some(0), "state=dead resent=false"),
            (
                "state=waiting rule=a",
                Some(1),
                "state=dead resent=false rule=a",
            ),
            (
                "rule=\"a b\" (c or d)",
                Some(0),
                "state=dead resent=false rule=\"a b\" (c or d)",
            ),
            (
                "state=dead or c",
                None,
                "state=dead resent=false (state=dead or c)",
            ),
            ("state=dead", None, "state=dead resent=false"),
            ("disk", Some(0), "state=dead resent=false disk"),
            (
                "(a=1 or b=2) or (c=3)",
                None,
                "state=dead resent=false ((a=1 or b=2) or (c=3))",
            ),
            (
                "state=dead resent=false (a or state=waiting)",
                Some(2),
                "state=dead resent=false (a or state=waiting)",
            ),
        ] {
            assert_eq!(delivery_tab_index(text, &clock), own, "{text}");
            assert_eq!(with_delivery_tab(text, 2, &clock), dead, "{text}");
        }
        for (text, all) in [
            ("state=dead resent=false rule=a", "rule=a"),
            ("state=dead (a or b)", "a or b"),
            ("state=dead (a or b) c", "(a or b) c"),
            ("(a=1 or b=2) or (c=3)", "(a=1 or b=2) or (c=3)"),
            ("state=dead disk", "disk"),
        ] {
            assert_eq!(with_delivery_tab(text, 0, &clock), all, "{text}");
        }
    }

    #[test]
    fn deliveries_are_filtered_by_state_and_name() {
        let clock = Clock::new(0, jiff::tz::TimeZone::UTC);
        let text = "state=dead (destination=\"my pager\" or severity>=error)";
        assert_eq!(parse_delivery_filter(text, &clock).unwrap().filter, text);
        let filter = parse_delivery_filter("since=1970-01-01T00:00:00 rule=\"a since=b\"", &clock);
        assert_eq!(
            filter.unwrap().filter,
            "since=1970-01-01T00:00:00Z rule=\"a since=b\""
        );
        let span = "rule=a and since = 1970-01-01";
        assert_eq!(
            with_absolute_times(span, &clock),
            "rule=a since=1970-01-01T00:00:00"
        );
        assert!(parse_delivery_filter("rule=", &clock).is_err());
    }
}
