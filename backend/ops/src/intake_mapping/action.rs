//! Maps a document to an action on a thread; no I/O.

use std::time::Duration;

use bellwether_proto::v1;
use jiff::SignedDuration;

use super::entry::EntryContext;
use crate::{
    clock::to_millis,
    domain::{MappedResponse, Name, name::NAME_CHARACTERS_MAX},
    error::Error,
    limits::{ACKNOWLEDGEMENT_MAX, ACKNOWLEDGEMENT_MIN, ANNOTATION_BYTES_MAX, SILENCE_LENGTH_MAX},
    template::{AnyTemplate, Escape, Variables, cut},
    wire::time::duration_from_ms,
};

/// An action of a receiver's user on a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadAction {
    /// The name of the kept value by which the thread is found; empty if it is found by its id.
    pub kept_name: String,
    /// The kept value or the id.
    pub thread: String,
    pub kind: ActionKind,
    /// The user; empty if the document does not name one.
    pub author: String,
    /// The note to add; empty if there is none.
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionKind {
    /// Acknowledges, for this time in milliseconds; `None` means unlimited.
    Acknowledge(Option<i64>),
    Unacknowledge,
    Close,
    Note,
    Assign(Name),
    /// Silences for this time in milliseconds.
    Silence(i64),
}

impl ThreadAction {
    pub fn to_wire(&self) -> v1::ThreadAction {
        let mut assignee = String::new();
        let (action, for_ms) = match &self.kind {
            ActionKind::Acknowledge(for_ms) => ("acknowledge", *for_ms),
            ActionKind::Unacknowledge => ("unacknowledge", None),
            ActionKind::Close => ("close", None),
            ActionKind::Note => ("note", None),
            ActionKind::Assign(name) => {
                assignee = name.to_string();
                ("assign", None)
            }
            ActionKind::Silence(for_ms) => ("silence", Some(*for_ms)),
        };
        let (thread_id, kept_value) = if self.kept_name.is_empty() {
            (self.thread.clone(), String::new())
        } else {
            (String::new(), self.thread.clone())
        };
        v1::ThreadAction {
            thread_id,
            kept_value,
            action: action.into(),
            author: self.author.clone(),
            note: self.note.clone(),
            duration: for_ms.map(duration_from_ms),
            assignee,
        }
    }
}

/// The parsed templates of a mapping to actions.
pub(super) struct PreparedAction<'a> {
    kept_name: &'a str,
    thread: AnyTemplate,
    action: AnyTemplate,
    author: AnyTemplate,
    note: AnyTemplate,
    duration: AnyTemplate,
    assignee: AnyTemplate,
}

impl<'a> PreparedAction<'a> {
    pub(super) fn new(response: &'a MappedResponse) -> Result<Self, Error> {
        let template = |source: &str| {
            let parsed = AnyTemplate::parse(response.template_language, source);
            parsed.map_err(|error| Error::invalid("mapping", error.to_string()))
        };
        Ok(Self {
            kept_name: &response.thread.kept_name,
            thread: template(&response.thread.template)?,
            action: template(&response.action)?,
            author: template(&response.author)?,
            note: template(&response.note)?,
            duration: template(&response.duration)?,
            assignee: template(&response.assignee)?,
        })
    }

    /// Maps an entry; `None` if its action is empty.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the action is unknown, or a part that it requires is invalid.
    pub(super) fn map(&self, entry: &mut EntryContext<'_>) -> Result<Option<ThreadAction>, Error> {
        let data = Variables::new(entry.data.clone());
        let mut fill = |field: &str, template: &AnyTemplate| {
            let filled = entry.render(field, |_, budget| {
                template.render(&data, Escape::None, budget)
            });
            Ok::<_, Error>(filled?.trim().to_owned())
        };
        let word = fill("response.action", &self.action)?.to_ascii_lowercase();
        let note = fill("response.note", &self.note)?;
        let kind = match word.as_str() {
            "" => return Ok(None),
            "acknowledge" => {
                let text = fill("response.duration", &self.duration)?;
                let bounds = [ACKNOWLEDGEMENT_MIN, ACKNOWLEDGEMENT_MAX];
                let is_limited = !text.is_empty();
                ActionKind::Acknowledge(
                    is_limited
                        .then(|| read_duration(&text, bounds))
                        .transpose()?,
                )
            }
            "unacknowledge" => ActionKind::Unacknowledge,
            "close" => ActionKind::Close,
            "note" if note.is_empty() => return Err(invalid("note", "is empty")),
            "note" => ActionKind::Note,
            "assign" => {
                let name = Name::parse(&fill("response.assignee", &self.assignee)?);
                ActionKind::Assign(name.map_err(|why| invalid("assignee", &why))?)
            }
            "silence" => {
                let text = fill("response.duration", &self.duration)?;
                let bounds = [Duration::from_secs(1), SILENCE_LENGTH_MAX];
                ActionKind::Silence(read_duration(&text, bounds)?)
            }
            other => {
                let other = cut::truncate_chars(other, NAME_CHARACTERS_MAX);
                let known = "one of acknowledge, unacknowledge, close, note, assign, silence";
                return Err(invalid("action", &format!("`{other}` is not {known}")));
            }
        };
        let author = fill("response.author", &self.author)?;
        Ok(Some(ThreadAction {
            kept_name: self.kept_name.to_owned(),
            thread: fill("response.thread", &self.thread)?,
            kind,
            author: cut::to_one_line(&author, NAME_CHARACTERS_MAX),
            note: cut::truncate_bytes(&note, ANNOTATION_BYTES_MAX),
        }))
    }
}

pub(super) fn invalid(field: &str, why: &str) -> Error {
    Error::invalid("body", format!("response.{field}: {why}"))
}

fn read_duration(text: &str, bounds: [Duration; 2]) -> Result<i64, Error> {
    let shown = cut::truncate_chars(text, NAME_CHARACTERS_MAX);
    let Ok(length) = text.parse::<SignedDuration>() else {
        let why = format!("`{shown}` is not a duration such as `90m` or `4h`");
        return Err(invalid("duration", &why));
    };
    let [least, most] = bounds.map(to_millis);
    let length_ms = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    if !(least..=most).contains(&length_ms) {
        let (least, most) = (least / 1_000, most / 1_000);
        let why = format!("is `{shown}`; expected {least} to {most} s");
        return Err(invalid("duration", &why));
    }
    Ok(length_ms)
}
