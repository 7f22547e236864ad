//! Verification of AWS Signature Version 4, as its documentation describes it.

use std::fmt::Write as _;

use bellwether_tests::receiver::Received;
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};

const SECRET: &str = "canary";

/// Asserts that the request is signed for a service in `eu-central-1` with the preset's access key.
pub(super) fn assert_aws_signature(received: &Received, service: &str) {
    let authorization = received.header("authorization");
    let at = received.header("x-amz-date");
    let scope = format!("{}/eu-central-1/{service}/aws4_request", &at[..8]);
    let start = format!("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/{scope}, SignedHeaders=");
    let rest = authorization.strip_prefix(&start).unwrap();
    let (names, signature) = rest.split_once(", Signature=").unwrap();
    for name in ["content-type", "host", "x-amz-date"] {
        assert!(names.split(';').any(|it| it == name), "{names}");
    }

    let header = |name: &str| format!("{name}:{}\n", received.header(name).trim());
    let headers: String = names.split(';').map(header).collect();
    let body = hex(&Sha256::digest(&received.body));
    let (method, path) = (&received.method, &received.path);
    let request = format!("{method}\n{path}\n\n{headers}\n{names}\n{body}");
    let request = hex(&Sha256::digest(request));
    let text = format!("AWS4-HMAC-SHA256\n{at}\n{scope}\n{request}");
    let key = format!("AWS4{SECRET}").into_bytes();
    let key = scope.split('/').fold(key, |key, part| mac(&key, part));
    assert_eq!(hex(&mac(&key, &text)), signature);
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
