//! The filter `regex_replace`, charged by the bytes each search reads.

use std::collections::BTreeMap;

use minijinja::{Error, State};
use regex::{Regex, RegexBuilder};
use regex_automata::{
    Input,
    hybrid::{dfa, regex as lazy},
    nfa::thompson,
};

use super::fault::wrong;

const PATTERN_BYTES_MAX: usize = 1_000;
/// Maximum length of a searched text, in bytes.
const TEXT_BYTES_MAX: usize = 64 * 1024;
const COMPILED_BYTES_MAX: usize = 64 * 1024;
/// Memory for the states of a search, in bytes; a search that fills it repeatedly is aborted.
const STATES_BYTES_MAX: usize = 256 * 1024;
/// How often that memory may be cleared before a search is aborted.
const STATES_CLEARED_MAX: usize = 2;
/// Steps for compiling, plus those per byte of the expression.
const COMPILE_STEPS: usize = 500;
const COMPILE_BYTE_STEPS: usize = 50;
/// Bytes of a text per step each time they are read.
const READ_STEP_BYTES: usize = 16;
/// Bytes of new states per step.
const STATE_STEP_BYTES: usize = 64;
/// Steps per byte when searching for groups, which may visit all states of the expression.
const GROUPS_STEPS: usize = 16;

/// The regular expressions of one rendering, each compiled once.
#[derive(Default)]
struct Expressions(BTreeMap<String, Expression>);

struct Expression {
    search: lazy::Regex,
    cache: lazy::Cache,
    /// Finds groups, and reads texts that the automaton cannot: word boundaries next to non-ASCII
    /// letters.
    groups: Regex,
}

/// Replaces the matches of a regular expression in a text.
pub(super) fn replace(
    state: &mut State<'_, '_>,
    text: &str,
    pattern: &str,
    with: &str,
) -> Result<String, Error> {
    for (what, bytes, max) in [
        ("text", text.len(), TEXT_BYTES_MAX),
        ("regular expression", pattern.len(), PATTERN_BYTES_MAX),
    ] {
        if bytes > max {
            return Err(wrong(format!(
                "regex_replace: the {what} has {bytes} bytes; at most {max} are allowed"
            )));
        }
    }
    let known = state.get_or_insert_extension(Expressions::default());
    let mut expression = if let Some(known) = known.0.remove(pattern) {
        known
    } else {
        spend(state, COMPILE_STEPS + COMPILE_BYTE_STEPS * pattern.len())?;
        Expression::new(pattern)?
    };
    let replaced = expression.replaced(state, text, with);
    let known = state.get_or_insert_extension(Expressions::default());
    known.0.insert(pattern.to_owned(), expression);
    replaced
}

fn spend(state: &State<'_, '_>, steps: usize) -> Result<(), Error> {
    state.consume_fuel(steps as u64)
}

impl Expression {
    fn new(pattern: &str) -> Result<Self, Error> {
        let groups = RegexBuilder::new(pattern)
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(COMPILED_BYTES_MAX)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => too_large(),
                error => {
                    let text = error.to_string();
                    let reason = text.lines().last().unwrap_or_default();
                    wrong(format!(
                        "regex_replace: invalid regular expression: {reason}"
                    ))
                }
            })?;
        let states = dfa::Config::new()
            .cache_capacity(STATES_BYTES_MAX)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(STATES_CLEARED_MAX))
            .unicode_word_boundary(true);
        let compiled = thompson::Config::new().nfa_size_limit(Some(COMPILED_BYTES_MAX));
        let search = lazy::Regex::builder()
            .thompson(compiled)
            .dfa(states)
            .build(pattern)
            .map_err(|_error| too_large())?;
        Ok(Self {
            cache: search.create_cache(),
            search,
            groups,
        })
    }

    fn replaced(&mut self, state: &State<'_, '_>, text: &str, with: &str) -> Result<String, Error> {
        let has_groups = with.contains('$');
        let (mut replaced, mut copied, mut at, mut ended) = (String::new(), 0, 0, None);
        while at <= text.len() {
            let Some((start, end)) = self.find(state, text, at)? else {
                break;
            };
            // An empty match right after another is ignored; the search continues after the next
            // character.
            let next = text[end..].chars().next().map_or(1, char::len_utf8);
            at = if start == end { end + next } else { end };
            if start == end && ended == Some(end) {
                continue;
            }
            ended = Some(end);
            replaced.push_str(&text[copied..start]);
            copied = end;
            if !has_groups {
                spend(state, with.len() / READ_STEP_BYTES)?;
                replaced.push_str(with);
                continue;
            }
            spend(state, 1 + (end - start) * GROUPS_STEPS)?;
            if let Some(found) = self.groups.captures_at(text, start) {
                let before = replaced.len();
                found.expand(with, &mut replaced);
                spend(
                    state,
                    (with.len() + replaced.len() - before) / READ_STEP_BYTES,
                )?;
            }
        }
        replaced.push_str(&text[copied..]);
        Ok(replaced)
    }

    /// Returns the first match from a position on, charging for each byte read.
    fn find(
        &mut self,
        state: &State<'_, '_>,
        text: &str,
        at: usize,
    ) -> Result<Option<(usize, usize)>, Error> {
        let left = text.len() - at;
        let before = self.used();
        let found = self
            .search
            .try_search(&mut self.cache, &Input::new(text).range(at..));
        let after = self.used();
        let (read, made) = if before.cleared == after.cleared {
            let made = after.memory.saturating_sub(before.memory);
            (after.read.saturating_sub(before.read), made)
        } else {
            (2 * left, 2 * STATES_BYTES_MAX)
        };
        spend(state, 1 + read / READ_STEP_BYTES + made / STATE_STEP_BYTES)?;
        match found {
            Ok(found) => Ok(found.map(|it| (it.start(), it.end()))),
            Err(error) if matches!(error.kind(), regex_automata::MatchErrorKind::Quit { .. }) => {
                spend(state, 1 + left * GROUPS_STEPS)?;
                let found = self.groups.find_at(text, at);
                Ok(found.map(|it| (it.start(), it.end())))
            }
            Err(_given_up) => Err(wrong(
                "regex_replace: the regular expression is too costly for this text",
            )),
        }
    }

    fn used(&self) -> Used {
        let (forward, reverse) = self.cache.as_parts();
        Used {
            read: forward.search_total_len() + reverse.search_total_len(),
            memory: forward.memory_usage() + reverse.memory_usage(),
            cleared: forward.clear_count() + reverse.clear_count(),
        }
    }
}

struct Used {
    /// Bytes read.
    read: usize,
    /// Memory of states, in bytes.
    memory: usize,
    /// How often the states were cleared.
    cleared: usize,
}

fn too_large() -> Error {
    wrong("regex_replace: the compiled regular expression is too large")
}
