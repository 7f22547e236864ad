//! Tests of a trusted self-signed certificate, and of calls to the wrong listener.

use std::path::Path;

use bellwether_tests::{
    eventually::eventually,
    process::{self, Service, run},
    rest::Rest,
    tls::Authority,
    world::World,
};
use tempfile::TempDir;

use super::Secured;
use crate::destinations::tls::self_signed;

const NAMES: &str = "subjectAltName=DNS:localhost,IP:127.0.0.1";

/// Starts a service with a certificate from `openssl req -x509`; `None` without `openssl`.
fn start(arguments: &[&str]) -> Option<(World, TempDir)> {
    let files = tempfile::tempdir().unwrap();
    let arguments = [&["-x509", "-days", "30"], arguments].concat();
    self_signed(files.path(), &arguments)?;
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| files.path().join(name));
    let settings = format!(
        "tls_cert = \"{}\"\ntls_key = \"{}\"\n",
        certificate.display(),
        key.display()
    );
    Some((World::with_settings(&settings), files))
}

fn run_command(world: &World, arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(world.command(arguments));
    let errors = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), errors)
}

const COMMANDS: [&[&str]; 3] = [&["client", "list"], &["get", "rules"], &["health"]];

#[tokio::test(flavor = "multi_thread")]
async fn trusted_self_signed_certificate_is_accepted() {
    let cases: [(&[&str], Option<&str>); 4] = [
        (&["-addext", NAMES], None),
        (
            &["-addext", NAMES, "-addext", "basicConstraints=CA:FALSE"],
            None,
        ),
        (&[], Some("it lacks a subject alternative name")),
        (
            &["-addext", "subjectAltName=DNS:elsewhere.example"],
            Some("is for another host name: elsewhere.example"),
        ),
    ];
    for (arguments, refusal) in cases {
        let Some((world, files)) = start(arguments) else {
            return;
        };
        let url = world.service().address("grpc").to_owned();
        let trusted = files.path().join("certificate.pem");
        let reach = ["--connect", &url, "--tls-ca", trusted.to_str().unwrap()];
        for command in COMMANDS {
            let (code, errors) = run_command(&world, &[command, &reach].concat());
            match refusal {
                None => assert_eq!(code, Some(0), "{command:?} {arguments:?}: {errors}"),
                Some(says) => {
                    assert_eq!(code, Some(3), "{command:?} {arguments:?}: {errors}");
                    assert!(errors.contains(says), "{command:?} {arguments:?}: {errors}");
                }
            }
        }
        if refusal.is_none() {
            is_accepted_by_gateway(&url, &trusted).await;
        }
        // Another certificate with the same name is not trusted.
        let other = tempfile::tempdir().unwrap();
        self_signed(other.path(), &[&["-x509"], arguments].concat()).unwrap();
        let other = other.path().join("certificate.pem");
        let reach = ["--connect", &url, "--tls-ca", other.to_str().unwrap()];
        let (code, errors) = run_command(&world, &[&["get", "rules"], &reach[..]].concat());
        assert_eq!(code, Some(3), "{arguments:?}: {errors}");
        assert_is_a_sentence(&errors);
    }
}

async fn is_accepted_by_gateway(url: &str, trusted: &Path) {
    let home = tempfile::tempdir().unwrap();
    let arguments = ["gateway", "--backend", url, "--rest-listen", "127.0.0.1:0"];
    let mut gateway = process::command(home.path(), arguments);
    gateway.arg("--tls-ca").arg(trusted);
    let gateway = Service::start(gateway, &home.path().join("log"));
    let rest = Rest::new(gateway.address("rest"), None);
    eventually("the gateway to reach the backend", async || {
        (rest.get("/readyz").await.status == 200).then_some(())
    })
    .await;
}

/// Asserts that an error is one line without internal terms of libraries.
fn assert_is_a_sentence(errors: &str) {
    assert_eq!(errors.trim_end().lines().count(), 1, "{errors}");
    for internal in ["frame", "protocol error", "compression flag", "Other", "{"] {
        assert!(!errors.contains(internal), "{internal}: {errors}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_listener_address_is_explained_in_one_sentence() {
    let (plain, secured) = (World::start(), Secured::start_as(Authority::new(), ""));
    let (tls, ca) = (&secured.world, secured.file("ca.crt"));
    let with = |scheme: &str, world: &World, part: &str| {
        let address = world.service().address(part);
        let (_, address) = address.split_once("://").unwrap_or(("", address));
        format!("{scheme}://{address}")
    };
    let cases = [
        (tls, with("http", tls, "grpc"), "use `https://`"),
        (tls, with("http", tls, "rest"), "use `https://`"),
        (
            tls,
            with("https", tls, "rest"),
            "it may be the REST address",
        ),
        (
            &plain,
            with("http", &plain, "rest"),
            "it may be the REST address",
        ),
        (&plain, with("https", &plain, "grpc"), "does not speak TLS"),
        (&plain, with("https", &plain, "rest"), "does not speak TLS"),
    ];
    for (world, url, says) in cases {
        for command in COMMANDS {
            let reach = ["--connect", &url, "--tls-ca", &ca];
            let (code, errors) = run_command(world, &[command, &reach].concat());
            assert_eq!(code, Some(3), "{command:?} {url}: {errors}");
            assert!(errors.contains(says), "{command:?} {url}: {errors}");
            assert_is_a_sentence(&errors);
        }
    }
}
