//! An isolated environment for a test: a temporary folder, a service in it, and its admin key.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{
    engine::{self, Engine, Variables},
    eventually::eventually_blocking,
    grpc::{self, Grpc},
    process::{self, Service},
    rest::Rest,
    wire::Wire,
};

/// A service and its temporary folder. When this is dropped, the service is stopped and the folder
/// removed.
#[derive(Debug)]
pub struct World {
    service: Option<Service>,
    /// Environment variables, such as the connection settings of a store in a database.
    variables: Variables,
    was_killed: bool,
    folder: TempDir,
}

impl World {
    /// Starts `bellwether serve` on free ports, with messages to this machine allowed.
    pub fn start() -> Self {
        Self::with_settings("")
    }

    /// Like [`World::start`], with additional lines in `bellwether.toml`.
    ///
    /// # Panics
    /// Panics if the service does not start.
    pub fn with_settings(lines: &str) -> Self {
        Self::prepared(lines, Path::new(""))
    }

    /// Like [`World::with_settings`], with the store at the location in the settings, or else in
    /// the data folder. `prepare` is called with the data folder before the service starts.
    ///
    /// # Panics
    /// Panics if the service does not start.
    pub fn on(prepare: impl FnOnce(&Path), lines: &str) -> Self {
        Self::with_variables(prepare, lines, Vec::new())
    }

    /// Like [`World::on`], with these environment variables.
    ///
    /// # Panics
    /// Panics if the service does not start.
    pub fn with_variables(prepare: impl FnOnce(&Path), lines: &str, variables: Variables) -> Self {
        let mut world = Self::prepare_folder(lines, Path::new(""));
        world.variables = variables;
        prepare(&world.data_dir());
        world.start_again();
        world
    }

    /// Like [`World::on`], with another binary until [`World::start_again`].
    ///
    /// # Panics
    /// Panics if the service does not start.
    pub fn with_binary(binary: &Path, prepare: impl FnOnce(&Path), lines: &str) -> Self {
        let mut world = Self::prepare_folder(lines, Path::new(""));
        prepare(&world.data_dir());
        let serve = process::command_of(binary, world.folder.path(), ["serve"]);
        world.service = Some(world.start_with(serve));
        world
    }

    /// Like [`World::start`], with a store restored from a backup by `bellwether restore`.
    ///
    /// # Panics
    /// Panics if the restore fails or the service does not start.
    pub fn restored(engine: Engine, backup: &Path, secret_key: &Path) -> Self {
        let mut world = Self::prepare_folder("", Path::new(""));
        std::fs::create_dir(world.data_dir()).unwrap();
        if engine == Engine::Database {
            world.variables = engine::in_database(&world.data_dir());
        }
        let mut command = world.command(&["restore"]);
        command.arg(backup).arg("--secret-key").arg(secret_key);
        let made = process::run(command);
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "restore: {said}");
        world.start_again();
        world
    }

    /// Like [`World::with_settings`], for a service that also trusts the certificate authorities in
    /// this file when it sends messages.
    ///
    /// # Panics
    /// Panics if the service does not start.
    pub fn with_authorities(lines: &str, ca_file: &Path) -> Self {
        Self::prepared(lines, ca_file)
    }

    /// Like [`World::start`], with the number of open files and sockets limited.
    ///
    /// # Panics
    /// Panics if the service does not start.
    pub fn with_descriptors(limit: usize) -> Self {
        Self::wrapped("prlimit", &[format!("--nofile={limit}:{limit}").as_str()])
    }

    /// Like [`World::start`], run by a wrapper program that is given the command after its
    /// arguments.
    ///
    /// # Panics
    /// Panics if the service does not start.
    pub fn wrapped(program: &str, arguments: &[&str]) -> Self {
        let mut world = Self::prepare_folder("", Path::new(""));
        let serve = process::command(world.folder.path(), ["serve"]);
        let mut limited = std::process::Command::new(program);
        limited.args(arguments);
        limited.arg(serve.get_program()).args(serve.get_args());
        for (name, value) in serve.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        world.service = Some(world.start_with(limited));
        world
    }

    fn prepared(lines: &str, ca_file: &Path) -> Self {
        let mut world = Self::prepare_folder(lines, ca_file);
        if Engine::of_this_thread() == Engine::Database {
            world.create_in_database();
        }
        world.start_again();
        world
    }

    fn create_in_database(&mut self) {
        let data_dir = self.data_dir();
        std::fs::create_dir(&data_dir).unwrap();
        self.variables = engine::in_database(&data_dir);
        let mut init = self.command(&["store", "init"]);
        init.arg("--admin-key-file").arg(data_dir.join("admin.key"));
        let made = process::run(init);
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "store init: {said}");
    }

    fn prepare_folder(lines: &str, ca_file: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = format!(
            "data_dir = {:?}\ngrpc_listen = \"127.0.0.1:0\"\nrest_listen = \"127.0.0.1:0\"\n\
             {lines}\n[egress]\nallow = [\"127.0.0.0/8\"]\nca_file = {:?}\n",
            folder.path().join("data").to_str().unwrap(),
            ca_file.to_str().unwrap(),
        );
        std::fs::write(folder.path().join("bellwether.toml"), settings).unwrap();
        Self {
            service: None,
            variables: Vec::new(),
            was_killed: false,
            folder,
        }
    }

    /// Restarts the service in its folder after it was killed or exited.
    pub fn start_again(&mut self) {
        let serve = process::command(self.folder.path(), ["serve"]);
        self.service = Some(self.start_with(serve));
        if std::mem::take(&mut self.was_killed) && !self.variables.is_empty() {
            self.wait_until_leader();
        }
    }

    /// Waits until the restarted node leads, which is after the lease of the killed process
    /// expires.
    fn wait_until_leader(&self) {
        eventually_blocking("the node to lead", || {
            let shown = process::run(self.command(&["store", "status"]));
            let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
            let nodes: Vec<_> = shown
                .lines()
                .filter(|it| it.starts_with("node: "))
                .collect();
            matches!(&*nodes, [own] if own.ends_with(", leads")).then_some(())
        });
    }

    fn start_with(&self, mut command: std::process::Command) -> Service {
        command
            .arg("--config")
            .arg(self.folder.path().join("bellwether.toml"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        Service::start(command, &self.folder.path().join("log"))
    }

    /// Returns the running service.
    ///
    /// # Panics
    /// Panics if the service was stopped.
    pub fn service(&self) -> &Service {
        self.service.as_ref().expect("the service runs")
    }

    /// Kills the service, as a power failure would.
    ///
    /// # Panics
    /// Panics if the service is not running.
    pub fn kill(&mut self) {
        self.was_killed = true;
        self.service.take().expect("the service runs").kill();
    }

    /// Whether the service has exited without being stopped.
    ///
    /// # Panics
    /// Panics if the service was never started.
    pub fn has_ended(&mut self) -> bool {
        self.service.as_mut().expect("the service ran").has_ended()
    }

    /// Stops the service and waits until it has exited.
    ///
    /// # Panics
    /// Panics if the service is not running or does not exit.
    pub fn terminate(&mut self) -> std::process::ExitStatus {
        self.service.take().expect("the service runs").terminate()
    }

    /// Returns the folder with the settings, the log and the data folder. Other commands can use
    /// this folder as their home.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the environment variables of the service and its commands.
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns the key of the initial client.
    ///
    /// # Panics
    /// Panics if the service has not written the key.
    pub fn admin_key(&self) -> String {
        let key = std::fs::read_to_string(self.data_dir().join("admin.key")).unwrap();
        key.trim().to_owned()
    }

    /// Creates a REST client with the admin key.
    pub fn rest(&self) -> Rest {
        Rest::new(self.service().address("rest"), Some(&self.admin_key()))
    }

    /// Creates a gRPC channel with the admin key.
    pub fn grpc(&self) -> Grpc {
        grpc::channel(self.service().address("grpc"), Some(&self.admin_key()))
    }

    /// Creates a client for each protocol, with the admin key.
    pub fn wires(&self) -> [Wire; 2] {
        [Wire::Rest(Box::new(self.rest())), Wire::Grpc(self.grpc())]
    }

    /// Prepares a `bellwether` command for this world's data folder or database.
    pub fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = process::command(self.folder.path(), arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.arg("--data-dir").arg(self.data_dir());
        command
    }

    /// Creates a client with the command-line tool and returns its key.
    ///
    /// # Panics
    /// Panics if the command fails.
    pub fn client(&self, name: &str, role: &str) -> String {
        let command = self.command(&["client", "create", name, "--role", role]);
        let output = process::run(command);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}
