//! Adds, replaces and removes operators' notes.

use rand::{Rng as _, distr::Alphanumeric};

use crate::{
    commit::commit,
    decision_context::DecisionContext,
    domain::{Annotation, Name, Occurrence, OccurrenceId},
    edit::{Edits, OccurrenceTarget},
    error::Error,
    limits::{ANNOTATION_BYTES_MAX, ANNOTATIONS_MAX},
    store::Lane,
    tag_scope::check_event_owner,
};

const ID_CHARACTERS: usize = 20;

#[derive(Debug, Clone)]
pub struct AnnotationItem {
    pub target: OccurrenceTarget,
    /// Id of the note to replace; `None` adds a new one.
    pub annotation: Option<String>,
    /// Text of the note; an empty text removes it.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedAnnotation {
    pub occurrence: OccurrenceId,
    pub annotation: String,
}

/// Applies the items in order and in one commit, and returns a result for each item.
///
/// # Errors
/// Returns an error, without a change, if the store fails. Invalid items are reported in their own
/// results.
///
/// # Cancel safety
/// The changes may still be committed if the future is dropped.
pub async fn annotate(
    deciding: &DecisionContext,
    items: &[AnnotationItem],
    author: &Name,
) -> Result<Vec<Result<AddedAnnotation, Error>>, Error> {
    let targets: Vec<_> = items.iter().map(|item| item.target).collect();
    let decide = async || {
        let mut edits = Edits::read(&deciding.store, &targets).await?;
        let now_ms = deciding.clock.now_ms();
        let mut changes = deciding.store.new_changes();
        let mut answers = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            answers.push(match edits.get(at) {
                Some(occurrence) => check_event_owner(&mut changes, occurrence)
                    .and_then(|()| apply_annotation(occurrence, item, author, now_ms)),
                None => Err(item.target.not_found()),
            });
        }
        edits.write(&mut changes);
        Ok((changes, answers))
    };
    Ok(commit(&deciding.store, Lane::Admin, decide).await?.0)
}

fn apply_annotation(
    occurrence: &mut Occurrence,
    item: &AnnotationItem,
    author: &Name,
    now_ms: i64,
) -> Result<AddedAnnotation, Error> {
    if item.text.len() > ANNOTATION_BYTES_MAX {
        let bytes = item.text.len();
        let message = format!("is {bytes} bytes; the limit is {ANNOTATION_BYTES_MAX}");
        return Err(Error::invalid("annotation", message));
    }
    let id = occurrence.id();
    let notes = &mut occurrence.annotations;
    let Some(wanted) = &item.annotation else {
        if item.text.is_empty() {
            let message = "is required, unless `annotationId` names a note to remove";
            return Err(Error::invalid("annotation", message));
        }
        if notes.len() >= ANNOTATIONS_MAX {
            return Err(Error::FailedPrecondition(format!(
                "limit of {ANNOTATIONS_MAX} notes per occurrence reached"
            )));
        }
        let annotation = new_id();
        notes.push(Annotation {
            id: annotation.clone(),
            text: item.text.clone(),
            author: author.clone(),
            create_ms: now_ms,
            update_ms: now_ms,
        });
        return Ok(AddedAnnotation {
            occurrence: id,
            annotation,
        });
    };
    let Some(at) = notes.iter().position(|note| note.id == *wanted) else {
        return Err(Error::NotFound(format!(
            "the occurrence has no note `{wanted}`"
        )));
    };
    if item.text.is_empty() {
        notes.remove(at);
    } else if let Some(note) = notes.get_mut(at) {
        note.text.clone_from(&item.text);
        note.author = author.clone();
        note.update_ms = now_ms;
    }
    Ok(AddedAnnotation {
        occurrence: id,
        annotation: wanted.clone(),
    })
}

fn new_id() -> String {
    let letters = rand::rng().sample_iter(Alphanumeric);
    letters.take(ID_CHARACTERS).map(char::from).collect()
}

#[cfg(test)]
mod tests;
