//! `get`, `export` and `delete`: stored resources, as returned and as documents.

use bellwether_tui::api::{Api, ConfigKind};
use serde_json::{Value, json};

use bellwether_import::secret_name;

use super::{document, format};
use crate::{
    cli::script::{DeleteArguments, ExportArguments, GetArguments, Output},
    failure::Failure,
    output,
};

const MASK: &str = "********";

pub(super) async fn run_get(arguments: GetArguments, mut api: Api) -> Result<(), Failure> {
    let kind = arguments.kind;
    let Some(name) = arguments.name else {
        let found = api.list(kind).await?;
        let found = json!({kind.plural(): found});
        return format::write_formatted(&found, arguments.output.output, |found| {
            let rows = found[kind.plural()].as_array().into_iter().flatten();
            rows.map(format_line).collect()
        });
    };
    let found = api.get(kind, &name).await?;
    match arguments.output.output {
        Output::Json => output::write_output(&format::to_json(&found)),
        Output::Agent => output::write_output(&format::to_compact_json(&found)),
        Output::Text | Output::Yaml => output::write_output(&format::to_yaml(&found)?),
    }
}

fn format_line(resource: &Value) -> String {
    let text = |field: &str| format::inline_value(&resource[field]);
    let (name, description) = (text("name"), text("description"));
    let line = format!("{name}\t{description}");
    format!("{}\n", line.trim_end())
}

pub(super) async fn run_export(arguments: ExportArguments, mut api: Api) -> Result<(), Failure> {
    let mut documents = Vec::new();
    for kind in ConfigKind::iter() {
        if !arguments.kinds.is_empty() && !arguments.kinds.contains(&kind) {
            continue;
        }
        for stored in api.list(kind).await? {
            // An ended silence cannot be stored again.
            if kind.singular() == "silence" && stored["state"] == "EXPIRED" {
                continue;
            }
            let mut body = kind.to_authored_form(stored);
            let name = body["name"].as_str().unwrap_or_default().to_owned();
            replace_secrets_with_variables(&mut body, &[kind.singular(), &name]);
            documents.push((kind.singular(), body));
        }
    }
    document::write_document(documents, arguments.output)
}

fn replace_secrets_with_variables(value: &mut Value, path: &[&str]) {
    match value {
        Value::String(text) if text == MASK => {
            let name = secret_name(path);
            *value = json!({"fromEnv": name});
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                // The path already contains the type, so `type` is not appended.
                let below = [path, &[name]].concat();
                let path = if name == "type" { path } else { &below };
                replace_secrets_with_variables(value, path);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter_mut().enumerate() {
                replace_secrets_with_variables(value, &[path, &[&at.to_string()]].concat());
            }
        }
        _ => {}
    }
}

pub(super) async fn run_delete(arguments: DeleteArguments, mut api: Api) -> Result<(), Failure> {
    let (kind, name) = (arguments.kind, &arguments.name);
    let deleted = api.delete(kind, name, arguments.force).await;
    deleted?;
    output::write_output(&format!("deleted {} {name}\n", kind.singular()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_secret_becomes_a_variable_name() {
        let mut body = json!({
            "name": "ops hook",
            "type": {"webhook": {"url": "https://x/", "headers": {"authorization": MASK}}},
        });
        replace_secrets_with_variables(&mut body, &["destination", "ops hook"]);
        let named = "BELLWETHER_SECRET_DESTINATION_OPS_HOOK_WEBHOOK_HEADERS_AUTHORIZATION";
        let secret = &body["type"]["webhook"]["headers"]["authorization"];
        assert_eq!(secret, &json!({"fromEnv": named}));
        assert_eq!(body["name"], "ops hook");
    }
}
