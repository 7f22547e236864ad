//! Conversion tables, compiled once from the descriptors.

mod compile;

use std::collections::HashMap;

pub use compile::CompileError;

use crate::{bellwether::options::FieldLimits, json::wire::WireType};

/// Index of a message type in [`Plan::messages`].
pub type MessageId = usize;
/// Index of an enum type in [`Plan::enums`].
pub type EnumId = usize;

/// All messages and enums of the descriptors.
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
    /// Finds a field of a message by its JSON or `.proto` name.
    pub fn field(&self, message: MessageId, name: &str) -> Option<&FieldPlan> {
        let message = &self.messages[message];
        message
            .field_index(name)
            .map(|index| &message.fields[index])
    }
}

/// The JSON representation of a message type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An object with its fields.
    Plain,
    /// `google.protobuf.Any`: an object with `@type`. Only written, never read.
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
    /// Comment in the `.proto` file.
    pub doc: Box<str>,
    /// JSON representation.
    pub shape: Shape,
    /// Fields, sorted by number.
    pub fields: Vec<FieldPlan>,
    /// For each oneof, indexed by [`FieldPlan::oneof`]: whether one of its fields is required.
    pub oneofs: Vec<bool>,
    /// Both names of every field, sorted, with the index of the field.
    names: Vec<(Box<str>, usize)>,
}

impl MessagePlan {
    /// Finds the index of a field by its JSON or `.proto` name.
    pub fn field_index(&self, name: &str) -> Option<usize> {
        let found = self
            .names
            .binary_search_by(|(spelling, _)| (**spelling).cmp(name))
            .ok()?;
        Some(self.names[found].1)
    }

    /// Finds the index of a field by its number.
    pub fn field_index_by_number(&self, number: u32) -> Option<usize> {
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
    /// Returns the wire type of a single value.
    pub fn wire_type(self) -> WireType {
        match self {
            Self::Fixed64 | Self::Sfixed64 | Self::Double => WireType::Fixed64,
            Self::Fixed32 | Self::Sfixed32 | Self::Float => WireType::Fixed32,
            Self::String | Self::Bytes | Self::Message(_) => WireType::Bytes,
            _ => WireType::Varint,
        }
    }
}

/// The number of values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cardinality {
    /// At most one.
    Single,
    /// A list, in one length-delimited record if packed.
    Repeated {
        /// Whether values are packed when written.
        packed: bool,
    },
    /// A map; the field's kind is the entry message, with key and value as fields 1 and 2.
    Map,
}

/// A field of a message type.
#[derive(Debug)]
pub struct FieldPlan {
    /// JSON name, in lowerCamelCase.
    pub json_name: Box<str>,
    /// Name in the `.proto` file.
    pub name: Box<str>,
    /// The JSON name, quoted and followed by a colon.
    pub key: Box<[u8]>,
    /// Comment in the `.proto` file.
    pub doc: Box<str>,
    /// Field number.
    pub number: u32,
    /// The type of its values.
    pub kind: Kind,
    /// Number of values.
    pub cardinality: Cardinality,
    /// Index of the oneof; `None` for `optional` fields.
    pub oneof: Option<usize>,
    /// Whether zero and absent are distinct.
    pub presence: bool,
    /// Whether the field is deprecated.
    pub deprecated: bool,
    /// Requirements on the field in a request.
    pub behavior: Behavior,
    /// Limits of the value; for a list, of each entry.
    pub takes: FieldLimits,
    /// Presence of the field in responses.
    pub answered: ResponsePresence,
}

/// Presence of a field in responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResponsePresence {
    /// If it is not zero.
    #[default]
    Set,
    /// Always.
    Always,
    /// If the user set it; the value may violate the limits.
    AsSent,
}

/// Requirements on a field in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Behavior {
    /// The field may be set.
    #[default]
    Optional,
    /// The field must be set.
    Required,
    /// The service sets the field; its value in a request is ignored.
    OutputOnly,
    /// The field may be set and is never returned.
    InputOnly,
}

/// An enum type.
#[derive(Debug)]
pub struct EnumPlan {
    /// Full name, without a leading dot.
    pub name: Box<str>,
    /// Comment in the `.proto` file.
    pub doc: Box<str>,
    /// Values in the order of the file; the first of several with the same number is written.
    pub values: Vec<EnumValuePlan>,
}

impl EnumPlan {
    /// Returns the number of a value by its name, or by its name without the type prefix in any
    /// case: `critical` for `SEVERITY_CRITICAL`.
    pub fn value_number(&self, name: &str) -> Option<i32> {
        let mut values = self.values.iter();
        let named = values.find(|value| &*value.name == name);
        let found = named.or_else(|| {
            let mut values = self.values.iter();
            values.find(|value| value.word.eq_ignore_ascii_case(name) && !name.is_empty())
        })?;
        Some(found.number)
    }

    /// Returns the name of a number.
    pub fn value_name(&self, number: i32) -> Option<&str> {
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
    /// Full name.
    pub name: Box<str>,
    /// Lowercase name without the type prefix, such as `critical`; empty if the name does not have
    /// the prefix.
    pub word: Box<str>,
    /// Number on the wire.
    pub number: i32,
    /// Comment in the `.proto` file.
    pub doc: Box<str>,
}
