//! Compiles descriptors into the tables of [`Plan`].

use std::collections::HashMap;

use super::{
    Behavior, Cardinality, EnumId, EnumPlan, EnumValuePlan, FieldPlan, Kind, MessageId,
    MessagePlan, Plan, ResponsePresence, Shape,
};
use crate::json::{
    descriptor::{self as pb, Comments, index},
    limits,
};

/// The reason why a descriptor set was not compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The bytes are not a descriptor set.
    #[error("failed to read the descriptor set")]
    Unreadable(#[from] prost::DecodeError),
    /// A part of the message is unsupported; describes the part and its location.
    #[error("{0}")]
    Unsupported(String),
}

impl CompileError {
    fn unsupported_type(place: &str, reason: impl std::fmt::Display) -> Self {
        Self::Unsupported(format!("{place}: {reason}"))
    }
}

/// Tags of `FileDescriptorProto`, `DescriptorProto` and `EnumDescriptorProto`, from which the paths
/// of comments are built.
mod tag {
    pub(super) const FILE_MESSAGE: i32 = 4;
    pub(super) const FILE_ENUM: i32 = 5;
    pub(super) const MESSAGE_FIELD: i32 = 2;
    pub(super) const MESSAGE_NESTED: i32 = 3;
    pub(super) const MESSAGE_ENUM: i32 = 4;
    pub(super) const ENUM_VALUE: i32 = 2;
}

struct Declaration<'a, T> {
    full_name: String,
    path: Vec<i32>,
    comments: usize,
    item: &'a T,
}

#[derive(Default)]
struct Declarations<'a> {
    comments: Vec<Comments>,
    messages: Vec<Declaration<'a, pb::MessageType>>,
    enums: Vec<Declaration<'a, pb::EnumType>>,
}

impl Plan {
    /// Compiles encoded descriptor sets; a file in several of them is compiled once.
    ///
    /// # Errors
    /// Returns an error if the bytes are malformed, or a type in them has no JSON form.
    pub fn compile(sets: &[&[u8]]) -> Result<Self, CompileError> {
        Self::from_files(&pb::decode_files(sets)?)
    }

    /// Compiles decoded files.
    ///
    /// # Errors
    /// Returns an error if a type in them has no JSON form.
    pub fn from_files(files: &[pb::File]) -> Result<Self, CompileError> {
        let mut declarations = Declarations::default();
        for file in files {
            declarations.add_file(file)?;
        }
        declarations.compile()
    }
}

impl<'a> Declarations<'a> {
    fn add_file(&mut self, file: &'a pb::File) -> Result<(), CompileError> {
        self.comments.push(file.comments()?);
        for (at, message) in file.message_type.iter().enumerate() {
            self.add_message(&file.package, vec![tag::FILE_MESSAGE, index(at)], message);
        }
        for (at, item) in file.enum_type.iter().enumerate() {
            self.add_enum(&file.package, vec![tag::FILE_ENUM, index(at)], item);
        }
        Ok(())
    }

    fn add_message(&mut self, scope: &str, path: Vec<i32>, item: &'a pb::MessageType) {
        let full_name = format!("{scope}.{}", item.name);
        let inner = |tag, at| [path.as_slice(), &[tag, index(at)]].concat();
        for (at, nested) in item.nested_type.iter().enumerate() {
            self.add_message(&full_name, inner(tag::MESSAGE_NESTED, at), nested);
        }
        for (at, nested) in item.enum_type.iter().enumerate() {
            self.add_enum(&full_name, inner(tag::MESSAGE_ENUM, at), nested);
        }
        let comments = self.comments.len() - 1;
        self.messages.push(Declaration {
            full_name,
            path,
            comments,
            item,
        });
    }

    fn add_enum(&mut self, scope: &str, path: Vec<i32>, item: &'a pb::EnumType) {
        let full_name = format!("{scope}.{}", item.name);
        let comments = self.comments.len() - 1;
        self.enums.push(Declaration {
            full_name,
            path,
            comments,
            item,
        });
    }

    fn compile(&self) -> Result<Plan, CompileError> {
        let names = Names {
            messages: self
                .messages
                .iter()
                .map(|declared| &*declared.full_name)
                .zip(0..)
                .collect(),
            enums: self
                .enums
                .iter()
                .map(|declared| &*declared.full_name)
                .zip(0..)
                .collect(),
            map_entries: self
                .messages
                .iter()
                .map(|declared| {
                    declared
                        .item
                        .options
                        .as_ref()
                        .is_some_and(|it| it.map_entry)
                })
                .collect(),
        };
        let messages = self
            .messages
            .iter()
            .map(|declared| self.compile_message(declared, &names));
        Ok(Plan {
            messages: messages.collect::<Result<_, _>>()?,
            enums: self
                .enums
                .iter()
                .map(|declared| self.compile_enum(declared))
                .collect(),
            by_name: names
                .messages
                .iter()
                .map(|(name, id)| (Box::from(*name), *id))
                .collect(),
        })
    }

    fn compile_message(
        &self,
        declared: &Declaration<'_, pb::MessageType>,
        names: &Names<'_>,
    ) -> Result<MessagePlan, CompileError> {
        let Declaration {
            full_name,
            path,
            item,
            ..
        } = declared;
        let comments = &self.comments[declared.comments];
        if item.field.len() > limits::FIELDS {
            let reason = format!("has more than {} fields", limits::FIELDS);
            return Err(CompileError::unsupported_type(full_name, reason));
        }
        let mut fields = Vec::with_capacity(item.field.len());
        for (at, field) in item.field.iter().enumerate() {
            let path = [path.as_slice(), &[tag::MESSAGE_FIELD, index(at)]].concat();
            fields.push(names.compile_field(full_name, field, comments.comment_at(&path))?);
        }
        fields.sort_by_key(|field| field.number);
        let mut spellings: Vec<(Box<str>, usize)> = Vec::new();
        for (at, field) in fields.iter().enumerate() {
            spellings.push((field.json_name.clone(), at));
            spellings.push((field.name.clone(), at));
        }
        spellings.sort();
        spellings.dedup();
        Ok(MessagePlan {
            name: full_name.as_str().into(),
            doc: comments.comment_at(path),
            shape: message_shape(full_name),
            fields,
            oneofs: item.oneof_decl.iter().map(is_required).collect(),
            names: spellings,
        })
    }

    fn compile_enum(&self, declared: &Declaration<'_, pb::EnumType>) -> EnumPlan {
        let comments = &self.comments[declared.comments];
        let values = declared
            .item
            .value
            .iter()
            .enumerate()
            .map(|(at, value)| EnumValuePlan {
                name: value.name.as_str().into(),
                word: short_value_name(&declared.item.name, &value.name).into(),
                number: value.number,
                doc: comments
                    .comment_at(&[&*declared.path, &[tag::ENUM_VALUE, index(at)]].concat()),
            });
        EnumPlan {
            name: declared.full_name.as_str().into(),
            doc: comments.comment_at(&declared.path),
            values: values.collect(),
        }
    }
}

struct Names<'a> {
    messages: HashMap<&'a str, MessageId>,
    enums: HashMap<&'a str, EnumId>,
    map_entries: Vec<bool>,
}

impl Names<'_> {
    fn compile_field(
        &self,
        message: &str,
        field: &pb::Field,
        doc: Box<str>,
    ) -> Result<FieldPlan, CompileError> {
        const REPEATED: i32 = 3;
        let place = || format!("{message}.{}", field.name);
        let unsupported = |reason: &str| CompileError::unsupported_type(&place(), reason);
        let kind = self
            .field_kind(field)
            .ok_or_else(|| unsupported("has an unknown type"))?;
        let options = field.options.as_ref();
        let cardinality = match kind {
            _ if field.label != REPEATED => Cardinality::Single,
            Kind::Message(id) if self.map_entries[id] => Cardinality::Map,
            Kind::Message(_) | Kind::String | Kind::Bytes => {
                Cardinality::Repeated { packed: false }
            }
            _ => {
                let stated = options.and_then(|options| options.packed);
                Cardinality::Repeated {
                    packed: stated.unwrap_or(true),
                }
            }
        };
        let oneof = field.oneof_index.filter(|_| !field.proto3_optional);
        let single = cardinality == Cardinality::Single;
        Ok(FieldPlan {
            key: format!("\"{}\":", field.json_name).into_bytes().into(),
            json_name: field.json_name.as_str().into(),
            name: field.name.as_str().into(),
            doc,
            number: u32::try_from(field.number)
                .ok()
                .ok_or_else(|| unsupported("has no valid number"))?,
            presence: single
                && (oneof.is_some() || field.proto3_optional || matches!(kind, Kind::Message(_))),
            kind,
            cardinality,
            oneof: oneof.and_then(|at| usize::try_from(at).ok()),
            deprecated: options.is_some_and(|options| options.deprecated),
            behavior: options.map_or_else(Behavior::default, field_behavior),
            takes: options
                .and_then(|options| options.takes.clone())
                .unwrap_or_default(),
            answered: options.map_or_else(ResponsePresence::default, response_presence),
        })
    }

    fn field_kind(&self, field: &pb::Field) -> Option<Kind> {
        let type_name = field.type_name.trim_start_matches('.');
        Some(match field.kind {
            1 => Kind::Double,
            2 => Kind::Float,
            3 => Kind::Int64,
            4 => Kind::Uint64,
            5 => Kind::Int32,
            6 => Kind::Fixed64,
            7 => Kind::Fixed32,
            8 => Kind::Bool,
            9 => Kind::String,
            11 => Kind::Message(*self.messages.get(type_name)?),
            12 => Kind::Bytes,
            13 => Kind::Uint32,
            14 => Kind::Enum(*self.enums.get(type_name)?),
            15 => Kind::Sfixed32,
            16 => Kind::Sfixed64,
            17 => Kind::Sint32,
            18 => Kind::Sint64,
            _ => return None,
        })
    }
}

fn is_required(oneof: &pb::Oneof) -> bool {
    let options = oneof.options.as_ref();
    options.is_some_and(|options| options.exactly_one)
}

fn response_presence(options: &pb::FieldOptions) -> ResponsePresence {
    match (options.always, options.as_sent) {
        (_, true) => ResponsePresence::AsSent,
        (true, _) => ResponsePresence::Always,
        (false, false) => ResponsePresence::Set,
    }
}

fn field_behavior(options: &pb::FieldOptions) -> Behavior {
    let known = |number: &i32| match number {
        2 => Some(Behavior::Required),
        3 => Some(Behavior::OutputOnly),
        4 => Some(Behavior::InputOnly),
        _ => None,
    };
    options.behavior.iter().find_map(known).unwrap_or_default()
}

/// Returns the short name of an enum value: `critical` for `SEVERITY_CRITICAL` of `Severity`. The
/// prefix is the type name in upper snake case.
fn short_value_name(type_name: &str, value: &str) -> String {
    let mut prefix = String::new();
    for char in type_name.chars() {
        if char.is_ascii_uppercase() && !prefix.is_empty() {
            prefix.push('_');
        }
        prefix.push(char.to_ascii_uppercase());
    }
    prefix.push('_');
    let word = value.strip_prefix(&prefix).unwrap_or_default();
    word.to_ascii_lowercase()
}

fn message_shape(full_name: &str) -> Shape {
    match full_name.strip_prefix("google.protobuf.") {
        Some("Any") => Shape::Any,
        Some("Duration") => Shape::Duration,
        Some("FieldMask") => Shape::FieldMask,
        Some("ListValue") => Shape::ListValue,
        Some("Struct") => Shape::Struct,
        Some("Timestamp") => Shape::Timestamp,
        Some("Value") => Shape::Value,
        Some(
            "BoolValue" | "BytesValue" | "DoubleValue" | "FloatValue" | "Int32Value" | "Int64Value"
            | "StringValue" | "UInt32Value" | "UInt64Value",
        ) => Shape::Wrapper,
        _ => Shape::Plain,
    }
}
