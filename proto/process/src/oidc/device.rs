//! Signing in from a terminal (RFC 8628), and renewing what that gave.

use std::{fmt, time::Duration};

use serde::Deserialize;

use super::{Fault, Provider, check_address, read};

/// How long a code counts at most, whatever the provider says.
const LIFE_MAX: Duration = Duration::from_secs(3600);
/// How often a provider is asked that does not say it, and the bounds of what it can say.
const INTERVAL: Duration = Duration::from_secs(5);
const INTERVAL_MIN: Duration = Duration::from_secs(1);
const INTERVAL_MAX: Duration = Duration::from_secs(60);
/// Characters of the code that a person enters.
const USER_CODE_MAX: usize = 64;

const DEVICE_CODE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// What a person has to do who signs in, and what the terminal asks with meanwhile.
#[derive(Clone, PartialEq, Eq)]
pub struct DeviceCode {
    /// What the terminal shows to the provider.
    pub secret: String,
    /// What the person enters, fit for a terminal.
    pub user_code: String,
    /// Where.
    pub address: String,
    /// Where the code need not be entered, if there is such a page.
    pub full_address: Option<String>,
    /// How long the code counts.
    pub life: Duration,
    /// How long to wait between two questions.
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

/// What a provider gives to who has signed in.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Tokens {
    /// Who it is.
    pub id_token: Option<String>,
    /// What is shown to services that ask for that one.
    pub access_token: Option<String>,
    /// What gives further tokens.
    pub refresh_token: Option<String>,
    /// For how many seconds the access token counts.
    pub expires_in: Option<u64>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tokens(********)")
    }
}

#[derive(Deserialize)]
struct Answer {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

impl Answer {
    fn read(self) -> Result<DeviceCode, Fault> {
        let is_plain = |char: char| char.is_ascii_graphic() || char == ' ';
        let code = &self.user_code;
        if code.is_empty() || code.len() > USER_CODE_MAX || !code.chars().all(is_plain) {
            let why = "its code is none that a person could enter";
            return Err(Fault::Unfit(why.to_owned()));
        }
        // An address that was read is plain ASCII.
        let address = |text: &str| match check_address(text) {
            Ok(url) => Ok(url.to_string()),
            Err(why) => Err(Fault::Unfit(format!("where to sign in: {why}"))),
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
    /// Asks at that address for a code that lets a user sign in.
    ///
    /// # Errors
    /// When it gives none.
    pub async fn device_code(
        &self,
        endpoint: &str,
        client_id: &str,
        scopes: &str,
    ) -> Result<DeviceCode, Fault> {
        let fields = [("client_id", client_id), ("scope", scopes)];
        let answer: Answer = read(&self.http.post(endpoint, &fields).await?)?;
        answer.read()
    }

    /// Asks whether a user has signed in by a code.
    ///
    /// # Errors
    /// [`Fault::Refused`] with `authorization_pending` or `slow_down` until then.
    pub async fn tokens_of_code(
        &self,
        endpoint: &str,
        client_id: &str,
        code: &DeviceCode,
    ) -> Result<Tokens, Fault> {
        let fields = [
            ("grant_type", DEVICE_CODE_GRANT),
            ("client_id", client_id),
            ("device_code", &code.secret),
        ];
        read(&self.http.post(endpoint, &fields).await?)
    }

    /// Asks for further tokens.
    ///
    /// # Errors
    /// When the provider gives none, as when a user ended the sign-in there.
    pub async fn renewed_tokens(
        &self,
        endpoint: &str,
        client_id: &str,
        refresh_token: &str,
    ) -> Result<Tokens, Fault> {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", client_id),
            ("refresh_token", refresh_token),
        ];
        read(&self.http.post(endpoint, &fields).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(changed: &str, value: serde_json::Value) -> Result<DeviceCode, Fault> {
        let mut answer = serde_json::json!({
            "device_code": "d", "user_code": "ABCD-EFGH",
            "verification_uri": "https://login.example.net/device", "expires_in": 600,
        });
        answer[changed] = value;
        Answer::deserialize(answer).unwrap().read()
    }

    #[test]
    fn what_a_provider_says_has_bounds() {
        let usual = read("interval", serde_json::Value::Null).unwrap();
        assert_eq!((usual.life.as_secs(), usual.interval.as_secs()), (600, 5));
        assert_eq!(read("interval", 0.into()).unwrap().interval, INTERVAL_MIN);
        assert_eq!(
            read("interval", u64::MAX.into()).unwrap().interval,
            INTERVAL_MAX
        );
        assert_eq!(read("expires_in", u64::MAX.into()).unwrap().life, LIFE_MAX);
        for (field, wrong) in [
            ("user_code", ""),
            ("user_code", "\u{1b}[2J"),
            ("user_code", "a\u{202e}b"),
            ("verification_uri", "http://login.example.net/device"),
            ("verification_uri_complete", "javascript:alert(1)"),
        ] {
            let outcome = read(field, wrong.into());
            assert!(matches!(outcome, Err(Fault::Unfit(_))), "{field} {wrong}");
        }
    }

    #[test]
    fn tokens_are_not_shown() {
        let tokens = Tokens {
            id_token: Some("planted".to_owned()),
            ..Tokens::default()
        };
        let code = read("device_code", "planted".into()).unwrap();
        assert!(!format!("{tokens:?} {code:?}").contains("planted"));
    }
}
