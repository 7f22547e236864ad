//! Speaks with a provider of identities by `OpenID Connect`: what it says of itself, and its keys.

mod code;
mod device;
mod http;

use std::net::IpAddr;

use rustls::pki_types::CertificateDer;
use serde::{Deserialize, de::DeserializeOwned};
use url::Url;

pub use self::{
    code::CodeRequest,
    device::{DeviceCode, Tokens},
};

/// Asks a provider. Every request has 10 s, every answer 256 KiB; redirects are not followed, and only
/// addresses with `https` are asked, or such of this machine.
#[derive(Debug, Clone)]
pub struct Provider {
    http: http::Http,
    issuer: String,
}

/// What a provider says of itself.
#[derive(Debug, Clone, Deserialize)]
pub struct Description {
    /// Who issues the tokens; the same text that it was asked by.
    pub issuer: String,
    /// Where its keys are.
    pub jwks_uri: String,
    /// Where a terminal asks for a code; none when it lets no terminal sign in.
    pub device_authorization_endpoint: Option<String>,
    /// Where a browser is sent; none when it lets no browser sign in.
    pub authorization_endpoint: Option<String>,
    /// Where it gives tokens.
    pub token_endpoint: Option<String>,
    /// What can be asked of it; may be less than all.
    #[serde(default)]
    pub scopes_supported: Vec<String>,
}

/// Why a provider gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It does not answer, or not in time.
    #[error("the provider does not answer: {0}")]
    Away(String),
    /// Its answer is none of this protocol.
    #[error("the answer of the provider cannot be used: {0}")]
    Unfit(String),
    /// It says no.
    #[error("the provider refuses: {}", refusal(.code, .description))]
    Refused {
        /// Its word, such as `access_denied`.
        code: String,
        /// Its sentence; may be empty.
        description: String,
    },
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    #[serde(default)]
    error_description: String,
}

fn refusal(code: &str, description: &str) -> String {
    let plain = |text: &str| {
        let shown = text.chars().filter(|it| !it.is_control()).take(200);
        shown.collect::<String>()
    };
    match description {
        "" => plain(code),
        _ => format!("{} ({})", plain(description), plain(code)),
    }
}

/// Checks the address of a provider, or of what it names: `https`, or `http` of this machine.
///
/// # Errors
/// With what would be right.
pub fn check_address(text: &str) -> Result<Url, String> {
    const RIGHT: &str = "expected an address such as \"https://login.example.net\"";
    let url = Url::parse(text).map_err(|error| format!("{RIGHT}: {error}"))?;
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let stays_here = match bare.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_name) => host == "localhost",
    };
    match url.scheme() {
        "https" if !host.is_empty() => Ok(url),
        "http" if stays_here => Ok(url),
        "http" => Err(format!("{RIGHT}; http only for addresses of this machine")),
        _ => Err(RIGHT.to_owned()),
    }
}

/// Checks the address that names a provider: [`check_address`], without query and fragment.
///
/// # Errors
/// With what would be right.
pub fn check_issuer(text: &str) -> Result<(), String> {
    let url = check_address(text)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err("expected an address without `?` and `#`".to_owned());
    }
    Ok(())
}

impl Provider {
    /// Asks the provider at that address, whose certificate is signed by an authority that the machine
    /// trusts, or by one of these.
    pub fn new<'a>(
        issuer: &str,
        authorities: impl IntoIterator<Item = &'a CertificateDer<'static>>,
    ) -> Self {
        Self {
            http: http::Http::new(authorities),
            issuer: issuer.to_owned(),
        }
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// When it does not answer, or speaks for another issuer.
    pub async fn describe(&self) -> Result<Description, Fault> {
        let base = self.issuer.trim_end_matches('/');
        let path = format!("{base}/.well-known/openid-configuration");
        let found: Description = read(&self.http.get(&path).await?)?;
        if found.issuer != self.issuer {
            let other = refusal(&found.issuer, "");
            let why = format!("it speaks for the issuer {other}, not for {}", self.issuer);
            return Err(Fault::Unfit(why));
        }
        Ok(found)
    }

    /// Its keys, as it publishes them.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn keys(&self, description: &Description) -> Result<Vec<u8>, Fault> {
        let (status, body) = self.http.get(&description.jwks_uri).await?;
        if status != 200 {
            return Err(Fault::Unfit(format!(
                "status {status} in place of its keys"
            )));
        }
        Ok(body)
    }
}

fn read<T: DeserializeOwned>((status, body): &(u16, Vec<u8>)) -> Result<T, Fault> {
    if *status == 200 {
        let read = serde_json::from_slice(body);
        return read.map_err(|error| Fault::Unfit(error.to_string()));
    }
    match serde_json::from_slice::<Refusal>(body) {
        Ok(refusal) => Err(Fault::Refused {
            code: refusal.error,
            description: refusal.error_description,
        }),
        Err(_other) => Err(Fault::Unfit(format!("status {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_nobody_listens_to_are_asked() {
        for good in [
            "https://login.example.net",
            "https://login.example.net/realms/a",
            "http://127.0.0.1:4000",
            "http://[::1]:4000",
            "http://localhost:4000/x",
        ] {
            assert_eq!(check_issuer(good), Ok(()), "{good}");
        }
        for wrong in [
            "",
            "login.example.net",
            "http://login.example.net",
            "http://127.0.0.1.example.net",
            "ftp://127.0.0.1",
            "https://login.example.net/?a=b",
            "https://login.example.net/#a",
        ] {
            let refusal = check_issuer(wrong).expect_err(wrong);
            assert!(
                refusal.starts_with("expected an address"),
                "{wrong}: {refusal}"
            );
        }
    }

    #[test]
    fn a_refusal_is_told_without_what_moves_a_terminal() {
        let refused = br#"{"error":"access_denied","error_description":"no\u001b[2J"}"#;
        let fault = read::<Description>(&(400, refused.to_vec())).expect_err("a refusal");
        assert_eq!(
            fault.to_string(),
            "the provider refuses: no[2J (access_denied)"
        );
    }
}
