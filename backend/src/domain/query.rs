//! A condition over events, as its author wrote it.

/// A condition over events. `matching` compiles it, and says what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The outermost clause.
    pub clause: Clause,
}

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Clause {
    /// Every clause is true.
    And(Vec<Clause>),
    /// At least one clause is true.
    Or(Vec<Clause>),
    /// The clause is false.
    Not(Box<Clause>),
    /// The field equals the literal.
    Equals(String, Literal),
    /// The field equals any of the literals.
    In(String, Vec<Literal>),
    /// The field is the literal or above it.
    GreaterAndEquals(String, Literal),
    /// The field is the literal or below it.
    LessAndEquals(String, Literal),
    /// The field's text contains the text.
    Contains(String, String),
    /// The field's text starts with the text.
    StartsWith(String, String),
    /// The field's text ends with the text.
    EndsWith(String, String),
    /// The field's text matches the regular expression.
    Matches(String, String),
    /// There is such a field.
    Exists(String),
    /// The field is above the literal.
    Greater(String, Literal),
    /// The field is below the literal.
    Less(String, Literal),
}

impl Clause {
    /// The field that a comparison looks at; none for a combination.
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
    /// A text; also an RFC 3339 time, or the name or word of a severity or status.
    Text(String),
    /// A number; always finite.
    Number(f64),
    /// True or false.
    Bool(bool),
}
