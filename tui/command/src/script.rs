//! Commands for scripts. Each command calls a running service, prints the result, and exits with a
//! code that depends on the result.

mod apply;
mod completions;
mod doctor;
mod document;
mod events;
mod explain;
mod format;
mod health;
mod import;
mod manual;
mod mcp;
mod preset;
mod report;
mod resources;
mod send;
mod trial;

use std::path::PathBuf;

use crate::{
    cli::script::Script, clients::unreachable_failure, config::Settings, failure::Failure, key,
    operate, ready,
};
use bellwether_tui::api::{Api, CallErrorKind};
use tonic::metadata::{Ascii, MetadataValue};

pub(crate) async fn run_script(command: Script, settings: &Settings) -> Result<(), Failure> {
    match command {
        Script::Get(arguments) => resources::run_get(arguments, connect(settings).await?).await,
        Script::Export(arguments) => {
            resources::run_export(arguments, connect(settings).await?).await
        }
        Script::Delete(arguments) => {
            resources::run_delete(arguments, connect(settings).await?).await
        }
        Script::Diff(arguments) => apply::run_diff(arguments, settings).await,
        Script::Apply(arguments) => apply::run_apply(arguments, settings).await,
        Script::Send(arguments) => send::run_send(arguments, settings).await,
        Script::Events(arguments) => events::run_events(arguments, connect(settings).await?).await,
        Script::Watch(arguments) => events::run_watch(arguments, settings).await,
        Script::Explain(arguments) => {
            explain::run_explain(arguments, connect(settings).await?).await
        }
        Script::Test(arguments) => trial::run_test(arguments, connect(settings).await?).await,
        Script::Try(arguments) => trial::try_trigger(arguments, connect(settings).await?).await,
        Script::Preview(arguments) => trial::run_preview(arguments, connect(settings).await?).await,
        Script::Report(arguments) => report::run_report(arguments, connect(settings).await?).await,
        Script::Status(arguments) => health::run_status(arguments, connect(settings).await?).await,
        Script::Quiet(arguments) => health::run_quiet(&arguments, connect(settings).await?).await,
        Script::Health => health::run_health(settings).await,
        Script::Preset(command) => preset::run_preset(command, settings).await,
        Script::Import(arguments) => import::run_import(&arguments),
        Script::Doctor => doctor::run_doctor(settings).await,
        Script::Mcp(arguments) => mcp::run_mcp(&arguments, settings).await,
        Script::Completions(arguments) => completions::run(&arguments).await,
        Script::Man(arguments) => manual::run_manual(&arguments),
    }
}

/// Applies the documents of a file, and prints nothing.
///
/// # Errors
/// Returns an error if the file cannot be read, or the service rejects a document.
pub(crate) async fn apply_file(file: PathBuf, api: &mut Api) -> Result<(), Failure> {
    let mut request = apply::ApplyRequest::new(document::read_documents(&[file])?, None)?;
    request.call(api, false).await.map(drop)
}

async fn connect(settings: &Settings) -> Result<Api, Failure> {
    connect_as(settings, None).await
}

/// Connects on behalf of an agent, which the audit log names.
async fn connect_as(
    settings: &Settings,
    agent: Option<MetadataValue<Ascii>>,
) -> Result<Api, Failure> {
    let address = ready::grpc_address(settings);
    let key = key::read_key(settings, &address).await?;
    let mut options = operate::connect_options(settings, &address, key.as_deref())?;
    options.agent = agent;
    Api::connect(options).await.map_err(|error| {
        if error.kind == CallErrorKind::Unreachable {
            return unreachable_failure(&address, error);
        }
        error.into()
    })
}
