//! `preset`: ready-made documents for other products, which are part of the program.

use std::fmt::Write as _;

use bellwether_import::preset::{Parameter, Preset};

use super::{
    apply::{self, ApplyRequest},
    connect,
    document::{self, Document},
};
use crate::{
    cli::script::{Output, PresetApplyArguments, PresetCommand},
    config::Settings,
    failure::Failure,
    output,
};

pub(super) async fn run_preset(command: PresetCommand, settings: &Settings) -> Result<(), Failure> {
    match command {
        PresetCommand::List => list_presets(),
        PresetCommand::Show { name } => show_preset(&name),
        PresetCommand::Apply(arguments) => apply_preset(arguments, settings).await,
    }
}

fn list_presets() -> Result<(), Failure> {
    let mut lines = String::new();
    for file in Preset::iter() {
        let document = preset_document(file)?;
        let (name, kind) = (file.name, document.kind.singular());
        let description = preset_description(file, &document);
        let _ = writeln!(lines, "{name}\t{kind}\t{description}");
    }
    output::write_output(&lines)
}

fn show_preset(name: &str) -> Result<(), Failure> {
    let file = find_preset(name)?;
    if !file.is_json {
        return output::write_output(file.text);
    }
    let document = preset_document(file)?;
    document::write_document(
        vec![(document.kind.singular(), document.body)],
        Output::Yaml,
    )
}

async fn apply_preset(arguments: PresetApplyArguments, settings: &Settings) -> Result<(), Failure> {
    let mut document = preset_document(find_preset(&arguments.name)?)?;
    for (name, value) in &arguments.values {
        let parameters = Parameter::from_document(&document.body);
        let Some(parameter) = parameters.iter().find(|it| it.name == *name) else {
            return Err(Failure::usage_error(format!(
                "--set: unknown parameter `{name}`; this preset has {}",
                parameter_names(&parameters)
            )));
        };
        parameter.set_value(&mut document.body, value);
    }
    let parameters = Parameter::from_document(&document.body);
    if let Some(open) = parameters.iter().find(|it| it.is_open) {
        let name = &open.name;
        return Err(Failure::usage_error(format!(
            "--set {name}=VALUE: required"
        )));
    }
    let named = document.body["name"].as_str().unwrap_or_default();
    named.clone_into(&mut document.name);
    let request = ApplyRequest::new(vec![document], None);
    let mut request = request.map_err(|failure| {
        let parameters = parameter_names(&parameters);
        Failure::usage_error(format!(
            "{failure}; set it, or one of these with --set: {parameters}"
        ))
    })?;
    let mut api = connect(settings).await?;
    let changes = request.call(&mut api, arguments.dry_run).await?;
    apply::write_changes(&changes, None, arguments.output)
}

fn find_preset(name: &str) -> Result<&'static Preset, Failure> {
    Preset::find(name).ok_or_else(|| {
        let known = Preset::iter().map(|file| file.name);
        let nearest = known.min_by_key(|known| strsim::damerau_levenshtein(known, name));
        let nearest = nearest.expect("there are presets");
        Failure::usage_error(format!(
            "unknown preset `{name}`; the nearest is {nearest}; `bellwether preset list` lists all"
        ))
    })
}

fn preset_document(file: &Preset) -> Result<Document, Failure> {
    let source = format!("preset {}", file.name);
    document::parse_document(source, file.document()).map_err(Failure::new)
}

fn preset_description(file: &Preset, document: &Document) -> String {
    let comment = file.text.lines().map_while(|line| line.strip_prefix("# "));
    let text = match document.body["description"].as_str() {
        Some(text) => text.to_owned(),
        None => comment.collect::<Vec<_>>().join(" "),
    };
    let ends = [". ", "; ", ": ", ", by "].into_iter();
    let end = ends.filter_map(|end| text.find(end)).min();
    text[..end.unwrap_or(text.len())]
        .trim_end_matches('.')
        .to_owned()
}

fn parameter_names(parameters: &[Parameter]) -> String {
    let names: Vec<_> = parameters.iter().map(|it| &*it.name).collect();
    names.join(", ")
}

pub(super) fn preset_names() -> impl Iterator<Item = &'static str> {
    Preset::iter().map(|file| file.name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn preset_parameters(name: &str) -> Vec<String> {
        let document = preset_document(find_preset(name).unwrap()).unwrap();
        let found = Parameter::from_document(&document.body).into_iter();
        found.map(|it| it.name).collect()
    }

    fn document_with_values(name: &str, values: &[(&str, &str)]) -> Value {
        let mut body = preset_document(find_preset(name).unwrap()).unwrap().body;
        for (name, value) in values {
            let found = Parameter::from_document(&body);
            let found = found.iter().find(|it| it.name == *name).unwrap();
            found.set_value(&mut body, value);
        }
        body
    }

    #[test]
    fn every_preset_is_a_document_with_a_description() {
        for file in Preset::iter() {
            let document = preset_document(file).unwrap();
            assert_eq!(document.name, file.name);
            assert!(
                preset_description(file, &document).len() > 10,
                "{}",
                file.name
            );
        }
    }

    #[test]
    fn preset_parameters_are_the_fields_that_differ_between_users() {
        assert_eq!(preset_parameters("discord"), ["name", "url"]);
        let telegram = preset_parameters("telegram");
        assert_eq!(telegram, ["name", "url", "chat_id"]);
        assert!(preset_parameters("zulip").contains(&"authorization".to_owned()));
        assert!(preset_parameters("twilio-sms").contains(&"To".to_owned()));
        assert!(preset_parameters("watchdog").contains(&"every".to_owned()));
        assert!(preset_parameters("github").contains(&"secret".to_owned()));
    }

    #[test]
    fn parameters_keep_place_and_syntax_of_the_document() {
        let telegram = document_with_values(
            "telegram",
            &[
                ("name", "alerts"),
                ("url", "https://x/"),
                ("chat_id", "@a\"b"),
            ],
        );
        assert_eq!(telegram["name"], "alerts");
        let webhook = &telegram["type"]["webhook"];
        assert_eq!(webhook["secretUrl"], "https://x/");
        let payload = webhook["payload"].as_str().unwrap();
        assert!(
            payload.contains(r#""chat_id": "@a\"b", "text""#),
            "{payload}"
        );
        let twilio = document_with_values("twilio-sms", &[("To", "+49 1&2")]);
        let payload = twilio["type"]["webhook"]["payload"].as_str().unwrap();
        assert!(payload.contains("&To=%2B49%201%262&Body="), "{payload}");
        let watchdog = document_with_values("watchdog", &[("every", "60s"), ("enabled", "false")]);
        assert_eq!(
            (&watchdog["every"], &watchdog["enabled"]),
            (&json!("60s"), &json!(false))
        );
        let github = document_with_values("github", &[("secret", "s3")]);
        assert!(!github.to_string().contains("SECRET"), "{github}");
    }
}
