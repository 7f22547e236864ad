//! Third-party tools applied to the API: linters of OpenAPI documents, generated clients, generated
//! requests, and pages in a browser.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use bellwether_tests::{
    programs::{self, packages, programs},
    receiver::Receiver,
    tree,
    world::World,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::foreign::python;

/// A folder with the files of `tests/e2e/generated`, npm packages, and the API document.
pub(crate) struct Folder(TempDir);

impl Folder {
    /// Creates the folder; `None`, with a message, if the packages are not installed.
    pub(crate) async fn new(world: &World) -> Option<Self> {
        let packages = packages(&tree::root().join("target/ci/node"))?;
        let folder = Self(tempfile::tempdir().unwrap());
        let files = fs::read_dir(tree::root().join("tests/e2e/generated")).unwrap();
        for file in files.map(Result::unwrap) {
            fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
        std::os::unix::fs::symlink(packages, folder.path().join("node_modules")).unwrap();
        let document = world.rest().get("/openapi.json").await;
        fs::write(folder.path().join("openapi.json"), &document.body).unwrap();
        Some(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, program: impl AsRef<Path>, arguments: &[&str]) -> String {
        let path = match program.as_ref().components().count() {
            1 => self.path().join("node_modules/.bin").join(program),
            _ => program.as_ref().to_owned(),
        };
        let path_of_node = std::env::var_os("PATH").unwrap_or_default();
        let own = self.path().join("node_modules/.bin");
        let paths = std::iter::once(own).chain(std::env::split_paths(&path_of_node));
        let output = Command::new(&path)
            .args(arguments)
            .current_dir(self.path())
            .env("PATH", std::env::join_paths(paths).unwrap())
            .env("REDOCLY_TELEMETRY", "off")
            .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{}: {printed}{}",
            path.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        printed
    }
}

/// Returns the path of Node.js; `None`, with a message, if it is not installed.
pub(crate) fn node() -> Option<PathBuf> {
    programs(["node"]).map(|[node]| node)
}

fn parse_result(printed: &str) -> Value {
    let line = printed.lines().last().unwrap_or_default();
    serde_json::from_str(line).expect("a line of JSON")
}

fn whole_journey() -> Value {
    json!({
        "test": "OUTCOME_DELIVERED",
        "succeeded": 1,
        "inodes": 12,
        "delivered": "DELIVERED",
        "refused": 400,
        "field": "description",
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_and_proto_files_pass_linters() {
    let world = World::start();
    let (Some(_node), Some(folder)) = (node(), Folder::new(&world).await) else {
        return;
    };
    folder.run(
        "redocly",
        &[
            "lint",
            "openapi.json",
            "--max-problems=0",
            "--format=summary",
        ],
    );
    let proto = tree::root().join("proto");
    folder.run("buf", &["lint", proto.to_str().unwrap()]);
    let failing = ["--ruleset", "spectral.yaml", "--fail-severity=hint"];
    folder.run(
        "spectral",
        &[&["lint", "openapi.json"], &failing[..]].concat(),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_typescript_client_compiles_and_works() {
    let world = World::start();
    let receiver = Receiver::start().await;
    let (Some(node), Some(folder)) = (node(), Folder::new(&world).await) else {
        return;
    };
    folder.run("openapi-typescript", &["openapi.json", "--output=api.d.ts"]);
    folder.run("tsc", &["--project", "."]);
    let service = format!("http://{}", world.service().address("rest"));
    let arguments = [
        "made/journey.js",
        &service,
        &world.admin_key(),
        &receiver.url("/"),
    ];
    let printed = folder.run(node, &arguments);
    assert_eq!(parse_result(&printed), whole_journey());
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_python_client_works() {
    let Some(python) = python("openapi_python_client, httpx") else {
        return;
    };
    let world = World::start();
    let receiver = Receiver::start().await;
    let folder = tempfile::tempdir().unwrap();
    let document = world.rest().get("/openapi.json").await;
    let file = folder.path().join("openapi.json");
    fs::write(&file, &document.body).unwrap();
    let made = folder.path().join("bellwether_client");
    // The generator formats its output with a program installed next to it.
    let beside = python.parent().unwrap_or(Path::new("")).to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(beside).chain(std::env::split_paths(&path));
    let generated = Command::new(&python)
        .env("PATH", std::env::join_paths(paths).unwrap())
        .args(["-m", "openapi_python_client", "generate", "--meta=none"])
        .args(["--fail-on-warning", "--path"])
        .arg(&file)
        .arg("--output-path")
        .arg(&made)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        generated.status.success(),
        "{}{}",
        String::from_utf8_lossy(&generated.stdout),
        String::from_utf8_lossy(&generated.stderr)
    );
    let service = format!("http://{}", world.service().address("rest"));
    let output = Command::new(&python)
        .arg(tree::root().join("tests/e2e/generated/journey.py"))
        .args([&service, &world.admin_key(), &receiver.url("/")])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(parse_result(&printed), whole_journey());
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_to_generated_requests_match_the_openapi_document() {
    let Some(python) = python("schemathesis") else {
        return;
    };
    let world = World::start();
    let folder = tempfile::tempdir().unwrap();
    let document = world.rest().get("/openapi.json").await;
    let file = folder.path().join("openapi.json");
    fs::write(&file, &document.body).unwrap();
    let service = format!("http://{}", world.service().address("rest"));
    let schemathesis = python.with_file_name("schemathesis");
    let output = Command::new(schemathesis)
        .arg("--config-file")
        .arg(tree::root().join("tests/e2e/generated/schemathesis.toml"))
        .arg("run")
        .arg(&file)
        .args(["--url", &service, "--max-time", "30"])
        .env("BELLWETHER_KEY", world.admin_key())
        .env("PYTHONPATH", tree::root().join("tests/e2e/generated"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cross_origin_page_works_with_two_grpc_web_libraries() {
    let Some([node, chromium]) = programs(["node", "chromium"]) else {
        return;
    };
    let port = programs::port().to_string();
    let cors = format!("[cors]\norigins = [\"http://localhost:{port}\"]");
    let world = World::with_settings(&cors);
    let Some(folder) = Folder::new(&world).await else {
        return;
    };
    let proto = tree::root().join("proto");
    let arguments = [
        "generate",
        proto.to_str().unwrap(),
        "--template=buf.gen.yaml",
    ];
    folder.run("buf", &arguments);
    let bundle = [
        "page.ts",
        "--bundle",
        "--format=esm",
        "--outfile=made/page.js",
    ];
    folder.run("esbuild", &bundle);
    let service = format!("http://{}", world.service().address("grpc"));
    let (browser, profile) = (chromium.to_str().unwrap(), folder.path().join("profile"));
    let profile = profile.to_str().unwrap();
    let arguments = [
        "browser.mjs",
        browser,
        profile,
        &port,
        &service,
        &world.admin_key(),
    ];
    let printed = folder.run(node, &arguments);
    let expected = json!({
        "connect": {
            "created": "of connect",
            "listed": 1,
            "refused": "InvalidArgument",
            "details": true,
            "watched": "from a page",
        },
        "google": {
            "created": "of grpc-web",
            "listed": 2,
            "refused": 3,
            "details": true,
            "watched": true,
        },
    });
    assert_eq!(parse_result(&printed), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn browser_renders_the_docs_and_collapses_the_contents() {
    let Some([chromium]) = programs(["chromium"]) else {
        return;
    };
    let world = World::start();
    let service = format!("http://{}", world.service().address("rest"));
    let shown = |path: &str, size: &str| {
        let profile = tempfile::tempdir().unwrap();
        let output = Command::new(&chromium)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--window-size={size}"))
            .arg(format!("{service}{path}"))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let overview = shown("/", "1440,900");
    assert!(
        overview.contains("<main>") && overview.contains("href=\"/docs\""),
        "{overview}"
    );
    // The script collapses the contents on a small screen.
    let contents = |page: &str| {
        let at = page.find("<details id=\"list\"").expect("the contents");
        page[at..].chars().take(60).collect::<String>()
    };
    assert!(contents(&shown("/docs", "1440,900")).contains("open"));
    assert!(!contents(&shown("/docs", "500,900")).contains("open"));
}
