//! Regular expressions, for the filter `regex_replace` and the test `matching`, charged by the
//! bytes each search reads.

use std::collections::BTreeMap;

use minijinja::{Error, State};
use regex::{Regex, RegexBuilder};
use regex_automata::{
    Input,
    hybrid::{dfa, regex as lazy},
    nfa::thompson,
};

use super::{super::cut, error::invalid_operation};
use crate::limits::TEMPLATE_STEPS_MAX;

const PATTERN_BYTES_MAX: usize = 1_000;
/// Maximum length of a searched text, in bytes.
const TEXT_BYTES_MAX: usize = 64 * 1024;
const COMPILED_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of an expression quoted in an error, in characters.
const QUOTED_CHARACTERS_MAX: usize = 100;
/// Memory for the states of a search, in bytes; a search that fills it repeatedly is aborted.
const STATES_BYTES_MAX: usize = 256 * 1024;
/// Number of times the memory for the states may be cleared before a search is aborted.
const STATES_CLEARED_MAX: usize = 2;
/// Steps for compiling an expression, in addition to those for its bytes.
const COMPILE_STEPS: usize = 500;
const COMPILE_BYTE_STEPS: usize = 50;
/// Bytes of a text that are read per step.
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
    /// Finds groups, and searches texts for which the automaton fails: those with word boundaries
    /// next to non-ASCII letters.
    groups: Regex,
}

pub(super) fn replace(
    state: &mut State<'_, '_>,
    text: &str,
    pattern: &str,
    with: &str,
) -> Result<String, Error> {
    apply(state, text, pattern, |expression, state| {
        expression.replace_all(state, text, with)
    })
}

pub(super) fn is_match(
    state: &mut State<'_, '_>,
    text: &str,
    pattern: &str,
) -> Result<bool, Error> {
    apply(state, text, pattern, |expression, state| {
        Ok(expression.find(state, text, 0)?.is_some())
    })
}

/// Returns the index and the error of the first invalid expression. Checks at most the
/// number of expressions that one rendering may compile.
pub(super) fn first_invalid<'a>(
    patterns: impl IntoIterator<Item = &'a str>,
) -> Option<(usize, String)> {
    let mut left = TEMPLATE_STEPS_MAX;
    let affordable = patterns.into_iter().map_while(|pattern| {
        left = left.checked_sub(compile_steps(pattern))?;
        Some(pattern)
    });
    let mut checked = affordable.map(|it| Expression::new(it).err()).enumerate();
    checked.find_map(|(at, error)| Some((at, error?)))
}

fn apply<T>(
    state: &mut State<'_, '_>,
    text: &str,
    pattern: &str,
    search: impl FnOnce(&mut Expression, &State<'_, '_>) -> Result<T, Error>,
) -> Result<T, Error> {
    if text.len() > TEXT_BYTES_MAX {
        let bytes = text.len();
        return Err(invalid_operation(format!(
            "the text to search is {bytes} bytes; at most {TEXT_BYTES_MAX} are allowed"
        )));
    }
    let known = state.get_or_insert_extension(Expressions::default());
    let mut expression = if let Some(known) = known.0.remove(pattern) {
        known
    } else {
        spend(state, compile_steps(pattern))?;
        Expression::new(pattern).map_err(invalid_operation)?
    };
    let found = search(&mut expression, state);
    let known = state.get_or_insert_extension(Expressions::default());
    known.0.insert(pattern.to_owned(), expression);
    found
}

fn compile_steps(pattern: &str) -> usize {
    COMPILE_STEPS + COMPILE_BYTE_STEPS * pattern.len()
}

fn spend(state: &State<'_, '_>, steps: usize) -> Result<(), Error> {
    state.consume_fuel(steps as u64)
}

impl Expression {
    fn new(pattern: &str) -> Result<Self, String> {
        let quoted = cut::truncate_chars(pattern, QUOTED_CHARACTERS_MAX);
        let too_large = || format!("the compiled regular expression `{quoted}` is too large");
        let bytes = pattern.len();
        if bytes > PATTERN_BYTES_MAX {
            return Err(format!(
                "the regular expression `{quoted}` is {bytes} bytes; the limit is \
                 {PATTERN_BYTES_MAX}"
            ));
        }
        let groups = RegexBuilder::new(pattern)
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(COMPILED_BYTES_MAX)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => too_large(),
                error => {
                    let text = error.to_string();
                    let reason = text.lines().last().unwrap_or_default();
                    let reason = reason.trim_start_matches("error: ");
                    format!("`{quoted}` is not a valid regular expression: {reason}")
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

    fn replace_all(
        &mut self,
        state: &State<'_, '_>,
        text: &str,
        with: &str,
    ) -> Result<String, Error> {
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
        let before = self.resources_used();
        let found = self
            .search
            .try_search(&mut self.cache, &Input::new(text).range(at..));
        let after = self.resources_used();
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
            Err(_given_up) => Err(invalid_operation(
                "the regular expression is too expensive for this text",
            )),
        }
    }

    fn resources_used(&self) -> ResourceUse {
        let (forward, reverse) = self.cache.as_parts();
        ResourceUse {
            read: forward.search_total_len() + reverse.search_total_len(),
            memory: forward.memory_usage() + reverse.memory_usage(),
            cleared: forward.clear_count() + reverse.clear_count(),
        }
    }
}

struct ResourceUse {
    /// Bytes read.
    read: usize,
    /// Memory of states, in bytes.
    memory: usize,
    cleared: usize,
}
