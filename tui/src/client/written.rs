//! What a write came to.

/// What a write came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    All,
    /// Some items failed on their own; how many, and why the first did.
    AllBut {
        failed: usize,
        first_error: String,
    },
    /// The silence of this name was created.
    Silence(String),
    /// The notes that were written, each of them.
    Notes(Vec<Note>),
    /// A new client's key, which is shown once.
    Key {
        name: String,
        key: String,
    },
}

/// A note, by the ids of its occurrence and its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) occurrence_id: String,
    pub(crate) id: String,
}
