//! A condition over events.

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Clause {
    /// True if every clause is true.
    And(Vec<Clause>),
    /// True if at least one clause is true.
    Or(Vec<Clause>),
    /// True if the clause is false.
    Not(Box<Clause>),
    /// True if the field equals the literal.
    Equals(String, Literal),
    /// True if the field equals one of the literals.
    In(String, Vec<Literal>),
    /// True if the field is greater than or equal to the literal.
    GreaterAndEquals(String, Literal),
    /// True if the field is less than or equal to the literal.
    LessAndEquals(String, Literal),
    /// True if the field contains the substring.
    Contains(String, String),
    /// True if the field starts with the prefix.
    StartsWith(String, String),
    /// True if the field ends with the suffix.
    EndsWith(String, String),
    /// True if the field matches the regular expression.
    Matches(String, String),
    /// True if the field is present.
    Exists(String),
    /// True if the field is greater than the literal.
    Greater(String, Literal),
    /// True if the field is less than the literal.
    Less(String, Literal),
}

impl Clause {
    /// Returns the field of a comparison; `None` for a combination.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::And(_) | Self::Or(_) | Self::Not(_) => None,
            Self::Equals(field, _)
            | Self::In(field, _)
            | Self::GreaterAndEquals(field, _)
            | Self::LessAndEquals(field, _)
            | Self::Contains(field, _)
            | Self::StartsWith(field, _)
            | Self::EndsWith(field, _)
            | Self::Matches(field, _)
            | Self::Exists(field)
            | Self::Greater(field, _)
            | Self::Less(field, _) => Some(field),
        }
    }
}

/// A value that a field is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// Text; also an RFC 3339 time, or the name of a severity or status.
    Text(String),
    /// A finite number.
    Number(f64),
    /// True or false.
    Bool(bool),
}
