//! Writing, replacing and removing operators' notes.

use rand::{Rng as _, distr::Alphanumeric};

use crate::{
    domain::{Annotation, Name, Occurrence, OccurrenceId},
    error::Error,
    limits::{ANNOTATION_BYTES_MAX, ANNOTATIONS_MAX},
    ops::{
        commit::commit,
        deciding::Deciding,
        edit::{Edits, OccurrenceTarget},
        tag_scope::own_event,
    },
    store::Lane,
};

/// Characters of a note's id.
const ID_CHARACTERS: usize = 20;

/// One note to write, replace or remove.
#[derive(Debug, Clone)]
pub struct AnnotationItem {
    /// The occurrence.
    pub target: OccurrenceTarget,
    /// The note to replace; none writes a new one.
    pub annotation: Option<String>,
    /// The text; empty removes the note.
    pub text: String,
}

/// Where a note was written or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotated {
    /// The occurrence.
    pub occurrence: OccurrenceId,
    /// The note.
    pub annotation: String,
}

/// Carries items out in order and in one commit; answers what happened to each. What is wrong with
/// an item is that item's error.
///
/// # Errors
/// Those of the store: then nothing was changed.
///
/// # Cancel safety
/// A dropped call may still be carried out.
pub async fn annotate(
    deciding: &Deciding,
    items: &[AnnotationItem],
    author: &Name,
) -> Result<Vec<Result<Annotated, Error>>, Error> {
    let targets: Vec<_> = items.iter().map(|item| item.target).collect();
    let decide = async || {
        let mut edits = Edits::read(&deciding.store, &targets).await?;
        let now_ms = deciding.clock.now_ms();
        let mut changes = deciding.store.changes();
        let mut answers = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            answers.push(match edits.get(at) {
                Some(occurrence) => own_event(&mut changes, occurrence)
                    .and_then(|()| carry_out(occurrence, item, author, now_ms)),
                None => Err(item.target.not_found()),
            });
        }
        edits.write(&mut changes);
        Ok((changes, answers))
    };
    Ok(commit(&deciding.store, Lane::Admin, decide).await?.0)
}

fn carry_out(
    occurrence: &mut Occurrence,
    item: &AnnotationItem,
    author: &Name,
    now_ms: i64,
) -> Result<Annotated, Error> {
    if item.text.len() > ANNOTATION_BYTES_MAX {
        let bytes = item.text.len();
        let fault = format!("has {bytes} bytes; at most {ANNOTATION_BYTES_MAX} are kept");
        return Err(Error::invalid("annotation", fault));
    }
    let id = occurrence.id();
    let notes = &mut occurrence.annotations;
    let Some(wanted) = &item.annotation else {
        if item.text.is_empty() {
            let fault = "is required; an empty text removes the note that `annotationId` names";
            return Err(Error::invalid("annotation", fault));
        }
        if notes.len() >= ANNOTATIONS_MAX {
            return Err(Error::FailedPrecondition(format!(
                "the occurrence has {ANNOTATIONS_MAX} notes, the maximum"
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
        return Ok(Annotated {
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
    Ok(Annotated {
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
