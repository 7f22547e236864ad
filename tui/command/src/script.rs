//! Commands for scripts: each calls a running service, prints the result, and reflects it in the
//! exit code.

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

pub(crate) async fn run(command: Script, settings: &Settings) -> Result<(), Failure> {
    match command {
        Script::Get(arguments) => resources::get(arguments, connect(settings).await?).await,
        Script::Export(arguments) => resources::export(arguments, connect(settings).await?).await,
        Script::Delete(arguments) => resources::delete(arguments, connect(settings).await?).await,
        Script::Diff(arguments) => apply::diff(arguments, settings).await,
        Script::Apply(arguments) => apply::apply(arguments, settings).await,
        Script::Send(arguments) => send::run(arguments, settings).await,
        Script::Events(arguments) => events::events(arguments, connect(settings).await?).await,
        Script::Watch(arguments) => events::watch(arguments, settings).await,
        Script::Explain(arguments) => explain::run(arguments, connect(settings).await?).await,
        Script::Test(arguments) => trial::test(arguments, connect(settings).await?).await,
        Script::Try(arguments) => trial::try_trigger(arguments, connect(settings).await?).await,
        Script::Preview(arguments) => trial::preview(arguments, connect(settings).await?).await,
        Script::Report(arguments) => report::run(arguments, connect(settings).await?).await,
        Script::Status(arguments) => health::status(arguments, connect(settings).await?).await,
        Script::Quiet(arguments) => health::quiet(&arguments, connect(settings).await?).await,
        Script::Health => health::health(settings).await,
        Script::Preset(command) => preset::run(command, settings).await,
        Script::Import(arguments) => import::run(&arguments),
        Script::Doctor => doctor::run(settings).await,
        Script::Completions(arguments) => completions::run(&arguments).await,
        Script::Man(arguments) => manual::run(&arguments),
    }
}

/// Applies the documents of a file, and prints nothing.
///
/// # Errors
/// Returns an error if the file cannot be read, or the service rejects a document.
pub(crate) async fn apply_file(file: PathBuf, api: &mut Api) -> Result<(), Failure> {
    let mut request = apply::ApplyRequest::new(document::read(&[file])?, None)?;
    request.call(api, false).await.map(drop)
}

async fn connect(settings: &Settings) -> Result<Api, Failure> {
    let address = ready::grpc_address(settings);
    let key = key::read(settings, &address).await?;
    let options = operate::connect_options(settings, &address, key.as_deref())?;
    Api::connect(options).await.map_err(|error| {
        if error.kind == CallErrorKind::Unreachable {
            return unreachable_failure(&address, error);
        }
        error.into()
    })
}
