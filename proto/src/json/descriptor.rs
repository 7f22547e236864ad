//! Decodes a `FileDescriptorSet`, including the options of `google.api` and of `options.proto`.
//!
//! The generated descriptor types drop unknown options. These types declare the options, and only
//! the other parts that are needed. Tags are those of `descriptor.proto`.

#![expect(missing_docs, reason = "fields are those of descriptor.proto")]

use std::collections::{HashMap, HashSet};

use prost::{DecodeError, Message};

use crate::bellwether::options::{Call, FieldLimits};

/// Field 72295728 of `MethodOptions` is `google.api.http`.
#[derive(Clone, PartialEq, Message)]
pub struct MethodOptions {
    #[prost(string, tag = "50001")]
    pub role: String,
    #[prost(message, optional, tag = "50002")]
    pub call: Option<Call>,
    #[prost(message, optional, tag = "72295728")]
    pub http: Option<HttpRule>,
}

/// The HTTP mapping of a method.
#[derive(Clone, PartialEq, Message)]
pub struct HttpRule {
    #[prost(string, tag = "2")]
    pub get: String,
    #[prost(string, tag = "3")]
    pub put: String,
    #[prost(string, tag = "4")]
    pub post: String,
    #[prost(string, tag = "5")]
    pub delete: String,
    #[prost(string, tag = "6")]
    pub patch: String,
    #[prost(string, tag = "7")]
    pub body: String,
    #[prost(message, repeated, tag = "11")]
    pub additional_bindings: Vec<HttpRule>,
    #[prost(string, tag = "12")]
    pub response_body: String,
}

/// A set of files, imports included.
#[derive(Clone, PartialEq, Message)]
pub struct FileSet {
    #[prost(message, repeated, tag = "1")]
    pub file: Vec<File>,
}

/// One `.proto` file.
#[derive(Clone, PartialEq, Message)]
pub struct File {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub package: String,
    #[prost(message, repeated, tag = "4")]
    pub message_type: Vec<MessageType>,
    #[prost(message, repeated, tag = "5")]
    pub enum_type: Vec<EnumType>,
    #[prost(message, repeated, tag = "6")]
    pub service: Vec<Service>,
    /// A `SourceCodeInfo`, which is most of the set and decoded only for its comments.
    #[prost(bytes, tag = "9")]
    pub source_code_info: Vec<u8>,
}

/// A message type, with the types declared inside it.
#[derive(Clone, PartialEq, Message)]
pub struct MessageType {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub field: Vec<Field>,
    #[prost(message, repeated, tag = "3")]
    pub nested_type: Vec<MessageType>,
    #[prost(message, repeated, tag = "4")]
    pub enum_type: Vec<EnumType>,
    #[prost(message, optional, tag = "7")]
    pub options: Option<MessageOptions>,
    #[prost(message, repeated, tag = "8")]
    pub oneof_decl: Vec<Oneof>,
}

/// Options of a message type.
#[derive(Clone, PartialEq, Message)]
pub struct MessageOptions {
    #[prost(bool, tag = "7")]
    pub map_entry: bool,
}

/// A field of a message type; `kind` is `FieldDescriptorProto.type`.
#[derive(Clone, PartialEq, Message)]
pub struct Field {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "3")]
    pub number: i32,
    #[prost(int32, tag = "4")]
    pub label: i32,
    #[prost(int32, tag = "5")]
    pub kind: i32,
    #[prost(string, tag = "6")]
    pub type_name: String,
    #[prost(message, optional, tag = "8")]
    pub options: Option<FieldOptions>,
    #[prost(int32, optional, tag = "9")]
    pub oneof_index: Option<i32>,
    #[prost(string, tag = "10")]
    pub json_name: String,
    #[prost(bool, tag = "17")]
    pub proto3_optional: bool,
}

/// Options of a field; `behavior` is `google.api.field_behavior`.
#[derive(Clone, PartialEq, Message)]
pub struct FieldOptions {
    #[prost(bool, optional, tag = "2")]
    pub packed: Option<bool>,
    #[prost(bool, tag = "3")]
    pub deprecated: bool,
    #[prost(int32, repeated, packed = "false", tag = "1052")]
    pub behavior: Vec<i32>,
    #[prost(message, optional, tag = "50001")]
    pub takes: Option<FieldLimits>,
    #[prost(bool, tag = "50002")]
    pub always: bool,
    #[prost(bool, tag = "50003")]
    pub as_sent: bool,
}

/// A oneof.
#[derive(Clone, PartialEq, Message)]
pub struct Oneof {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub options: Option<OneofOptions>,
}

/// Options of a oneof.
#[derive(Clone, PartialEq, Message)]
pub struct OneofOptions {
    #[prost(bool, tag = "50001")]
    pub exactly_one: bool,
}

/// An enum type.
#[derive(Clone, PartialEq, Message)]
pub struct EnumType {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub value: Vec<EnumValue>,
}

/// A value of an enum type.
#[derive(Clone, PartialEq, Message)]
pub struct EnumValue {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "2")]
    pub number: i32,
}

/// A service.
#[derive(Clone, PartialEq, Message)]
pub struct Service {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub method: Vec<Method>,
    #[prost(message, optional, tag = "3")]
    pub options: Option<ServiceOptions>,
}

/// Options of a service.
#[derive(Clone, PartialEq, Message)]
pub struct ServiceOptions {
    #[prost(string, tag = "50001")]
    pub title: String,
}

/// A method of a service.
#[derive(Clone, PartialEq, Message)]
pub struct Method {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub input_type: String,
    #[prost(string, tag = "3")]
    pub output_type: String,
    #[prost(message, optional, tag = "4")]
    pub options: Option<MethodOptions>,
    #[prost(bool, tag = "5")]
    pub client_streaming: bool,
    #[prost(bool, tag = "6")]
    pub server_streaming: bool,
}

/// The comments of a file.
#[derive(Clone, PartialEq, Message)]
pub struct SourceCodeInfo {
    #[prost(message, repeated, tag = "1")]
    pub location: Vec<Location>,
}

/// The comment of a declaration, identified by its path of tags and indexes.
#[derive(Clone, PartialEq, Message)]
pub struct Location {
    #[prost(int32, repeated, tag = "1")]
    pub path: Vec<i32>,
    #[prost(string, tag = "3")]
    pub leading_comments: String,
}

/// Decodes descriptor sets; a file in several of them is returned once.
///
/// # Errors
/// Returns an error if the bytes are not a descriptor set.
pub fn decode_files(sets: &[&[u8]]) -> Result<Vec<File>, DecodeError> {
    let mut known = HashSet::new();
    let mut files = Vec::new();
    for set in sets {
        for file in FileSet::decode(*set)?.file {
            if known.insert(file.name.clone()) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

impl File {
    /// Returns the comments of the file by declaration.
    ///
    /// # Errors
    /// Returns an error if `source_code_info` is invalid.
    pub fn comments(&self) -> Result<Comments, DecodeError> {
        let info = SourceCodeInfo::decode(&*self.source_code_info)?;
        let commented = info.location.into_iter();
        let commented = commented.filter(|location| !location.leading_comments.is_empty());
        Ok(Comments(
            commented
                .map(|location| (location.path, location.leading_comments))
                .collect(),
        ))
    }
}

/// The comments of a file by the path of the declaration.
#[derive(Debug)]
pub struct Comments(HashMap<Vec<i32>, String>);

impl Comments {
    /// Returns the comment of a declaration, without indentation; empty if it has none.
    pub fn comment_at(&self, path: &[i32]) -> Box<str> {
        let text = self.0.get(path).map(String::as_str).unwrap_or_default();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        lines.join("\n").trim().into()
    }
}

/// Converts the index of a declaration for a comment path.
///
/// # Panics
/// Panics with 2^31 declarations or more, which no file has.
pub fn index(at: usize) -> i32 {
    i32::try_from(at).expect("a file has fewer than 2^31 declarations")
}
