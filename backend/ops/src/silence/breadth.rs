//! Checks whether a silence covers more than its author is likely to intend.

use super::preview::SilencePreview;
use crate::{
    domain::{Clause, Query},
    error::{Error, Reason},
    limits::{SILENCE_COVERS_MAX, SILENCE_SHARE_FROM},
};

pub(super) fn breadth_problem(query: Option<&Query>, preview: &SilencePreview) -> Option<String> {
    let SilencePreview {
        covered_count: covered,
        open_count: open,
        ..
    } = preview;
    if query.is_some_and(|query| is_true_without_matches(&query.clause)) {
        let why = "its query also matches events without any fields";
        return Some(format!("{why}; it covers {covered} of {open} open events"));
    }
    if *covered > SILENCE_COVERS_MAX {
        return Some(format!(
            "it covers {covered} open events; the limit is {SILENCE_COVERS_MAX}"
        ));
    }
    if *open >= SILENCE_SHARE_FROM && covered * 2 > *open {
        return Some(format!(
            "it covers {covered} of {open} open events, more than half"
        ));
    }
    None
}

pub(super) fn reject_if_too_broad(
    query: Option<&Query>,
    preview: &SilencePreview,
) -> Result<(), Error> {
    match breadth_problem(query, preview) {
        None => Ok(()),
        Some(why) => Err(Error::Refused {
            reason: Reason::SilenceTooBroad,
            message: format!("{why}; narrow the query, or confirm with `allowBroad`"),
        }),
    }
}

/// Returns whether a clause is true if every comparison is false.
fn is_true_without_matches(clause: &Clause) -> bool {
    match clause {
        Clause::And(clauses) => clauses.iter().all(is_true_without_matches),
        Clause::Or(clauses) => clauses.iter().any(is_true_without_matches),
        Clause::Not(clause) => !is_true_without_matches(clause),
        _ => false,
    }
}
