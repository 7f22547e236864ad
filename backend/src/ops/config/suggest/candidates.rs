//! Which changes may send less, by what happened in the last days.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bellwether_proto::v1::config_document::Resource as Definition;

use super::{SuggestionKind, changed, many};
use crate::{
    domain::{
        Clause, CloseReason, Grouping, Inhibition, Literal, Name, Notified, Occurrence, Query,
        RecordId, Rule, inhibition::EqualFields, is_own,
    },
    limits::SUGGESTION_SAVES_MIN,
    ops::{replay::Timeline, wire::Shows as _},
    scan,
};

/// Delays that are tried, in milliseconds, the shortest first.
const DELAYS_MS: [i64; 5] = [60_000, 120_000, 300_000, 600_000, 900_000];
/// How a suggested group waits and repeats, in milliseconds.
const GROUP_WAIT_MS: i64 = 30_000;
const GROUP_INTERVAL_MS: i64 = 300_000;
/// How long after its cause an effect begins at the most, in milliseconds.
const FOLLOWS_MS: i64 = 60_000;
/// How many of ten events follow a cause at least.
const FOLLOWS_OF_TEN: usize = 9;
/// How many causes that opened within that time are looked at for one effect.
const CAUSES_MAX: usize = 50;
/// How long a suggested inhibition holds on, in milliseconds.
const LINGER_MS: i64 = 60_000;
/// Letters of each event's name in the name of an inhibition.
const NAME_MAX: usize = 40;

/// A change whose effect is to be computed.
pub(super) struct Candidate {
    pub(super) kind: SuggestionKind,
    pub(super) name: String,
    pub(super) evidence: String,
    pub(super) draft: Definition,
    /// About how many messages it saves.
    pub(super) saves: usize,
}

/// What rules notified of in the last days.
pub(super) struct History<'a> {
    pub(super) rules: Vec<Rule>,
    pub(super) occurrences: Vec<&'a Occurrence>,
    since_ms: i64,
}

impl<'a> History<'a> {
    pub(super) fn new(timeline: &'a Timeline, rules: Vec<Rule>) -> Self {
        let mut occurrences: Vec<_> = timeline.occurrences.values().collect();
        occurrences.sort_by_key(|it| (opened_ms(it), it.key));
        Self {
            rules,
            occurrences,
            since_ms: timeline.since_ms,
        }
    }

    /// All but those that counters show.
    pub(super) async fn candidates(&self, inhibitions: &[Inhibition]) -> Vec<Candidate> {
        let mut notified: HashMap<RecordId, Vec<(&Occurrence, i64)>> = HashMap::new();
        for occurrence in &self.occurrences {
            for entry in &occurrence.notified {
                let opened_ms = entry.opened_ms().filter(|it| *it >= self.since_ms);
                if let Some(at_ms) = opened_ms {
                    let of_rule = notified.entry(entry.rule).or_default();
                    of_rule.push((occurrence, at_ms));
                }
            }
        }
        let mut found = Vec::new();
        for rule in self.rules.iter().filter(|it| it.enabled && !it.shadow) {
            let notified = notified.remove(&rule.id).unwrap_or_default();
            if notified.len() >= SUGGESTION_SAVES_MIN {
                found.extend(delay(rule, &notified));
                found.extend(group(rule, &notified));
            }
        }
        found.extend(self.inhibitions(inhibitions).await);
        found
    }

    /// Inhibitions of what follows something else.
    async fn inhibitions(&self, stored: &[Inhibition]) -> Vec<Candidate> {
        let is_notified = |it: &Notified| it.opened_ms().is_some_and(|at| at >= self.since_ms);
        let known = self.occurrences.iter();
        let known = known.filter(|it| opened_ms(it) >= self.since_ms && !is_own(&it.dimensions));
        let mut by_value: HashMap<(&str, &str), Vec<&Occurrence>> = HashMap::new();
        let mut notified: BTreeMap<&str, usize> = BTreeMap::new();
        let mut follows: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
        for effect in known {
            scan::turn().await;
            let is_counted = effect.notified.iter().any(is_notified);
            if is_counted {
                *notified.entry(&effect.name).or_default() += 1;
            }
            for (key, value) in &effect.dimensions {
                let before = by_value.entry((key, value)).or_default();
                if is_counted {
                    for cause in causes(before, effect) {
                        *follows.entry((cause, &effect.name, key)).or_default() += 1;
                    }
                }
                before.push(effect);
            }
        }
        let is_often = |(pair, count): &((&str, &str, &str), usize)| {
            let all = notified.get(pair.1).copied().unwrap_or_default();
            *count >= SUGGESTION_SAVES_MIN && *count * 10 >= all * FOLLOWS_OF_TEN
        };
        let mut often: Vec<_> = follows.into_iter().filter(is_often).collect();
        often.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut taken = BTreeSet::new();
        let mut found = Vec::new();
        for ((cause, effect, key), count) in often {
            // One field and one direction of a pair are enough.
            if taken.contains(&(cause, effect)) || taken.contains(&(effect, cause)) {
                continue;
            }
            taken.insert((cause, effect));
            let all = notified.get(effect).copied().unwrap_or_default();
            let is_stored = |it: &Inhibition| {
                it.source.clause == of_name(cause).clause
                    && it.target.clause == of_name(effect).clause
            };
            if let Some(name) = name_of(cause, effect).filter(|_| !stored.iter().any(is_stored)) {
                found.push(inhibition(&name, (cause, effect, key), (count, all)));
            }
        }
        found
    }
}

/// When an occurrence was opened, in milliseconds since 1970.
fn opened_ms(occurrence: &Occurrence) -> i64 {
    let opened = occurrence.history.first().filter(|it| it.from.is_empty());
    opened.map_or(occurrence.start_ms, |it| it.at_ms)
}

/// The names of other events that opened shortly before this and were open then, each once.
fn causes<'a>(before: &[&'a Occurrence], effect: &Occurrence) -> BTreeSet<&'a str> {
    let at_ms = opened_ms(effect);
    let lately = before.iter().rev().take(CAUSES_MAX);
    let lately = lately.take_while(|it| at_ms - opened_ms(it) <= FOLLOWS_MS);
    let open = lately.filter(|it| it.close.is_none_or(|close| close.at_ms > at_ms));
    let others = open.filter(|it| it.name != effect.name);
    others.map(|it| it.name.as_str()).collect()
}

/// A delay within which most of what a rule notified of was closed by its sender.
fn delay(rule: &Rule, notified: &[(&Occurrence, i64)]) -> Option<Candidate> {
    if rule.delay_ms > 0 || rule.group.is_some() {
        return None;
    }
    let closed_within = |delay_ms: i64| {
        let is_closed = |(occurrence, at_ms): &&(&Occurrence, i64)| {
            let close = occurrence
                .close
                .filter(|it| it.reason == CloseReason::Sender);
            close.is_some_and(|it| it.at_ms - at_ms < delay_ms)
        };
        notified.iter().filter(is_closed).count()
    };
    let counted = DELAYS_MS.map(|delay_ms| (delay_ms, closed_within(delay_ms)));
    let mut counted = counted.into_iter();
    let (delay_ms, count) = counted.find(|(_, count)| count * 2 >= notified.len())?;
    let (all, minutes) = (notified.len(), delay_ms / 60_000);
    Some(Candidate {
        kind: SuggestionKind::Delay,
        name: rule.name.to_string(),
        evidence: format!(
            "{count} of {all} occurrences that rule `{}` notified of were closed by their sender \
             within {minutes} min",
            rule.name
        ),
        draft: changed(rule, |it| it.delay_ms = delay_ms),
        saves: count * rule.destination_names.len().max(1),
    })
}

/// The field by which what a rule notified of makes the fewest groups.
fn group(rule: &Rule, notified: &[(&Occurrence, i64)]) -> Option<Candidate> {
    if rule.group.is_some() {
        return None;
    }
    let all = notified.len();
    let mut fields: BTreeMap<&str, usize> = BTreeMap::new();
    for (occurrence, _) in notified {
        for key in occurrence.dimensions.keys() {
            *fields.entry(key).or_default() += 1;
        }
    }
    fields.retain(|_, count| *count == all);
    let by_dimension = fields.into_keys().map(|key| {
        let value = move |it: &Occurrence| it.dimensions.get(key).cloned().unwrap_or_default();
        (format!("dimensions.{key}"), groups(notified, value))
    });
    let by_name = ("name".to_owned(), groups(notified, |it| it.name.clone()));
    let all_fields = std::iter::once(by_name).chain(by_dimension);
    // Of those that make as few, the one with the most values keeps most apart.
    let best = all_fields.min_by_key(|(_, (count, values))| (*count, std::cmp::Reverse(*values)));
    let (field, (count, _)) = best?;
    if count * 2 > all {
        return None;
    }
    let grouping = Grouping {
        by: vec![field.clone()],
        wait_ms: GROUP_WAIT_MS,
        interval_ms: GROUP_INTERVAL_MS,
    };
    Some(Candidate {
        kind: SuggestionKind::Group,
        name: rule.name.to_string(),
        evidence: format!(
            "{all} occurrences that rule `{}` notified of came in {} of 5 min with the same `{field}`",
            rule.name,
            many(count, "cluster")
        ),
        draft: changed(rule, |it| it.group = Some(grouping)),
        saves: (all - count) * rule.destination_names.len().max(1),
    })
}

/// How many groups notifications make by a value, and how many values there are.
fn groups(
    notified: &[(&Occurrence, i64)],
    value: impl Fn(&Occurrence) -> String,
) -> (usize, usize) {
    let mut by_value: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (occurrence, at_ms) in notified {
        by_value.entry(value(occurrence)).or_default().push(*at_ms);
    }
    let values = by_value.len();
    let mut count = 0;
    for mut times in by_value.into_values() {
        times.sort_unstable();
        let mut last_ms = i64::MIN;
        for at_ms in times {
            if at_ms.saturating_sub(last_ms) >= GROUP_INTERVAL_MS {
                count += 1;
                last_ms = at_ms;
            }
        }
    }
    (count, values)
}

fn of_name(name: &str) -> Query {
    Query {
        clause: Clause::Equals("name".into(), Literal::Text(name.into())),
    }
}

fn name_of(cause: &str, effect: &str) -> Option<Name> {
    let plain = |text: &str| {
        let letters = text.chars().map(|it| match it {
            it if it.is_ascii_alphanumeric() => it,
            _ => '-',
        });
        letters.take(NAME_MAX).collect::<String>()
    };
    Name::parse(&format!("{}-over-{}", plain(cause), plain(effect))).ok()
}

fn inhibition(
    name: &Name,
    (cause, effect, key): (&str, &str, &str),
    (count, all): (usize, usize),
) -> Candidate {
    let field = format!("dimensions.{key}");
    let inhibition = Inhibition {
        id: RecordId::from_parts(0, 0),
        name: name.clone(),
        description: format!("Events named {effect} follow events named {cause}"),
        tags: Vec::new(),
        enabled: true,
        source: of_name(cause),
        target: of_name(effect),
        equal: vec![EqualFields {
            source: field.clone(),
            target: field,
        }],
        linger_ms: LINGER_MS,
        counted_revision: 0,
        revision: 0,
        create_ms: 0,
        update_ms: 0,
    };
    let mut draft = bellwether_proto::v1::Inhibition::of(inhibition);
    draft.etag.clear();
    (draft.create_time, draft.update_time) = (None, None);
    Candidate {
        kind: SuggestionKind::Inhibition,
        name: name.to_string(),
        evidence: format!(
            "{count} of {all} notified occurrences of `{effect}` opened within 60 s of an open \
             `{cause}` with the same `{key}`"
        ),
        draft: Definition::Inhibition(draft),
        saves: count,
    }
}
