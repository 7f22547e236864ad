//! The operations: how to build the request of each method from path, query and body.

use http::Method;

use bellwether_proto::json::{
    descriptor::{self as pb, index},
    plan::{Cardinality, FieldPlan, Kind, MessageId, Plan, Shape},
};

use crate::route::Template;

/// Below this path, existing senders add unknown JSON fields, which are ignored.
const LENIENT_PREFIX: &str = "/v1/data-receiver/";

#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) service: Box<str>,
    pub(crate) title: Box<str>,
    pub(crate) service_doc: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) doc: Box<str>,
    /// Minimum role, as stated by `role` of `options.proto`.
    pub(crate) role: Box<str>,
    /// List of the response that is available as CSV; empty if there is none.
    pub(crate) csv: Box<str>,
    pub(crate) is_silent: bool,
    pub(crate) grpc_path: http::uri::PathAndQuery,
    pub(crate) method: Method,
    pub(crate) is_additional: bool,
    pub(crate) template: Template,
    pub(crate) body: BodyRule,
    /// Fields to set from the captured segments, in the order of the path.
    pub(crate) path_bindings: Vec<BoundPath>,
    pub(crate) input: MessageId,
    pub(crate) output: MessageId,
    pub(crate) lenient: bool,
    /// Index of the field with the items of a lenient request.
    pub(crate) list: Option<usize>,
}

struct Service<'a> {
    name: &'a str,
    title: &'a str,
    doc: &'a str,
}

/// Tags of `FileDescriptorProto` and `ServiceDescriptorProto`, from which the paths of comments are
/// built.
mod tag {
    pub(super) const FILE_SERVICE: i32 = 6;
    pub(super) const SERVICE_METHOD: i32 = 2;
}

/// Compiles all methods with an HTTP rule, in the order of the files.
pub(crate) fn compile(files: &[pb::File], plan: &Plan) -> Result<Vec<Operation>, String> {
    let mut operations = Vec::new();
    for file in files.iter().filter(|file| !file.service.is_empty()) {
        let comments = file.comments().map_err(|error| error.to_string())?;
        for (service_at, service) in file.service.iter().enumerate() {
            let path = [tag::FILE_SERVICE, index(service_at)];
            let title = service.options.as_ref().map(|options| &*options.title);
            let described = Service {
                name: &format!("{}.{}", file.package, service.name),
                title: title
                    .filter(|title| !title.is_empty())
                    .unwrap_or(&service.name),
                doc: &comments.comment_at(&path),
            };
            for (at, method) in service.method.iter().enumerate() {
                let doc = comments.comment_at(&[path[0], path[1], tag::SERVICE_METHOD, index(at)]);
                operations.extend(Operation::compile(plan, &described, method, &doc)?);
            }
        }
    }
    Ok(operations)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyRule {
    None,
    Optional,
    Whole,
    Field(u32, MessageId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoundPath {
    pub(crate) number: u32,
    pub(crate) json_name: Box<str>,
    /// Whether the field is in the body's message, as opposed to the request.
    pub(crate) in_body_field: bool,
}

impl Operation {
    /// Compiles the HTTP bindings of one method. Streaming methods have none.
    fn compile(
        plan: &Plan,
        service: &Service<'_>,
        method: &pb::Method,
        doc: &str,
    ) -> Result<Vec<Self>, String> {
        let Some(rule) = method
            .options
            .as_ref()
            .and_then(|options| options.http.as_ref())
        else {
            return Ok(Vec::new());
        };
        let place = format!("{}.{}", service.name, method.name);
        if method.client_streaming || method.server_streaming {
            return Err(format!(
                "{place}: streaming methods cannot have an http rule"
            ));
        }
        std::iter::once(rule)
            .chain(&rule.additional_bindings)
            .enumerate()
            .map(|(at, rule)| {
                let compiled = Self::compile_rule(plan, service, method, rule, doc)?;
                Ok(Self {
                    is_additional: at > 0,
                    ..compiled
                })
            })
            .map(|compiled: Result<_, String>| {
                compiled.map_err(|reason| format!("{place}: {reason}"))
            })
            .collect()
    }

    fn compile_rule(
        plan: &Plan,
        service: &Service<'_>,
        method: &pb::Method,
        rule: &pb::HttpRule,
        doc: &str,
    ) -> Result<Self, String> {
        let (http_method, path) =
            method_and_path(rule).ok_or("the http rule has no method or path")?;
        if !rule.response_body.is_empty() {
            return Err("response_body is not supported".to_owned());
        }
        let message = |name: &str| {
            let id = plan.by_name.get(name.trim_start_matches('.')).copied();
            id.ok_or_else(|| format!("the type {name} is not in the descriptor set"))
        };
        let call = method.options.as_ref();
        let call = call.and_then(|options| options.call.as_ref());
        let input = message(&method.input_type)?;
        let template = Template::parse(path)?;
        let list = list_field_index(plan, input).filter(|_| path.starts_with(LENIENT_PREFIX));
        let body = body_rule(plan, input, rule, &http_method, template.captures.len())?;
        let path_bindings = template
            .captures
            .iter()
            .map(|capture| bind_path(plan, input, body, capture))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            service: service.name.into(),
            title: service.title.into(),
            service_doc: service.doc.into(),
            name: method.name.as_str().into(),
            doc: doc.into(),
            role: method
                .options
                .as_ref()
                .map_or("any", |options| &*options.role)
                .into(),
            csv: call.map_or("", |call| &*call.csv).into(),
            is_silent: call.is_some_and(|call| call.silent),
            grpc_path: format!("/{}/{}", service.name, method.name)
                .parse()
                .map_err(|error| format!("the method's name is not a path: {error}"))?,
            method: http_method,
            is_additional: false,
            // A misspelled failure of a heartbeat would otherwise count as a successful beat.
            lenient: list.is_some(),
            list,
            template,
            body,
            path_bindings,
            input,
            output: message(&method.output_type)?,
        })
    }

    pub(crate) fn body_message(&self) -> Option<MessageId> {
        match self.body {
            BodyRule::None => None,
            BodyRule::Optional | BodyRule::Whole => Some(self.input),
            BodyRule::Field(_, message) => Some(message),
        }
    }

    /// Returns the message type of the body for the documentation; `None` for DELETE, whose body is
    /// accepted only for existing clients.
    pub(crate) fn documented_body(&self) -> Option<MessageId> {
        self.body_message()
            .filter(|_| self.method != Method::DELETE)
    }

    pub(crate) fn is_tagged(&self) -> bool {
        self.method == Method::GET && !self.is_silent
    }

    pub(crate) fn list_plan<'p>(&self, plan: &'p Plan) -> Option<&'p FieldPlan> {
        self.list.map(|at| &plan.messages[self.input].fields[at])
    }

    pub(crate) fn accepts_query(&self, plan: &Plan, field: &FieldPlan) -> bool {
        let bound = |binding: &BoundPath| !binding.in_body_field && binding.number == field.number;
        let free = match self.body {
            BodyRule::Whole => false,
            BodyRule::Field(number, _) => number != field.number,
            BodyRule::None | BodyRule::Optional => true,
        };
        let textual = match field.kind {
            _ if field.cardinality == Cardinality::Map => false,
            Kind::Message(id) => matches!(
                plan.messages[id].shape,
                Shape::Timestamp | Shape::Duration | Shape::FieldMask | Shape::Wrapper
            ),
            _ => true,
        };
        free && textual && !self.path_bindings.iter().any(bound)
    }
}

fn list_field_index(plan: &Plan, input: MessageId) -> Option<usize> {
    plan.messages[input].fields.iter().position(|field| {
        matches!(field.cardinality, Cardinality::Repeated { .. })
            && matches!(field.kind, Kind::Message(_))
    })
}

fn method_and_path(rule: &pb::HttpRule) -> Option<(Method, &str)> {
    [
        (Method::GET, &rule.get),
        (Method::PUT, &rule.put),
        (Method::POST, &rule.post),
        (Method::DELETE, &rule.delete),
        (Method::PATCH, &rule.patch),
    ]
    .into_iter()
    .find(|(_, path)| !path.is_empty())
    .map(|(method, path)| (method, path.as_str()))
}

fn body_rule(
    plan: &Plan,
    input: MessageId,
    rule: &pb::HttpRule,
    method: &Method,
    captures: usize,
) -> Result<BodyRule, String> {
    match rule.body.as_str() {
        // Clients may send an `etag` in the body of a DELETE. If the body were ignored, a resource
        // that has changed would be deleted.
        "" if *method == Method::DELETE => Ok(BodyRule::Optional),
        "" => Ok(BodyRule::None),
        // All fields are in the path, so the body is optional.
        "*" if plan.messages[input].fields.len() <= captures => Ok(BodyRule::Optional),
        "*" => Ok(BodyRule::Whole),
        name => match plan.field(input, name) {
            Some(FieldPlan {
                kind: Kind::Message(id),
                number,
                cardinality,
                ..
            }) if *cardinality == Cardinality::Single => Ok(BodyRule::Field(*number, *id)),
            _ => Err(format!(
                "the body `{name}` is not a message field of the request"
            )),
        },
    }
}

fn bind_path(
    plan: &Plan,
    input: MessageId,
    body: BodyRule,
    capture: &str,
) -> Result<BoundPath, String> {
    let unbound = || format!("`{{{capture}}}` is not a string field of the request or of its body");
    let (message, name, in_body_field) = match (capture.split_once('.'), body) {
        (None, _) => (input, capture, false),
        (Some((first, rest)), BodyRule::Field(number, message))
            if plan
                .field(input, first)
                .is_some_and(|field| field.number == number) =>
        {
            (message, rest, true)
        }
        _ => return Err(unbound()),
    };
    let field = plan.field(message, name).ok_or_else(unbound)?;
    if field.kind != Kind::String || field.cardinality != Cardinality::Single {
        return Err(unbound());
    }
    Ok(BoundPath {
        number: field.number,
        json_name: field.json_name.clone(),
        in_body_field,
    })
}
