//! Reads an encoded `FileDescriptorSet`, with the `google.api.http` options inside it.
//!
//! The ready-made descriptor types drop options they do not know, so these state just the parts
//! that the gateway needs, the HTTP rule among them. Tags are those of `descriptor.proto`.

use prost::Message;

/// Field 72295728 of `MethodOptions` is `google.api.http`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MethodOptions {
    #[prost(message, optional, tag = "72295728")]
    pub(crate) http: Option<HttpRule>,
}

/// How one method is reached over HTTP.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpRule {
    #[prost(string, tag = "2")]
    pub(crate) get: String,
    #[prost(string, tag = "3")]
    pub(crate) put: String,
    #[prost(string, tag = "4")]
    pub(crate) post: String,
    #[prost(string, tag = "5")]
    pub(crate) delete: String,
    #[prost(string, tag = "6")]
    pub(crate) patch: String,
    #[prost(string, tag = "7")]
    pub(crate) body: String,
    #[prost(message, repeated, tag = "11")]
    pub(crate) additional_bindings: Vec<HttpRule>,
    #[prost(string, tag = "12")]
    pub(crate) response_body: String,
}

/// A set of files, imports included.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FileSet {
    #[prost(message, repeated, tag = "1")]
    pub(crate) file: Vec<File>,
}

/// One `.proto` file.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct File {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) package: String,
    #[prost(message, repeated, tag = "4")]
    pub(crate) message_type: Vec<MessageType>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) enum_type: Vec<EnumType>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) service: Vec<Service>,
    #[prost(message, optional, tag = "9")]
    pub(crate) source_code_info: Option<SourceCodeInfo>,
}

/// A message type, with the types declared inside it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MessageType {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) field: Vec<Field>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) nested_type: Vec<MessageType>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) enum_type: Vec<EnumType>,
    #[prost(message, optional, tag = "7")]
    pub(crate) options: Option<MessageOptions>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) oneof_decl: Vec<Oneof>,
}

/// Options of a message type.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MessageOptions {
    #[prost(bool, tag = "7")]
    pub(crate) map_entry: bool,
}

/// A field of a message type; `kind` is `FieldDescriptorProto.type`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Field {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int32, tag = "3")]
    pub(crate) number: i32,
    #[prost(int32, tag = "4")]
    pub(crate) label: i32,
    #[prost(int32, tag = "5")]
    pub(crate) kind: i32,
    #[prost(string, tag = "6")]
    pub(crate) type_name: String,
    #[prost(message, optional, tag = "8")]
    pub(crate) options: Option<FieldOptions>,
    #[prost(int32, optional, tag = "9")]
    pub(crate) oneof_index: Option<i32>,
    #[prost(string, tag = "10")]
    pub(crate) json_name: String,
    #[prost(bool, tag = "17")]
    pub(crate) proto3_optional: bool,
}

/// Options of a field.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FieldOptions {
    #[prost(bool, optional, tag = "2")]
    pub(crate) packed: Option<bool>,
    #[prost(bool, tag = "3")]
    pub(crate) deprecated: bool,
}

/// A group of fields of which at most one is set.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Oneof {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

/// An enum type.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EnumType {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) value: Vec<EnumValue>,
}

/// A value of an enum type.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EnumValue {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int32, tag = "2")]
    pub(crate) number: i32,
}

/// A service.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Service {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) method: Vec<Method>,
}

/// A method of a service.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Method {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) input_type: String,
    #[prost(string, tag = "3")]
    pub(crate) output_type: String,
    #[prost(message, optional, tag = "4")]
    pub(crate) options: Option<MethodOptions>,
    #[prost(bool, tag = "5")]
    pub(crate) client_streaming: bool,
    #[prost(bool, tag = "6")]
    pub(crate) server_streaming: bool,
}

/// The comments of a file.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SourceCodeInfo {
    #[prost(message, repeated, tag = "1")]
    pub(crate) location: Vec<Location>,
}

/// The comment above one declaration, found by its path of tags and indexes.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Location {
    #[prost(int32, repeated, tag = "1")]
    pub(crate) path: Vec<i32>,
    #[prost(string, tag = "3")]
    pub(crate) leading_comments: String,
}
