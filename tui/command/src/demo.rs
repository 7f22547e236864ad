//! `demo`: the console on a service with simulated incidents, in a temporary folder. Nothing leaves
//! the machine, and all data is deleted afterwards.

mod receivers;
mod story;

use std::{fs, io};

use bellwether_tui::api::{Api, CallError};
use tempfile::TempDir;
use tokio::task::JoinSet;

use self::receivers::Receivers;
use crate::{
    cli::{DemoArguments, Flags},
    config::{Part, Settings, Variables},
    embedded::{Parts, Service},
    failure::Failure,
    key, log,
    operate::{self, own_service},
    output, script, serve,
};

const CONFIG: &str = include_str!("demo/config.yaml");
const LOG_FILE: &str = "service.log";
/// Allows deliveries to the demo's own receivers, which listen on the loopback address.
const SETTINGS: &str = "[egress]\nallow = [\"127.0.0.0/8\"]\n";

/// A prepared demo. Dropping it deletes the folder.
pub(crate) struct Demo {
    folder: TempDir,
    pub(crate) settings: Settings,
}

impl Demo {
    /// Creates the folder and its settings. Only flags and variables for the terminal are used, so
    /// that the demo does not affect an installed service.
    ///
    /// # Errors
    /// Returns an error if there is no room for temporary files.
    pub(crate) fn prepare(flags: &Flags, variables: &Variables) -> Result<Self, Failure> {
        let folder = TempDir::with_prefix("bellwether-demo-").map_err(write_failure)?;
        let file = folder.path().join("bellwether.toml");
        fs::write(&file, SETTINGS).map_err(write_failure)?;
        let any_port = Some("127.0.0.1:0".to_owned());
        let flags = Flags {
            data_dir: Some(folder.path().join("data").display().to_string()),
            grpc_listen: any_port.clone(),
            rest_listen: any_port,
            config: Some(file),
            theme: flags.theme.clone(),
            plain: flags.plain,
            ..Flags::default()
        };
        let variables = variables
            .iter()
            .filter(|(name, _)| !name.starts_with("BELLWETHER_"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let settings = Settings::load(&flags, &variables, |_| Part::Service)?;
        Ok(Self { folder, settings })
    }

    /// Starts the service and the incidents, and opens the console until the operator leaves. With
    /// `serve`, prints the addresses instead of opening the console, and serves until a signal.
    ///
    /// # Errors
    /// Returns an error if the service does not start or there is no terminal.
    pub(crate) async fn run(self, arguments: &DemoArguments) -> Result<(), Failure> {
        let unbound = |error: io::Error| Failure::new(format!("no port is free: {error}"));
        let receivers = Receivers::start().await.map_err(unbound)?;
        let settings = &self.settings;
        let service = Service::bind(settings, Parts::Both).await?;
        log::log_to_file(settings, &self.folder.path().join(LOG_FILE))?;
        let rest = service.addresses().rest.unwrap_or_default();
        own_service::serve_during(settings, service, async |address| {
            let mut stories = JoinSet::new();
            stories.spawn(story::run_story(self.set_up(address, &receivers).await?));
            if arguments.serve {
                let key_file = settings.data_dir.join("admin.key");
                let key_file = key_file.display();
                output::write_output(&format!(
                    "gRPC {address}\nREST {rest}\nkey file {key_file}\n"
                ))?;
                return serve::wait_for_stop_signal().await;
            }
            operate::open_own_console(settings, address).await
        })
        .await
    }

    async fn set_up(&self, address: &str, receivers: &Receivers) -> Result<Api, Failure> {
        let failed = |error: CallError| Failure::new(error.message);
        let key = key::read_api_key(&self.settings)?;
        let options = operate::connect_options(&self.settings, address, Some(&key))?;
        let mut api = Api::connect(options).await.map_err(failed)?;
        let file = self.folder.path().join("config.yaml");
        let config = CONFIG.replace("RECEIVERS", &receivers.url);
        fs::write(&file, config).map_err(write_failure)?;
        script::apply_file(file, &mut api).await?;
        story::create_staging_silence(&mut api)
            .await
            .map_err(failed)?;
        Ok(api)
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature that `map_err` requires"
)]
fn write_failure(error: io::Error) -> Failure {
    Failure::new(format!("cannot write temporary files: {error}"))
}
