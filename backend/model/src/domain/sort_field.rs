//! Sort fields of occurrences.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortField {
    /// The newest timestamp set by a sender.
    #[default]
    LastSeen,
    StartTime,
    Severity,
}

impl SortField {
    pub const ALL: [Self; 3] = [Self::LastSeen, Self::StartTime, Self::Severity];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::LastSeen => "lastSeen",
            Self::StartTime => "startTime",
            Self::Severity => "severity",
        }
    }

    /// Parses the name of a field; an empty name means the default.
    pub fn from_word(word: &str) -> Result<Self, String> {
        let found = Self::ALL
            .into_iter()
            .find(|it| word.is_empty() || it.as_str() == word);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            format!("{word:?} is not one of {known}")
        })
    }
}
