//! Deciding and committing: read, decide, apply, and re-evaluate when another client was faster.

use crate::{
    error::Error,
    store::{Changes, EngineError, Lane, LogPosition, Store},
};

/// How often a change is re-evaluated because what it rests on was changed meanwhile.
pub const TRIES_MAX: usize = 16;

/// Applies what `decide` decides, and answers with what it answers and the commit's place in the
/// change log; no place when there was nothing to change.
///
/// # Errors
/// Those of `decide` and of the store; [`Error::Aborted`] when others were faster every time.
///
/// # Cancel safety
/// A dropped call may still be carried out.
pub async fn commit<T, F>(
    store: &Store,
    lane: Lane,
    decide: impl Fn() -> F,
) -> Result<(T, Option<LogPosition>), Error>
where
    F: Future<Output = Result<(Changes, T), Error>>,
{
    for _ in 0..TRIES_MAX {
        let (changes, answer) = decide().await?;
        if changes.is_empty() {
            store.advance();
            return Ok((answer, None));
        }
        match store.apply(lane, changes).await {
            Ok(applied) => return Ok((answer, Some(applied.position))),
            Err(EngineError::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(EngineError::conflict().into())
}
