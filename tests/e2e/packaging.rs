//! Tests of the packaging. The steps of the Compose file and of the chart are executed on this
//! machine, without containers, and the Debian package is checked for completeness.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    iter,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Component, Path, PathBuf},
    process::{Command, Output},
};

use bellwether_tests::{
    engine::Engine,
    eventually::eventually_blocking,
    postgres::{PASSWORD, Postgres},
    process::{self, Service},
    programs::programs,
    tree,
    world::World,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::{documents::targets, foreign};

const EXAMPLES: &str = "tests/examples/config";

const PACKAGING: &str = "tui/packaging";

/// This machine, in place of the containers and their network.
struct Machine {
    folder: TempDir,
    postgres: Postgres,
}

struct Container {
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
}

impl Machine {
    fn start() -> Option<Self> {
        let postgres = Postgres::start()?;
        let folder = tempfile::tempdir().unwrap();
        // The database runs as another user, who must be able to read the folder.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for mount in ["secrets", "keys", "tls", "etc"] {
            fs::create_dir(folder.path().join(mount)).unwrap();
        }
        Some(Self { folder, postgres })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces a container's paths and addresses in a text with those of this machine. Each node
    /// has a separate data folder.
    fn here(&self, text: &str, node: &str) -> String {
        let folder = self.folder.path().display();
        let database = format!("localhost:{}/postgres", self.postgres.port());
        text.replace("db:5432/bellwether", &database)
            .replace("/secrets", &format!("{folder}/secrets"))
            .replace("/keys", &format!("{folder}/keys"))
            .replace("/tls/", &format!("{folder}/tls/"))
            .replace("/etc/bellwether", &format!("{folder}/etc"))
            .replace("/data", &format!("{folder}/data-{node}"))
            .replace("0.0.0.0:8480", "127.0.0.1:0")
            .replace("0.0.0.0:8481", "127.0.0.1:0")
    }

    fn command(&self, container: &Container, node: &str) -> Command {
        fs::create_dir_all(self.path(&format!("data-{node}"))).unwrap();
        let arguments = container.arguments.iter().map(|it| self.here(it, node));
        let mut command = process::command(self.folder.path(), arguments);
        for (name, value) in &container.environment {
            command.env(name, self.here(value, node));
        }
        command
    }

    fn serve(&self, container: &Container, node: &str) -> Service {
        Service::start(self.command(container, node), &self.path("log"))
    }

    fn run(&self, container: &Container, node: &str, arguments: &[&str]) -> String {
        let container = Container {
            arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
            environment: container.environment.clone(),
        };
        let output = process::run(self.command(&container, node));
        let (said, errors) = (output.stdout, String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(said).unwrap()
    }

    /// Creates the secrets as the Compose file does, and configures the database to use them.
    fn prepare(&self, compose: &Value, [bash, _openssl]: &[PathBuf; 2]) {
        let service = &compose["services"]["prepare"];
        let script = service["command"][0].as_str().unwrap().replace("$$", "$");
        let own = fs::metadata(self.folder.path()).unwrap().uid();
        let database = if own == 0 {
            "postgres".into()
        } else {
            own.to_string()
        };
        let output = Command::new(bash)
            .args(["-euc", &self.here(&script, "")])
            .env("DATABASE_USER", database)
            .env("SERVICE_USER", own.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        // The image of the database would set the generated password. Here, use the existing one.
        fs::write(self.path("secrets/store-password"), PASSWORD).unwrap();
        let arguments = compose["services"]["db"]["command"].as_array().unwrap();
        let settings = arguments
            .iter()
            .filter_map(|it| it.as_str()?.split_once('='));
        for (name, value) in settings {
            let value = self.here(value, "");
            self.postgres
                .execute(&format!("ALTER SYSTEM SET {name} = '{value}'"));
        }
        self.postgres.execute("SELECT pg_reload_conf()");
        eventually_blocking("the database to speak TLS", || {
            (self.postgres.execute("SHOW ssl") == "on").then_some(())
        });
    }
}

/// Parses a document and resolves merge keys (`<<`).
fn read(text: &str) -> Value {
    let document: Value = serde_saphyr::from_str(text).unwrap();
    merged(document)
}

fn merged(value: Value) -> Value {
    match value {
        Value::Object(mut fields) => {
            if let Some(Value::Object(others)) = fields.remove("<<") {
                for (name, value) in others {
                    fields.entry(name).or_insert(value);
                }
            }
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, merged(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(merged).collect()),
        other => other,
    }
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.map(|it| it.as_str().unwrap().to_owned()).collect()
}

fn of_compose(service: &Value) -> Container {
    let environment = service["environment"].as_object().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Container {
        arguments: texts(&service["command"]),
        environment: environment
            .iter()
            .map(|(name, it)| (name.clone(), text(it)))
            .collect(),
    }
}

fn of_chart(container: &Value) -> Container {
    let variables = container["env"].as_array().unwrap().iter();
    let environment = variables.map(|it| {
        let given = it["value"].as_str().unwrap_or("of-the-chart");
        (it["name"].as_str().unwrap().to_owned(), given.to_owned())
    });
    Container {
        arguments: texts(&container["args"]),
        environment: environment.collect(),
    }
}

const IMAGE: &str = "image.repository=bellwether";

fn run_helm(helm: &Path, verb: &[&str], sets: &[&str]) -> Output {
    let mut command = Command::new(helm);
    command
        .args(verb)
        .arg(tree::root().join(PACKAGING).join("chart"));
    command.args(sets.iter().flat_map(|it| ["--set-string", it]));
    command.output().unwrap()
}

/// Renders the chart with an image and these values.
fn render_chart(helm: &Path, sets: &[&str]) -> BTreeMap<String, Value> {
    let sets: Vec<_> = iter::once(&IMAGE).chain(sets).copied().collect();
    let render = |verb: &[&str]| {
        let output = run_helm(helm, verb, &sets);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    render(&["lint", "--strict"]);
    let text = render(&["template", "bell"]);
    let documents = text.split("\n---\n").map(read);
    let named = documents.filter(Value::is_object).map(|it| {
        let (kind, name) = (&it["kind"], &it["metadata"]["name"]);
        (
            format!("{} {}", kind.as_str().unwrap(), name.as_str().unwrap()),
            it,
        )
    });
    named.collect()
}

fn helm() -> Option<PathBuf> {
    let beside = foreign::python("sys").and_then(|it| Some(it.parent()?.join("helm")));
    beside.filter(|it| it.is_file()).or_else(|| {
        let [helm] = programs(["helm"])?;
        Some(helm)
    })
}

#[test]
fn compose_file_and_chart_start_nodes() {
    let Some(tools) = programs(["bash", "openssl"]) else {
        return;
    };
    let Some(machine) = Machine::start() else {
        return;
    };
    let text = fs::read_to_string(tree::root().join(PACKAGING).join("compose.yaml"));
    let compose = read(&text.unwrap());
    machine.prepare(&compose, &tools);
    let service = |name: &str| of_compose(&compose["services"][name]);
    let init = service("init");
    let made = process::run(machine.command(&init, "init"));
    assert!(made.status.success(), "{made:?}");
    // The init service runs again at each start.
    let again = process::run(machine.command(&init, "init"));
    let said = String::from_utf8(again.stdout).unwrap();
    assert!(
        again.status.success() && said.contains("nothing was changed"),
        "{said}"
    );

    let names = ["one", "two", "three"];
    let nodes = names.map(|name| machine.serve(&service(name), name));
    for (name, node) in names.into_iter().zip(&nodes) {
        assert!(node.ready["grpc"].as_str().unwrap().starts_with("https://"));
        machine.run(&service(name), name, &["health"]);
    }
    machine.run(&service("one"), "one", &["send", "of-one", "-d", "host=a"]);
    let seen = machine.run(&service("three"), "three", &["events", "name=of-one"]);
    assert!(seen.contains("of-one"), "{seen}");
    let sessions = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
         WHERE application_name = 'bellwether' AND NOT ssl";
    assert_eq!(machine.postgres.execute(sessions), "0");

    start_node_as_in_chart(&machine, &init);
}

/// Starts another node on the same database, as the chart does.
fn start_node_as_in_chart(machine: &Machine, init: &Container) {
    let Some(helm) = helm() else { return };
    let secret = |name: &str| machine.path("secrets").join(name);
    fs::copy(secret("store-password"), secret("password")).unwrap();
    fs::copy(machine.path("keys/secret.key"), secret("secret.key")).unwrap();
    for file in ["tls.crt", "tls.key"] {
        fs::copy(
            machine.path("secrets").join(file),
            machine.path("tls").join(file),
        )
        .unwrap();
    }
    let url = &init.environment["BELLWETHER_STORE_URL"];
    let address = format!("store.url={url}");
    let all = render_chart(
        &helm,
        &[&address, "tls.secret=tls", "config=tenant = \"chart\""],
    );
    let kinds: Vec<_> = all.keys().map(String::as_str).collect();
    assert_eq!(
        kinds,
        [
            "ConfigMap bell",
            "Deployment bell",
            "Job bell-migrate",
            "PodDisruptionBudget bell",
            "Service bell",
            "Service bell-nodes",
        ]
    );
    let config = all["ConfigMap bell"]["data"]["bellwether.toml"].as_str();
    fs::write(machine.path("etc/bellwether.toml"), config.unwrap()).unwrap();
    // The job succeeds although nodes are running, because no migration is required.
    let raised = process::run(machine.command(&container(&all["Job bell-migrate"]), "job"));
    assert!(raised.status.success(), "{raised:?}");
    let _node = machine.serve(&container(&all["Deployment bell"]), "chart");
    let status = machine.run(init, "init", &["store", "status"]);
    for name in ["one", "two", "three", "of-the-chart"] {
        assert!(status.contains(&format!("node: {name}, ")), "{status}");
    }
    let bare = render_chart(&helm, &[&address]);
    let clear = container(&bare["Deployment bell"]);
    assert!(clear.arguments.contains(&"--insecure".to_owned()));
    assert!(!bare.contains_key("ConfigMap bell"));
}

fn container(workload: &Value) -> Container {
    of_chart(&workload["spec"]["template"]["spec"]["containers"][0])
}

#[test]
fn chart_without_a_database_starts_one_node_with_a_volume() {
    let Some(helm) = helm() else { return };
    let all = render_chart(&helm, &[]);
    let kinds: Vec<_> = all.keys().map(String::as_str).collect();
    assert_eq!(
        kinds,
        ["Service bell", "Service bell-nodes", "StatefulSet bell"]
    );
    let workload = &all["StatefulSet bell"];
    assert_eq!(workload["spec"]["replicas"], 1);
    let claim = &workload["spec"]["volumeClaimTemplates"][0]["metadata"]["name"];
    let container = container(workload);
    let data_dir = &container.environment["BELLWETHER_DATA_DIR"];
    let pod = &workload["spec"]["template"]["spec"];
    let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
    let mount = mounts.iter().find(|it| it["name"] == *claim).unwrap();
    assert!(data_dir.starts_with(mount["mountPath"].as_str().unwrap()));

    let folder = tempfile::tempdir().unwrap();
    let here = |text: &String| {
        let text = text.replace("/data/", &format!("{}/", folder.path().display()));
        text.replace("0.0.0.0:8480", "127.0.0.1:0")
            .replace("0.0.0.0:8481", "127.0.0.1:0")
    };
    let command = |arguments: &[String]| {
        let mut command = process::command(folder.path(), arguments.iter().map(here));
        let variables = container.environment.iter();
        command.envs(variables.map(|(name, value)| (name, here(value))));
        command
    };
    let _node = Service::start(command(&container.arguments), &folder.path().join("log"));
    // Run the command that the notes of the chart print.
    let create = ["client", "create", "me", "--role", "admin"].map(str::to_owned);
    let made = process::run(command(&create));
    let key = String::from_utf8_lossy(&made.stdout);
    assert!(
        made.status.success() && key.starts_with("bw_"),
        "{key} {made:?}"
    );

    let cases: [(&[&str], &str); 2] = [
        (&[], "image.repository: required"),
        (&[IMAGE, "replicas=2"], "replicas: several nodes"),
    ];
    for (sets, error) in cases {
        let refused = run_helm(&helm, &["template", "bell"], sets);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains(error), "{said}");
    }
}

#[test]
fn chart_values_add_ingresses_monitoring_and_pod_settings() {
    let Some(helm) = helm() else { return };
    let all = render_chart(
        &helm,
        &[
            "tls.secret=tls",
            "ingress.className=nginx",
            "ingress.tlsSecret=public",
            "ingress.rest.host=bell.example.net",
            "ingress.grpc.host=grpc.example.net",
            "prometheus.serviceMonitor.enabled=true",
            "prometheus.serviceMonitor.labels.release=stack",
            "prometheus.serviceMonitor.endpoint.honorLabels=true",
            "prometheus.rule.enabled=true",
            "serviceAccount.create=true",
            "extraVolumes[0].name=extra",
            "extraVolumeMounts[0].name=extra",
            "extraVolumeMounts[0].mountPath=/extra",
            "affinity.nodeAffinity.of=the-values",
        ],
    );
    let version = &all["Service bell"]["metadata"]["labels"]["app.kubernetes.io/version"];
    assert_eq!(*version, env!("CARGO_PKG_VERSION"));
    for (port, host) in [("rest", "bell.example.net"), ("grpc", "grpc.example.net")] {
        let ingress = &all[&format!("Ingress bell-{port}")]["spec"];
        assert_eq!(ingress["ingressClassName"], "nginx");
        assert_eq!(ingress["tls"][0]["secretName"], "public");
        assert_eq!(ingress["tls"][0]["hosts"][0], host);
        let rule = &ingress["rules"][0];
        assert_eq!(rule["host"], host);
        let backend = &rule["http"]["paths"][0]["backend"]["service"];
        assert_eq!(backend["port"]["name"], port);
    }
    let pod = &all["StatefulSet bell"]["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "bell");
    assert!(all.contains_key("ServiceAccount bell"));
    assert_eq!(pod["affinity"]["nodeAffinity"]["of"], "the-values");
    let named = |list: &Value| {
        let list = list.as_array().unwrap().iter();
        list.filter(|it| it["name"] == "extra").count()
    };
    assert_eq!(named(&pod["volumes"]), 1);
    assert_eq!(named(&pod["containers"][0]["volumeMounts"]), 1);

    let monitor = &all["ServiceMonitor bell"];
    assert_eq!(monitor["metadata"]["labels"]["release"], "stack");
    let endpoint = &monitor["spec"]["endpoints"][0];
    assert_eq!(endpoint["scheme"], "https");
    assert_eq!(endpoint["honorLabels"], "true");
    // The monitor selects exactly one of the services, so that no pod is scraped twice.
    let selector = monitor["spec"]["selector"]["matchLabels"].as_object();
    let services = ["Service bell", "Service bell-nodes"].map(|name| {
        let labels = &all[name]["metadata"]["labels"];
        selector
            .unwrap()
            .iter()
            .all(|(name, value)| labels[name] == *value)
    });
    assert_eq!(services, [false, true]);
    let alerts = tree::root().join("tests/examples/prometheus/alerts.yml");
    let alerts = read(&fs::read_to_string(alerts).unwrap());
    assert_eq!(all["PrometheusRule bell"]["spec"], alerts);

    let protocols = |all: &BTreeMap<String, Value>| {
        let ports = all["Service bell"]["spec"]["ports"].as_array().unwrap();
        let names = ports.iter().map(|it| it["appProtocol"].as_str().unwrap());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(protocols(&all), ["https", "https"]);
    let clear = render_chart(&helm, &[]);
    assert_eq!(protocols(&clear), ["http", "kubernetes.io/h2c"]);
}

const MANIFEST: &str = "tui/command";

/// Returns the files of the repository that are in the Debian package, and their installed paths.
fn packaged_files() -> Vec<(PathBuf, PathBuf)> {
    let manifest = tree::root().join(MANIFEST).join("Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let (_, assets) = manifest.split_once("\nassets = [\n").unwrap();
    let mut files = Vec::new();
    for line in assets.lines().take_while(|line| *line != "]") {
        let asset: [String; 3] = serde_json::from_str(line.trim().trim_end_matches(',')).unwrap();
        let [source, target, _mode] = asset;
        let source = normalize(&Path::new(MANIFEST).join(source));
        if source.starts_with("target") || source.starts_with("tui/command/target") {
            continue;
        }
        let found = matching(&source);
        assert!(!found.is_empty(), "{} matches no file", source.display());
        for (file, name) in found {
            let target = if target.ends_with('/') {
                Path::new(&target).join(name)
            } else {
                PathBuf::from(&target)
            };
            files.push((file, target));
        }
    }
    files
}

/// Returns the files that match a pattern, each with its path relative to the part before the `*`.
fn matching(pattern: &Path) -> Vec<(PathBuf, PathBuf)> {
    let folder = pattern.parent().unwrap();
    let is_deep = folder.ends_with("**");
    let folder = if is_deep {
        folder.parent().unwrap()
    } else {
        folder
    };
    let name = pattern.file_name().unwrap().to_str().unwrap();
    let (start, end) = name.split_once('*').unwrap_or((name, ""));
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(tree::root().join(&inner)).unwrap() {
            let file = inner.join(entry.unwrap().file_name());
            let name = file.file_name().unwrap().to_str().unwrap();
            if tree::root().join(&file).is_dir() {
                folders.extend(is_deep.then_some(file));
            } else if name.starts_with(start) && name.ends_with(end) {
                let below = file.strip_prefix(folder).unwrap().to_owned();
                found.push((file, below));
            }
        }
    }
    found
}

fn normalize(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(parts.pop(), "{} leads out", path.display()),
            part => parts.push(part),
        }
    }
    parts
}

#[test]
fn links_in_packaged_documents_stay_in_the_package() {
    let files = packaged_files();
    let installed: BTreeSet<_> = files.iter().map(|(_, target)| target).collect();
    let mut links = 0;
    for (source, target) in &files {
        if source.extension().is_none_or(|it| it != "md") {
            continue;
        }
        let text = fs::read_to_string(tree::root().join(source)).unwrap();
        for link in targets(&text) {
            let (link, _) = link.split_once('#').unwrap_or((&link, ""));
            let linked = normalize(&target.parent().unwrap().join(link));
            let exists = installed.iter().any(|it| it.starts_with(&linked));
            assert!(
                link.is_empty() || exists,
                "{} links to {link}, which is not in the package",
                source.display()
            );
            links += 1;
        }
    }
    assert!(links > 100, "only {links} links were found");
    for part in [
        "usr/share/doc/bellwether/tests/examples/presets/slack-webhook.yaml",
        "usr/share/doc/bellwether/tests/examples/mappings/github.json",
        "usr/share/doc/bellwether/proto/reference/queries.md",
        "usr/lib/systemd/system/bellwether.service",
        "usr/lib/sysusers.d/bellwether.conf",
    ] {
        assert!(installed.contains(&PathBuf::from(part)), "{part}");
    }
}

const INSTALL: &str = include_str!("../../docs/install.md");

/// Runs a block of the install page with a service of the current user, without root, and without
/// changing the users and units of this machine.
fn run_documented(world: &World, address: &str, name: &str) {
    let (_, block) = INSTALL.split_once(&format!("\n```sh {name}\n")).unwrap();
    let (block, _) = block.split_once("\n```").unwrap();
    let data_dir = world.data_dir();
    let backups = world.folder().join("backups");
    let block = block
        .replace("127.0.0.1:8481", address)
        .replace("/var/lib/bellwether", data_dir.to_str().unwrap())
        .replace("/var/backups", backups.to_str().unwrap());
    let binary = process::binary().display();
    let script = format!(
        "sudo() {{ \"$@\"; }}\nadduser() {{ :; }}\nchown() {{ :; }}\nsystemctl() {{ :; }}\n\
         bellwether() {{ {binary} \"$@\"; }}\n{block}"
    );
    let arguments = ["-euc", &script];
    let mut bash = process::command_of(Path::new("bash"), world.folder(), arguments);
    bash.env("USER", "me").env("BELLWETHER_DATA_DIR", &data_dir);
    let output = process::run(bash);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn documented_commands_work_on_an_installed_service() {
    if Engine::only_in_a_folder() {
        return;
    }
    let mut world = World::start();
    let address = world.service().address("grpc").to_owned();
    run_documented(&world, &address, "talk");
    let config = world.folder().join(".config/bellwether");
    let settings = fs::read_to_string(config.join("bellwether.toml")).unwrap();
    let key = config.join("own.key");
    assert_eq!(settings, format!("key_file = \"{}\"\n", key.display()));
    assert_eq!(fs::metadata(&key).unwrap().mode() & 0o077, 0);

    run_documented(&world, &address, "backup");
    assert!(world.terminate().success());
    run_documented(&world, &address, "restore");
    world.start_again();
    // The client and its event are in the backup.
    let mut events = world.command(&["events"]);
    events.arg("--key-file").arg(key);
    let events = process::run(events);
    let events = String::from_utf8_lossy(&events.stdout);
    assert!(events.contains("the first event"), "{events}");
}

fn commands(script: &str) -> Vec<Vec<String>> {
    let lines = script.lines().filter(|it| it.starts_with("bellwether "));
    let until = |it: &&str| ![">>", "||"].contains(it);
    let words = lines.map(|it| it.split(' ').skip(1).take_while(until).map(str::to_owned));
    words.map(Iterator::collect).collect()
}

#[test]
fn example_workflow_and_job_apply_their_configuration() {
    let world = World::start();
    let examples = tree::root().join(EXAMPLES);
    let example = |name: &str| read(&fs::read_to_string(examples.join(name)).unwrap());
    let folder = world.folder().join("alerts");
    fs::create_dir(&folder).unwrap();
    // A mounted ConfigMap is read-only and consists of symbolic links.
    fs::create_dir(folder.join("..2031")).unwrap();
    fs::copy(
        examples.join("disks.yaml"),
        folder.join("..2031/disks.yaml"),
    )
    .unwrap();
    symlink("..2031", folder.join("..data")).unwrap();
    symlink("..data/disks.yaml", folder.join("disks.yaml")).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let run = |arguments: &[String]| {
        let folder = folder.to_str().unwrap();
        let here = arguments.iter().map(|it| match it.as_str() {
            "alerts/" => folder.to_owned(),
            "--file=/alerts" => format!("--file={folder}"),
            other => other.to_owned(),
        });
        let here: Vec<_> = here.filter(|it| !it.starts_with("--connect")).collect();
        let here: Vec<_> = here.iter().map(String::as_str).collect();
        let mut command = world.command(&here);
        command.env("SLACK_TOKEN", "xoxb-example");
        let output = process::run(command);
        let code = output.status.code().unwrap();
        (
            code,
            String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr),
        )
    };

    let steps = &example("pull-request.yaml")["jobs"]["alerts"]["steps"];
    let scripts = steps
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["run"].as_str());
    let mut workflow = scripts.flat_map(commands);
    let (diff, apply) = (workflow.next().unwrap(), workflow.next().unwrap());
    let (code, said) = run(&diff);
    assert!(
        code == 1 && said.contains("impact on 0 occurrences"),
        "{said}"
    );
    let (code, said) = run(&apply);
    assert!(
        code == 0 && said.contains("+ rule disks-to-chat created"),
        "{said}"
    );
    let (code, said) = run(&diff);
    assert!(code == 0 && said.contains("= 3 unchanged"), "{said}");

    let job = example("job.yaml");
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let (code, said) = run(&texts(&container["args"]));
    assert!(code == 0 && said.contains("= 3 unchanged"), "{said}");
}

/// Returns the crates that the program is built from on any system, as `name version`, according to
/// cargo.
fn crates() -> BTreeSet<String> {
    let mut tree = Command::new("cargo");
    tree.args([
        "tree",
        "--offline",
        "--package",
        "bellwether",
        "--target",
        "all",
    ]);
    tree.args([
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let output = tree.current_dir(tree::root()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let named = lines.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" v")?;
        Some(format!("{name} {}", rest.split(' ').next()?))
    });
    named.collect()
}

#[test]
fn release_sbom_is_complete_and_machine_independent() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let made = tree::root().join("target/ci/bin");
    let folders = std::env::split_paths(&path).chain([made]);
    if !folders
        .map(|it| it.join("cargo-cyclonedx"))
        .any(|it| it.is_file())
    {
        // Write to standard error directly, so that a skipped test is visible.
        drop(
            std::io::stderr()
                .write_all(b"skipped: no cargo-cyclonedx here; `.ci/sbom` installs it\n"),
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let lists = ["one", "two"].map(|name| {
        let file = folder.path().join(name);
        let mut list = Command::new("bash");
        list.arg(tree::root().join(".ci/sbom")).arg(&file);
        let output = list.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        fs::read_to_string(file).unwrap()
    });
    assert_eq!(
        lists[0], lists[1],
        "the same commit produces a different list"
    );
    for place in [tree::root().to_str().unwrap(), "/root/", "/home/", "/tmp/"] {
        assert!(!lists[0].contains(place), "{place} is disclosed");
    }
    let list: Value = serde_json::from_str(&lists[0]).unwrap();
    assert_eq!(list["bomFormat"], "CycloneDX");
    let program = &list["metadata"]["component"];
    assert_eq!(program["name"], "bellwether");
    let mut listed = BTreeSet::from([format!("bellwether {}", env!("CARGO_PKG_VERSION"))]);
    for component in list["components"].as_array().unwrap() {
        let text = |field: &str| component[field].as_str().unwrap().to_owned();
        let name = format!("{} {}", text("name"), text("version"));
        assert!(
            component["licenses"][0].is_object(),
            "{name} has no licence"
        );
        let is_own = name.starts_with("bellwether-");
        assert!(
            is_own || component["hashes"][0].is_object(),
            "{name} has no checksum"
        );
        listed.insert(name);
    }
    let missing: Vec<_> = crates().difference(&listed).cloned().collect();
    assert!(missing.is_empty(), "{missing:?}");
}
