//! The tables that everything else follows from, compiled once from the descriptors.

mod compile;

use std::collections::HashMap;

pub use compile::CompileError;

use crate::{bellwether::options::FieldLimits, json::wire::WireType};

/// Place of a message type in [`Plan::messages`].
pub type MessageId = usize;
/// Place of an enum type in [`Plan::enums`].
pub type EnumId = usize;

/// Every message and enum that the descriptors state.
#[derive(Debug)]
pub struct Plan {
    /// Message types.
    pub messages: Vec<MessagePlan>,
    /// Enum types.
    pub enums: Vec<EnumPlan>,
    /// Message types by full name, without a leading dot.
    pub by_name: HashMap<Box<str>, MessageId>,
}

impl Plan {
    /// Finds a field of a message by either spelling of its name.
    pub fn field(&self, message: MessageId, name: &str) -> Option<&FieldPlan> {
        let message = &self.messages[message];
        message.index_of(name).map(|index| &message.fields[index])
    }
}

/// How a message type is written in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An object with its fields.
    Plain,
    /// `google.protobuf.Any`: an object with `@type`. Only ever written.
    Any,
    /// Text such as `1.5s`.
    Duration,
    /// Paths separated by commas.
    FieldMask,
    /// An array of any values.
    ListValue,
    /// An object of any values.
    Struct,
    /// RFC 3339 text.
    Timestamp,
    /// Any value.
    Value,
    /// The value of its one field.
    Wrapper,
}

/// A message type.
#[derive(Debug)]
pub struct MessagePlan {
    /// Full name, without a leading dot.
    pub name: Box<str>,
    /// Its comment.
    pub doc: Box<str>,
    /// How it is written in JSON.
    pub shape: Shape,
    /// Its fields by number.
    pub fields: Vec<FieldPlan>,
    /// Of each of its groups, by [`FieldPlan::oneof`], whether one of its fields is required.
    pub oneofs: Vec<bool>,
    /// Both spellings of every field's name, sorted, with the field's place.
    names: Vec<(Box<str>, usize)>,
}

impl MessagePlan {
    /// Finds a field's place by either spelling of its name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        let found = self
            .names
            .binary_search_by(|(spelling, _)| (**spelling).cmp(name))
            .ok()?;
        Some(self.names[found].1)
    }

    /// Finds a field's place by its number.
    pub fn index_of_number(&self, number: u32) -> Option<usize> {
        self.fields
            .binary_search_by_key(&number, |field| field.number)
            .ok()
    }
}

/// The type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `bool`.
    Bool,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
    /// `uint32`.
    Uint32,
    /// `uint64`.
    Uint64,
    /// `sint32`.
    Sint32,
    /// `sint64`.
    Sint64,
    /// `fixed32`.
    Fixed32,
    /// `fixed64`.
    Fixed64,
    /// `sfixed32`.
    Sfixed32,
    /// `sfixed64`.
    Sfixed64,
    /// `float`.
    Float,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// An enum.
    Enum(EnumId),
    /// A message.
    Message(MessageId),
}

impl Kind {
    /// How a single value of this kind stands on the wire.
    pub fn wire_type(self) -> WireType {
        match self {
            Self::Fixed64 | Self::Sfixed64 | Self::Double => WireType::Fixed64,
            Self::Fixed32 | Self::Sfixed32 | Self::Float => WireType::Fixed32,
            Self::String | Self::Bytes | Self::Message(_) => WireType::Bytes,
            _ => WireType::Varint,
        }
    }
}

/// How many values a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cardinality {
    /// At most one.
    Single,
    /// A list, in one length-delimited part when packed.
    Repeated {
        /// Whether values are packed when written.
        packed: bool,
    },
    /// A map; the field's kind is the entry's message, with key and value as fields 1 and 2.
    Map,
}

/// A field of a message type.
#[derive(Debug)]
pub struct FieldPlan {
    /// lowerCamelCase.
    pub json_name: Box<str>,
    /// As in the `.proto` file.
    pub name: Box<str>,
    /// The JSON name quoted and followed by a colon.
    pub key: Box<[u8]>,
    /// Its comment.
    pub doc: Box<str>,
    /// Its number.
    pub number: u32,
    /// The type of its values.
    pub kind: Kind,
    /// How many values it takes.
    pub cardinality: Cardinality,
    /// The group of which at most one field is set; not for `optional` fields.
    pub oneof: Option<usize>,
    /// Whether a zero value differs from an absent one.
    pub presence: bool,
    /// Whether it is to go.
    pub deprecated: bool,
    /// What a request has to do with it.
    pub behavior: Behavior,
    /// What is taken in it, of a list in each entry.
    pub takes: FieldLimits,
    /// What answers have of it.
    pub answered: Answered,
}

/// What answers have of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Answered {
    /// A value that is not zero.
    #[default]
    Set,
    /// A value, whatever it is.
    Always,
    /// What a user sent, which need not be what is taken.
    AsSent,
}

/// What a request has to do with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Behavior {
    /// It may have it.
    #[default]
    Optional,
    /// It must have it.
    Required,
    /// The service writes it; what a request has there is ignored.
    OutputOnly,
    /// It may have it, and no answer has.
    InputOnly,
}

/// An enum type.
#[derive(Debug)]
pub struct EnumPlan {
    /// Full name, without a leading dot.
    pub name: Box<str>,
    /// Its comment.
    pub doc: Box<str>,
    /// Its values in the order of the file; of two with one number the first is written.
    pub values: Vec<EnumValuePlan>,
}

impl EnumPlan {
    /// The number of a name, or of the word that is left of it without the type's name, in any
    /// case: `critical` for `SEVERITY_CRITICAL`.
    pub fn number_of(&self, name: &str) -> Option<i32> {
        let mut values = self.values.iter();
        let named = values.find(|value| &*value.name == name);
        let found = named.or_else(|| {
            let mut values = self.values.iter();
            values.find(|value| value.word.eq_ignore_ascii_case(name) && !name.is_empty())
        })?;
        Some(found.number)
    }

    /// The name of a number.
    pub fn name_of(&self, number: i32) -> Option<&str> {
        self.values
            .iter()
            .find(|value| value.number == number)
            .map(|value| &*value.name)
    }

    /// Whether this is `google.protobuf.NullValue`, which is `null` in JSON.
    pub fn is_null_value(&self) -> bool {
        &*self.name == "google.protobuf.NullValue"
    }
}

/// A value of an enum type.
#[derive(Debug)]
pub struct EnumValuePlan {
    /// Its name.
    pub name: Box<str>,
    /// Its name without that of its type, as people say it: `critical`; empty when the type's name
    /// is no part of it.
    pub word: Box<str>,
    /// Its number.
    pub number: i32,
    /// Its comment.
    pub doc: Box<str>,
}
