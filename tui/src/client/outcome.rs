//! Results of writes.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    All,
    /// Some items failed: their number, and the first error.
    AllBut {
        failed: usize,
        first_error: String,
    },
    Silence(String),
    Notes(Vec<Note>),
    /// The key of a new client, which is shown once.
    Key {
        name: String,
        key: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) occurrence_id: String,
    pub(crate) id: String,
}
