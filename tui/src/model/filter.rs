//! What operators type as a filter: words and comparisons, read into what the service is asked.

pub(crate) mod completion;
mod moment;

pub(crate) use self::moment::Clock;
use bellwether_proto::{
    filter::{self, Fault},
    v1::{Clause, DeliveryFilter},
};

use crate::data::{DELIVERY_STATES, Word};

/// The fields that every event has.
pub(crate) const FIELDS: [&str; 12] = [
    "severity",
    "summary",
    "name",
    "type",
    "status",
    "body",
    "acknowledged",
    "count",
    "startTime",
    "lastSeen",
    "timestamp",
    "id",
];
/// How alike a word and a field are when one is meant by the other.
const ALIKE: f64 = 0.84;

/// What a filter of events is read with.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    pub(crate) clock: Clock,
    /// The dimensions of the events that were seen.
    pub(crate) seen: Vec<String>,
}

/// Reads a filter of events: `severity>=error env=prod -host=*lab* since=2h disk`, as the service does,
/// with times of a day and dates in the zone of the console.
///
/// # Errors
/// The first thing that is wrong; a field that is not known is when one that is alike is known.
pub(crate) fn events(text: &str, reader: &Reader) -> Result<Option<Clause>, Fault> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let parsed = filter::parse(text, Some(reader.clock.now()))?;
    for (field, at) in parsed.fields() {
        let checked = reader.check(field);
        checked.map_err(|message| Fault { at, message })?;
    }
    Ok(Some((&parsed.clause).into()))
}

impl Reader {
    /// Whether a field is known, or like none that is: an event may have it all the same.
    fn check(&self, field: &str) -> Result<(), String> {
        let known = || {
            FIELDS
                .into_iter()
                .chain(self.seen.iter().map(String::as_str))
        };
        // With its full name whatever is meant can be written.
        if field.contains('.') || known().any(|known| known == field) {
            return Ok(());
        }
        let alike = known().map(|known| (strsim::jaro_winkler(known, field), known));
        let nearest = alike.max_by(|(one, _), (other, _)| one.total_cmp(other));
        match nearest {
            Some((likeness, nearest)) if likeness >= ALIKE => {
                Err(format!("no event here has a field `{field}`: `{nearest}`?"))
            }
            _ => Ok(()),
        }
    }
}

/// Parts at spaces, as they are written; quotes and brackets keep spaces together.
fn words(text: &str) -> Vec<&str> {
    let (mut quoted, mut escaped, mut depth) = (false, false, 0_usize);
    let parts = text.split(move |char: char| {
        let is_escaped = std::mem::take(&mut escaped);
        match char {
            '\\' => escaped = !is_escaped,
            '"' if !is_escaped => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        char.is_whitespace() && !quoted && depth == 0
    });
    parts.filter(|word| !word.is_empty()).collect()
}

/// What has not ended, as a state in a filter.
const WAITING: &str = "waiting";

/// The states that the list of deliveries has tabs for, as they stand in its filter.
pub(crate) const DELIVERY_TABS: [&str; 4] = ["all", WAITING, "dead", "delivered"];

/// Whether a filter is one of several, of which no part holds in any case.
fn is_either(words: &[&str]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case("or"))
}

/// Which of these tabs a filter is.
pub(crate) fn delivery_tab(text: &str) -> Option<usize> {
    let words = words(text);
    if is_either(&words) {
        return None;
    }
    let mut states = words.iter().filter_map(|word| word.strip_prefix("state="));
    match (states.next(), states.next()) {
        (None, _) => Some(0),
        (Some(state), None) => DELIVERY_TABS.iter().position(|tab| *tab == state),
        _ => None,
    }
}

/// A filter of deliveries with the state of a tab instead of its own.
pub(crate) fn with_delivery_tab(text: &str, tab: usize) -> String {
    let words = words(text);
    let rest = if is_either(&words) {
        vec![format!("({text})")]
    } else {
        let rest = words.iter().filter(|word| !word.starts_with("state="));
        rest.map(ToString::to_string).collect()
    };
    let state = DELIVERY_TABS.get(tab).filter(|_| tab > 0);
    let state = state.map(|state| format!("state={state}"));
    let words: Vec<String> = state.into_iter().chain(rest).collect();
    words.join(" ")
}

/// Reads a filter of deliveries: `state=dead destination=pager severity>=error since=2h until=09:30`.
///
/// # Errors
/// A sentence for people: what the service would say, as far as that needs no service.
pub(crate) fn deliveries(text: &str, clock: &Clock) -> Result<DeliveryFilter, String> {
    let (mut start_ms, mut end_ms) = (None, None);
    for word in words(text) {
        match word.split_once('=') {
            Some(("state", value)) if value != WAITING => {
                let mut words = DELIVERY_STATES.iter().map(|state| state.word());
                if !words.any(|word| word == value) {
                    let known = DELIVERY_STATES.map(Word::word).join(", ");
                    return Err(format!(
                        "`{value}` is not a state; there are {WAITING}, {known}"
                    ));
                }
            }
            Some(("since", value)) => start_ms = Some(clock.read(value)?),
            Some(("until", value)) => end_ms = Some(clock.read(value)?),
            _ => {}
        }
    }
    if let (Some(start), Some(end)) = (start_ms, end_ms)
        && start >= end
    {
        return Err("`since` has to be earlier than `until`".to_owned());
    }
    let filter = with_moments(text, |value| {
        Some(Clock::universal(clock.read(value).ok()?))
    });
    if !filter.is_empty() {
        let read = filter::parse(&filter, Some(clock.now()));
        read.map_err(|fault| fault.to_string())?;
    }
    Ok(DeliveryFilter {
        filter,
        ..DeliveryFilter::default()
    })
}

/// A filter of deliveries with moments in place of spans of time, so that every page and every action
/// means the same deliveries however long it takes.
pub(crate) fn settled(text: &str, clock: &Clock) -> String {
    with_moments(text, |value| Some(clock.write(clock.read(value).ok()?)))
}

/// A filter with other texts for what stands behind `since=` and `until=`.
fn with_moments(text: &str, write: impl Fn(&str) -> Option<String>) -> String {
    let written = words(text).into_iter().map(|word| {
        let moment = match word.split_once('=') {
            Some((name @ ("since" | "until"), value)) => {
                write(value).map(|moment| format!("{name}={moment}"))
            }
            _ => None,
        };
        moment.unwrap_or_else(|| word.to_owned())
    });
    written.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::describe;

    #[test]
    fn what_is_typed_becomes_a_query() {
        for (typed, read) in [
            ("", ""),
            ("severity>=error", "severity>=error"),
            ("env=prod -host=*lab*", "env=prod host!=*lab*"),
            ("name=\"a b\"", "name=\"a b\""),
            ("disk or has:ticket", "disk or has:ticket"),
        ] {
            let clause = events(typed, &reader()).unwrap();
            let again = clause.as_ref().map_or(String::new(), describe);
            assert_eq!(again, read, "{typed}");
        }
        for (typed, place) in [("severity>=", 11), ("=x", 1), ("a (b", 3)] {
            let fault = events(typed, &reader()).unwrap_err().to_string();
            let begins = format!("at character {place}: ");
            assert!(fault.starts_with(&begins), "{typed}: {fault}");
        }
    }

    fn reader() -> Reader {
        Reader {
            clock: Clock::new(0, jiff::tz::TimeZone::UTC),
            seen: vec!["host".to_owned()],
        }
    }

    #[test]
    fn a_misspelt_field_is_told_with_the_nearest_and_a_time_is_read() {
        for (typed, nearest) in [("severty>=error", "`severity`"), ("hots=a", "`host`")] {
            let told = events(typed, &reader()).unwrap_err().to_string();
            assert!(told.contains(nearest), "{told}");
        }
        let since = events("since=1970-01-01", &reader()).unwrap().unwrap();
        assert_eq!(describe(&since), "lastSeen>=1970-01-01T00:00:00.000Z");
        assert!(events("since=soon", &reader()).is_err());
        assert!(events("anything=1", &reader()).is_ok());
    }

    #[test]
    fn a_tab_takes_the_place_of_the_state_alone() {
        for (text, own, dead) in [
            ("", Some(0), "state=dead"),
            ("state=waiting rule=a", Some(1), "state=dead rule=a"),
            (
                "rule=\"a b\" (c or d)",
                Some(0),
                "state=dead rule=\"a b\" (c or d)",
            ),
            ("state=dead or c", None, "state=dead (state=dead or c)"),
            (
                "state=dead (a or state=waiting)",
                Some(2),
                "state=dead (a or state=waiting)",
            ),
        ] {
            assert_eq!(delivery_tab(text), own, "{text}");
            assert_eq!(with_delivery_tab(text, 2), dead, "{text}");
        }
        assert_eq!(with_delivery_tab("state=dead rule=a", 0), "rule=a");
    }

    #[test]
    fn deliveries_are_filtered_by_state_and_names() {
        let clock = Clock::new(0, jiff::tz::TimeZone::UTC);
        let text = "state=dead (destination=\"my pager\" or severity>=error)";
        assert_eq!(deliveries(text, &clock).unwrap().filter, text);
        let filter = deliveries("since=1970-01-01T00:00:00 rule=\"a since=b\"", &clock);
        assert_eq!(
            filter.unwrap().filter,
            "since=1970-01-01T00:00:00Z rule=\"a since=b\""
        );
        assert!(
            deliveries("state=ded", &clock)
                .unwrap_err()
                .contains("dead")
        );
        assert!(deliveries("rule=", &clock).is_err());
    }
}
