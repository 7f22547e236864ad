//! What operators type as a filter: words and comparisons, read into what the service is asked.

mod moment;

pub(crate) use self::moment::Clock;
use bellwether_proto::{
    filter::{self, Fault},
    v1::{Clause, DeliveryFilter},
};
use jiff::Timestamp;

use crate::data::{DELIVERY_STATES, DeliveryState, Word, timestamp};

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

impl Default for Reader {
    fn default() -> Self {
        Self {
            clock: Clock::new(
                Timestamp::now().as_millisecond(),
                jiff::tz::TimeZone::system(),
            ),
            seen: Vec::new(),
        }
    }
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

/// Parts at spaces; quotes keep spaces together and are dropped.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for char in text.chars() {
        match char {
            '"' => quoted = !quoted,
            char if char.is_whitespace() && !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            char => word.push(char),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// What has not ended, as a state in a filter.
const WAITING: &str = "waiting";

/// The states that the list of deliveries has tabs for, as they stand in its filter.
pub(crate) const DELIVERY_TABS: [&str; 4] = ["all", WAITING, "dead", "delivered"];

/// Which of these tabs a filter is.
pub(crate) fn delivery_tab(text: &str) -> Option<usize> {
    let words = words(text);
    let mut states = words.iter().filter_map(|word| word.strip_prefix("state="));
    match (states.next(), states.next()) {
        (None, _) => Some(0),
        (Some(state), None) => DELIVERY_TABS.iter().position(|tab| *tab == state),
        _ => None,
    }
}

/// A filter of deliveries with the state of a tab instead of its own.
pub(crate) fn with_delivery_tab(text: &str, tab: usize) -> String {
    let words = words(text).into_iter();
    let rest = words.filter(|word| !word.starts_with("state="));
    let state = DELIVERY_TABS.get(tab).filter(|_| tab > 0);
    let state = state.map(|state| format!("state={state}"));
    let quoted = rest.map(|word| match word.split_once('=') {
        Some((name, value)) => format!("{name}={}", filter::value(value)),
        None => word,
    });
    let words: Vec<String> = state.into_iter().chain(quoted).collect();
    words.join(" ")
}

/// Reads a filter of deliveries: `state=dead destination=pager rule=… event=… since=2h until=09:30`.
///
/// # Errors
/// A sentence for people when a part is not one of these.
pub(crate) fn deliveries(text: &str, clock: &Clock) -> Result<DeliveryFilter, String> {
    let mut filter = DeliveryFilter::default();
    let (mut start_ms, mut end_ms) = (None, None);
    for word in words(text) {
        match word.split_once('=') {
            Some(("state", WAITING)) => {
                let waiting = [
                    DeliveryState::Pending,
                    DeliveryState::Leased,
                    DeliveryState::Retry,
                ];
                filter.states.extend(waiting.map(i32::from));
            }
            Some(("state", value)) => {
                let state = DELIVERY_STATES
                    .into_iter()
                    .find(|state| state.word() == value);
                let state = state.ok_or_else(|| {
                    let known = DELIVERY_STATES.map(Word::word).join(", ");
                    format!("`{value}` is not a state; there are {WAITING}, {known}")
                })?;
                filter.states.push(state.into());
            }
            Some(("destination", value)) => filter.destination_names.push(value.to_owned()),
            Some(("rule", value)) => filter.rule_names.push(value.to_owned()),
            Some(("event", value)) => value.clone_into(&mut filter.event_id),
            Some(("since", value)) => start_ms = Some(clock.read(value)?),
            Some(("until", value)) => end_ms = Some(clock.read(value)?),
            _ => {
                return Err(format!(
                    "`{word}`: write `state=dead`, `destination=NAME`, `rule=NAME`, `event=ID`, \
                     `since=2h` or `until=2h`"
                ));
            }
        }
    }
    filter.start = start_ms.map(timestamp);
    filter.end = end_ms.map(timestamp);
    if let (Some(start), Some(end)) = (start_ms, end_ms)
        && start >= end
    {
        return Err("`since` has to be earlier than `until`".to_owned());
    }
    Ok(filter)
}

/// A filter of deliveries with moments in place of spans of time, so that every page and every action
/// means the same deliveries however long it takes.
pub(crate) fn settled(text: &str, clock: &Clock) -> String {
    let words = words(text);
    let spans = |word: &String| word.starts_with("since=") || word.starts_with("until=");
    if !words.iter().any(spans) {
        return text.to_owned();
    }
    let settle = |word: String| match word.split_once('=') {
        Some((name @ ("since" | "until"), value)) => match clock.read(value) {
            Ok(ms) => format!("{name}={}", clock.write(ms)),
            Err(_) => word,
        },
        Some((name, value)) => format!("{name}={}", filter::value(value)),
        None => word,
    };
    let words: Vec<String> = words.into_iter().map(settle).collect();
    words.join(" ")
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
    fn deliveries_are_filtered_by_state_and_names() {
        let clock = Clock::new(0, jiff::tz::TimeZone::UTC);
        let filter = deliveries("state=dead state=retry destination=\"my pager\"", &clock).unwrap();
        let states = [DeliveryState::Dead, DeliveryState::Retry];
        assert_eq!(filter.states, states.map(i32::from));
        assert_eq!(filter.destination_names, ["my pager"]);
        assert!(
            deliveries("state=ded", &clock)
                .unwrap_err()
                .contains("dead")
        );
        assert!(deliveries("foo", &clock).is_err());
    }
}
