//! The tools: methods of the service, as declared in the `.proto` files.

use bellwether_proto::{
    FILE_DESCRIPTOR_SET,
    json::{
        self,
        descriptor::{self, MethodOptions, index},
        plan::MessageId,
        shared_plan,
    },
    options::call::Class,
};
use serde_json::{Value, json};

use super::{
    schema::{HIDDEN, first_sentences, request_schema},
    write::WRITES,
};
use crate::failure::Failure;

const PACKAGE: &str = "bellwether.v1";
/// Tags of `FileDescriptorProto.service` and `ServiceDescriptorProto.method`.
const SERVICE: i32 = 6;
const METHOD: i32 = 2;

#[derive(Clone, Debug)]
pub(super) struct Tool {
    /// Name of the service, without the package.
    pub(super) service: String,
    pub(super) method: String,
    pub(super) needs_operator: bool,
    pub(super) is_write: bool,
    doc: Box<str>,
    input: MessageId,
}

/// Returns the tools for operators: methods that read, and methods that write if their effect can
/// be counted.
pub(super) fn operator_tools() -> Result<Vec<Tool>, Failure> {
    let unreadable = |error| Failure::new(format!("failed to read the method table: {error}"));
    let mut tools = Vec::new();
    for file in descriptor::decode_files(&[FILE_DESCRIPTOR_SET]).map_err(unreadable)? {
        if file.package != PACKAGE || file.service.is_empty() {
            continue;
        }
        let comments = file.comments().map_err(unreadable)?;
        for (at, service) in file.service.iter().enumerate() {
            for (method_at, method) in service.method.iter().enumerate() {
                let options = method.options.as_ref();
                let Some((needs_operator, is_write)) =
                    options.and_then(|options| access(&method.name, options))
                else {
                    continue;
                };
                let input = method.input_type.trim_start_matches('.');
                tools.extend(shared_plan().by_name.get(input).map(|input| Tool {
                    service: service.name.clone(),
                    method: method.name.clone(),
                    needs_operator,
                    is_write,
                    doc: comments.comment_at(&[SERVICE, index(at), METHOD, index(method_at)]),
                    input: *input,
                }));
            }
        }
    }
    Ok(tools)
}

/// Returns whether a method requires an operator, and whether it writes; `None` if it is not
/// offered. Methods that issue a link or URL read, but are audited.
fn access(name: &str, options: &MethodOptions) -> Option<(bool, bool)> {
    let call = options.call.as_ref()?;
    let needs_operator = match &*options.role {
        "viewer" => false,
        "operator" => true,
        _ => return None,
    };
    match call.class() {
        Class::Read | Class::Page if call.audit.is_empty() => Some((needs_operator, false)),
        Class::Change if needs_operator && WRITES.contains(&name) => Some((true, true)),
        _ => None,
    }
}

impl Tool {
    pub(super) fn description(&self) -> Value {
        let mut text = first_sentences(&self.doc);
        if self.is_write {
            text += " Changes nothing until confirmed.";
        }
        json!({
            "name": self.method,
            "description": text,
            "inputSchema": request_schema(shared_plan(), self.input),
            // A tool that writes only returns the effect; `confirm` performs the write.
            "annotations": {"readOnlyHint": true},
        })
    }

    /// Whether the request has the field `validateOnly`.
    pub(super) fn can_validate(&self) -> bool {
        shared_plan().field(self.input, "validateOnly").is_some()
    }

    /// Returns the arguments as the canonical JSON of the request.
    ///
    /// # Errors
    /// Returns the invalid fields, or a field that an agent cannot set.
    pub(super) fn parse_request(&self, arguments: &Value) -> Result<Value, String> {
        let name = &shared_plan().messages[self.input].name;
        let wire = json::wire_from_json(name, arguments.to_string().as_bytes());
        let text = wire.and_then(|wire| json::wire_to_json(name, &wire));
        let text = text.map_err(|error| error.to_string())?;
        let request: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        match HIDDEN.into_iter().find(|it| !request[it].is_null()) {
            Some(field) => Err(format!("{field}: an agent cannot set this field")),
            None => Ok(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_read_and_only_operators_write() {
        let tools = operator_tools().unwrap();
        let named = |it: fn(&&Tool) -> bool| -> Vec<_> {
            let found = tools.iter().filter(it);
            found.map(|it| it.method.as_str()).collect()
        };
        let reads = named(|it| !it.needs_operator);
        for name in [
            "SearchEvents",
            "ListRules",
            "PreviewSilence",
            "PreviewImpact",
        ] {
            assert!(reads.contains(&name), "{name}: {reads:?}");
        }
        let written = named(|it| it.is_write);
        assert_eq!(written.len(), WRITES.len(), "{written:?}");
        assert!(tools.iter().all(|it| it.needs_operator || !it.is_write));
        for name in [
            "GetScheduleFeed",
            "GetContactFeed",
            "WatchEvents",
            "ApplyConfig",
        ] {
            assert!(tools.iter().all(|it| it.method != name), "{name}");
        }
    }

    #[test]
    fn every_tool_has_a_description_and_a_small_schema() {
        let mut total = 0;
        for tool in operator_tools().unwrap() {
            let described = tool.description();
            let size = described.to_string().len();
            total += size;
            assert!(size < 10 * 1024, "{}: {size}", tool.method);
            assert!(described["description"].as_str().unwrap().ends_with('.'));
            assert_eq!(described["inputSchema"]["type"], "object");
        }
        assert!(total < 100 * 1024, "{total}");
    }
}
