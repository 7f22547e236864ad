//! `import`: converts the configuration of other products to documents, and reports parts without a
//! counterpart.

mod alertmanager;
mod escalation;
mod fields;
mod folder;
mod imported;
mod opsgenie;
mod pagerduty;
mod people;
mod rotation;
#[cfg(test)]
mod tests;

use std::path::Path;

use bellwether_process::plain_file;
use serde_json::Value;

use self::imported::Imported;
use super::{document, secret_name};
use crate::{
    cli::script::{ImportArguments, ImportSource},
    failure::Failure,
};

const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Prints the documents, and on standard error the parts left out.
pub(super) fn run(arguments: &ImportArguments) -> Result<(), Failure> {
    match &arguments.source {
        ImportSource::Alertmanager { file, printed } => {
            let mut imported = Imported::new("alertmanager", printed.with_secrets);
            alertmanager::import(read(file)?, &mut imported)?;
            imported.write(printed.output)
        }
        ImportSource::Opsgenie { folder, output } => {
            let mut imported = Imported::new("opsgenie", false);
            opsgenie::import(folder::read(folder)?, &mut imported)?;
            imported.write(*output)
        }
        ImportSource::Pagerduty { folder, output } => {
            let mut imported = Imported::new("pagerduty", false);
            pagerduty::import(folder::read(folder)?, &mut imported)?;
            imported.write(*output)
        }
    }
}

fn text(file: &Path) -> Result<String, Failure> {
    let text = plain_file::read_text(file, FILE_BYTES_MAX);
    text.map_err(|error| Failure::usage(format!("{} cannot be read: {error}", file.display())))
}

fn read(file: &Path) -> Result<Value, Failure> {
    let shown = file.display();
    let text = text(file)?;
    // Strict booleans, so that `no` stays a text. No snippets in errors, since a line of the file
    // can contain a secret.
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(&text, options)
        .map_err(|error| Failure::usage(format!("{shown} is not YAML or JSON: {error}")))
}
