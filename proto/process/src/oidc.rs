//! A client for OpenID Connect providers: discovery and keys.

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

/// A client for one provider. Each request is limited to 10 s and 256 KiB; redirects are not
/// followed, and only `https` and addresses of this machine are accepted.
#[derive(Debug, Clone)]
pub struct Provider {
    http: http::Http,
    issuer: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Description {
    /// The issuer of the tokens; equal to the configured address.
    pub issuer: String,
    pub jwks_uri: String,
    pub device_authorization_endpoint: Option<String>,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    /// The scopes that can be requested; possibly incomplete.
    #[serde(default)]
    pub scopes_supported: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    #[error("the provider does not respond: {0}")]
    Unreachable(String),
    #[error("unusable response from the provider: {0}")]
    Unusable(String),
    #[error("the provider refused: {}", format_error(.code, .description))]
    Refused {
        /// The error code, such as `access_denied`.
        code: String,
        /// The description; may be empty.
        description: String,
    },
}

#[derive(Deserialize)]
struct ErrorBody {
    error: String,
    #[serde(default)]
    error_description: String,
}

fn format_error(code: &str, description: &str) -> String {
    let plain = |text: &str| {
        let shown = text.chars().filter(|it| !it.is_control()).take(200);
        shown.collect::<String>()
    };
    match description {
        "" => plain(code),
        _ => format!("{} ({})", plain(description), plain(code)),
    }
}

/// Checks the address of a provider or of an endpoint: `https`, or `http` on this machine.
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
        "http" => Err(format!("{RIGHT}; http only for addresses on this machine")),
        _ => Err(RIGHT.to_owned()),
    }
}

/// Checks an issuer: [`check_address`], without query and fragment.
pub fn check_issuer(text: &str) -> Result<(), String> {
    let url = check_address(text)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err("expected an address without `?` and `#`".to_owned());
    }
    Ok(())
}

impl Provider {
    /// Creates a client for the provider at that address. Its certificate must be signed by an
    /// authority that the machine trusts or by one of `authorities`.
    pub fn new<'a>(
        issuer: &str,
        authorities: impl IntoIterator<Item = &'a CertificateDer<'static>>,
    ) -> Self {
        Self {
            http: http::Http::new(authorities),
            issuer: issuer.to_owned(),
        }
    }

    /// Fetches the discovery document.
    ///
    /// # Errors
    /// Returns an error if the provider is unreachable or names another issuer.
    pub async fn describe(&self) -> Result<Description, ProviderError> {
        let base = self.issuer.trim_end_matches('/');
        let path = format!("{base}/.well-known/openid-configuration");
        let found: Description = parse_response(&self.http.get(&path).await?)?;
        if found.issuer != self.issuer {
            let other = format_error(&found.issuer, "");
            let why = format!("the issuer is {other}, not {}", self.issuer);
            return Err(ProviderError::Unusable(why));
        }
        Ok(found)
    }

    pub async fn fetch_keys(&self, description: &Description) -> Result<Vec<u8>, ProviderError> {
        let (status, body) = self.http.get(&description.jwks_uri).await?;
        if status != 200 {
            return Err(ProviderError::Unusable(format!(
                "the key request returned status {status}"
            )));
        }
        Ok(body)
    }
}

fn parse_response<T: DeserializeOwned>(
    (status, body): &(u16, Vec<u8>),
) -> Result<T, ProviderError> {
    if *status == 200 {
        let read = serde_json::from_slice(body);
        return read.map_err(|error| ProviderError::Unusable(error.to_string()));
    }
    match serde_json::from_slice::<ErrorBody>(body) {
        Ok(refusal) => Err(ProviderError::Refused {
            code: refusal.error,
            description: refusal.error_description,
        }),
        Err(_other) => Err(ProviderError::Unusable(format!("status {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuer_must_use_https_or_loopback() {
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
    fn provider_error_is_shown_without_control_characters() {
        let refused = br#"{"error":"access_denied","error_description":"no\u001b[2J"}"#;
        let error = parse_response::<Description>(&(400, refused.to_vec())).expect_err("a refusal");
        assert_eq!(
            error.to_string(),
            "the provider refused: no[2J (access_denied)"
        );
    }
}
