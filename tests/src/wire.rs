//! Calls over REST or gRPC, with canonical JSON in and out.
//!
//! One table of cases checks both protocols: the JSON format and path of a method come from the
//! descriptor set, which is read by a library that shares no code with the product.

use std::{fmt::Write as _, sync::LazyLock};

use bytes::{Buf, BufMut};
use http::{Method, uri::PathAndQuery};
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, MessageDescriptor, MethodDescriptor,
};
use serde_json::Value;
use tonic::{
    Code, Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use crate::{grpc::Grpc, rest::Rest};

/// Packages whose services are addressed by their short names.
const PACKAGES: [&str; 2] = ["bellwether.v1", "zenoss.cloud"];

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(bellwether_proto::FILE_DESCRIPTOR_SET).expect("the descriptor set")
});

/// Returns every method of the service's own API.
pub fn methods() -> impl Iterator<Item = MethodDescriptor> {
    POOL.services()
        .filter(|service| PACKAGES.contains(&service.package_name()))
        .flat_map(|service| service.methods().collect::<Vec<_>>())
}

/// Returns the minimum role for a method, as stated in its `.proto` file.
///
/// # Panics
/// Panics if the method has no such option.
pub fn role(method: &MethodDescriptor) -> String {
    let role = POOL.get_extension_by_name("bellwether.options.role");
    let options = method.options();
    let role = options.get_extension(&role.expect("the option"));
    role.as_str().unwrap_or_default().to_owned()
}

/// Returns the JSON names of the fields that contain secrets.
///
/// # Panics
/// Panics if the option is not defined.
pub fn secret_fields() -> impl Iterator<Item = String> {
    let takes = POOL.get_extension_by_name("bellwether.options.takes");
    let takes = takes.expect("the option");
    let fields = POOL
        .all_messages()
        .flat_map(|it| it.fields().collect::<Vec<_>>());
    let is_secret = move |field: &FieldDescriptor| {
        let options = field.options();
        let reported = options.get_extension(&takes);
        let secret = reported
            .as_message()
            .and_then(|it| it.get_field_by_name("secret")?.as_bool());
        secret.unwrap_or_default()
    };
    fields
        .filter(is_secret)
        .map(|field| field.json_name().to_owned())
}

/// A protocol for calling the service.
#[derive(Debug, Clone)]
pub enum Wire {
    /// JSON over HTTP, through the gateway.
    Rest(Box<Rest>),
    /// gRPC, directly to the backend.
    Grpc(Grpc),
}

#[derive(Debug, Clone)]
pub struct Refusal {
    /// gRPC code; for REST, the code in the body.
    pub code: Code,
    /// Error message, including those of the field violations.
    pub message: String,
}

impl Wire {
    /// Returns `rest` or `grpc`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rest(_) => "rest",
            Self::Grpc(_) => "grpc",
        }
    }

    /// Calls `SERVICE/METHOD` with a request in canonical JSON.
    ///
    /// # Errors
    /// Returns the service's error response.
    ///
    /// # Panics
    /// Panics if the method or a field of the request does not exist, or if the connection breaks.
    pub async fn call(&self, method: &str, request: &Value) -> Result<Value, Refusal> {
        let method = described(method);
        match self {
            Self::Rest(rest) => over_rest(rest, &method, request).await,
            Self::Grpc(grpc) => over_grpc(grpc, &method, request).await,
        }
    }

    /// Makes a call that must succeed, and returns its response.
    ///
    /// # Panics
    /// Panics if the call fails.
    pub async fn ok(&self, method: &str, request: &Value) -> Value {
        self.call(method, request).await.unwrap_or_else(|refusal| {
            panic!("{} {method} {request}: {refusal:?}", self.name());
        })
    }

    /// Makes a call that must fail, and returns its error.
    ///
    /// # Panics
    /// Panics if the call succeeds.
    pub async fn refused(&self, method: &str, request: &Value) -> Refusal {
        match self.call(method, request).await {
            Ok(answer) => panic!("{} {method} {request}: not rejected: {answer}", self.name()),
            Err(refusal) => refusal,
        }
    }
}

fn described(method: &str) -> MethodDescriptor {
    let (service, name) = method.split_once('/').expect("SERVICE/METHOD");
    let mut services = PACKAGES
        .iter()
        .filter_map(|package| POOL.get_service_by_name(&format!("{package}.{service}")));
    let service = services.next().unwrap_or_else(|| panic!("no {service}"));
    let mut methods = service.methods();
    methods
        .find(|method| method.name() == name)
        .unwrap_or_else(|| panic!("no {method}"))
}

async fn over_rest(
    rest: &Rest,
    method: &MethodDescriptor,
    request: &Value,
) -> Result<Value, Refusal> {
    // A request that does not fit the method is a mistake in the test.
    read(method.input(), request);
    let operation = Operation::of(method);
    let mut left = request.as_object().expect("an object").clone();
    let path = operation.path(request, &mut left);
    let body = match operation.body.as_str() {
        "" => String::new(),
        "*" => Value::Object(std::mem::take(&mut left)).to_string(),
        field => left.remove(field).unwrap_or_default().to_string(),
    };
    let answer = rest
        .send(operation.method, &format!("{path}{}", query(&left)), body)
        .await;
    if answer.status == 200 {
        return Ok(answer.json());
    }
    let problem = answer.json();
    // The response to a batch whose items were all rejected lists the items, as over gRPC.
    let items = ["failed", "annotationResponses", "statusResponses"];
    if answer.status == 400 && items.iter().any(|it| problem.get(*it).is_some()) {
        return Ok(problem);
    }
    let code = problem["code"]
        .as_i64()
        .and_then(|code| i32::try_from(code).ok());
    Err(Refusal {
        code: Code::from(code.unwrap_or_else(|| panic!("no code: {problem}"))),
        message: problem.to_string(),
    })
}

struct Operation {
    method: Method,
    template: String,
    body: String,
}

impl Operation {
    fn of(method: &MethodDescriptor) -> Self {
        let extension = POOL
            .get_extension_by_name("google.api.http")
            .expect("the annotation");
        let options = method.options();
        let rule = options.get_extension(&extension);
        let rule = rule.as_message().expect("an annotation");
        let text = |name: &str| {
            let value = rule.get_field_by_name(name).expect("a field of HttpRule");
            value.as_str().expect("a text").to_owned()
        };
        let verbs = [
            ("get", Method::GET),
            ("put", Method::PUT),
            ("post", Method::POST),
            ("delete", Method::DELETE),
            ("patch", Method::PATCH),
        ];
        let mut given = verbs.into_iter().filter(|(verb, _)| !text(verb).is_empty());
        let (verb, http) = given
            .next()
            .unwrap_or_else(|| panic!("{} is not served over REST", method.full_name()));
        Self {
            method: http,
            template: text(verb),
            body: text("body"),
        }
    }

    /// Builds the path, and removes the fields that it contains from the request.
    fn path(&self, request: &Value, left: &mut serde_json::Map<String, Value>) -> String {
        let mut path = String::new();
        let mut rest = self.template.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (variable, after) = after.split_once('}').expect("a whole variable");
            let value = variable
                .split('.')
                .fold(request, |value, member| &value[member]);
            path.push_str(before);
            path.push_str(&percent_encoded(value.as_str().unwrap_or_default()));
            left.remove(variable);
            rest = after;
        }
        path + rest
    }
}

fn query(members: &serde_json::Map<String, Value>) -> String {
    let mut pairs = Vec::new();
    for (name, value) in members {
        let one = std::slice::from_ref(value);
        for value in value.as_array().map_or(one, Vec::as_slice) {
            let text = value.as_str().map_or(value.to_string(), str::to_owned);
            pairs.push(format!("{name}={}", percent_encoded(&text)));
        }
    }
    if pairs.is_empty() {
        String::new()
    } else {
        format!("?{}", pairs.join("&"))
    }
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("a string accepts everything");
        }
    }
    encoded
}

async fn over_grpc(
    grpc: &Grpc,
    method: &MethodDescriptor,
    request: &Value,
) -> Result<Value, Refusal> {
    let mut client = tonic::client::Grpc::new(grpc.clone());
    client.ready().await.expect("a channel");
    let service = method.parent_service().full_name().to_owned();
    let path = PathAndQuery::try_from(format!("/{service}/{}", method.name())).expect("a path");
    let request = tonic::Request::new(read(method.input(), request));
    let answer = client.unary(request, path, Dynamic(method.output())).await;
    let answer = answer.map_err(|status| refusal(&status))?;
    Ok(serde_json::to_value(answer.into_inner()).expect("canonical JSON"))
}

fn refusal(status: &Status) -> Refusal {
    use tonic_types::StatusExt;
    let mut message = status.message().to_owned();
    if let Some(request) = status.get_details_bad_request() {
        for violation in request.field_violations {
            let said = (violation.field, violation.description);
            write!(message, "\n{}: {}", said.0, said.1).expect("a string accepts everything");
        }
    }
    Refusal {
        code: status.code(),
        message,
    }
}

fn read(message: MessageDescriptor, json: &Value) -> DynamicMessage {
    DynamicMessage::deserialize(message, json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// A message type that is known only by its descriptor.
#[derive(Debug, Clone)]
struct Dynamic(MessageDescriptor);

impl Codec for Dynamic {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        self.clone()
    }

    fn decoder(&mut self) -> Self {
        self.clone()
    }
}

impl Encoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, item: DynamicMessage, target: &mut EncodeBuf<'_>) -> Result<(), Status> {
        target.put_slice(&item.encode_to_vec());
        Ok(())
    }
}

impl Decoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let bytes = source.copy_to_bytes(source.remaining());
        let message = DynamicMessage::decode(self.0.clone(), bytes);
        message
            .map(Some)
            .map_err(|error| Status::internal(error.to_string()))
    }
}
