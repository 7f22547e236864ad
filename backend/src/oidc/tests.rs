//! Tests of tokens against the keys of a fake provider.

use std::sync::atomic::{AtomicUsize, Ordering};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
};

use super::*;
use crate::{clock::ManualClock, limits::TOKEN_BYTES_MAX};

const NOW_MS: i64 = 1_800_000_000_000;
const NOW: i64 = NOW_MS / 1000;

fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn signer(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

fn sign_token(header: &Value, claims: &Value, key: &Ed25519KeyPair) -> String {
    let text = format!(
        "{}.{}",
        base64(header.to_string()),
        base64(claims.to_string())
    );
    let signature = base64(key.sign(text.as_bytes()));
    format!("{text}.{signature}")
}

/// A provider with one key, which counts fetches.
struct StandIn {
    issuer: String,
    requests: Arc<AtomicUsize>,
    tasks: JoinSet<()>,
}

impl StandIn {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let (about, count) = (issuer.clone(), Arc::clone(&requests));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let x = base64(signer(1).public_key());
            let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": "one", "x": x});
            let keys =
                json!({"keys": [{"kty": "oct", "k": "AAAA", "kid": "mac"}, key]}).to_string();
            let about = json!({
                "issuer": about,
                "jwks_uri": format!("{about}/jwks"),
                "token_endpoint": format!("{about}/token"),
            });
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut head = [0; 4096];
                let size = socket.read(&mut head).await.unwrap_or(0);
                let body = if head[..size].starts_with(b"GET /jwks") {
                    count.fetch_add(1, Ordering::SeqCst);
                    keys.clone()
                } else {
                    about.to_string()
                };
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                drop(socket.write_all(answer.as_bytes()).await);
            }
        });
        Self {
            issuer,
            requests,
            tasks,
        }
    }

    fn sign_ins(&self) -> SignIns {
        let words = |word: &str| vec![word.to_owned()];
        let config = OidcConfig {
            issuer: self.issuer.clone(),
            client_id: "bellwether".into(),
            role_claim: "realm.groups".into(),
            admins: words("leads"),
            viewers: words("staff"),
            ..OidcConfig::default()
        };
        SignIns::new(config, Arc::new(ManualClock::starting_at(NOW_MS)))
    }

    /// Returns valid claims, with some of them replaced.
    fn claims(&self, changed: &Value) -> Value {
        let mut claims = json!({
            "iss": self.issuer, "aud": "bellwether", "sub": "1", "exp": NOW + 600, "iat": NOW,
            "email": "ada@example.org", "realm": {"groups": ["staff", "leads"]},
        });
        for (name, value) in changed.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    }
}

fn header() -> Value {
    json!({"alg": "EdDSA", "kid": "one"})
}

#[tokio::test]
async fn token_identifies_the_user_and_grants_the_highest_role() {
    let provider = StandIn::start().await;
    let sign_ins = provider.sign_ins();
    let person = async |changed: Value| {
        let token = sign_token(&header(), &provider.claims(&changed), &signer(1));
        assert!(SignIns::is_token(&token));
        sign_ins.authenticate(&token).await
    };
    let ada = person(json!({})).await.unwrap();
    assert_eq!(
        (ada.name.as_str(), ada.role),
        ("oidc:ada@example.org", Role::Admin)
    );
    assert_eq!(ada.ends_ms, NOW_MS + 660_000);
    let staff = person(json!({"realm": {"groups": "staff"}})).await.unwrap();
    assert_eq!(staff.role, Role::Viewer);
    // An unverified address must not identify anyone.
    let unproven = json!({"email_verified": false, "preferred_username": "eve"});
    assert_eq!(person(unproven).await.unwrap().name.as_str(), "oidc:eve");
    let several = json!({"aud": ["bellwether", "x"], "azp": "bellwether"});
    assert!(person(several).await.is_ok());
    for groups in [json!(["Leads"]), json!([]), json!(7), Value::Null] {
        let refused = person(json!({"realm": {"groups": groups}}))
            .await
            .unwrap_err();
        assert!(matches!(refused, Error::PermissionDenied(_)), "{refused}");
    }
    assert!(!SignIns::is_token("bw_a.b.c") && !SignIns::is_token("plain"));
}

#[tokio::test]
async fn invalid_tokens_are_refused_with_reason() {
    let provider = StandIn::start().await;
    let sign_ins = provider.sign_ins();
    let claims = |changed: Value| provider.claims(&changed);
    let good = || claims(json!({}));
    let by_one = |changed: Value| sign_token(&header(), &claims(changed), &signer(1));
    let with = |header: Value| sign_token(&header, &good(), &signer(1));
    let cases = [
        (by_one(json!({"iss": "https://x"})), "another provider"),
        (by_one(json!({"aud": "x"})), "for another service"),
        (by_one(json!({"aud": ["bellwether", "x"]})), "`azp`"),
        (by_one(json!({"exp": NOW - 60})), "has expired"),
        (by_one(json!({"exp": "soon"})), "`exp`"),
        (by_one(json!({"exp": null})), "`exp`"),
        (by_one(json!({"nbf": NOW + 61})), "`nbf`"),
        (by_one(json!({"iat": NOW + 61})), "`iat`"),
        (by_one(json!({"sub": null})), "`sub`"),
        (
            by_one(json!({"email": "\u{202e}", "sub": "a\u{0}"})),
            "no displayable name",
        ),
        (
            sign_token(&header(), &good(), &signer(2)),
            "not signed with a key",
        ),
        (with(json!({"alg": "none"})), "signature must be"),
        (
            with(json!({"alg": "HS256", "kid": "mac"})),
            "signature must be",
        ),
        (
            with(json!({"alg": "RS256", "kid": "one"})),
            "not signed with a key",
        ),
        (
            with(json!({"alg": "EdDSA", "kid": "two"})),
            "not signed with a key",
        ),
        (
            with(json!({"alg": "EdDSA", "kid": "one", "crit": ["x"]})),
            "`crit`",
        ),
        ("a.b.c".to_owned(), "is malformed"),
        ("..".to_owned(), "is malformed"),
        (format!("a.{}.c", "b".repeat(TOKEN_BYTES_MAX)), "bytes"),
    ];
    for (token, why) in cases {
        let refused = sign_ins.authenticate(&token).await.unwrap_err();
        assert!(matches!(refused, Error::Unauthenticated(_)), "{refused}");
        assert!(refused.to_string().contains(why), "{refused}: {why}");
    }
    let token = by_one(json!({"exp": NOW - 59, "nbf": NOW + 60, "iat": NOW + 60}));
    assert!(
        sign_ins.authenticate(&token).await.is_ok(),
        "clocks may be apart"
    );
}

#[tokio::test]
async fn key_lookups_are_limited_and_cached_keys_survive_outages() {
    let mut provider = StandIn::start().await;
    let sign_ins = provider.sign_ins();
    for id in 0..200 {
        let header = json!({"alg": "EdDSA", "kid": id.to_string()});
        let token = sign_token(&header, &provider.claims(&json!({})), &signer(3));
        assert!(sign_ins.authenticate(&token).await.is_err());
    }
    assert_eq!(provider.requests.load(Ordering::SeqCst), 1);
    provider.tasks.shutdown().await;
    let token = sign_token(&header(), &provider.claims(&json!({})), &signer(1));
    assert!(sign_ins.authenticate(&token).await.is_ok());
    // Without the provider's keys no token can be verified.
    let unknown = provider.sign_ins().authenticate(&token).await.unwrap_err();
    assert!(matches!(unknown, Error::Unavailable(_)), "{unknown}");
}
