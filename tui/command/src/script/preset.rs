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

pub(super) async fn run(command: PresetCommand, settings: &Settings) -> Result<(), Failure> {
    match command {
        PresetCommand::List => list(),
        PresetCommand::Show { name } => show(&name),
        PresetCommand::Apply(arguments) => apply(arguments, settings).await,
    }
}

fn list() -> Result<(), Failure> {
    let mut lines = String::new();
    for file in Preset::all() {
        let document = document(file)?;
        let (name, kind) = (file.name, document.kind.singular());
        let description = description(file, &document);
        let _ = writeln!(lines, "{name}\t{kind}\t{description}");
    }
    output::write(&lines)
}

fn show(name: &str) -> Result<(), Failure> {
    let file = find(name)?;
    if !file.is_json {
        return output::write(file.text);
    }
    let document = document(file)?;
    document::write(
        vec![(document.kind.singular(), document.body)],
        Output::Yaml,
    )
}

async fn apply(arguments: PresetApplyArguments, settings: &Settings) -> Result<(), Failure> {
    let mut document = document(find(&arguments.name)?)?;
    for (name, value) in &arguments.values {
        let parameters = Parameter::all(&document.body);
        let Some(parameter) = parameters.iter().find(|it| it.name == *name) else {
            return Err(Failure::usage(format!(
                "--set: unknown parameter `{name}`; this preset has {}",
                parameter_names(&parameters)
            )));
        };
        parameter.set(&mut document.body, value);
    }
    let parameters = Parameter::all(&document.body);
    if let Some(open) = parameters.iter().find(|it| it.is_open) {
        let name = &open.name;
        return Err(Failure::usage(format!("--set {name}=VALUE: required")));
    }
    let named = document.body["name"].as_str().unwrap_or_default();
    named.clone_into(&mut document.name);
    let request = ApplyRequest::new(vec![document], None);
    let mut request = request.map_err(|failure| {
        let parameters = parameter_names(&parameters);
        Failure::usage(format!(
            "{failure}; set it, or one of these with --set: {parameters}"
        ))
    })?;
    let mut api = connect(settings).await?;
    let changes = request.call(&mut api, arguments.dry_run).await?;
    apply::write(&changes, None, arguments.output)
}

fn find(name: &str) -> Result<&'static Preset, Failure> {
    Preset::find(name).ok_or_else(|| {
        let known = Preset::all().map(|file| file.name);
        let nearest = known.min_by_key(|known| strsim::damerau_levenshtein(known, name));
        let nearest = nearest.expect("there are presets");
        Failure::usage(format!(
            "unknown preset `{name}`; the nearest is {nearest}; `bellwether preset list` lists them"
        ))
    })
}

fn document(file: &Preset) -> Result<Document, Failure> {
    let source = format!("preset {}", file.name);
    document::document(source, file.document()).map_err(Failure::new)
}

/// Returns the first sentence of the comment or the description.
fn description(file: &Preset, document: &Document) -> String {
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

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    Preset::all().map(|file| file.name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parameters_of(name: &str) -> Vec<String> {
        let document = document(find(name).unwrap()).unwrap();
        let found = Parameter::all(&document.body).into_iter();
        found.map(|it| it.name).collect()
    }

    fn set(name: &str, values: &[(&str, &str)]) -> Value {
        let mut body = document(find(name).unwrap()).unwrap().body;
        for (name, value) in values {
            let found = Parameter::all(&body);
            let found = found.iter().find(|it| it.name == *name).unwrap();
            found.set(&mut body, value);
        }
        body
    }

    #[test]
    fn every_preset_is_a_document_with_a_description() {
        for file in Preset::all() {
            let document = document(file).unwrap();
            assert_eq!(document.name, file.name);
            assert!(description(file, &document).len() > 10, "{}", file.name);
        }
    }

    #[test]
    fn preset_parameters_are_the_fields_that_differ_between_users() {
        assert_eq!(parameters_of("discord"), ["name", "url"]);
        let telegram = parameters_of("telegram");
        assert_eq!(telegram, ["name", "url", "chat_id"]);
        assert!(parameters_of("zulip").contains(&"authorization".to_owned()));
        assert!(parameters_of("twilio-sms").contains(&"To".to_owned()));
        assert!(parameters_of("watchdog").contains(&"every".to_owned()));
        assert!(parameters_of("github").contains(&"secret".to_owned()));
    }

    #[test]
    fn parameters_keep_place_and_syntax_of_the_document() {
        let telegram = set(
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
        let twilio = set("twilio-sms", &[("To", "+49 1&2")]);
        let payload = twilio["type"]["webhook"]["payload"].as_str().unwrap();
        assert!(payload.contains("&To=%2B49%201%262&Body="), "{payload}");
        let watchdog = set("watchdog", &[("every", "60s"), ("enabled", "false")]);
        assert_eq!(
            (&watchdog["every"], &watchdog["enabled"]),
            (&json!("60s"), &json!(false))
        );
        let github = set("github", &[("secret", "s3")]);
        assert!(!github.to_string().contains("SECRET"), "{github}");
    }
}
