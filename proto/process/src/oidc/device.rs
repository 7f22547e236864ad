//! Terminal sign-in with the device flow (RFC 8628), and renewal of tokens.

use std::{fmt, time::Duration};

use serde::Deserialize;

use super::{Provider, ProviderError, check_address, parse_response};

/// Limit on the lifetime of a code, whatever the provider reports.
const LIFE_MAX: Duration = Duration::from_secs(3600);
/// Default polling interval, and its bounds.
const INTERVAL: Duration = Duration::from_secs(5);
const INTERVAL_MIN: Duration = Duration::from_secs(1);
const INTERVAL_MAX: Duration = Duration::from_secs(60);
const USER_CODE_MAX: usize = 64;

const DEVICE_CODE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

#[derive(Clone, PartialEq, Eq)]
pub struct DeviceCode {
    /// The device code, which the terminal sends to the provider.
    pub secret: String,
    /// The code for the user to enter, without control characters.
    pub user_code: String,
    /// The address at which to enter the code.
    pub address: String,
    /// An address that already contains the code; `None` if the provider has no such address.
    pub full_address: Option<String>,
    pub life: Duration,
    pub interval: Duration,
}

impl fmt::Debug for DeviceCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DeviceCode")
            .field("address", &self.address)
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Tokens {
    pub id_token: Option<String>,
    pub access_token: Option<String>,
    pub refresh_token: Option<String>,
    /// Lifetime of the access token, in seconds.
    pub expires_in: Option<u64>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tokens(********)")
    }
}

#[derive(Deserialize)]
struct DeviceResponse {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

impl DeviceResponse {
    fn into_device_code(self) -> Result<DeviceCode, ProviderError> {
        let is_plain = |char: char| char.is_ascii_graphic() || char == ' ';
        let code = &self.user_code;
        if code.is_empty() || code.len() > USER_CODE_MAX || !code.chars().all(is_plain) {
            let why = "the code cannot be typed by a user";
            return Err(ProviderError::Unusable(why.to_owned()));
        }
        // A parsed address contains only visible ASCII characters.
        let address = |text: &str| match check_address(text) {
            Ok(url) => Ok(url.to_string()),
            Err(why) => Err(ProviderError::Unusable(format!(
                "the sign-in address: {why}"
            ))),
        };
        let full_address = self.verification_uri_complete.as_deref().map(address);
        let interval = self.interval.map_or(INTERVAL, Duration::from_secs);
        Ok(DeviceCode {
            address: address(&self.verification_uri)?,
            full_address: full_address.transpose()?,
            life: Duration::from_secs(self.expires_in).min(LIFE_MAX),
            interval: interval.clamp(INTERVAL_MIN, INTERVAL_MAX),
            secret: self.device_code,
            user_code: self.user_code,
        })
    }
}

impl Provider {
    pub async fn device_code(
        &self,
        endpoint: &str,
        client_id: &str,
        scopes: &str,
    ) -> Result<DeviceCode, ProviderError> {
        let fields = [("client_id", client_id), ("scope", scopes)];
        let answer: DeviceResponse = parse_response(&self.http.post(endpoint, &fields).await?)?;
        answer.into_device_code()
    }

    /// Polls for the tokens of a device code.
    ///
    /// # Errors
    /// Returns [`ProviderError::Refused`] with `authorization_pending` or `slow_down` until the user has
    /// signed in.
    pub async fn poll_tokens(
        &self,
        endpoint: &str,
        client_id: &str,
        code: &DeviceCode,
    ) -> Result<Tokens, ProviderError> {
        let fields = [
            ("grant_type", DEVICE_CODE_GRANT),
            ("client_id", client_id),
            ("device_code", &code.secret),
        ];
        parse_response(&self.http.post(endpoint, &fields).await?)
    }

    /// Renews the tokens.
    ///
    /// # Errors
    ///
    /// Returns an error if the provider issues no tokens, for example after the user was signed out
    /// there.
    pub async fn refresh_tokens(
        &self,
        endpoint: &str,
        client_id: &str,
        refresh_token: &str,
    ) -> Result<Tokens, ProviderError> {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", client_id),
            ("refresh_token", refresh_token),
        ];
        parse_response(&self.http.post(endpoint, &fields).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_device_code(
        changed: &str,
        value: serde_json::Value,
    ) -> Result<DeviceCode, ProviderError> {
        let mut answer = serde_json::json!({
            "device_code": "d", "user_code": "ABCD-EFGH",
            "verification_uri": "https://login.example.net/device", "expires_in": 600,
        });
        answer[changed] = value;
        DeviceResponse::deserialize(answer)
            .unwrap()
            .into_device_code()
    }

    #[test]
    fn device_code_response_is_bounded() {
        let usual = parse_device_code("interval", serde_json::Value::Null).unwrap();
        assert_eq!((usual.life.as_secs(), usual.interval.as_secs()), (600, 5));
        assert_eq!(
            parse_device_code("interval", 0.into()).unwrap().interval,
            INTERVAL_MIN
        );
        assert_eq!(
            parse_device_code("interval", u64::MAX.into())
                .unwrap()
                .interval,
            INTERVAL_MAX
        );
        assert_eq!(
            parse_device_code("expires_in", u64::MAX.into())
                .unwrap()
                .life,
            LIFE_MAX
        );
        for (field, wrong) in [
            ("user_code", ""),
            ("user_code", "\u{1b}[2J"),
            ("user_code", "a\u{202e}b"),
            ("verification_uri", "http://login.example.net/device"),
            ("verification_uri_complete", "javascript:alert(1)"),
        ] {
            let outcome = parse_device_code(field, wrong.into());
            assert!(
                matches!(outcome, Err(ProviderError::Unusable(_))),
                "{field} {wrong}"
            );
        }
    }

    #[test]
    fn debug_output_hides_tokens() {
        let tokens = Tokens {
            id_token: Some("planted".to_owned()),
            ..Tokens::default()
        };
        let code = parse_device_code("device_code", "planted".into()).unwrap();
        assert!(!format!("{tokens:?} {code:?}").contains("planted"));
    }
}
