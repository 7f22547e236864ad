//! Conversion between silences and Alertmanager's JSON.

use std::{borrow::Cow, collections::BTreeMap};

use bellwether_proto::{
    json::violation::quote_for_message,
    v1::{Clause, Query, Silence, SilenceSpan, clause::Kind, silence::State},
};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    format_time,
    matcher::{self, Matcher},
    parse_time, read_flag, read_matchers,
};
use crate::limits;

const CREATED_BY: &str = "created-by:";
const TAG_CHARS: usize = 100;
const NEVER: &str = "9999-12-31T23:59:59Z";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SilenceRequest {
    /// Id of the silence to change; empty for a new silence.
    #[serde(default)]
    pub(crate) id: Option<String>,
    matchers: Vec<RequestMatcher>,
    #[serde(deserialize_with = "deserialize_time")]
    starts_at: Timestamp,
    #[serde(deserialize_with = "deserialize_time")]
    ends_at: Timestamp,
    #[serde(default)]
    created_by: String,
    comment: String,
    /// `None` retains those of a stored silence.
    annotations: Option<BTreeMap<String, String>>,
}

/// The silences to list.
#[derive(Debug)]
pub(crate) struct SilenceQuery {
    matchers: Vec<Matcher>,
    active: bool,
    pending: bool,
    expired: bool,
}

impl SilenceQuery {
    pub(crate) fn read(pairs: &[(String, String)]) -> Result<Self, String> {
        Ok(Self {
            matchers: read_matchers(pairs, "filter")?,
            active: read_flag(pairs, "active")?,
            pending: read_flag(pairs, "pending")?,
            expired: read_flag(pairs, "expired")?,
        })
    }

    pub(crate) fn matches(&self, silence: &SilenceView) -> bool {
        let is_in_state = match silence.silence.state() {
            State::Active => self.active,
            State::Scheduled => self.pending,
            State::Expired | State::Unspecified => self.expired,
        };
        is_in_state && silence.matches(&self.matchers)
    }
}

fn deserialize_time<'de, D: Deserializer<'de>>(text: D) -> Result<Timestamp, D::Error> {
    let text = Cow::<str>::deserialize(text)?;
    parse_time(&text).ok_or_else(|| {
        let found = quote_for_message(&text);
        D::Error::custom(format!(
            "{found} is not a time such as `2026-01-31T08:00:00Z`"
        ))
    })
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestMatcher {
    name: String,
    value: String,
    #[serde(default)]
    is_regex: bool,
    is_equal: Option<bool>,
}

impl SilenceRequest {
    pub(crate) fn read(body: &[u8]) -> Result<Self, String> {
        let posted: Self = serde_json::from_slice(body)
            .map_err(|error| format!("the body is not a silence: {error}"))?;
        if posted.matchers.is_empty() {
            return Err("`matchers` requires at least one entry".to_owned());
        }
        if posted.matchers.len() > limits::MATCHERS {
            let (found, limit) = (posted.matchers.len(), limits::MATCHERS);
            return Err(format!(
                "`matchers` has {found} entries; the limit is {limit}"
            ));
        }
        if posted.comment.trim().is_empty() {
            return Err("`comment` is required".to_owned());
        }
        if posted.ends_at <= posted.starts_at {
            return Err("`endsAt` must be after `startsAt`".to_owned());
        }
        Ok(posted)
    }

    fn matchers(&self) -> Result<Vec<Matcher>, String> {
        let matchers = self.matchers.iter().map(|it| {
            let is_equal = it.is_equal.unwrap_or(true);
            Matcher::new(&it.name, &it.value, it.is_regex, is_equal)
        });
        matchers.collect()
    }

    pub(crate) fn to_new_silence(&self, name: String, now_ms: i64) -> Result<Silence, String> {
        if self.ends_at.as_millisecond() <= now_ms {
            return Err("`endsAt` has passed".to_owned());
        }
        let mut silence = Silence {
            name,
            query: Some(matchers_to_query(&self.matchers()?)?),
            span: Some(self.to_span(now_ms)),
            ..Silence::default()
        };
        self.set_description(&mut silence);
        Ok(silence)
    }

    /// Applies the request to a stored silence. Conditions without an equivalent matcher are
    /// retained if the matchers are unchanged.
    pub(crate) fn to_updated_silence(
        &self,
        mut silence: Silence,
        now_ms: i64,
    ) -> Result<Silence, String> {
        if silence.span.is_none() {
            let name = &silence.name;
            return Err(format!(
                "a calendar starts this silence; change it with PUT \
                 /v1/notification/silences/{name}"
            ));
        }
        let wanted = self.matchers()?;
        if wanted != silence_matchers(&silence) {
            silence.query = Some(matchers_to_query(&wanted)?);
            silence.rule_names.clear();
            silence.filter.clear();
        }
        let has_begun = silence.started_time.is_some();
        silence.span = Some(SilenceSpan {
            start_time: if has_begun {
                None
            } else {
                self.to_span(now_ms).start_time
            },
            ..self.to_span(now_ms)
        });
        self.set_description(&mut silence);
        Ok(silence)
    }

    fn set_description(&self, silence: &mut Silence) {
        self.comment.trim().clone_into(&mut silence.reason);
        if let Some(annotations) = &self.annotations {
            silence.annotations.clone_from(annotations);
        }
        silence.tags.retain(|tag| !tag.starts_with(CREATED_BY));
        if !self.created_by.trim().is_empty() {
            let tag = format!("{CREATED_BY}{}", self.created_by.trim());
            silence.tags.push(tag.chars().take(TAG_CHARS).collect());
        }
    }

    fn to_span(&self, now_ms: i64) -> SilenceSpan {
        let is_ahead = self.starts_at.as_millisecond() > now_ms;
        SilenceSpan {
            start_time: is_ahead.then(|| to_prost(self.starts_at)),
            end_time: Some(to_prost(self.ends_at)),
        }
    }
}

fn to_prost(at: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: at.as_second(),
        nanos: at.subsec_nanosecond(),
    }
}

fn matchers_to_query(matchers: &[Matcher]) -> Result<Query, String> {
    let clauses = matchers.iter().map(Matcher::to_clause);
    let clauses: Vec<_> = clauses
        .filter_map(Result::transpose)
        .collect::<Result<_, _>>()?;
    match matcher::all_of(clauses) {
        None => Err("at least one matcher must exclude some events".to_owned()),
        clause => Ok(Query { clause }),
    }
}

#[derive(Debug)]
pub(crate) struct SilenceView {
    silence: Silence,
    matchers: Vec<Matcher>,
}

impl SilenceView {
    pub(crate) fn from_silence(silence: Silence) -> Self {
        let matchers = silence_matchers(&silence);
        Self { silence, matchers }
    }

    /// Whether the silence passes the filter. Each matcher of the filter must equal a matcher of
    /// the silence or match the label value that the silence requires. That value is empty if no
    /// matcher of the silence has the label.
    fn matches(&self, filter: &[Matcher]) -> bool {
        filter.iter().all(|wanted| {
            let mut own = self
                .matchers
                .iter()
                .filter(|it| it.name == wanted.name)
                .peekable();
            if own.peek().is_none() {
                return wanted.matches(&BTreeMap::new());
            }
            own.any(|it| {
                let labels = || BTreeMap::from([(it.name.clone(), it.value.clone())]);
                it == wanted || it.is_equal && !it.is_regex() && wanted.matches(&labels())
            })
        })
    }

    /// Returns the sort key: active silences by end, then pending ones by start, then expired ones,
    /// newest first.
    pub(crate) fn sort_key(&self) -> (u8, i64) {
        let seconds =
            |time: &Option<prost_types::Timestamp>| time.map_or(i64::MAX, |it| it.seconds);
        match self.silence.state() {
            State::Active => (0, seconds(&self.silence.ends_time)),
            State::Scheduled => (1, seconds(&self.silence.next_start_time)),
            _ => (2, seconds(&self.silence.ends_time).saturating_neg()),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let silence = &self.silence;
        let moment = |time: Option<prost_types::Timestamp>| {
            let time = time?;
            let nanos = i64::from(time.nanos / 1_000_000);
            Some(format_time(
                time.seconds.checked_mul(1_000)?.checked_add(nanos)?,
            ))
        };
        let span = silence.span.unwrap_or_default();
        let created = silence.create_time;
        let starts = silence.started_time.or(silence.next_start_time);
        let state = match silence.state() {
            State::Active => "active",
            State::Scheduled => "pending",
            State::Expired | State::Unspecified => "expired",
        };
        json!({
            "id": parse_id(&silence.name),
            "status": {"state": state},
            "updatedAt": moment(silence.update_time.or(created)).unwrap_or_default(),
            "startsAt": moment(starts.or(span.start_time).or(created)).unwrap_or_default(),
            "endsAt": moment(silence.ends_time.or(span.end_time)).unwrap_or_else(|| NEVER.to_owned()),
            "createdBy": creator_name(silence),
            "comment": silence.reason,
            "annotations": silence.annotations,
            "matchers": self.matchers.iter().map(Matcher::to_json).collect::<Vec<_>>(),
        })
    }
}

fn creator_name(silence: &Silence) -> &str {
    let mut tags = silence.tags.iter();
    let tag = tags.find_map(|tag| tag.strip_prefix(CREATED_BY));
    tag.unwrap_or(&silence.author)
}

/// Returns the matchers of a silence. A condition without equivalent matchers becomes a matcher
/// named `filter` with the text of the condition; rules become a matcher named `rule`.
fn silence_matchers(silence: &Silence) -> Vec<Matcher> {
    let clause = silence.query.as_ref().and_then(|it| it.clause.as_ref());
    let mut found = match clause {
        None => Vec::new(),
        Some(clause) => {
            let clauses: &[Clause] = match &clause.kind {
                Some(Kind::And(and)) => &and.clauses,
                _ => std::slice::from_ref(clause),
            };
            let matchers: Option<Vec<_>> = clauses.iter().map(Matcher::from_clause).collect();
            matchers.unwrap_or_else(|| matcher_list("filter", &silence.filter, false))
        }
    };
    let is_several = silence.rule_names.len() > 1;
    let names: Vec<_> = silence
        .rule_names
        .iter()
        .map(|name| {
            if is_several {
                regex::escape(name)
            } else {
                name.clone()
            }
        })
        .collect();
    if !names.is_empty() {
        found.extend(matcher_list("rule", &names.join("|"), is_several));
    }
    found
}

fn matcher_list(name: &str, value: &str, is_regex: bool) -> Vec<Matcher> {
    Matcher::new(name, value, is_regex, true)
        .into_iter()
        .collect()
}

/// Returns the id of a silence: its name if it is a UUID, else a UUID derived from it.
pub(crate) fn parse_id(name: &str) -> String {
    if is_uuid(name) {
        return name.to_owned();
    }
    let hash = Sha256::digest(name.as_bytes());
    to_uuid(
        hash.iter()
            .take(16)
            .fold(0, |all, byte| all << 8 | u128::from(*byte)),
        8,
    )
}

pub(crate) fn generate_name() -> String {
    to_uuid(rand::random(), 4)
}

fn to_uuid(bits: u128, version: u128) -> String {
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | version << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_digit() || ('a'..='f').contains(&c),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_id_is_a_stable_uuid() {
        for name in ["db-patch", "", "a b", &generate_name()] {
            assert!(is_uuid(&parse_id(name)), "{name}: {}", parse_id(name));
            assert_eq!(parse_id(name), parse_id(name));
        }
        let fresh = generate_name();
        assert_eq!(parse_id(&fresh), fresh);
        assert_ne!(parse_id("a"), parse_id("b"));
        assert!(!is_uuid("0123456789abcdef0123456789abcdef0123"));
    }

    #[test]
    fn silences_are_filtered_by_their_matchers() {
        let (plain, not, regex) = ("host=db-1", "host!=db-1", "host=~\"db-.*\"");
        let table: [(&[&str], &str, bool); 12] = [
            (&[plain], plain, true),
            (&[plain], regex, true),
            (&[plain], not, false),
            (&[plain], "host!=db-2", true),
            (&[not], not, true),
            (&[not], plain, false),
            (&[regex], regex, true),
            (&[regex], "host=\"db-.*\"", false),
            (&[regex, plain], plain, true),
            (&["zone=a"], plain, false),
            (&["zone=a"], not, true),
            (&["zone=a"], "host=", true),
        ];
        for (own, filter, expected) in table {
            let matchers = own.iter().map(|it| Matcher::parse(it).unwrap());
            let shown = SilenceView {
                silence: Silence::default(),
                matchers: matchers.collect(),
            };
            let filter = [Matcher::parse(filter).unwrap()];
            assert_eq!(shown.matches(&filter), expected, "{own:?} {filter:?}");
        }
    }
}
