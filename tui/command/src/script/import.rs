//! `import`: prints the configuration of other products as documents.

mod folder;

use std::{
    io::{self, Write as _},
    path::Path,
};

use bellwether_import::{
    ImportOutput, import_alertmanager, import_grafana_oncall, import_opsgenie, import_pagerduty,
};
use bellwether_language::text;
use bellwether_process::plain_file;
use serde_json::Value;

use super::document;
use crate::{
    cli::script::{ImportArguments, ImportSource, Output},
    failure::Failure,
};

const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

pub(super) fn run_import(arguments: &ImportArguments) -> Result<(), Failure> {
    let (imported, output) = match &arguments.source {
        ImportSource::Alertmanager { file, printed } => (
            import_alertmanager(read_input(file)?, printed.with_secrets),
            printed.output,
        ),
        ImportSource::Opsgenie { folder, output } => {
            (import_opsgenie(folder::read_folder(folder)?), *output)
        }
        ImportSource::Pagerduty { folder, output } => {
            (import_pagerduty(folder::read_folder(folder)?), *output)
        }
        ImportSource::GrafanaOnCall { folder, output } => {
            (import_grafana_oncall(folder::read_folder(folder)?), *output)
        }
    };
    let imported = imported.map_err(|error| Failure::usage_error(error.to_string()))?;
    write_documents(&imported, output)
}

fn write_documents(imported: &ImportOutput, output: Output) -> Result<(), Failure> {
    document::write_document(imported.documents().to_vec(), output)?;
    let report = text::escape_invisible(&(imported.report_lines().join("\n") + "\n"), true);
    // A failure to write is ignored: there is no other way to report it.
    drop(io::stderr().write_all(report.as_bytes()));
    Ok(())
}

fn read_text(file: &Path) -> Result<String, Failure> {
    let text = plain_file::read_text(file, FILE_BYTES_MAX);
    text.map_err(|error| Failure::usage_error(format!("cannot read {}: {error}", file.display())))
}

fn read_input(file: &Path) -> Result<Value, Failure> {
    let shown = file.display();
    let text = read_text(file)?;
    // With strict booleans, `no` stays a string. Errors contain no snippets, since a line of the
    // file can contain a secret.
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(&text, options)
        .map_err(|error| Failure::usage_error(format!("{shown} is not YAML or JSON: {error}")))
}
