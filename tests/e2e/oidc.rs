//! Users who sign in with a real OpenID Connect provider and use its token instead of a key.

mod browser;
mod outlived;

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use bellwether_tests::{
    process,
    programs::{packages, programs},
    tree,
    world::World,
};
use http::Method;
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::{Value, json};
use tempfile::TempDir;

const PEOPLE: &str = r#"{"ada": ["ops-leads"], "eve": ["guests"], "otto": ["on-call", "staff"]}"#;

struct Provider {
    child: Child,
    issuer: String,
    _folder: TempDir,
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Provider {
    /// Starts the provider, with tokens valid for `token_seconds`; `None`, with a message, if its
    /// package is not installed.
    fn start(token_seconds: u32) -> Option<Self> {
        let packages = packages(&tree::root().join("target/ci/node"))?;
        let [node] = programs(["node"])?;
        if !packages.join("oidc-provider").is_dir() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(packages, folder.path().join("node_modules")).unwrap();
        let script = tree::root().join("tests/e2e/oidc/provider.mjs");
        std::fs::copy(script, folder.path().join("provider.mjs")).unwrap();
        let mut child = Command::new(node)
            .args(["provider.mjs", PEOPLE, &token_seconds.to_string()])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let issuer = lines.next().unwrap().unwrap();
        // Drain the provider's output, so that the provider does not block.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self {
            child,
            issuer,
            _folder: folder,
        })
    }

    async fn ask(&self, path: &str, form: Option<String>) -> String {
        let method = if form.is_some() {
            Method::POST
        } else {
            Method::GET
        };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.issuer))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::<bytes::Bytes>::from(form.unwrap_or_default()))
            .unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let body = client.request(request).await.unwrap().into_body();
        String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    async fn token(&self, person: &str, client: &str) -> String {
        let form = format!("client_id={client}&scope=openid+email+profile");
        let code = self.ask("/device/auth", Some(form)).await;
        let code: Value = serde_json::from_str(&code).unwrap();
        let user_code = code["user_code"].as_str().unwrap();
        let approve = format!("/approve?user_code={user_code}&account={person}");
        assert_eq!(self.ask(&approve, None).await, "approved");
        let form = format!(
            "client_id={client}&grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code={}",
            code["device_code"].as_str().unwrap()
        );
        let tokens: Value = serde_json::from_str(&self.ask("/token", Some(form)).await).unwrap();
        tokens["id_token"].as_str().unwrap().to_owned()
    }
}

fn settings(issuer: &str) -> String {
    format!(
        "[oidc]\nissuer = {issuer:?}\nadmins = [\"ops-leads\"]\noperators = [\"on-call\"]\n\
         viewers = [\"staff\"]\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_token_grants_the_role_of_its_claims() {
    let Some(provider) = Provider::start(600) else {
        return;
    };
    let world = World::with_settings(&settings(&provider.issuer));
    let reported = world.rest().with_key(None).get("/v1/sign-in").await.ok();
    assert_eq!(
        (&reported["issuer"], &reported["clientId"]),
        (&json!(provider.issuer), &json!("bellwether"))
    );
    let ada = provider.token("ada", "bellwether").await;
    // The token also works for a command over gRPC.
    let mut command = world.command(&["client", "create", "a-sender", "--role", "ingest"]);
    command.env("BELLWETHER_KEY", &ada);
    let made = process::run(command);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let mut command = world.command(&["audit"]);
    command.env("BELLWETHER_KEY", &ada);
    let entries = String::from_utf8(process::run(command).stdout).unwrap();
    assert!(entries.contains("oidc:ada@example.org"), "{entries}");

    let otto = provider.token("otto", "bellwether").await;
    let otto = world.rest().with_key(Some(&otto));
    assert_eq!(otto.get("/v1/notification/rules").await.status, 200);
    let silence = r#"{"silence": {"name": "x"}}"#;
    assert_eq!(
        otto.send(Method::POST, "/v1/notification/silences", silence)
            .await
            .status,
        400
    );
    assert_eq!(
        otto.send(Method::POST, "/v1/notification/rules", "{}")
            .await
            .status,
        403
    );

    let eve = provider.token("eve", "bellwether").await;
    let refused = world
        .rest()
        .with_key(Some(&eve))
        .get("/v1/notification/rules")
        .await;
    assert_eq!(refused.status, 403);
    assert!(
        refused
            .text()
            .contains("`oidc:eve@example.org` has no role"),
        "{}",
        refused.text()
    );

    let elsewhere = provider.token("ada", "another").await;
    let mut forged = ada.clone();
    forged.truncate(ada.rfind('.').unwrap() + 1);
    for wrong in [elsewhere, format!("{forged}AAAA"), forged] {
        let answer = world
            .rest()
            .with_key(Some(&wrong))
            .get("/v1/notification/rules")
            .await;
        assert_eq!(answer.status, 401, "{}", answer.text());
    }
    let log = world.service().log();
    assert!(log.contains(" INFO "), "{log}");
    assert!(!log.contains(&ada), "a token is in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn token_stays_valid_while_the_provider_is_down() {
    let Some(provider) = Provider::start(600) else {
        return;
    };
    let world = World::with_settings(&settings(&provider.issuer));
    let token = provider.token("ada", "bellwether").await;
    let rest = world.rest().with_key(Some(&token));
    assert_eq!(rest.get("/v1/notification/rules").await.status, 200);
    drop(provider);
    assert_eq!(rest.get("/v1/notification/rules").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_provider_rejects_tokens_with_a_reason_but_not_keys() {
    let Some(provider) = Provider::start(600) else {
        return;
    };
    let token = provider.token("ada", "bellwether").await;
    let lines = settings(&provider.issuer);
    drop(provider);
    let world = World::with_settings(&lines);
    assert_eq!(world.rest().get("/v1/notification/rules").await.status, 200);
    let rest = world.rest().with_key(Some(&token));
    let answer = rest.get("/v1/notification/rules").await;
    assert_eq!(answer.status, 503);
    assert!(
        answer.text().contains("does not respond"),
        "{}",
        answer.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_is_off_by_default() {
    let world = World::start();
    let reported = world.rest().with_key(None).get("/v1/sign-in").await.ok();
    assert_eq!(reported["issuer"].as_str().unwrap_or_default(), "");
    assert_eq!(world.rest().get("/sign-in").await.status, 404);
    let answer = world
        .rest()
        .with_key(Some("a.b.c"))
        .get("/v1/notification/rules")
        .await;
    assert_eq!(answer.status, 401);
}

/// A user's terminal, with a separate home, and without the service's data folder and key.
struct Terminal {
    home: TempDir,
    address: String,
}

impl Terminal {
    fn new(world: &World) -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            address: format!("http://{}", world.service().address("grpc")),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = process::command(self.home.path(), arguments);
        command.args(["--connect", &self.address]);
        command
    }

    fn run(&self, arguments: &[&str]) -> (bool, String) {
        outcome_of(&process::run(self.command(arguments)))
    }

    /// Signs in while the user requests `deed` from the provider: `/approve?account=ada` to approve
    /// the code, or `/deny?`.
    async fn login(&self, provider: &Provider, deed: &str) -> (bool, String) {
        let mut command = self.command(&["login"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut reported = BufReader::new(child.stdout.take().unwrap());
        let mut lines = [String::new(), String::new()];
        for line in &mut lines {
            reported.read_line(line).unwrap();
        }
        let address = lines[0].trim().trim_start_matches("To sign in, open ");
        assert!(address.starts_with(&provider.issuer), "{lines:?}");
        let (_, code) = lines[1].trim().split_once("the code ").unwrap();
        assert!(address.ends_with(code), "{lines:?}");
        provider
            .ask(&format!("{deed}&user_code={code}"), None)
            .await;
        let mut output = child.wait_with_output().unwrap();
        std::io::Read::read_to_end(&mut reported, &mut output.stdout).unwrap();
        outcome_of(&output)
    }

    fn file(&self) -> PathBuf {
        let state = self.home.path().join(".local/state/bellwether");
        state.join("sign-ins.json")
    }

    fn stored_sign_in(&self) -> Value {
        let text = std::fs::read_to_string(self.file()).unwrap();
        let content: Value = serde_json::from_str(&text).unwrap();
        let sign_ins = content["sign_ins"].as_object().unwrap();
        assert_eq!(sign_ins.len(), 1);
        sign_ins[&self.address].clone()
    }

    fn keep(&self, changed: &Value) {
        let content = json!({"sign_ins": {&self.address: changed}});
        std::fs::write(self.file(), content.to_string()).unwrap();
    }
}

fn outcome_of(output: &Output) -> (bool, String) {
    let text = [&*output.stdout, &*output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8(text).unwrap().trim().to_owned(),
    )
}

fn no(sentence: &str) -> (bool, String) {
    (false, format!("bellwether: {sentence}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_login_replaces_the_key_until_logout() {
    let Some(provider) = Provider::start(600) else {
        return;
    };
    let world = World::with_settings(&settings(&provider.issuer));
    let terminal = Terminal::new(&world);
    let (_, without) = terminal.run(&["client", "list"]);
    assert!(
        without.contains("no API key") && without.contains("`bellwether login`"),
        "{without}"
    );
    let (went_well, reported) = terminal.login(&provider, "/approve?account=ada").await;
    assert!(went_well, "{reported}");
    let address = &terminal.address;
    assert_eq!(
        reported,
        format!("Signed in at {address} as oidc:ada@example.org, role admin.")
    );
    for command in [
        &["client", "create", "a-sender", "--role", "ingest"][..],
        &["client", "list"],
        &["get", "rules"],
        &["--snapshot", "rules"],
    ] {
        let (went_well, reported) = terminal.run(command);
        assert!(went_well, "{command:?}: {reported}");
    }
    let (_, entries) = terminal.run(&["audit"]);
    assert!(entries.contains("oidc:ada@example.org"), "{entries}");

    let stored = terminal.stored_sign_in();
    assert_eq!(stored["issuer"], provider.issuer);
    assert_eq!(stored["client_id"], "bellwether");
    assert_eq!(
        stored["token_endpoint"],
        format!("{}/token", provider.issuer)
    );
    let mode = std::fs::metadata(terminal.file()).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let log = world.service().log();
    assert!(!log.contains(stored["token"].as_str().unwrap()), "{log}");

    // An explicit key takes precedence over the sign-in.
    let mut command = terminal.command(&["audit"]);
    command.env("BELLWETHER_KEY", "bw_x");
    let (went_well, reported) = outcome_of(&process::run(command));
    assert!(
        !went_well && reported.contains("the key is unknown"),
        "{reported}"
    );

    let signed_out = (true, format!("Signed out of {address}."));
    assert_eq!(terminal.run(&["logout"]), signed_out);
    let none = (true, format!("Not signed in at {address}."));
    assert_eq!(terminal.run(&["logout"]), none);
    let (_, without) = terminal.run(&["client", "list"]);
    assert!(without.contains("no API key"), "{without}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_is_renewed_before_expiry_or_explains_the_failure() {
    // The validity is shorter than the time before expiry at which tokens are renewed.
    let Some(provider) = Provider::start(50) else {
        return;
    };
    let world = World::with_settings(&settings(&provider.issuer));
    let terminal = Terminal::new(&world);
    let address = &terminal.address;
    let ended = no(&format!(
        "your sign-in has expired; run `bellwether login --connect {address}`"
    ));
    let (went_well, reported) = terminal.login(&provider, "/approve?account=ada").await;
    assert!(went_well, "{reported}");
    let first = terminal.stored_sign_in();
    assert!(first["refresh_token"].is_string(), "{first}");
    let (went_well, reported) = terminal.run(&["client", "list"]);
    assert!(went_well, "{reported}");
    let second = terminal.stored_sign_in();
    // A token issued within the same second is identical, so refresh tokens are compared.
    assert!(second["refresh_token"].is_string(), "{second}");
    assert_ne!(first["refresh_token"], second["refresh_token"]);

    // Concurrent commands do not use the refresh token twice.
    let commands = [0; 4].map(|_| {
        let mut command = terminal.command(&["audit"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    });
    for command in commands {
        let (went_well, reported) = outcome_of(&command.wait_with_output().unwrap());
        assert!(went_well, "{reported}");
    }

    let mut past = terminal.stored_sign_in();
    past["ends"] = json!("2026-01-01T00:00:00Z");
    let mut without = past.clone();
    without.as_object_mut().unwrap().remove("refresh_token");
    terminal.keep(&without);
    assert_eq!(terminal.run(&["audit"]), ended.clone());
    let mut wrong = past.clone();
    wrong["refresh_token"] = json!("wrong");
    terminal.keep(&wrong);
    assert_eq!(terminal.run(&["audit"]), ended);
    terminal.keep(&past);
    let (went_well, reported) = terminal.run(&["audit"]);
    assert!(went_well, "{reported}");

    terminal.keep(&past);
    drop(provider);
    let (went_well, reported) = terminal.run(&["audit"]);
    assert!(
        !went_well && reported.contains("renewal failed: the provider does not respond"),
        "{reported}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_login_states_the_reason_and_stores_no_token() {
    let off = World::start();
    let reported = Terminal::new(&off).run(&["login"]);
    assert_eq!(
        reported,
        no("sign-in is not set up on the service (`oidc.issuer`); use a key")
    );
    let Some(provider) = Provider::start(600) else {
        return;
    };
    let world = World::with_settings(&settings(&provider.issuer));
    let terminal = Terminal::new(&world);
    let denied = terminal.login(&provider, "/deny?").await;
    assert_eq!(denied, no("the provider declined the sign-in"));
    let (went_well, reported) = terminal.login(&provider, "/approve?account=eve").await;
    assert!(
        !went_well && reported.contains("`oidc:eve@example.org` has no role"),
        "{reported}"
    );
    assert!(!terminal.file().exists());
    drop(provider);
    let (went_well, reported) = terminal.run(&["login"]);
    assert!(
        !went_well && reported.contains("the provider does not respond"),
        "{reported}"
    );
}
