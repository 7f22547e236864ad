//! People who sign in at a real provider of identities, and call with its token in place of a key.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use bellwether_tests::{
    process,
    programs::{packages, port, programs},
    tree,
    world::World,
};
use http::Method;
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Who there is, with the groups of each.
const PEOPLE: &str = r#"{"ada": ["ops-leads"], "eve": ["guests"], "otto": ["on-call", "staff"]}"#;

/// The provider, which ends with the test.
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
    /// Without its package there is none, which is said. Tokens live for so many seconds.
    fn start(port: u16, token_seconds: u32) -> Option<Self> {
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
            .args(["provider.mjs", &port.to_string(), PEOPLE])
            .arg(token_seconds.to_string())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let issuer = lines.next().unwrap().unwrap();
        // What it says later is read, so that it can go on.
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

    /// The ID token of somebody, by the device flow.
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
async fn a_token_of_the_provider_stands_for_a_key_with_the_role_that_its_claims_give() {
    let Some(provider) = Provider::start(port(), 600) else {
        return;
    };
    let world = World::with_settings(&settings(&provider.issuer));
    let told = world.rest().with_key(None).get("/v1/sign-in").await.ok();
    assert_eq!(
        (&told["issuer"], &told["clientId"]),
        (&json!(provider.issuer), &json!("bellwether"))
    );
    let ada = provider.token("ada", "bellwether").await;
    // The same over gRPC, by the command, whose key it is.
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
            .contains("`oidc:eve@example.org` has signed in"),
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
    let log = std::fs::read_to_string(world.folder().join("log")).unwrap_or_default();
    assert!(!log.contains(&ada), "a token is in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_provider_who_signed_in_goes_on_until_the_token_ends() {
    let Some(provider) = Provider::start(port(), 600) else {
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
async fn a_service_whose_provider_is_away_takes_keys_and_says_why_it_takes_no_token() {
    let Some(provider) = Provider::start(port(), 600) else {
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
        answer.text().contains("does not answer"),
        "{}",
        answer.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_signs_in_unless_it_is_set() {
    let world = World::start();
    let told = world.rest().with_key(None).get("/v1/sign-in").await.ok();
    assert_eq!(told["issuer"].as_str().unwrap_or_default(), "");
    let answer = world
        .rest()
        .with_key(Some("a.b.c"))
        .get("/v1/notification/rules")
        .await;
    assert_eq!(answer.status, 401);
}
